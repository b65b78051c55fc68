//! What the administrator of a server decides.

use super::*;
use crate::administration::TimeLimits;
use crate::owner::{Caller, Input, Invalid, Reply};
use crate::record::Uid;
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
    let beyond = kit.change(task, more(4 * 3600));
    assert!(matches!(beyond, Err(Refused::LongTimeLimit { .. })), "also for an administrator");
    kit.change(task, more(3 * 3600)).unwrap();
    assert_eq!(kit.limit_of(task), Some(4 * 3600));
    let waits = [kit.submit(train()), kit.submit(train())];
    let third = asked(&mut kit, train());
    assert!(matches!(third, Err(Refused::OverLimit(ref why)) if why.contains("2 tasks that wait")));
    assert_eq!(Refused::OverLimit(String::new()).code(), "over_limit");
    kit.change(waits[0], Change::Cancel).unwrap();
    assert!(asked(&mut kit, train()).is_ok());
    assert_ne!(kit.live(task).record.owner, Uid(65_534));
}
