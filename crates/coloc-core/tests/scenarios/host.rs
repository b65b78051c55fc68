//! CPUs and memory of the machine, under every discipline.

use crate::testkit::{World, exclusive, gib, mps, secs, task};
use coloc_core::policy::{Place, Queue};
use coloc_core::{HostCapacity, HostRefusal, Policy};
use coloc_model::{HostNeed, Share, TaskState};

const QUEUES: [Queue; 10] = [
    Queue::Fifo,
    Queue::BestEffort,
    Queue::Backfill,
    Queue::Sjf,
    Queue::Srtf,
    Queue::Srsf,
    Queue::Las2d,
    Queue::Gittins2d,
    Queue::Fair,
    Queue::Allox,
];

fn eight_cpus() -> HostCapacity {
    HostCapacity { cpus: Some(8), memory: Some(gib(64)) }
}

#[test]
fn a_task_waits_for_cpus_under_every_discipline_and_stops_no_other() {
    for queue in QUEUES {
        let policy = Policy::plain(queue, Place::Any, Share::Exclusive);
        let mut world = World::new("4xA100-40GB", policy).with_host(eight_cpus());
        let first = world.submit(task().host(6, 0).secs(100));
        let second = world.submit(task().host(4, 0).secs(100));
        let plain = world.submit(task().secs(100));
        assert!(world.runs(first) && world.waits(second), "{queue:?}");
        assert!(world.runs(plain), "{queue:?}: it asks for nothing");
        let explained = world.scheduler.explain(world.now, second).expect("it waits");
        let short = HostRefusal::HostCpus { need: 4, available: 2, total: 8 };
        assert_eq!(explained.host, Some(short), "{queue:?}");
        assert!(explained.willing() > 0, "{queue:?}: GPUs would take it");
        world.finish(first);
        assert!(world.runs(second), "{queue:?}");
        let (_, used) = world.scheduler.host();
        assert_eq!(used, HostNeed { cpus: 4, ..HostNeed::NONE }, "{queue:?}");
    }
}

#[test]
fn memory_is_counted_beside_cpus_and_a_task_that_asks_for_too_much_is_refused() {
    let policy = mps(Queue::BestEffort, Place::FirstFit);
    let mut world = World::new("2xA100-40GB", policy).with_host(eight_cpus());
    let [first, second] = world.submit_all([task().gib(4).host(1, 40), task().gib(4).host(1, 30)]);
    assert!(world.runs(first) && world.waits(second));
    let never = world.scheduler.check_host(HostNeed { cpus: 9, ..HostNeed::NONE });
    assert!(never.is_err_and(|refusal| refusal.is_for_ever()));
    assert!(world.scheduler.check_host(HostNeed { cpus: 8, memory: gib(64) }).is_ok());
    world.finish(first);
    assert!(world.runs(second));
    world.finish(second);
    assert_eq!(world.scheduler.host().1, HostNeed::NONE);
}

#[test]
fn without_a_capacity_nothing_is_counted() {
    let mut world = World::new("2xA100-40GB", exclusive(Queue::Fifo));
    let [one, two] = world.submit_all([task().host(1000, 1000), task().host(1000, 1000)]);
    assert!(world.runs(one) && world.runs(two));
}

#[test]
fn a_task_that_waited_too_long_for_cpus_gets_those_that_come_free() {
    let limit = secs(3600);
    let policy =
        Policy { starvation_limit: Some(limit), ..mps(Queue::BestEffort, Place::FirstFit) };
    let mut world = World::new("8xA100-40GB", policy).with_host(eight_cpus());
    let small = task().gib(1).host(4, 0);
    let [one, two, large] = world.submit_all([small, small, task().gib(1).host(8, 0)]);
    world.finish(one);
    let three = world.submit(small);
    assert!(world.runs(two) && world.runs(three) && world.waits(large), "it is passed over");
    world.advance(limit);
    // Something happens, and a pass sees that it starves.
    let trigger = world.submit(task().gib(1));
    world.finish(trigger);
    world.finish(two);
    let four = world.submit(small);
    assert!(world.waits(four), "what comes free is kept");
    let explained = world.scheduler.explain(world.now, four).expect("it waits");
    assert_eq!(explained.host, Some(HostRefusal::HostReserved { reserved_for: large }));
    world.finish(three);
    assert!(world.runs(large));
    world.finish(large);
    assert!(world.runs(four));
    assert_eq!(world.state(large), TaskState::Completed);
}
