//! What the administrator of a server decides.

use super::*;
use crate::administration::{Pool, TimeLimits};
use crate::owner::{Caller, Input, Invalid, Reply};
use crate::record::Uid;
use coloc_api::request::{ArrayRequest, GpuReservation};
use coloc_model::TaskState;

fn limited(seconds: u64) -> TaskSpec {
    TaskSpec { time_limit: Some(Millis::from_secs(seconds)), ..train() }
}

fn more(seconds: i64) -> Change {
    let change = Some(1000 * seconds);
    Change::Update(TaskUpdate { time_limit_change_ms: change, ..TaskUpdate::default() })
}

fn absolute(seconds: u64) -> Change {
    let limit = Some(Millis::from_secs(seconds));
    Change::Update(TaskUpdate { time_limit: limit, ..TaskUpdate::default() })
}

impl OwnerKit {
    /// Changes a task as its owner, who is no administrator.
    fn change_as_owner(&mut self, task: TaskId, change: Change) -> Result<(), Refused> {
        let (reply, mut answer) = Reply::channel();
        let caller = Caller { uid: self.live(task).record.owner, admin: false };
        self.inputs.push(Input::Command(caller, Command::Change(vec![task], change, reply)));
        self.run_until_idle();
        answer.try_recv().expect("an answer").and_then(|mut each| each.remove(0).1)
    }

    fn limit_of(&self, task: TaskId) -> Option<u64> {
        let attempt = self.live(task).record.attempt;
        let all = self.machine.alive();
        let found = all.iter().find(|(key, _)| *key == (task, attempt));
        found.and_then(|(_, attempt)| attempt.limit).map(|limit| limit.0 / 1000)
    }
}

#[test]
fn an_administrator_extends_what_runs_and_its_owner_shortens_it() {
    let mut kit = one_gpu();
    let task = kit.submit(limited(100));
    kit.advance(50);
    kit.change(task, more(1000)).unwrap();
    assert_eq!(kit.limit_of(task), Some(1100), "its shim knows");
    kit.advance(200);
    assert_eq!(kit.phase(task), TaskState::Running, "the daemon does not kill it at its old limit");
    let longer = kit.change_as_owner(task, more(1));
    assert_eq!(longer, Err(Refused::LongerWhileRunning(task)));
    kit.change_as_owner(task, more(-800)).unwrap();
    assert_eq!(kit.limit_of(task), Some(300));
    let passed = kit.change_as_owner(task, absolute(200));
    assert!(matches!(passed, Err(Refused::Invalid(Invalid::TimeLimitPassed { .. }))), "{passed:?}");
    // What was acknowledged survives, and the shim hears of it from the next daemon.
    kit.restart();
    kit.run_until_idle();
    assert_eq!((kit.limit_of(task), kit.phase(task)), (Some(300), TaskState::Running));
    kit.advance(200);
    assert_eq!(
        kit.phase(task),
        TaskState::TimedOut,
        "a shim that does not stop it is not waited for"
    );
}

#[test]
fn a_task_without_a_limit_can_be_given_one_but_not_an_hour_more() {
    let mut kit = one_gpu();
    let task = kit.submit(train());
    let none = kit.change(task, more(3600));
    assert_eq!(none, Err(Invalid::NoTimeLimit(task).into()));
    kit.change_as_owner(task, absolute(60)).unwrap();
    assert_eq!(kit.limit_of(task), Some(60));
    kit.change(task, Change::Cancel).unwrap();
}

#[test]
fn no_task_has_more_time_than_the_administrator_allows() {
    let mut kit = one_gpu();
    let hours = |hours: u64| Some(Millis::from_secs(3600 * hours));
    let mut settings = kit.settings.clone();
    settings.administration.times = TimeLimits { default: hours(1), largest: hours(4) };
    settings.bounds.pending = 2;
    kit.obey(|reply| Command::Reconfigure(Box::new(settings), reply)).unwrap();
    let asked = |kit: &mut OwnerKit, spec| {
        kit.obey(|reply| Command::Submit(Box::new(Submission::of(spec)), reply))
    };
    let task = kit.submit(train());
    assert_eq!(kit.limit_of(task), Some(3600), "it says nothing, and gets the default");
    let long = asked(&mut kit, limited(5 * 3600));
    assert!(matches!(long, Err(Refused::LongTimeLimit { .. })), "{long:?}");
    let endless = asked(&mut kit, limited(0));
    assert!(matches!(endless, Err(Refused::LongTimeLimit { .. })), "not the default: {endless:?}");
    let beyond = kit.change(task, more(4 * 3600));
    assert!(matches!(beyond, Err(Refused::LongTimeLimit { .. })), "also for an administrator");
    kit.change(task, more(3 * 3600)).unwrap();
    assert_eq!(kit.limit_of(task), Some(4 * 3600));
    let waits = [kit.submit(train()), kit.submit(train())];
    let third = asked(&mut kit, train());
    assert!(matches!(third, Err(Refused::OverLimit(ref why)) if why.contains("2 tasks that wait")));
    assert_eq!(Refused::OverLimit(String::new()).code(), "over_limit");
    let many = ArrayRequest { indices: (0..3).collect(), at_once: None };
    let array = Submission { array: Some(many), ..Submission::of(train()) };
    let large = kit.obey(|reply| Command::Submit(Box::new(array), reply));
    assert!(matches!(large, Err(Refused::OverLimit(ref why)) if why.contains("the array has 3")));
    kit.change(waits[0], Change::Cancel).unwrap();
    assert!(asked(&mut kit, train()).is_ok());
    kit.reconfigure(|settings| {
        settings.administration.times.largest = None;
        settings.bounds.pending = 9;
    })
    .unwrap();
    let endless = kit.submit(limited(0));
    assert_eq!(kit.live(endless).spec.time_limit, None, "no limit, and not the default");
    assert_ne!(kit.live(task).record.owner, Uid(65_534));
}

impl OwnerKit {
    fn reconfigure(&mut self, change: impl FnOnce(&mut Settings)) -> Result<(), Refused> {
        let mut settings = self.owner().settings.clone();
        change(&mut settings);
        // A restart begins with the same settings.
        let done = self.obey(|reply| Command::Reconfigure(Box::new(settings.clone()), reply));
        if done.is_ok() {
            self.settings = settings;
        }
        done
    }

    fn refusals(&mut self, task: TaskId) -> Vec<String> {
        let why = self.obey(|reply| Command::Why(task, reply)).unwrap();
        why.gpus.into_iter().flat_map(|gpu| gpu.refusals).collect()
    }

    fn reserve(&mut self, gpu: u32, users: &[&str], until_s: Option<f64>) -> Result<(), Refused> {
        let request = GpuReservation {
            gpus: vec![GpuName::Index(gpu)],
            reserved_for: users.iter().map(|&user| user.to_owned()).collect(),
            until_s,
            reason: Some("a deadline".to_owned()),
        };
        self.obey(|reply| Command::ReserveGpus(request, reply)).map(|_| ())
    }
}

/// GPUs of the pool, and how tasks share them.
fn pool(name: &str, gpus: &[u32], share: Option<Share>) -> Pool {
    let gpus = Some(gpus.iter().map(|&gpu| GpuName::Index(gpu)).collect());
    let (allow, max_time) = (Vec::new(), None);
    Pool { name: name.to_owned(), gpus, share, default: false, allow, max_time }
}

fn in_pool(pools: &[&str], memory: u64) -> TaskSpec {
    TaskSpec { pools: pools.iter().map(|&pool| pool.to_owned()).collect(), ..declared(memory) }
}

/// The daemon once launched the newcomer on the partitioned GPU, was refused, and tried again without a pause.
#[test]
fn a_gpu_that_is_still_partitioned_takes_nothing_that_shares_it_otherwise() {
    let mut kit = OwnerKit::new("1xA100-40GB", Policy { share: Share::Mig, ..shared() });
    let on_mig = kit.submit(declared(4));
    assert_eq!(kit.phase(on_mig), TaskState::Running);
    kit.reconfigure(|settings| settings.policy.share = Share::Mps).unwrap();
    let new = kit.submit(declared(4));
    kit.advance(100);
    assert_eq!((kit.phase(new), kit.live(new).record.attempt), (TaskState::Pending, 0));
    assert!(kit.refusals(new)[0].contains("shares it in another way"), "{:?}", kit.refusals(new));
    kit.restart();
    kit.advance(10);
    assert_eq!(kit.live(new).record.attempt, 0, "also after a restart");
    kit.complete(on_mig);
    kit.advance(1);
    assert_eq!(kit.phase(new), TaskState::Running);
    let share = kit.live(new).record.placement.as_ref().map(|placement| placement.share);
    assert_eq!(share, Some(Share::Mps));
    // And back.
    kit.reconfigure(|settings| settings.policy.share = Share::Mig).unwrap();
    let last = kit.submit(declared(4));
    kit.advance(100);
    assert_eq!(kit.live(last).record.attempt, 0);
    kit.complete(new);
    kit.advance(1);
    assert_eq!(kit.phase(last), TaskState::Running);
}

#[test]
fn a_reserved_gpu_takes_the_tasks_of_its_users_until_it_is_returned() {
    let mut kit = OwnerKit::new("2xA100-40GB", whole());
    let unknown = kit.reserve(0, &["no-such-user"], None);
    assert!(matches!(unknown, Err(Refused::Invalid(_))), "{unknown:?}");
    kit.reserve(0, &["65533", "@nogroup"], None).unwrap();
    let (first, waits) = (kit.submit(train()), kit.submit(train()));
    assert_eq!((kit.gpus(first), kit.phase(waits)), (vec![1], TaskState::Pending));
    let refusals = kit.refusals(waits);
    assert!(refusals[0].contains("is reserved for 65533, @nogroup: a deadline"), "{refusals:?}");
    // It survives the daemon, and an administrator's task waits as others do.
    kit.restart();
    kit.advance(10);
    assert_eq!(kit.phase(waits), TaskState::Pending);
    let view = kit.obey(Command::Gpus).unwrap().0.remove(0);
    assert_eq!(view.reserved_for, ["65533", "@nogroup"]);
    kit.reserve(0, &[], None).unwrap();
    kit.run_until_idle();
    assert_eq!(kit.gpus(waits), [0]);
    kit.complete(waits);
    // Root is in the group root, and a reservation ends by itself.
    let until = kit.owner().clock.world_now().secs() + 100.0;
    kit.reserve(0, &["@root"], Some(until)).unwrap();
    let roots = kit.submit(train());
    let theirs = rustix::process::geteuid().is_root();
    assert_eq!(kit.phase(roots) == TaskState::Running, theirs);
    kit.advance(101);
    assert!(kit.obey(Command::Gpus).unwrap().0[0].reserved_for.is_empty());
    assert_eq!(kit.phase(roots), TaskState::Running);
    let past = kit.reserve(0, &["@root"], Some(1.0));
    assert!(matches!(past, Err(Refused::Invalid(_))), "{past:?}");
}

#[test]
fn tasks_run_in_the_pools_that_they_name() {
    let mut kit = OwnerKit::new("4xA100-40GB", Policy { share: Share::Mps, ..shared() });
    let unnamed = kit.submit(in_pool(&[], 4));
    let missing = |kit: &mut OwnerKit, spec| {
        kit.obey(|reply| Command::Submit(Box::new(Submission::of(spec)), reply)).unwrap_err()
    };
    assert!(matches!(missing(&mut kit, in_pool(&["a"], 4)), Refused::Invalid(Invalid::NoPools)));
    kit.reconfigure(|settings| {
        let closed = vec!["65533".parse().unwrap()];
        let hour = Some(Millis::from_secs(3600));
        settings.administration.pools = vec![
            Pool { default: true, max_time: hour, ..pool("shared", &[0], None) },
            pool("whole", &[1, 2], Some(Share::Exclusive)),
            pool("parts", &[3], Some(Share::Mig)),
            Pool { allow: closed, ..pool("closed", &[1], Some(Share::Exclusive)) },
        ];
    })
    .unwrap();
    assert_eq!(kit.phase(unnamed), TaskState::Running, "it goes on where it is");
    let share = |kit: &OwnerKit, task| {
        kit.live(task).record.placement.as_ref().map(|placement| placement.share)
    };
    let task = kit.submit(in_pool(&[], 4));
    assert_eq!((kit.gpus(task), share(&kit, task)), (vec![0], Some(Share::Mps)));
    assert_eq!(kit.limit_of(task), Some(3600), "the pool's largest limit");
    let alone = [kit.submit(in_pool(&["whole"], 1)), kit.submit(in_pool(&["whole"], 1))];
    assert_eq!((kit.gpus(alone[0]), kit.gpus(alone[1])), (vec![1], vec![2]));
    assert_eq!(share(&kit, alone[0]), Some(Share::Exclusive));
    let waits = kit.submit(in_pool(&["whole"], 1));
    kit.advance(10);
    assert_eq!(kit.phase(waits), TaskState::Pending, "pool whole is full");
    assert!(kit.refusals(waits).iter().any(|no| no == "is in pool shared, not in the task's"));
    let part = kit.submit(in_pool(&["parts"], 4));
    assert_eq!((kit.gpus(part), share(&kit, part)), (vec![3], Some(Share::Mig)));
    assert!(kit.live(part).record.placement.as_ref().unwrap().slots[0].instance.is_some());
    let refused = [
        (in_pool(&["nosuch"], 4), "there is no pool"),
        (in_pool(&["shared", "whole"], 4), "share their GPUs in different ways"),
        (TaskSpec { gpus: 2, ..in_pool(&["shared"], 4) }, "its pool has at most 1"),
        (TaskSpec { gpus: 2, ..in_pool(&["parts"], 1) }, "MIG instances"),
    ];
    for (spec, why) in refused {
        let said = missing(&mut kit, spec).to_string();
        assert!(said.contains(why), "{said}");
    }
    kit.restart();
    kit.complete(alone[1]);
    kit.advance(1);
    assert_eq!(kit.gpus(waits), [2]);
    // A pool that is gone keeps its tasks waiting, and lets what runs go on.
    let held = kit.submit(in_pool(&["whole"], 1));
    kit.reconfigure(|settings| settings.administration.pools.truncate(1)).unwrap();
    kit.complete(waits);
    kit.advance(10);
    assert_eq!(kit.phases([held, part]), [TaskState::Pending, TaskState::Running]);
    kit.reconfigure(|settings| settings.administration.pools.clear()).unwrap();
    kit.advance(1);
    assert_eq!(kit.phase(held), TaskState::Running);
}
