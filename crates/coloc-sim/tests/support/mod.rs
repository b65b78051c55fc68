//! Published data that lies beside the project, where it does.
#![allow(dead_code)] // Each test binary uses a part of it.

use coloc_core::Policy;
use coloc_model::Fleet;
use coloc_sim::trace::{self, Format};
use coloc_sim::{Estimator, Silent, Simulation, Summary, TaskResult, Trace};
use std::path::{Path, PathBuf};

/// A file of the shared data; without it the test says loudly that it was skipped.
pub(crate) fn shared(name: &str) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let file = root.join(name);
    if file.exists() {
        return Some(file);
    }
    eprintln!("SKIPPED: {} is not there", file.display());
    None
}

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
