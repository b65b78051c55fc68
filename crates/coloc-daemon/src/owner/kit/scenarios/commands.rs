//! What people ask for.

use super::*;
use crate::owner::{Caller, Input, Reply};
use coloc_api::request::Teaching;
use coloc_core::accounts::Quota;
use coloc_model::{Lesson, TaskState};

#[test]
fn a_task_that_waits_is_gone_at_once_and_one_that_runs_is_asked_to_go() {
    let mut kit = one_gpu();
    let (runs, waits) = (kit.submit(train()), kit.submit(train()));
    kit.change(waits, Change::Cancel).unwrap();
    assert_eq!(kit.phases([runs, waits]), [TaskState::Running, TaskState::Cancelled]);
    kit.change(runs, Change::Cancel).unwrap();
    assert_eq!(kit.phase(runs), TaskState::Cancelled);
    assert!(kit.machine.alive().is_empty());
}

#[test]
fn a_held_task_waits_until_it_is_released() {
    let mut kit = one_gpu();
    let held = kit.submit_all(Submission { held: true, ..Submission::of(train()) })[0];
    kit.advance(100);
    assert_eq!(kit.phase(held), TaskState::Pending);
    kit.restart();
    kit.change(held, Change::Release).unwrap();
    assert_eq!(kit.phase(held), TaskState::Running);
    assert!(matches!(kit.change(held, Change::Hold), Err(Refused::WrongPhase { .. })));
    assert!(matches!(kit.change(held, Change::Release), Err(Refused::NotHeld { .. })));
}

#[test]
fn a_requeued_task_starts_again() {
    let mut kit = one_gpu();
    let task = kit.submit(train());
    kit.change(task, Change::Requeue).unwrap();
    assert_eq!((kit.phase(task), kit.live(task).record.attempt), (TaskState::Running, 2));
    assert_eq!(kit.machine.attempt_of(task), Some(2), "the first is gone");
}

/// Both lie before the owner at once: the stop is meant for the attempt that has ended, not for the next one.
#[test]
fn a_requeue_at_the_moment_of_its_end_does_not_stop_the_next_attempt() {
    let mut kit = one_gpu();
    let task = kit.submit(train());
    kit.tell(|reply| Command::Change(vec![task], Change::Requeue, reply));
    kit.machine.end(task, 1, failed());
    kit.run_until_idle();
    kit.advance(120);
    assert_eq!((kit.phase(task), kit.machine.attempt_of(task)), (TaskState::Running, Some(2)));
}

#[test]
fn a_task_does_not_end_because_the_journal_cannot_be_read() {
    let mut kit = one_gpu();
    let first = kit.submit(train());
    let begin_ms = Some(kit.owner().clock.world_now().0 + 100_000);
    let second = kit.submit(TaskSpec { begin_ms, ..after(first, DependencyKind::AfterOk) });
    kit.complete(first);
    kit.disk.hide_tasks(true);
    kit.advance(150);
    assert_eq!(kit.phase(second), TaskState::Pending);
    assert!(kit.live(second).record.reason.as_ref().is_some_and(|why| why.contains("cannot tell")));
    kit.disk.hide_tasks(false);
    kit.advance(2);
    assert_eq!(kit.phase(second), TaskState::Running);
}

/// Both lie before the owner at once: the scheduler lets go of the task because of the cancel.
#[test]
fn a_hold_does_not_undo_a_cancel() {
    let mut kit = one_gpu();
    let (_runs, waits) = (kit.submit(train()), kit.submit(train()));
    kit.tell(|reply| Command::Change(vec![waits], Change::Cancel, reply));
    let held = kit.change(waits, Change::Hold);
    assert!(matches!(held, Err(Refused::WrongPhase { .. })), "{held:?}");
    assert_eq!(kit.phase(waits), TaskState::Cancelled);
}

#[test]
fn what_no_gpu_can_give_is_refused_and_changes_nothing() {
    let mut kit = one_gpu();
    for wrong in [
        declared(41),
        TaskSpec { gpus: 2, ..train() },
        TaskSpec { command: Vec::new(), ..train() },
        TaskSpec { gpu_kinds: vec!["h100".to_owned()], ..train() },
        after(TaskId(7), DependencyKind::AfterOk),
    ] {
        let answer = kit.obey(|reply| Command::Submit(Box::new(Submission::of(wrong)), reply));
        assert!(matches!(answer, Err(Refused::Invalid(_))), "{answer:?}");
    }
    assert!(kit.owner().tasks.is_empty() && kit.owner().next_task == 1);
}

#[test]
fn a_submission_that_is_sent_again_counts_once() {
    let mut kit = one_gpu();
    let sent = Submission { key: Some("once".to_owned()), ..Submission::of(train()) };
    let first = kit.submit_all(sent.clone());
    assert_eq!(kit.submit_all(sent.clone()), first);
    kit.restart();
    assert_eq!(kit.submit_all(sent), first, "a restart remembers it");
    assert_eq!(kit.owner().tasks.len(), 1);
}

#[test]
fn what_a_task_asks_for_counts_although_its_gpus_were_chosen() {
    let policy = Policy { queue: Queue::Srtf, ..whole() };
    let limit = |seconds| TaskSpec { time_limit: Some(Millis::from_secs(seconds)), ..train() };
    let mut kit = OwnerKit::new("2xA100-40GB", policy);
    let long = [kit.submit(limit(1000)), kit.submit(limit(1000))];
    kit.tell(|reply| Command::Submit(Box::new(Submission::of(limit(10))), reply));
    kit.turn();
    let short = TaskId(3);
    assert!(kit.owner().is_deferred(short), "another task is being preempted for it");
    let update = TaskUpdate { gpus: Some(2), ..TaskUpdate::default() };
    kit.change(short, Change::Update(update)).unwrap();
    assert_eq!((kit.phase(short), kit.gpus(short)), (TaskState::Running, vec![0, 1]));
    assert_eq!(kit.phases(long), [TaskState::Pending, TaskState::Pending]);
}

#[test]
fn a_signal_is_sent_to_a_task_that_runs() {
    let mut kit = one_gpu();
    let (runs, waits) = (kit.submit(train()), kit.submit(train()));
    let signal = Change::Signal(SignalRequest { signal: 10, full: false });
    kit.change(runs, signal.clone()).unwrap();
    assert_eq!(kit.machine.signals(runs), 1);
    assert!(kit.story(runs).contains("its program is sent SIGUSR1"));
    assert!(matches!(kit.change(waits, signal), Err(Refused::NotRunning { .. })));
    let unknown = Change::Signal(SignalRequest { signal: 99, full: false });
    assert!(matches!(kit.change(runs, unknown), Err(Refused::Invalid(_))));
}

#[test]
fn what_was_taught_outlives_a_restart() {
    let mut kit = OwnerKit::new("1xA100-40GB", shared());
    let TaskSpec { command, directory, .. } = train();
    let lesson = Lesson { peak: Some(gib(3)), ..Lesson::default() };
    let teaching = Teaching { command, script: None, directory, lesson };
    kit.obey(|reply| Command::Teach(Box::new(teaching), reply)).unwrap();
    kit.restart();
    assert_eq!(kit.owner().status(Caller::DAEMON).lessons, 1);
}

#[test]
fn a_drained_daemon_takes_and_starts_nothing_until_it_is_resumed() {
    let mut kit = one_gpu();
    let (first, second) = (kit.submit(train()), kit.submit(train()));
    kit.obey(|reply| Command::Drain(true, reply)).unwrap();
    kit.restart();
    kit.complete(first);
    assert_eq!(kit.phase(second), TaskState::Pending);
    let refused = kit.obey(|reply| Command::Submit(Box::new(Submission::of(train())), reply));
    assert!(matches!(refused, Err(Refused::Draining)));
    kit.obey(|reply| Command::Drain(false, reply)).unwrap();
    assert_eq!(kit.phase(second), TaskState::Running);
}

#[test]
fn a_drained_gpu_stays_so_and_its_tasks_go_on() {
    let mut kit = OwnerKit::new("2xA100-40GB", whole());
    let serve = |drained| {
        let request = GpuService { gpus: vec![GpuName::Index(0)], drained, reason: None };
        |reply| Command::ServeGpus(request, reply)
    };
    let first = kit.submit(train());
    kit.obey(serve(true)).unwrap();
    kit.restart();
    let others = [kit.submit(train()), kit.submit(train())];
    assert_eq!(kit.phases(others), [TaskState::Running, TaskState::Pending]);
    assert_eq!((kit.gpus(first), kit.gpus(others[0])), (vec![0], vec![1]));
    let view = &kit.owner().gpu_views(coloc_model::Time(0))[0];
    assert!(view.drained && view.tasks == [first.0] && view.uuid == "GPU-0");
    kit.complete(first);
    kit.obey(serve(false)).unwrap();
    assert_eq!(kit.gpus(others[1]), [0]);
}

#[test]
fn another_policy_leaves_running_tasks_where_they_are() {
    let mut kit = one_gpu();
    let limit = |seconds| TaskSpec { time_limit: Some(Millis::from_secs(seconds)), ..train() };
    let tasks = [kit.submit(limit(50)), kit.submit(limit(40)), kit.submit(limit(30))];
    kit.settings.policy.queue = Queue::Sjf;
    let settings = Box::new(kit.settings.clone());
    kit.obey(|reply| Command::Reconfigure(settings, reply)).unwrap();
    assert_eq!(kit.phases(tasks), [TaskState::Running, TaskState::Pending, TaskState::Pending]);
    kit.complete(tasks[0]);
    assert_eq!(kit.phase(tasks[2]), TaskState::Running, "the shortest goes first now");
}

#[test]
fn what_is_asked_of_a_task_tells_where_it_stands() {
    let mut kit = one_gpu();
    let (runs, waits) = (kit.submit(train()), kit.submit(train()));
    let why = kit.obey(|reply| Command::Why(waits, reply)).unwrap();
    assert_eq!(why.summary, "no GPU would take it now");
    let shown = kit.obey(|reply| Command::Show(runs, reply)).unwrap().expect("it runs");
    assert_eq!(shown.detail.log, format!("/simulated/{runs}.1"));
    let all = kit.obey(Command::Snapshot).unwrap();
    let placed: Vec<bool> = all.tasks.iter().map(|task| task.placement.is_some()).collect();
    assert_eq!(placed, [true, false]);
    let same = kit.owner_mut().names.number(train().signature());
    assert_eq!(all.tasks[0].task.signature, same, "one command is one kind of task");
}

#[test]
fn a_submission_is_judged_by_the_quota_of_its_own_user() {
    let mut kit = OwnerKit::new("4xA100-40GB", whole());
    let one = Quota { gpus: Some(1), ..Quota::NONE };
    kit.settings.quotas.users = vec![("nobody".to_owned(), one)];
    kit.restart();
    // The scheduler numbers users as they come: this one has no quota.
    let pair = || TaskSpec { gpus: 2, ..train() };
    kit.submit(pair());
    let nobody = Caller { uid: Uid(65_534), admin: false };
    let (reply, mut answer) = Reply::channel();
    let submission = Box::new(Submission::of(pair()));
    kit.inputs.push(Input::Command(nobody, Command::Submit(submission, reply)));
    kit.run_until_idle();
    let refused = answer.try_recv().expect("an answer").expect_err("it has a quota of one GPU");
    assert!(refused.to_string().contains("quota"), "{refused}");
}
