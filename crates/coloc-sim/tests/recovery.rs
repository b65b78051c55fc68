//! Tasks that die for want of memory, and what becomes of them.

mod common;

use coloc_core::policy::{Knowledge, Place, Queue};
use coloc_core::{Policy, Preset};
use coloc_model::{Bytes, Share, TaskState};
use coloc_sim::{Estimator, Silent, Simulation, SimulationError, TaskResult};
use common::{fleet, run, trace};

/// A policy that is told nothing and lets two tasks of any size share a GPU.
fn blind(place: Place) -> Policy {
    let knowledge = Knowledge::Unknown { min_free: Bytes::from_mib(1024) };
    Policy { knowledge, ..Policy::plain(Queue::BestEffort, place, Share::Mps) }
}

fn simulate(spec: &str, policy: Policy, tasks: &[(u64, u64, u32, u64, f64)]) -> Vec<TaskResult> {
    run(&Simulation::new(fleet(spec), policy, Estimator::None), &trace(tasks)).1
}

#[test]
fn a_task_that_is_brought_back_starts_over() {
    // Two of 30 GiB on one GPU: the first has settled, the second dies as soon as it wants 18.
    let tasks = [(0, 600, 1, 30, 0.1), (30, 600, 1, 30, 0.1)];
    let results = simulate("1xA100-40GB", blind(Place::FirstFit), &tasks);
    let [first, second] = results[..] else { panic!("two tasks") };
    assert_eq!((first.ooms, second.ooms), (0, 1));
    assert_eq!(second.state, TaskState::Completed);
    assert!((second.ran_s - 600.0).abs() < 2e-3, "all of its work, not what was left");
    assert!(second.end > first.end);
}

#[test]
fn the_end_that_a_dead_run_would_have_had_means_nothing() {
    // It dies young, waits, and is running again when its first run would have ended.
    let tasks = [(0, 100, 1, 30, 0.1), (30, 150, 1, 30, 0.1)];
    let results = simulate("1xA100-40GB", blind(Place::FirstFit), &tasks);
    let again = results[1];
    assert_eq!(again.ooms, 1);
    assert!(again.ran_s >= 150.0 - 2e-3, "{} s", again.ran_s);
}

#[test]
fn on_a_mixed_fleet_it_finds_the_gpu_that_is_large_enough() {
    for place in [Place::Exclusive, Place::FirstFit, Place::LeastInterference] {
        let results = simulate("1xT4-16GB,1xA100-40GB", blind(place), &[(0, 60, 1, 20, 0.5)]);
        assert_eq!(results[0].state, TaskState::Completed, "{place:?}");
        assert!(results[0].ooms <= 1, "{place:?}: {} deaths", results[0].ooms);
    }
}

#[test]
fn a_gang_that_no_node_has_memory_for_is_refused() {
    let policy = Preset::Coloc.policy(Estimator::None.knowledge());
    let simulation = Simulation::new(fleet("2xT4-16GB,1xA100-40GB"), policy, Estimator::None);
    let refused = simulation.run(&trace(&[(0, 60, 2, 20, 0.5)]), &mut Silent);
    assert!(matches!(refused, Err(SimulationError::TooLarge { .. })));
}
