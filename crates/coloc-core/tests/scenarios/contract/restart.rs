//! A new scheduler takes over promises.

use super::CONTRACT;
use crate::testkit::{Restart, TaskBuilder, World, gib, task};
use coloc_core::policy::{Place, Queue};
use coloc_core::{Event, Policy, Promised, Refusal, Scheduler};
use coloc_model::{Basis, Fleet, GpuId, TaskId, TaskState, Time};

/// Another scheduler that adopts what runs, in the order that is given.
fn restarted(world: &World, tasks: &[(TaskBuilder, TaskId)], promised: bool) -> Scheduler {
    let fleet: Fleet = "1xA100-40GB".parse().expect("a fleet");
    let mut new = Scheduler::new(&fleet, CONTRACT);
    for &(builder, id) in tasks {
        let adopted = Event::Adopted {
            task: builder.build(id.0),
            placement: world.placement(id).clone(),
            started: Time::START,
            promised: world.scheduler.promised(id).filter(|_| promised),
        };
        new.on_event(world.now, adopted);
        new.sanity_check();
    }
    new
}

#[test]
fn bookings_basis_and_evidence_survive() {
    let mut world = World::new("1xA100-40GB", CONTRACT);
    let unknown = world.submit(task());
    world.trains(unknown, gib(6));
    let estimated = world.submit(task().gib(12));
    let new = restarted(&world, &[(task(), unknown), (task().gib(12), estimated)], true);
    for id in [unknown, estimated] {
        assert_eq!(new.promised(id), world.scheduler.promised(id), "task {id}");
    }
    let (bytes, basis) = (gib(6).scale(1.1), Basis::Unknown);
    let kept = Promised { bytes, basis, settled: true, alone: false, limit: None };
    assert_eq!(new.promised(unknown), Some(kept));
}

#[test]
fn declared_floors_come_first_in_any_order() {
    let mut world = World::new("1xA100-40GB", CONTRACT);
    let unknown = world.submit(task());
    world.trains(unknown, gib(6));
    let declared = world.submit(task().declares(30));
    assert!(world.runs(declared));
    let (first, second) = ((task(), unknown), (task().declares(30), declared));
    for order in [[first, second], [second, first]] {
        // Nothing was written down of either.
        let new = restarted(&world, &order, false);
        let floor = new.promised(declared).expect("it runs");
        assert_eq!(floor.bytes, gib(30), "{order:?}");
        assert_eq!(new.gpus().get(GpuId(0)).booked(), gib(40), "the other has the rest");
    }
}

#[test]
fn the_unknown_that_has_company_is_not_made_alone_again() {
    let mut world = World::new("1xA100-40GB", CONTRACT);
    let unknown = world.submit(task());
    world.trains(unknown, gib(6));
    let beside = world.submit(task().declares(10));
    for promised in [true, false] {
        let tasks = [(task(), unknown), (task().declares(10), beside)];
        let new = restarted(&world, &tasks, promised);
        let residents = new.gpus().get(GpuId(0)).residents();
        assert!(residents.iter().all(|booking| !booking.alone), "{residents:?}");
    }
}

#[test]
fn lenders_and_borrowers_are_found_as_they_were_in_any_order() {
    let mut world = World::new("1xA100-40GB", CONTRACT);
    let lender = world.submit(task().lends(30));
    world.trains(lender, gib(5));
    let borrower = world.submit(task().declares(20).borrows());
    assert!(world.runs(borrower));
    let (first, second) = ((task().lends(30), lender), (task().declares(20).borrows(), borrower));
    for order in [[first, second], [second, first]] {
        let new = restarted(&world, &order, true);
        let gpu = new.gpus().get(GpuId(0));
        let of = |task| *gpu.residents().iter().find(|b| b.task == task).expect("it is there");
        assert_eq!(of(lender).claim(), gib(30), "{order:?}");
        assert_eq!((of(borrower).borrowed, of(borrower).bytes), (true, gib(20)), "{order:?}");
    }
}

#[test]
fn whatever_runs_is_found_with_its_promise() {
    for restart in [Restart::Journal, Restart::Reload] {
        for backwards in [false, true] {
            let mut world = World::new("2xA100-40GB", CONTRACT);
            let unknown = world.submit(task());
            world.trains(unknown, gib(6));
            let [declared, gang] = world.submit_all([task().declares(9), task().gib(12).gpus(2)]);
            let lone = world.submit(task());
            let ids = [unknown, declared, gang, lone];
            let before = ids.map(|id| world.scheduler.promised(id));
            world.restart(restart, backwards);
            assert_eq!(ids.map(|id| world.scheduler.promised(id)), before, "{restart:?}");
            assert!(world.waits(lone));
        }
    }
}

#[test]
fn a_reload_keeps_promises_by_itself() {
    let mut world = World::new("1xA100-40GB", CONTRACT);
    let unknown = world.submit(task());
    world.trains(unknown, gib(6));
    let fleet: Fleet = "1xA100-40GB".parse().expect("a fleet");
    let policy = Policy { queue: Queue::Fifo, place: Place::Magm, ..CONTRACT };
    let mut new = Scheduler::new(&fleet, policy);
    new.remember(world.now, &world.scheduler);
    let placement = world.placement(unknown).clone();
    let task = task().build(unknown.0);
    let started = Time::START;
    new.on_event(world.now, Event::Adopted { task, placement, started, promised: None });
    assert_eq!(new.promised(unknown), world.scheduler.promised(unknown));
}

#[test]
fn strangers_that_grow_are_the_one_exception() {
    let mut world = World::new("1xA100-40GB", CONTRACT);
    let id = world.submit(task().declares(30));
    world.tell(Event::ForeignSeen { gpu: GpuId(0), used: gib(20) });
    assert_eq!(world.booked(0), gib(30), "what was promised stays promised");
    let waiting = world.submit(task().declares(1));
    let none = Refusal::Memory { need: gib(1), available: gib(0) };
    assert_eq!(world.refusals(waiting, 0), [none], "and no other task is sent there");
    assert!(world.runs(id));
}

#[test]
fn what_attempts_showed_survives_a_restart() {
    let mut world = World::new("2xA100-40GB", CONTRACT);
    let id = world.submit(task().declares(5));
    world.observe_at_work(id, gib(5), 0.5);
    world.oom(id, gib(12));
    world.restart(Restart::Journal, false);
    let promised = world.scheduler.promised(id).expect("it runs");
    let granted = gib(12).scale(1.1);
    assert_eq!((promised.bytes, promised.limit), (granted, Some(granted)));
    world.oom(id, gib(14));
    assert_eq!(world.booked(0), gib(40), "the attempt before the restart counts");
    world.restart(Restart::Journal, false);
    world.oom(id, gib(41));
    assert_eq!(world.state(id), TaskState::OutOfMemory);
}

#[test]
fn a_task_that_waits_to_recover_waits_first_after_a_restart_too() {
    let mut world = World::new("1xA100-40GB", CONTRACT);
    let blocker = world.submit(task().declares(20));
    let id = world.submit(task().declares(5));
    world.observe_at_work(id, gib(5), 0.5);
    let waits = world.submit(task().declares(39));
    world.oom(id, gib(30));
    world.restart(Restart::Journal, false);
    assert_eq!(world.scheduler.state(id), Some(TaskState::Recovering));
    world.finish(blocker);
    assert!(world.runs(id) && !world.runs(waits));
}

#[test]
fn a_policy_without_a_contract_keeps_what_was_promised_under_one() {
    let mut world = World::new("1xA100-40GB", CONTRACT);
    let loads = world.submit(task().declares(30));
    world.observe(loads, gib(1));
    for policy in [Policy { contract: None, ..CONTRACT }, CONTRACT] {
        world.reload(policy);
        world.advance(crate::testkit::secs(600));
        assert_eq!(world.booked(0), gib(30), "{:?}", policy.contract);
    }
}
