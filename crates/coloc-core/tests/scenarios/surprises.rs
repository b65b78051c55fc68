//! The world is not always as the scheduler left it.

use crate::testkit::{World, exclusive, gib, mps, task};
use coloc_core::policy::{Place, Queue};
use coloc_core::{Effect, Event, Policy, Refusal};
use coloc_model::{GpuId, Millis, Outcome, Share, TaskId};

const QUEUES: [Queue; 5] = [Queue::Fifo, Queue::BestEffort, Queue::Las2d, Queue::Srsf, Queue::Fair];

#[test]
fn foreign_memory_is_never_promised() {
    let mut world = World::new("2xA100-40GB", mps(Queue::BestEffort, Place::Magm));
    world.tell(Event::ForeignSeen { gpu: GpuId(0), used: gib(30) });
    let large = world.submit(task().gib(20));
    let small = world.submit(task().gib(8));
    let waiting = world.submit(task().gib(25));
    assert_eq!((world.gpus(large), world.gpus(small)), (vec![1], vec![1]));
    let refusals = world.refusals(waiting, 0);
    assert_eq!(refusals, [Refusal::Memory { need: gib(25), available: gib(10) }]);
    world.tell(Event::ForeignSeen { gpu: GpuId(0), used: gib(0) });
    assert_eq!(world.gpus(waiting), [0], "the stranger left");
}

#[test]
fn a_gpu_with_strangers_is_not_empty() {
    let mut world = World::new("1xA100-40GB", exclusive(Queue::Fifo));
    world.tell(Event::ForeignSeen { gpu: GpuId(0), used: gib(2) });
    let alone = world.submit(task().gib(4));
    assert_eq!(world.refusals(alone, 0), [Refusal::Foreign { used: gib(2) }]);
    // A display server is no reason.
    world.tell(Event::ForeignSeen { gpu: GpuId(0), used: coloc_model::Bytes::from_mib(300) });
    assert!(world.runs(alone));
}

#[test]
fn nobody_is_sent_to_a_lost_gpu() {
    let mut world = World::new("2xA100-40GB", mps(Queue::BestEffort, Place::FirstFit));
    world.tell(Event::GpuThere { gpu: GpuId(0), there: false });
    let first = world.submit(task().gib(30));
    let second = world.submit(task().gib(30));
    assert_eq!(world.gpus(first), [1]);
    assert_eq!(world.refusals(second, 0)[0], Refusal::Away);
    world.tell(Event::GpuThere { gpu: GpuId(0), there: true });
    assert_eq!(world.gpus(second), [0]);
}

#[test]
fn a_drained_gpu_keeps_its_tasks_and_takes_no_others() {
    for queue in QUEUES {
        let policy = Policy::plain(queue, Place::Any, Share::Exclusive);
        let mut world = World::new("2xA100-40GB", policy);
        let stays = world.submit(task().gib(4));
        let drained = world.gpus(stays)[0];
        world.tell(Event::GpuDrained { gpu: GpuId(drained), drained: true });
        let other = world.submit(task().gib(4));
        let waits = world.submit(task().gib(4));
        assert_eq!(world.gpus(stays), [drained], "{queue:?}: it goes on");
        assert_eq!(world.gpus(other), [1 - drained], "{queue:?}");
        assert_eq!(world.refusals(waits, drained), [Refusal::Drained], "{queue:?}");
        world.finish(stays);
        world.scheduler.sanity_check();
        let idle =
            |world: &World| world.scheduler.gpus().get(GpuId(drained)).residents().is_empty();
        assert!(idle(&world), "{queue:?}: an idle one takes nothing either");
        // One that is lost as well is both, and comes back only when it is neither.
        world.tell(Event::GpuThere { gpu: GpuId(drained), there: false });
        world.tell(Event::GpuThere { gpu: GpuId(drained), there: true });
        assert!(idle(&world), "{queue:?}");
        world.tell(Event::GpuDrained { gpu: GpuId(drained), drained: false });
        assert!(world.runs(waits) && world.runs(other) && !idle(&world), "{queue:?}");
    }
}

#[test]
fn a_task_on_a_drained_gpu_is_not_moved_by_those_that_come() {
    let placements = [Place::FirstFit, Place::BestFit, Place::Magm, Place::RoundRobin];
    for queue in QUEUES {
        for place in placements {
            let mut world = World::new("2xA100-40GB", mps(queue, place));
            let stays = world.submit(task().gib(4));
            let drained = world.gpus(stays)[0];
            world.tell(Event::GpuDrained { gpu: GpuId(drained), drained: true });
            let others: Vec<_> = (0..3).map(|_| world.submit(task().gib(4))).collect();
            assert_eq!(world.gpus(stays), [drained], "{queue:?} {place:?}: it goes on");
            let here = others.iter().filter(|&&id| world.runs(id) && world.gpus(id) == [drained]);
            assert_eq!(here.count(), 0, "{queue:?} {place:?}");
            world.scheduler.sanity_check();
        }
    }
}

#[test]
fn nobody_is_preempted_from_a_drained_gpu_for_those_who_cannot_have_it() {
    for queue in [Queue::Srtf, Queue::Srsf, Queue::Las2d, Queue::Gittins2d] {
        let policy = Policy::plain(queue, Place::Any, Share::Exclusive);
        let mut world = World::new("2xA100-40GB", policy);
        // The worse of the two, which would otherwise be preempted first.
        let stays = world.submit(task().gib(4).secs(9000));
        let drained = world.gpus(stays)[0];
        world.advance(coloc_model::Millis::from_secs(10));
        let goes = world.submit(task().gib(4).secs(5000));
        world.tell(Event::GpuDrained { gpu: GpuId(drained), drained: true });
        world.advance(coloc_model::Millis::from_secs(10));
        let comes = world.submit(task().gib(4).secs(60));
        assert_eq!(world.gpus(stays), [drained], "{queue:?}");
        assert!(world.runs(comes) != world.runs(goes), "{queue:?}");
        world.scheduler.sanity_check();
    }
}

#[test]
fn a_launch_that_came_to_nothing_is_tried_again() {
    for queue in QUEUES {
        let policy = Policy::plain(queue, Place::Any, Share::Exclusive);
        let mut world = World::new("1xA100-40GB", policy);
        let first = world.submit(task().gib(4));
        let second = world.submit(task().gib(4));
        let again = world.scheduler.on_event(world.now, Event::NotLaunched(first));
        world.scheduler.sanity_check();
        let launched =
            |effect: &Effect| matches!(effect, Effect::Launch { task, .. } if *task == first);
        assert!(again.iter().any(launched), "{queue:?}: it has its old place, before {second}");
        world.finish(first);
        assert!(world.runs(second), "{queue:?}");
    }
}

#[test]
fn a_running_task_is_adopted_where_it_runs() {
    for queue in QUEUES {
        let policy = Policy::plain(queue, Place::Any, Share::Exclusive);
        let mut before = World::new("2xA100-40GB", policy);
        let id = before.submit(task().gib(4));
        let placement = before.placement(id).clone();
        let mut after = World::new("2xA100-40GB", policy);
        after.now = after.now + Millis(5000);
        let (adopted, started) = (task().gib(4).build(id.0), before.now);
        let effects = after.scheduler.on_event(
            after.now,
            Event::Adopted { task: adopted, placement: placement.clone(), started, promised: None },
        );
        after.scheduler.sanity_check();
        let launches = |effect: &Effect| matches!(effect, Effect::Launch { .. });
        assert!(!effects.iter().any(launches), "{queue:?}: what was decided is not decided again");
        let next = task().gib(4).build(9);
        let effects = after.scheduler.on_event(after.now, Event::Submitted(next));
        let elsewhere = effects.iter().any(|effect| match effect {
            Effect::Launch { task, placement: given } => *task == TaskId(9) && *given != placement,
            _ => false,
        });
        assert!(elsewhere, "{queue:?}: its GPU is taken");
        let ended = Event::Ended { task: id, outcome: Outcome::Completed };
        let effects = after.scheduler.on_event(after.now, ended);
        assert!(effects.iter().any(|e| matches!(e, Effect::Retire { task, .. } if *task == id)));
    }
}
