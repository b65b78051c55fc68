//! Least expected work first: what was learned decides, no user takes all, no task is overtaken for ever.

use crate::testkit::{World, exclusive, gib, mps, secs, task};
use coloc_core::Policy;
use coloc_core::policy::{Gate, Place, Preemption, Queue};
use coloc_model::SignatureId;

const MINUTE: u64 = 60;

fn least_work() -> Policy {
    Policy { learn: true, ..exclusive(Queue::LeastWork) }
}

/// Kind 1 takes ten minutes and kind 2 one; the scheduler has seen both.
fn after_long_and_short(policy: Policy) -> World {
    let mut world = World::new("1xA100-40GB", policy);
    for (kind, minutes) in [(1, 10), (2, 1)] {
        let id = world.submit(task().kind(kind));
        world.advance(secs(MINUTE * minutes));
        world.finish(id);
    }
    world
}

#[test]
fn what_is_expected_to_be_short_goes_first() {
    let mut world = after_long_and_short(least_work());
    let running = world.submit(task());
    let [long, short] = world.submit_all([task().kind(1), task().kind(2)]);
    world.finish(running);
    assert!(world.runs(short) && world.waits(long));
}

#[test]
fn width_counts_as_run_time_does() {
    let mut world = World::new("2xA100-40GB", least_work());
    let id = world.submit(task().kind(1));
    world.advance(secs(MINUTE));
    world.finish(id);
    let running = world.submit(task().gpus(2));
    let [pair, single] = world.submit_all([task().kind(1).gpus(2), task().kind(1)]);
    world.finish(running);
    assert!(world.runs(single) && world.waits(pair));
}

#[test]
fn waiting_makes_work_count_less() {
    let mut world = after_long_and_short(Policy { ageing: Some(secs(MINUTE)), ..least_work() });
    let running = world.submit(task());
    let long = world.submit(task().kind(1));
    world.advance(secs(60 * MINUTE));
    let short = world.submit(task().kind(2));
    world.finish(running);
    assert!(
        world.runs(long) && world.waits(short),
        "ten minutes of work are a sixtieth of that by now"
    );
}

#[test]
fn a_new_name_does_not_make_a_users_tasks_look_short() {
    let mut world = World::new("1xA100-40GB", least_work());
    for (user, kind, minutes) in
        [(1, 10, 60), (1, 11, 60), (1, 12, 60), (2, 20, 30), (2, 20, 30), (2, 20, 30)]
    {
        let id = world.submit(task().user(user).kind(kind));
        world.advance(secs(MINUTE * minutes));
        world.finish(id);
    }
    let running = world.submit(task().user(3));
    let [renamed, honest] = world.submit_all([task().user(1).kind(13), task().user(2).kind(20)]);
    world.finish(running);
    assert!(world.runs(honest) && world.waits(renamed));
}

#[test]
fn a_user_who_holds_more_goes_after_one_who_holds_less() {
    let mut world = World::new("2xA100-40GB", least_work());
    for _ in 0..3 {
        let [short, long] = world.submit_all([task().kind(1), task().kind(2).user(1)]);
        world.advance(secs(MINUTE));
        world.finish(short);
        world.advance(secs(60 * MINUTE));
        world.finish(long);
    }
    let flood = world.submit_all([task().kind(1); 6]);
    let other = world.submit(task().kind(2).user(1));
    world.finish(flood[0]);
    assert!(world.runs(other), "though its task takes an hour and theirs a minute");
    world.finish(flood[1]);
    assert!(world.runs(flood[2]), "now both hold the same");
}

#[test]
fn a_task_that_was_overtaken_too_often_gets_gpus_kept_for_it() {
    let policy =
        Policy { overtaking: Some(2.0), learn: true, ..mps(Queue::LeastWork, Place::FirstFit) };
    let mut world = World::new("2xA100-40GB", policy);
    let small = task().kind(1).gib(20).sm(1.0);
    world.submit_all([small; 4]);
    let gang = world.submit(task().kind(2).gpus(2).gib(40).sm(1.0));
    let mut ended = 0;
    // Each small one is followed by a later one, so that two GPUs are never empty by themselves.
    while !world.runs(gang) {
        assert!(ended < 100, "the gang starves");
        ended += 1;
        world.submit(small);
        world.advance(secs(5 * MINUTE));
        let oldest = world.running().next().expect("small ones run");
        world.finish(oldest);
    }
    assert!(ended > 4, "it was overtaken first: {ended}");
}

fn preempting() -> Policy {
    let preemption = Some(Preemption { every: secs(300), after_ends: 4, stays: 0.5 });
    Policy { preemption, ..least_work() }
}

/// Twice each: kind 1 takes ten hours, kind 2 a minute.
fn with_history() -> World {
    let mut world = World::new("1xA100-40GB", preempting());
    for (kind, minutes) in [(1, 600), (1, 600), (2, 1), (2, 1)] {
        let id = world.submit(task().kind(kind).saves());
        world.advance(secs(MINUTE * minutes));
        world.finish(id);
    }
    world
}

#[test]
fn a_long_task_that_can_save_makes_room_for_a_short_one_and_comes_back() {
    let mut world = with_history();
    let long = world.submit(task().kind(1).saves());
    world.advance(secs(400));
    let short = world.submit(task().kind(2));
    assert!(world.runs(short) && world.waits(long));
    world.advance(secs(MINUTE));
    world.finish(short);
    assert!(world.runs(long));
}

#[test]
fn a_task_that_cannot_save_is_never_preempted() {
    let mut world = with_history();
    let long = world.submit(task().kind(1));
    world.advance(secs(400));
    let short = world.submit(task().kind(2));
    world.advance(secs(3600));
    assert!(world.runs(long) && world.waits(short));
}

#[test]
fn a_higher_priority_is_not_preempted_for_a_lower_one() {
    let mut world = with_history();
    let long = world.submit(task().kind(1).saves().priority(1));
    world.advance(secs(400));
    let short = world.submit(task().kind(2));
    world.advance(secs(3600));
    assert!(world.runs(long) && world.waits(short));
}

#[test]
fn a_user_who_holds_more_preempts_no_other_user() {
    let mut world = World::new("3xA100-40GB", preempting());
    for (kind, minutes) in [(1, 600), (1, 600), (2, 1), (2, 1)] {
        let id = world.submit(task().kind(kind).saves());
        world.advance(secs(MINUTE * minutes));
        world.finish(id);
    }
    let theirs = world.submit(task().kind(1).saves().user(1));
    let [first, second] = world.submit_all([task().kind(1), task().kind(1).saves()]);
    world.advance(secs(400));
    let short = world.submit(task().kind(2));
    world.advance(secs(10));
    assert!(world.runs(theirs) && world.runs(first), "one is another user's, one cannot save");
    assert!(world.runs(short) && world.waits(second));
}

#[test]
fn nothing_is_preempted_before_enough_was_seen() {
    let mut world = World::new("1xA100-40GB", preempting());
    let long = world.submit(task().kind(1).saves());
    world.advance(secs(400));
    let short = world.submit(task().kind(2));
    world.advance(secs(3600));
    assert!(world.runs(long) && world.waits(short));
}

#[test]
fn tasks_alike_do_not_take_turns() {
    let mut world = with_history();
    let first = world.submit(task().kind(1).saves());
    let second = world.submit(task().kind(1).saves());
    world.advance(secs(5 * 3600));
    assert!(world.runs(first) && world.waits(second));
}

#[test]
fn what_each_of_a_crowd_does_tells_what_it_asks_for() {
    let policy = Policy {
        learn: true,
        gate: Gate::Expected { limit: 1.5 },
        ..mps(Queue::LeastWork, Place::FirstFit)
    };
    let mut world = World::new("1xA100-40GB", policy);
    let [a, b] = world.submit_all([task().kind(1).gib(1), task().kind(2).gib(1)]);
    // Asking for 0.5 and 0.3, they slow each other down a little.
    let seen = [0.5 / (1.0 + 0.33 * 0.5 * 0.3), 0.3 / (1.0 + 0.33 * 0.5 * 0.3)];
    world.observe_gpu(0, seen[0] + seen[1], gib(2));
    for (id, sm) in [(a, seen[0]), (b, seen[1])] {
        world.observe_at_work(id, gib(1), sm);
    }
    world.advance(secs(90));
    for (kind, asked) in [(1, 0.5), (2, 0.3)] {
        let learned = world.scheduler.beliefs().sm_demand(SignatureId(kind), None);
        assert!((learned - asked).abs() < 1e-3, "kind {kind}: {learned}");
    }
}
