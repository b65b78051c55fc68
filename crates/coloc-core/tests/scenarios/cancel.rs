//! Cancelling.

use crate::testkit::{World, exclusive, gib, mps, task};
use coloc_core::Event;
use coloc_core::policy::{Place, Queue};
use coloc_model::{Outcome, TaskId, TaskState};

#[test]
fn a_waiting_task_is_gone_at_once() {
    let mut world = World::new("1xA100-40GB", exclusive(Queue::BestEffort));
    let [running, waiting] = world.submit_all([task(), task()]);
    world.cancel(waiting);
    assert_eq!(world.state(waiting), TaskState::Cancelled);
    world.finish(running);
    assert_eq!(world.running().count(), 0);
}

#[test]
fn a_running_task_keeps_its_gpu_until_it_is_off() {
    let mut world = World::new("1xA100-40GB", exclusive(Queue::Fifo));
    let [running, next] = world.submit_all([task(), task()]);
    world.cancel(running);
    assert!(world.is_stopping(running) && world.waits(next));
    assert_eq!(world.state(running), TaskState::Running);
    world.stopped(running);
    assert_eq!(world.state(running), TaskState::Cancelled);
    assert!(world.runs(next));
}

#[test]
fn asking_twice_stops_once() {
    let mut world = World::new("1xA100-40GB", exclusive(Queue::Fifo));
    let running = world.submit(task());
    world.cancel(running);
    assert_eq!(world.tell(Event::StopRequested(running)), []);
}

#[test]
fn how_a_task_ends_that_was_to_be_stopped() {
    let cases = [
        (Outcome::Completed, TaskState::Completed),
        (Outcome::Failed, TaskState::Cancelled),
        (Outcome::OutOfMemory { wanted: gib(1) }, TaskState::Cancelled),
    ];
    for (outcome, expected) in cases {
        let mut world = World::new("1xA100-40GB", exclusive(Queue::Fifo));
        let running = world.submit(task());
        world.cancel(running);
        match outcome {
            Outcome::Completed => world.finish(running),
            Outcome::Failed => world.fail(running),
            Outcome::OutOfMemory { wanted } => world.oom(running, wanted),
        }
        assert_eq!(world.state(running), expected);
        // The executor's word comes late and changes nothing.
        assert_eq!(world.tell(Event::Stopped(running)), []);
    }
}

#[test]
fn a_task_that_waits_for_recovery_can_be_cancelled() {
    let mut world = World::new("1xA100-40GB", mps(Queue::BestEffort, Place::FirstFit));
    let [victim, other] = world.submit_all([task().gib(1), task().gib(30)]);
    world.oom(victim, gib(20));
    assert_eq!(world.state(victim), TaskState::Recovering);
    world.cancel(victim);
    assert_eq!(world.state(victim), TaskState::Cancelled);
    world.finish(other);
    assert_eq!(world.running().count(), 0);
}

#[test]
fn events_about_strangers_change_nothing() {
    let mut world = World::new("1xA100-40GB", mps(Queue::BestEffort, Place::FirstFit));
    let task = TaskId(77);
    let outcome = Outcome::Completed;
    for event in [
        Event::Ended { task, outcome },
        Event::StopRequested(task),
        Event::Stopped(task),
        Event::TaskSeen { task, used: gib(1), activity: None },
    ] {
        assert_eq!(world.tell(event), []);
    }
}

#[test]
fn the_end_of_a_task_that_waits_is_not_believed() {
    let mut world = World::new("1xA100-40GB", exclusive(Queue::Fifo));
    let [_, waiting] = world.submit_all([task(), task()]);
    world.tell(Event::Ended { task: waiting, outcome: Outcome::Completed });
    assert!(world.waits(waiting));
}
