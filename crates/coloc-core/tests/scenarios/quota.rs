//! Quotas: what a user or a group may hold at once, under every discipline.

use crate::testkit::{World, exclusive, gib, mps, task};
use coloc_core::accounts::{Account, Accounts, OverQuota, Quota, Resource, Whose};
use coloc_core::policy::{Place, Queue};
use coloc_core::{Event, Policy};
use coloc_model::{GroupId, Share, TaskState, UserId};

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

fn two_gpus_for_user_0() -> Accounts {
    let mut accounts = Accounts::default();
    let quota = Quota { gpus: Some(2), memory: None };
    accounts.set_user(UserId(0), Account { quota, ..Account::PLAIN });
    accounts
}

#[test]
fn a_quota_holds_under_every_discipline_and_stops_nobody_else() {
    for queue in QUEUES {
        let policy = Policy::plain(queue, Place::Any, Share::Exclusive);
        let mut world = World::new("4xA100-40GB", policy).with_accounts(two_gpus_for_user_0());
        let mine: [_; 4] = world.submit_all([task().user(0).secs(100); 4]);
        let theirs = world.submit(task().user(1).secs(100));
        let running = |world: &World| mine.iter().filter(|&&task| world.runs(task)).count();
        assert_eq!(running(&world), 2, "{queue:?}");
        assert!(world.runs(theirs), "{queue:?}: a quota is no reason to wait behind it");
        let waiting = mine.into_iter().find(|&task| world.waits(task)).expect("two wait");
        let explained = world.scheduler.explain(world.now, waiting).expect("it waits");
        let resource = Resource::Gpus { limit: 2, held: 2, wanted: 1 };
        let over = OverQuota { whose: Whose::User(UserId(0)), resource };
        assert_eq!(explained.over_quota, Some(over), "{queue:?}");
        assert_eq!(over.to_string(), "the quota of user 0 is 2 GPUs: 2 in use, 1 wanted");
        let ends = mine.into_iter().find(|&task| world.runs(task)).expect("two run");
        world.finish(ends);
        assert_eq!(running(&world), 2, "{queue:?}: the next one's turn");
        assert!(!world.runs(ends));
    }
}

#[test]
fn a_group_shares_its_quota() {
    let mut accounts = Accounts::default();
    let group = Some(GroupId(0));
    accounts.set_user(UserId(0), Account { group, ..Account::PLAIN });
    accounts.set_user(UserId(1), Account { group, ..Account::PLAIN });
    accounts.set_group(GroupId(0), Quota { gpus: None, memory: Some(gib(30)) });
    let policy = mps(Queue::BestEffort, Place::FirstFit);
    let mut world = World::new("2xA100-40GB", policy).with_accounts(accounts);
    let [first, second, third] =
        world.submit_all([task().user(0).gib(20), task().user(1).gib(20), task().user(1).gib(10)]);
    assert!(world.runs(first) && world.waits(second) && world.runs(third));
    let over = world.scheduler.explain(world.now, second).and_then(|e| e.over_quota);
    let resource = Resource::Memory { limit: gib(30), held: gib(30), wanted: gib(20) };
    assert_eq!(over, Some(OverQuota { whose: Whose::Group(GroupId(0)), resource }));
    world.finish(first);
    assert!(world.runs(second));
}

#[test]
fn what_can_never_start_is_refused_at_once() {
    let mut world =
        World::new("4xA100-40GB", exclusive(Queue::Fifo)).with_accounts(two_gpus_for_user_0());
    let large = task().user(0).gpus(3).build(0);
    let error = world.scheduler.check(&large).expect_err("two GPUs at most").to_string();
    assert!(
        error.contains(
            "3 GPUs at once, its user's or group's quota of GPUs and memory allows at most 2"
        ),
        "{error}"
    );
    world.tell(Event::Submitted(large.clone()));
    assert_eq!(world.state(large.id), TaskState::Failed);
    let mut other = task().user(1).gpus(3).build(1);
    other.id.0 = 1;
    assert!(world.scheduler.check(&other).is_ok());
}

#[test]
fn a_task_that_was_preempted_gives_its_quota_back() {
    let policy = exclusive(Queue::Srtf);
    let mut world = World::new("2xA100-40GB", policy).with_accounts(two_gpus_for_user_0());
    let long = world.submit(task().user(0).gpus(2).secs(1000));
    let short = world.submit(task().user(1).gpus(2).secs(10));
    assert!(world.runs(short) && world.waits(long));
    world.finish(short);
    assert!(world.runs(long));
}
