//! How tasks start, end and outlive owners.

use super::*;

#[test]
fn tasks_run_in_turn_and_end() {
    let mut kit = one_gpu();
    let tasks = [kit.submit(train()), kit.submit(train())];
    assert_eq!(kit.phases(tasks), [TaskState::Running, TaskState::Pending]);
    kit.complete(tasks[0]);
    assert_eq!(kit.phases(tasks), [TaskState::Completed, TaskState::Running]);
    kit.end(tasks[1], End::Vanished);
    assert_eq!(kit.phase(tasks[1]), TaskState::Lost);
}

#[test]
fn a_failure_is_tried_again_after_a_pause() {
    let mut kit = one_gpu();
    let task = kit.submit(TaskSpec { retries: 1, ..train() });
    kit.fail(task);
    assert_eq!(kit.phase(task), TaskState::Pending);
    kit.advance(2);
    assert_eq!((kit.phase(task), kit.live(task).record.attempt), (TaskState::Running, 2));
    kit.fail(task);
    assert_eq!(kit.phase(task), TaskState::Failed);
}

#[test]
fn a_task_that_outstays_its_limit_is_killed() {
    let mut kit = one_gpu();
    let limit = Some(Millis::from_secs(60));
    let task = kit.submit(TaskSpec { time_limit: limit, ..train() });
    kit.advance(60);
    assert_eq!(kit.phase(task), TaskState::Running, "its shim has the first word");
    kit.advance(10);
    assert_eq!(kit.phase(task), TaskState::TimedOut);
    assert!(kit.story(task).contains("is killed"));
}

#[test]
fn a_task_that_ran_out_of_memory_comes_back_with_more() {
    let mut kit = OwnerKit::new("2xA100-40GB", shared());
    let task = kit.submit(declared(6));
    kit.see(kit.sighting());
    kit.oom(task, gib(6), gib(3));
    let record = &kit.live(task).record;
    assert_eq!((record.phase, record.ooms, record.attempt), (TaskState::Running, 1, 2));
    assert!(kit.owner().scheduler.promised(task).unwrap().bytes >= gib(9));
    assert!(kit.story(task).contains("ran out of GPU memory with 6.0 GiB in use"));
}

#[test]
fn a_restart_finds_what_runs_and_what_has_ended() {
    let mut kit = OwnerKit::new("3xA100-40GB", whole());
    let tasks = [kit.submit(train()), kit.submit(train()), kit.submit(train())];
    kit.machine.end(tasks[1], 1, completed());
    kit.machine.end(tasks[2], 1, failed());
    kit.restart();
    kit.run_until_idle();
    assert_eq!(kit.phases(tasks), [TaskState::Running, TaskState::Completed, TaskState::Failed]);
    assert_eq!(kit.live(tasks[0]).record.attempt, 1, "it was not started again");
}

#[test]
fn an_attempt_of_which_nothing_can_be_told_keeps_its_gpu() {
    let mut kit = one_gpu();
    let tasks = [kit.submit(train()), kit.submit(train())];
    kit.machine.set_unclear(true);
    kit.restart();
    kit.advance(30);
    assert_eq!(kit.phases(tasks), [TaskState::Running, TaskState::Pending]);
    kit.machine.end(tasks[0], 1, completed());
    kit.machine.lose_messages();
    kit.machine.set_unclear(false);
    kit.advance(3);
    assert_eq!(kit.phases(tasks), [TaskState::Completed, TaskState::Running]);
}

#[test]
fn wherever_it_crashes_a_task_runs_once() {
    for point in 0..12 {
        let mut kit = one_gpu();
        kit.disk.crash_in(Some(point));
        kit.tell(|reply| Command::Submit(Box::new(Submission::of(train())), reply));
        kit.run_until_idle();
        kit.disk.crash_in(None);
        kit.restart();
        kit.advance(5);
        assert_eq!(kit.machine.broken(), [] as [String; 0], "a crash at point {point}");
        // It was written down, or the client was not told that it was.
        let written = kit.disk.row(TaskId(1)).is_some();
        assert_eq!(kit.machine.alive().len(), usize::from(written), "a crash at point {point}");
    }
}

#[test]
fn on_a_full_disk_nothing_new_is_taken_and_running_tasks_can_be_cancelled() {
    let mut kit = OwnerKit::new("2xA100-40GB", whole());
    let tasks = [kit.submit(train()), kit.submit(train())];
    kit.disk.fill(true);
    let refused = kit.obey(|reply| Command::Submit(Box::new(Submission::of(train())), reply));
    assert!(matches!(refused, Err(Refused::Journal(_))), "{refused:?}");
    // The first has the room that was kept, the second is written to the intent file.
    for task in tasks {
        kit.change(task, Change::Cancel).unwrap();
    }
    assert!(kit.machine.alive().is_empty() && kit.machine.broken().is_empty());
    kit.disk.fill(false);
    kit.restart();
    kit.run_until_idle();
    assert_eq!(kit.phases(tasks), [TaskState::Cancelled, TaskState::Cancelled]);
}

#[test]
fn launches_pause_while_the_machine_fails() {
    let mut kit = one_gpu();
    kit.machine.fail_a_launch(Blame::Machine);
    let task = kit.submit(train());
    assert_eq!(kit.phase(task), TaskState::Pending);
    assert!(
        kit.owner()
            .status(Caller::DAEMON)
            .trouble
            .is_some_and(|why| why.contains("simulated: Machine"))
    );
    kit.advance(3);
    assert_eq!((kit.phase(task), kit.live(task).record.attempt), (TaskState::Running, 1));
    assert_eq!(kit.owner().status(Caller::DAEMON).trouble, None);
}

#[test]
fn a_task_that_is_held_for_its_account_can_be_released() {
    let mut kit = one_gpu();
    kit.machine.fail_a_launch(Blame::Account);
    let task = kit.submit(train());
    kit.advance(100);
    assert!(kit.live(task).record.held);
    kit.change(task, Change::Release).unwrap();
    assert_eq!(kit.phase(task), TaskState::Running);
}

#[test]
fn a_launch_waits_for_what_is_set_up() {
    let mut kit = one_gpu();
    kit.machine.fail_a_launch(Blame::Setup);
    let task = kit.submit(train());
    assert_eq!((kit.phase(task), kit.live(task).record.attempt), (TaskState::Running, 1));
    let mut kit = one_gpu();
    (0..5).for_each(|_| kit.machine.fail_a_launch(Blame::Task));
    let task = kit.submit(train());
    kit.advance(20);
    assert_eq!(kit.phase(task), TaskState::Failed, "what it asks for cannot be had");
}

#[test]
fn a_place_in_an_array_is_passed_on_by_those_that_do_not_take_it() {
    let mut kit = OwnerKit::new("4xA100-40GB", whole());
    let tasks = kit.submit_all(array(5, 1));
    kit.change(tasks[2], Change::Cancel).unwrap();
    kit.change(tasks[3], Change::Hold).unwrap();
    kit.complete(tasks[0]);
    kit.complete(tasks[1]);
    assert_eq!(kit.phase(tasks[4]), TaskState::Running);
    assert_eq!(kit.machine.alive().len(), 1, "one at a time");
}

#[test]
fn a_task_may_start_after_one_that_never_will() {
    let mut kit = one_gpu();
    let first = kit.submit(train());
    let second = kit.submit(after(first, DependencyKind::AfterOk));
    let third = kit.submit(after(second, DependencyKind::After));
    kit.fail(first);
    assert_eq!(kit.phases([second, third]), [TaskState::Cancelled, TaskState::Running]);
}

#[test]
fn what_runs_held_is_the_estimate_of_the_next() {
    let mut kit = one_gpu();
    let first = kit.submit(train());
    for _ in 0..20 {
        kit.advance(30);
        kit.see(kit.sighting());
    }
    assert_eq!(kit.live(first).record.peak, kit.used);
    assert!(kit.live(first).record.usage.activity_alone().is_some(), "how busy it was is kept");
    kit.complete(first);
    for owner in ["the same", "the next"] {
        let task = kit.submit(train());
        let estimate = kit.live(task).spec.estimate.map(|estimate| estimate.peak);
        assert_eq!(estimate, Some(kit.used), "{owner} owner remembers");
        kit.change(task, Change::Cancel).unwrap();
        kit.restart();
    }
}

#[test]
fn a_task_that_was_cancelled_while_it_was_preempted_does_not_come_back_after_a_restart() {
    let policy = Policy { queue: Queue::Srtf, ..whole() };
    let mut kit = OwnerKit::new("1xA100-40GB", policy);
    let long = kit.submit(TaskSpec { time_limit: Some(Millis::from_secs(9000)), ..train() });
    let short = TaskSpec { time_limit: Some(Millis::from_secs(60)), ..train() };
    kit.tell(|reply| Command::Submit(Box::new(Submission::of(short)), reply));
    assert!(kit.turn());
    assert_eq!(kit.phase(long), TaskState::Preempting);
    kit.tell(|reply| Command::Change(vec![long], Change::Cancel, reply));
    assert!(kit.turn());
    kit.restart();
    kit.run_until_idle();
    assert_eq!(kit.phase(long), TaskState::Cancelled);
}

#[test]
fn a_cancelled_task_of_which_the_machine_cannot_tell_is_preempted_and_does_not_come_back() {
    let policy = Policy { queue: Queue::Srtf, ..whole() };
    let mut kit = OwnerKit::new("1xA100-40GB", policy);
    let long = kit.submit(TaskSpec { time_limit: Some(Millis::from_secs(9000)), ..train() });
    kit.tell(|reply| Command::Change(vec![long], Change::Cancel, reply));
    assert!(kit.turn());
    kit.machine.set_unclear(true);
    kit.restart();
    let short = TaskSpec { time_limit: Some(Millis::from_secs(60)), ..train() };
    kit.tell(|reply| Command::Submit(Box::new(Submission::of(short)), reply));
    assert!(kit.turn());
    assert_eq!(kit.phase(long), TaskState::Preempting);
    kit.machine.set_unclear(false);
    kit.restart();
    kit.run_until_idle();
    assert_eq!(kit.phase(long), TaskState::Cancelled);
}
