//! What tests on published data share.
#![allow(dead_code, unused_imports)] // Each test binary uses a part of it.

#[path = "../common/shared.rs"]
mod shared;
pub(crate) use shared::shared;

use coloc_core::Policy;
use coloc_model::Fleet;
use coloc_sim::trace::{self, Format};
use coloc_sim::{Estimator, Silent, Simulation, Summary, TaskResult, Trace};
use std::path::Path;

pub(crate) fn read(file: &Path, format: Format) -> Trace {
    let input = std::fs::File::open(file).expect("a readable file");
    trace::read(file, std::io::BufReader::new(input), format).expect("a valid trace")
}

pub(crate) fn fleet(spec: &str) -> Fleet {
    spec.parse().expect("a valid fleet")
}

/// A simulation with exact knowledge of memory.
pub(crate) fn simulation(spec: &str, policy: Policy) -> Simulation {
    Simulation::new(fleet(spec), policy, Estimator::Oracle)
}

pub(crate) fn play(spec: &str, policy: Policy, trace: &Trace) -> (Summary, Vec<TaskResult>) {
    simulation(spec, policy).run(trace, &mut Silent).expect("the trace fits the fleet")
}
