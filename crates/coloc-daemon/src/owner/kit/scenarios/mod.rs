//! What owners do, a scenario each.

mod accounting;
mod administration;
mod commands;
mod events;
mod lifecycle;
mod monitor;
mod notices;

use super::*;
use crate::owner::Refused;
use coloc_api::request::{ArrayRequest, GpuName, GpuService, SignalRequest};
use coloc_api::spec::{Dependency, DependencyKind, TaskUpdate};
use coloc_core::policy::{Place, Queue};
use coloc_core::preset::{MemoryKnowledge, Preset};
use coloc_model::Share;

/// Whole GPUs, in the order of arrival.
fn whole() -> Policy {
    Policy::plain(Queue::Fifo, Place::Exclusive, Share::Exclusive)
}

/// Shared GPUs, by the memory contract.
fn shared() -> Policy {
    Preset::Coloc.policy(MemoryKnowledge::Estimate)
}

fn one_gpu() -> OwnerKit {
    OwnerKit::new("1xA100-40GB", whole())
}

fn declared(memory: u64) -> TaskSpec {
    TaskSpec { gpu_memory: Some(gib(memory)), ..train() }
}

fn after(task: TaskId, when: DependencyKind) -> TaskSpec {
    TaskSpec { after: vec![Dependency::new(task, when)], ..train() }
}

fn array(count: u32, at_once: u32) -> Submission {
    let request = ArrayRequest { indices: (0..count).collect(), at_once: Some(at_once) };
    Submission { array: Some(request), ..Submission::of(train()) }
}
