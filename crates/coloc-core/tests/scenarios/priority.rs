//! The task with the higher priority goes first; among equals, arrival decides.

use crate::testkit::{World, exclusive, gib, mps, task};
use coloc_core::policy::{FairOrder, Place, Queue};
use coloc_core::{Event, Policy};

fn disciplines() -> [Policy; 4] {
    let best_effort = mps(Queue::BestEffort, Place::FirstFit);
    [
        exclusive(Queue::Fifo),
        exclusive(Queue::Backfill),
        best_effort,
        // That work is short does not count against a priority.
        mps(Queue::LeastWork, Place::FirstFit),
    ]
}

#[test]
fn a_higher_priority_goes_first() {
    for policy in disciplines() {
        let mut world = World::new("1xA100-40GB", policy);
        let whole = task().gib(40).secs(60);
        let running = world.submit(whole);
        let [nice, plain, second, urgent] =
            world.submit_all([whole.priority(-5), whole, whole, whole.priority(3)]);
        let mut last = running;
        for next in [urgent, plain, second, nice] {
            world.finish(last);
            assert!(world.runs(next), "{:?}: task {next}", policy.queue);
            last = next;
        }
    }
}

#[test]
fn under_fair_it_orders_the_tasks_of_one_user() {
    for fair_order in [FairOrder::Arrival, FairOrder::Shortest] {
        let policy = Policy { fair_order, ..mps(Queue::Fair, Place::FirstFit) };
        let mut world = World::new("1xA100-40GB", policy);
        let running = world.submit(task().gib(40).user(0));
        let [mine, urgent, theirs] = world.submit_all([
            task().gib(40).user(0).secs(10),
            task().gib(40).user(0).secs(60).priority(9),
            task().gib(40).user(1).secs(60),
        ]);
        world.advance(crate::testkit::secs(30));
        world.finish(running);
        assert!(world.runs(theirs), "no priority takes another user's share");
        world.advance(crate::testkit::secs(60));
        world.finish(theirs);
        world.advance(crate::testkit::secs(60));
        assert!(world.runs(urgent) && world.waits(mine));
    }
}

#[test]
fn a_waiting_task_can_be_changed_and_keeps_its_place() {
    for policy in disciplines() {
        let mut world = World::new("1xA100-40GB", policy);
        let whole = task().gib(40).secs(60);
        let running = world.submit(whole);
        let [first, second, third] = world.submit_all([whole, whole, whole]);
        // Changed in everything but its priority, it stays where it was.
        world.tell(Event::Changed(task().gib(39).secs(60).build(first.0)));
        world.tell(Event::Changed(whole.priority(1).build(third.0)));
        let mut last = running;
        for next in [third, first, second] {
            world.finish(last);
            assert!(world.runs(next), "{:?}: task {next}", policy.queue);
            last = next;
        }
    }
}

#[test]
fn a_task_that_asks_for_less_may_fit_at_once() {
    let mut world = World::new("1xA100-40GB", mps(Queue::BestEffort, Place::FirstFit));
    let running = world.submit(task().gib(30));
    let waits = world.submit(task().gib(20));
    assert!(world.waits(waits));
    world.tell(Event::Changed(task().gib(10).build(waits.0)));
    assert!(world.runs(waits) && world.runs(running));
    // One that runs keeps what it was promised.
    world.tell(Event::Changed(task().gib(40).build(waits.0)));
    assert_eq!(world.booked(0), gib(40));
}

#[test]
fn disciplines_that_rank_by_service_take_a_change_too() {
    let mut world = World::new("2xA100-40GB", exclusive(Queue::Srtf));
    let running = world.submit_all([task().secs(10), task().secs(10)]);
    let [long, short] = world.submit_all([task().secs(600), task().secs(60)]);
    world.tell(Event::Changed(task().gpus(2).secs(20).build(long.0)));
    running.into_iter().for_each(|task| world.finish(task));
    assert!(world.runs(long) && world.waits(short));
    assert_eq!(world.gpus(long).len(), 2);
}

/// Classes of priority first, then the discipline: also where the discipline would say the opposite.
#[test]
fn a_higher_priority_goes_first_where_tasks_are_ranked() {
    for queue in
        [Queue::Sjf, Queue::Srtf, Queue::Srsf, Queue::Las2d, Queue::Gittins2d, Queue::Allox]
    {
        let mut world = World::new("1xA100-40GB", exclusive(queue));
        let running = world.submit(task().secs(600).priority(9));
        let [nice, short, plain, urgent] = world.submit_all([
            task().secs(1).priority(-5),
            task().secs(10),
            task().secs(60),
            task().secs(500).priority(3),
        ]);
        assert!(world.runs(running), "{queue:?}");
        let mut last = running;
        for next in [urgent, short, plain, nice] {
            world.finish(last);
            assert!(world.runs(next), "{queue:?}: task {next}");
            last = next;
        }
    }
}

#[test]
fn a_higher_priority_preempts_where_the_discipline_may() {
    for queue in [Queue::Srtf, Queue::Srsf, Queue::Las2d, Queue::Gittins2d] {
        let mut world = World::new("1xA100-40GB", exclusive(queue));
        let short = world.submit(task().secs(10));
        let urgent = world.submit(task().secs(600).priority(1));
        assert!(world.runs(urgent) && world.waits(short), "{queue:?}");
        // A running task that is made less urgent makes way, and one that is made more urgent stays.
        world.tell(Event::Changed(task().secs(600).priority(-1).build(urgent.0)));
        assert!(world.runs(short) && world.waits(urgent), "{queue:?}");
        world.tell(Event::Changed(task().secs(10).priority(7).build(short.0)));
        world.submit(task().secs(1).priority(6));
        assert!(world.runs(short), "{queue:?}");
    }
    let mut world = World::new("1xA100-40GB", exclusive(Queue::Sjf));
    let short = world.submit(task().secs(10));
    world.submit(task().secs(1).priority(1));
    assert!(world.runs(short), "sjf preempts no task");
}
