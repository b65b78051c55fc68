//! Fair shares: the user who has had least goes first, by weight, and the past is forgotten.

use crate::testkit::{World, exclusive, gib, mps, secs, task};
use coloc_core::Policy;
use coloc_core::accounts::{Account, Accounts};
use coloc_core::policy::{Place, Queue};
use coloc_model::{TaskId, UserId};

const FAIR: Policy = exclusive(Queue::Fair);

/// How many of a user's tasks run; users take turns at submitting, the first user first.
fn running_of(world: &World, user: u32, users: u32) -> usize {
    world.running().filter(|task| task.0 % users == user).count()
}

#[test]
fn users_take_turns_whoever_came_first() {
    let mut world = World::new("4xA100-40GB", FAIR);
    let greedy: [TaskId; 8] = world.submit_all([task().user(0); 8]);
    let modest: [TaskId; 2] = world.submit_all([task().user(1); 2]);
    assert!(greedy[..4].iter().all(|&task| world.runs(task)), "no other user's task was there");
    world.advance(secs(60));
    world.finish(greedy[0]);
    assert!(world.runs(modest[0]), "the other has had nothing");
    world.finish(greedy[1]);
    assert!(world.runs(modest[1]), "two against two is still less for who had less before");
    world.finish(greedy[2]);
    assert!(world.runs(greedy[4]), "no other user's task waits");
}

#[test]
fn a_weight_of_two_is_two_shares() {
    let mut accounts = Accounts::default();
    accounts.set_user(UserId(1), Account { weight: 2.0, ..Account::PLAIN });
    let mut world = World::new("6xA100-40GB", FAIR).with_accounts(accounts);
    let gate = world.submit(task().user(9).gpus(6));
    for _ in 0..10 {
        world.submit_all([task().user(0), task().user(1)]);
    }
    world.finish(gate);
    // Ids of user 0 are odd: the gate is task 0.
    assert_eq!((running_of(&world, 1, 2), running_of(&world, 0, 2)), (2, 4));
}

#[test]
fn the_past_is_forgotten() {
    let started = |half_life| {
        let mut world = World::new("1xA100-40GB", Policy { half_life, ..FAIR });
        // The first user had an hour of it, ten hours ago; the second ten minutes, just now.
        for (user, hours) in [(0, 6), (9, 54)] {
            let id = world.submit(task().user(user));
            world.advance(secs(600 * hours));
            world.finish(id);
        }
        let just_now = world.submit(task().user(1));
        let [first, second] = world.submit_all([task().user(0), task().user(1)]);
        world.advance(secs(600));
        world.finish(just_now);
        assert_ne!(world.runs(first), world.runs(second));
        world.runs(first)
    };
    assert!(started(secs(3600)), "an hour that is long forgotten");
    assert!(!started(secs(1_000_000)), "an hour is more than ten minutes");
}

#[test]
fn a_part_of_a_gpu_costs_a_part() {
    let policy = mps(Queue::Fair, Place::FirstFit);
    let mut world = World::new("2xA100-40GB", policy);
    // One user holds a GPU, the other two tenths of one.
    let light = |user, gib| task().user(user).gib(gib).sm(0.1);
    world.submit_all([light(0, 40), light(1, 4), light(1, 4)]);
    let plug = world.submit(light(9, 32));
    let [whole, part] = world.submit_all([light(0, 30), light(1, 30)]);
    world.finish(plug);
    assert!(world.runs(part) && world.waits(whole));
    assert_eq!(world.booked(1), gib(38));
}

#[test]
fn who_does_not_fit_is_passed_over() {
    let mut world = World::new("2xA100-40GB", FAIR);
    let [_, gang] = world.submit_all([task().user(0), task().user(1).gpus(2)]);
    let small = world.submit(task().user(0));
    assert!(world.waits(gang), "one GPU is left");
    assert!(world.runs(small), "and no other task can use it");
}
