//! CARMA: what its second version gained on its own trace.

use super::lab::Lab;
use super::page::Page;
use crate::run::Failed;

pub(super) fn write(lab: &Lab, page: &mut Page) -> Result<(), Failed> {
    page.heading("CARMA: 60 mixed tasks on four A100");
    page.line("Its second version with GPUMemNet's estimates against exclusive use. Published: on real GPUs, about. More in [policies.md](policies.md).\n");
    let trace = lab.data("traces/carma/t1.csv");
    let run =
        |flags: &str| lab.simulate(&trace, &format!("--format carma --fleet 4xA100-40GB {flags}"));
    let (exclusive, shared) = (run("--share exclusive")?, run("--preset carma-v2")?);
    let change = |field: &str| 100.0 * (shared.number(field) / exclusive.number(field) - 1.0);
    let row = |what: &str, published: &str, field: &str| {
        let ours = format!("{:+.1} %", change(field));
        vec![what.to_owned(), published.to_owned(), ours, "predicted".to_owned()]
    };
    let rows = [row("makespan", "−35 %", "makespan_s"), row("energy", "−15 %", "energy_j")];
    page.table(&["", "published", "ours", ""], &rows);
    Ok(())
}
