//! `coloc demo`: the main job in a few seconds, with nothing to set up.

use crate::args::named_policy;
use crate::args::physics::PhysicsArgs;
use crate::error::CliError;
use crate::output::{comparison, files, print_text};
use crate::report;
use crate::verbs::compare;
use clap::Args;
use coloc_model::Fleet;
use coloc_sim::trace;
use std::path::PathBuf;

const FLEET: &str = "4xA100-40GB";
const POLICIES: [&str; 3] = ["exclusive", "carma-v2:gpumemnet", "coloc:oracle"];

/// See what collocation does for a shared server: 90 tasks, 4 GPUs, three policies
#[derive(Args, Debug)]
pub(crate) struct Demo {
    /// Where to write the page with all plots
    #[arg(long, value_name = "OUT.html", default_value = "coloc-demo.html")]
    html: PathBuf,
}

impl Demo {
    pub(crate) fn run(self) -> Result<(), CliError> {
        let fleet: Fleet = FLEET.parse()?;
        let trace = trace::mix90();
        let policies: Vec<_> =
            POLICIES.iter().map(|text| named_policy::parse(text)).collect::<Result<_, _>>()?;
        print_text(
            "A server with four A100-40GB, and 90 training tasks that arrive over three and a half\n\
             hours (CARMA's mixed trace). Today each task gets a GPU of its own; what if they shared?\n",
        )?;
        let physics = PhysicsArgs::default();
        let runs = compare::play(&policies, &trace, &fleet, &physics, true)?;
        let name = "the 90-task trace";
        print_text(&comparison::render(name, &fleet, &runs))?;
        let page = report::compare_page(&compare::page(name, &trace, &fleet, &runs));
        files::write(&self.html, |output| output.write_all(page.as_bytes()))?;
        print_text(&format!(
            "\nexclusive is one task a GPU; carma-v2 is the published collocating manager with its own\n\
             memory estimates; coloc is ours, told the measured memory. Nothing here was measured: the\n\
             model behind it, and how far it agrees with published results, is in docs/physics.md.\n\n\
             Gantt charts, SM activity, memory and power over time: {}",
            self.html.display()
        ))
    }
}
