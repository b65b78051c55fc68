//! Out of memory: whose doing it was, and what comes next.

use super::CONTRACT;
use crate::testkit::{World, gib, mib, task};
use coloc_core::Event;
use coloc_core::policy::Knowledge;
use coloc_core::{Policy, policy::Contract};
use coloc_model::{Bytes, GpuId, SignatureId, TaskState};

#[test]
fn the_second_attempt_has_what_is_known_and_the_third_a_gpu() {
    let mut world = World::new("2xA100-40GB", CONTRACT);
    let id = world.submit(task().declares(5));
    world.observe_at_work(id, gib(5), 0.5);
    assert_eq!(world.scheduler.promised(id).expect("it runs").limit, Some(gib(5)));
    world.oom(id, gib(12));
    assert_eq!(world.booked(0), gib(12).scale(1.1));
    // How much it needs is not known, and others may come beside it.
    let limit = world.scheduler.promised(id).expect("it runs").limit;
    assert_eq!(limit, Some(gib(12).scale(1.1)), "raised with its booking");
    world.oom(id, gib(14));
    assert_eq!(world.booked(0), gib(40));
    assert_eq!(world.scheduler.promised(id).expect("it runs").limit, None, "lifted");
    let other = world.submit(task().declares(1));
    assert_eq!(world.gpus(other), [1], "the third attempt is alone");
    world.oom(id, gib(41));
    assert_eq!(world.state(id), TaskState::OutOfMemory);
}

#[test]
fn a_plateau_that_was_not_reached_is_at_least_doubled() {
    let mut world = World::new("1xA100-40GB", CONTRACT);
    let id = world.submit(task().gib(10));
    world.observe(id, gib(9));
    world.oom(id, gib(11));
    assert_eq!(world.booked(0), gib(20), "more was to come, and it is not known how much");
}

#[test]
fn nothing_is_believed_that_the_trace_of_memory_contradicts() {
    // A script that prints an out-of-memory message of 22 MiB.
    let mut world = World::new("1xA100-40GB", CONTRACT);
    let id = world.submit(task().declares(8));
    world.observe_at_work(id, gib(7), 0.5);
    world.oom(id, mib(22));
    assert_eq!(world.booked(0), gib(16), "double, not 22 MiB");
    // A peak between two looks is possible.
    let mut world = World::new("1xA100-40GB", CONTRACT);
    let id = world.submit(task().declares(8));
    world.observe_at_work(id, gib(1), 0.5);
    world.oom(id, gib(20));
    assert_eq!(world.booked(0), gib(22));
}

#[test]
fn nobody_comes_back_with_less_than_it_declared() {
    let mut world = World::new("1xA100-40GB", CONTRACT);
    let id = world.submit(task().declares(30));
    world.observe(id, mib(500));
    world.oom(id, gib(1));
    assert!(world.booked(0) >= gib(30), "{}", world.booked(0));
}

#[test]
fn a_task_within_its_booking_was_wronged_by_its_neighbour() {
    let mut world = World::new("1xA100-40GB", CONTRACT);
    let greedy = world.submit(task().kind(7).at_most(30));
    world.trains(greedy, gib(5));
    let honest = world.submit(task().kind(1).declares(15));
    let other = world.submit(task().declares(15));
    assert!(world.runs(honest) && world.runs(other));
    world.observe(honest, gib(10));
    // The neighbour comes to hold more than was left to it, and the honest one finds no room for what is its own.
    world.observe(greedy, gib(20));
    world.oom(honest, gib(14));
    assert_eq!(world.scheduler.settling().wronged, 1);
    assert_eq!(world.scheduler.beliefs().peak(SignatureId(1)), None, "nothing is learned of it");
    assert!(!world.runs(greedy), "it holds what is owed to the honest one");
    assert!(world.runs(honest), "which comes back first");
    assert_eq!(world.scheduler.attempts(honest).map(|attempts| attempts.ooms), Some(0));
    // It still has all of its attempts.
    world.finish(other);
    world.finish(greedy);
    world.oom(honest, gib(16));
    assert!(world.runs(honest));
    world.oom(honest, gib(31));
    assert!(world.runs(honest));
}

#[test]
fn a_neighbour_that_keeps_what_is_promised_to_others_goes() {
    let mut world = World::new("1xA100-40GB", CONTRACT);
    let greedy = world.submit(task().at_most(30));
    world.trains(greedy, gib(5));
    let [honest, other] = world.submit_all([task().declares(15), task().declares(19)]);
    assert!(world.runs(honest) && world.runs(other));
    world.observe(greedy, gib(23));
    world.oom(honest, gib(12));
    assert!(!world.runs(greedy), "15 and 19 GiB were promised, and it holds 23");
    assert_eq!(world.state(greedy), TaskState::Recovering);
    assert!(world.runs(honest) && world.runs(other));
}

#[test]
fn blame_has_an_end() {
    let mut world = World::new("1xA100-40GB", CONTRACT);
    let [id, _neighbour] = world.submit_all([task().declares(15), task().declares(15)]);
    for _ in 0..6 {
        if world.runs(id) {
            world.oom(id, gib(10));
        }
    }
    assert!(world.launches.len() <= 2 + 3 + 2, "{} launches", world.launches.len());
}

#[test]
fn strangers_may_be_to_blame() {
    let mut world = World::new("2xA100-40GB", CONTRACT);
    let id = world.submit(task());
    world.observe_at_work(id, gib(10), 0.5);
    world.tell(Event::ForeignSeen { gpu: GpuId(0), used: gib(28) });
    world.oom(id, gib(15));
    assert_eq!(world.gpus(id), [1], "no task is sent to where a foreign process is");
    assert_eq!(world.scheduler.settling().wronged, 1);
}

#[test]
fn who_had_all_there_is_does_not_come_back() {
    let mut world = World::new("1xA100-40GB", CONTRACT);
    let id = world.submit(task());
    world.oom(id, gib(44));
    assert_eq!(world.state(id), TaskState::OutOfMemory, "another attempt would end the same");
    let mut mixed = World::new("1xA30-24GB,1xA100-40GB", CONTRACT);
    let id = mixed.submit(task());
    mixed.oom(id, gib(30));
    assert_eq!(mixed.gpus(id), [1], "a larger GPU");
}

#[test]
fn blind_sharing_recovers_too() {
    let contract = Some(Contract { share_blind: true, ..Contract::default() });
    let knowledge = Knowledge::Unknown { min_free: gib(5) };
    let mut world = World::new("1xA100-40GB", Policy { contract, knowledge, ..CONTRACT });
    let [id, other] = world.submit_all([task(), task()]);
    world.observe_at_work(other, gib(3), 0.5);
    world.oom(id, gib(9));
    assert_eq!(world.booked(0), gib(5) + Bytes::from_mib(10_240), "double of what it had");
}

#[test]
fn a_task_that_declares_too_little_does_not_inherit_the_gpu_of_its_victim() {
    let mut world = World::new("1xA100-40GB", CONTRACT);
    let honest = world.submit(task().declares(39));
    let intruder = world.submit(task().declares(1));
    let next = world.submit(task().declares(1));
    world.observe(honest, gib(30));
    world.observe(intruder, gib(8));
    world.oom(honest, gib(38));
    assert!(world.runs(honest) && !world.runs(intruder), "what it was promised is kept for it");
    assert!(world.runs(next), "there is room beside it for another that keeps its word");
}
