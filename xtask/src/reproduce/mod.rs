//! `cargo xtask reproduce`: runs what others published and writes `docs/reproduction.md` with both numbers
//! side by side, and its plots. With `--check` nothing is written: it says whether the page is up to date.

mod allox;
mod carma;
mod combination;
mod lab;
mod page;
mod plot;
mod shuffles;
mod tiresias;

use crate::run::{self, Failed};
use lab::Lab;
use page::Page;
use std::path::{Path, PathBuf};

const INTRODUCTION: &str = "Written by `cargo xtask reproduce`; do not edit. Every row has a published number, ours, and what ours is:

- **reproduced**: the same inputs and rules give the same number;
- **predicted**: our simulator's answer to the same question. The published one was measured on hardware, or on a trace that is not public, so they need not agree;
- **could not be had**: what it needs is not public, or not here.

Nothing on this page was measured on a GPU by us. How the model of shared GPUs was calibrated is in [physics.md](physics.md).
";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn data() -> PathBuf {
    root().join("../shared/data")
}

/// The published traces are there.
pub(crate) fn has_data() -> bool {
    data().is_dir()
}

/// Makes the page, or checks it. Without the traces that is an error: a check that was skipped has not passed.
pub(crate) fn run(check: bool) -> Result<(), Failed> {
    let (root, data) = (root(), data());
    if !has_data() {
        let step = format!("{}: the published traces are not there", data.display());
        return Err(Failed { step });
    }
    run::cargo(&["build", "--release", "-p", "coloc"])?;
    let lab = Lab::new(&root, data)?;
    let mut page = Page::new("Reproduction", INTRODUCTION);
    tiresias::write(&lab, &mut page)?;
    allox::write(&lab, &mut page)?;
    combination::write(&lab, &mut page)?;
    carma::write(&lab, &mut page)?;
    shuffles::write(&lab, &mut page)?;
    not_had(&mut page);
    if check { page.check(&root.join("docs")) } else { page.save(&root.join("docs")) }
}

fn not_had(page: &mut Page) {
    page.heading("What could not be had");
    page.table(
        &["published", "where", "why not"],
        &[
            ["5.5x better mean completion time than YARN-CS", "Tiresias, 60 P100s", "its testbed trace is not public; the table above has what the simulator gives on samples of the same cluster"],
            ["2x better than Gandiva", "Tiresias, simulation", "the trace is not public, and Gandiva's profiles are not either"],
            ["percentiles, preemption seconds, PACKLIMIT", "Tiresias", "not in any source at hand"],
            ["95 % lower mean completion time", "AlloX, up to, at high load", "its jobs' profiles on CPU and GPU are not public; the table above has Gavel's"],
            ["3.19x, 2.38x, 42x", "Salus", "inside one device; not part of the cluster scale"],
            ["the second trace of CARMA's second version", "CARMA", "not public"],
        ]
        .map(|row| row.map(str::to_owned).to_vec()),
    );
}
