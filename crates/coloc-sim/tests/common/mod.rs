//! What the tests of the simulator share.
#![allow(dead_code, unused_imports)] // Each test binary uses its part.

#[path = "shared.rs"]
mod shared;
pub(crate) use shared::shared;

use coloc_core::policy::{Place, Queue};
use coloc_core::{Policy, Preset};
use coloc_model::{Bytes, Fleet, Millis, Share, SignatureId, Time, UserId};
use coloc_physics::{Phases, Profile};
use coloc_sim::trace::{Format, read};
use coloc_sim::{Estimator, Names, Silent, Simulation, Summary, TaskResult, Trace, TraceTask};
use std::fs::File;

/// The server of the published results.
pub(crate) const SERVER: &str = "4xA100-40GB";

/// One of CARMA's traces.
pub(crate) fn carma_trace(name: &str) -> Option<Trace> {
    let path = shared(&format!("traces/carma/{name}.csv"))?;
    let file = File::open(&path).expect("a readable trace");
    Some(read(&path, file, Format::Carma).expect("a valid trace"))
}

pub(crate) fn fleet(spec: &str) -> Fleet {
    spec.parse().expect("a valid fleet")
}

pub(crate) fn preset(preset: Preset, estimator: Estimator) -> Simulation {
    Simulation::new(fleet(SERVER), preset.policy(estimator.knowledge()), estimator)
}

pub(crate) fn exclusive() -> Simulation {
    let policy = Policy::plain(Queue::Fifo, Place::Exclusive, Share::Exclusive);
    Simulation::new(fleet(SERVER), policy, Estimator::Oracle)
}

pub(crate) fn run(simulation: &Simulation, trace: &Trace) -> (Summary, Vec<TaskResult>) {
    simulation.run(trace, &mut Silent).expect("a trace that fits the fleet")
}

/// A trace of (submission, run time in seconds, GPUs, GiB, SM activity), each of its own kind.
pub(crate) fn trace(tasks: &[(u64, u64, u32, u64, f64)]) -> Trace {
    let (mut names, mut users) = (Names::default(), Names::default());
    users.number("user");
    let tasks =
        tasks.iter().enumerate().map(|(index, &(submit, duration, gpus, gib, sm))| TraceTask {
            submit: Time::START + Millis::from_secs(submit),
            signature: SignatureId(names.number(&format!("task{index}"))),
            user: UserId(0),
            gpus,
            duration: Millis::from_secs(duration),
            profile: Profile::new(sm, sm, sm / 2.0, sm / 2.0, Bytes::from_mib(gib * 1024)),
            exclusive: false,
            priority: 0,
            phases: Phases::NONE,
            declared: None,
            recorded: None,
            checkpoint: None,
        });
    let tasks = tasks.collect();
    Trace::new(tasks, names, users)
}
