//! What holds after every event. [`World`] itself checks that no task runs or ends twice and calls the
//! scheduler's own `sanity_check`: promises within capacity, whole gangs, no task lost.

use super::arbitrary::{Step, any_fleet, any_policy, any_steps};
use crate::testkit::World;
use coloc_core::Policy;
use coloc_core::policy::{OnOom, Place, Queue};
use coloc_model::{Bytes, GpuId, Millis, TaskId, TaskState};
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Every task that was submitted is in exactly one place.
fn nobody_is_lost(world: &World) {
    let waiting: BTreeSet<TaskId> = world.scheduler.waiting().collect();
    for id in (0..world.submitted()).map(TaskId) {
        let waits = waiting.contains(&id);
        let is_live = world.scheduler.state(id).is_some();
        assert_eq!(is_live, waits || world.runs(id), "task {id}");
        assert!(!(waits && world.runs(id)), "task {id} waits and runs");
        // Panics for a task that is neither live nor ended.
        let state = world.state(id);
        let ended =
            !matches!(state, TaskState::Pending | TaskState::Running | TaskState::Recovering);
        assert_eq!(ended, !is_live, "task {id} is {state:?}");
    }
}

fn placements_are_legal(world: &World, policy: &Policy) {
    let gpus = world.scheduler.gpus();
    for id in world.running() {
        let on = world.gpus(id);
        let distinct: BTreeSet<u32> = on.iter().copied().collect();
        assert_eq!(distinct.len(), on.len(), "task {id} twice on a GPU");
        let nodes: BTreeSet<_> = on.iter().map(|&gpu| gpus.get(GpuId(gpu)).node).collect();
        assert!(policy.spans_nodes() || nodes.len() == 1, "task {id} spans nodes");
    }
    for (gpu, state) in gpus.iter() {
        let residents = state.residents();
        let promised: Bytes = residents.iter().map(|booking| booking.bytes).sum();
        assert!(promised <= state.capacity, "GPU {gpu}");
        assert!(!policy.needs_idle() || residents.len() <= 1, "GPU {gpu} is shared");
        let limit = policy.max_tasks.map_or(usize::MAX, |limit| limit as usize);
        assert!(residents.len() <= limit, "GPU {gpu} is crowded");
        let users: BTreeSet<_> = residents.iter().map(|booking| booking.user).collect();
        assert!(!policy.same_user || users.len() <= 1, "GPU {gpu} mixes users");
    }
}

/// Ends whatever runs until no task is left.
fn drain(world: &mut World) {
    for _ in 0..10_000 {
        let running: Vec<TaskId> = world.running().collect();
        match running.first() {
            Some(&id) if world.is_stopping(id) => world.stopped(id),
            Some(&id) => world.finish(id),
            None if world.scheduler.waiting().next().is_none() => return,
            None => world.advance(Millis::from_secs(100)),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn nothing_is_lost_run_twice_or_promised_twice(
        fleet in any_fleet(),
        policy in any_policy(),
        steps in any_steps(60),
    ) {
        let mut world = World::new(fleet, policy);
        for step in steps {
            world.step(step);
            nobody_is_lost(&world);
            placements_are_legal(&world, &policy);
        }
    }

    #[test]
    fn the_same_events_have_the_same_effects(
        fleet in any_fleet(),
        policy in any_policy(),
        steps in any_steps(60),
    ) {
        let play = || {
            let mut world = World::new(fleet, policy);
            steps.iter().for_each(|&step| world.step(step));
            let placements: Vec<_> = world.running().map(|id| world.gpus(id)).collect();
            (world.launches.clone(), placements, world.next_wake())
        };
        prop_assert_eq!(play(), play());
    }

    #[test]
    fn who_failed_by_itself_is_never_retried(
        policy in any_policy(),
        steps in any_steps(40),
    ) {
        let mut world = World::new("4xA100-40GB", policy);
        for step in steps {
            let fails = match step {
                Step::Fail(which) => {
                    let running: Vec<TaskId> = world.running().collect();
                    running.get(which % running.len().max(1)).copied()
                }
                _ => None,
            };
            world.step(step);
            if let Some(task) = fails {
                let ended = matches!(world.state(task), TaskState::Failed | TaskState::Cancelled);
                prop_assert!(ended);
            }
        }
    }

    #[test]
    fn retries_are_bounded(policy in any_policy(), steps in any_steps(60)) {
        // A preempted task is launched again, too.
        let policy = Policy { preemption: None, ..policy };
        let mut world = World::new("2xA100-40GB", policy);
        steps.into_iter().for_each(|step| world.step(step));
        let most = match policy.recovery.on_oom {
            OnOom::Fail => 1,
            _ => 1 + policy.recovery.retries as usize,
        };
        for id in (0..world.submitted()).map(TaskId) {
            let launches = world.launches.iter().filter(|&&(_, launched)| launched == id).count();
            prop_assert!(launches <= most, "task {} was launched {} times", id, launches);
        }
    }

    /// With nothing in the way but other tasks, every task runs once they have ended.
    #[test]
    fn everybody_runs_in_the_end(
        policy in any_policy(),
        fleet in any_fleet(),
        steps in any_steps(40),
    ) {
        use coloc_core::policy::{Gate, MemoryBasis};
        // A device that reports memory in use while no task is on it would be in the way for ever.
        let policy = Policy { memory: MemoryBasis::Ledger, gate: Gate::Open, ..policy };
        let mut world = World::new(fleet, policy);
        steps.into_iter().for_each(|step| world.step(step));
        drain(&mut world);
        let left: Vec<_> = world.scheduler.waiting().collect();
        prop_assert!(left.is_empty(), "{left:?} wait on empty GPUs");
    }

    /// `explain` and the pass agree: a task waits exactly while too few GPUs of a node would take it.
    #[test]
    fn who_is_skipped_has_a_reason(
        fleet in any_fleet(),
        policy in any_policy(),
        steps in any_steps(50),
    ) {
        let policy = Policy {
            queue: Queue::BestEffort,
            pace: coloc_core::policy::Pace::default(),
            starvation_limit: None,
            ..policy
        };
        let mut world = World::new(fleet, policy);
        for step in steps {
            world.step(step);
            world.tell(coloc_core::Event::Wake);
            for id in world.scheduler.waiting().collect::<Vec<_>>() {
                let explained = world.scheduler.explain(world.now, id).expect("it waits");
                prop_assert!(
                    explained.stopped_by_recovery || !could_start(&world, &policy, &explained),
                    "task {} waits although GPUs would take it: {:?}", id, explained
                );
            }
        }
    }
}

fn could_start(world: &World, policy: &Policy, explained: &coloc_core::Explanation) -> bool {
    let gpus = world.scheduler.gpus();
    let willing: Vec<GpuId> = explained
        .verdicts
        .iter()
        .filter(|verdict| verdict.refusals.is_empty())
        .map(|verdict| verdict.gpu)
        .collect();
    let wanted = explained.gpus as usize;
    let on_node = |gpu: GpuId| {
        let node = gpus.get(gpu).node;
        willing.iter().filter(|&&other| gpus.get(other).node == node).count()
    };
    match policy.place {
        Place::Any => willing.len() >= wanted,
        _ => willing.iter().any(|&gpu| on_node(gpu) >= wanted),
    }
}
