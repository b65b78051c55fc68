//! What an event costs, and cases that were wrong once.

use super::*;

/// The most looks that ending these tasks one after the other takes for one of them.
fn most_looks(model: &mut Model, ends: usize) -> usize {
    model.run_until_idle(false);
    let ended = (0..ends).map(|_| {
        let task = model.of_state(State::Eligible, 0);
        model.looks.set(0);
        model.end(task.expect("one is eligible"), true);
        model.run_until_idle(false);
        model.looks.get()
    });
    ended.max().unwrap_or_default()
}

#[test]
fn an_event_looks_at_few_of_a_hundred_thousand_waiting_tasks() {
    let mut array = Model::default();
    array.submit_array(&Conditions::default(), 100_000, Some(1), "sweep");
    assert!(most_looks(&mut array, 20) <= 2);
    let mut chain = Model::default();
    let mut last = chain.submit(Conditions::default(), UserId(0), "first");
    for _ in 1..100_000 {
        let after = vec![Dependency { task: last, kind: DependencyKind::AfterOk }];
        last = chain.submit(Conditions { after, ..Conditions::default() }, UserId(0), "next");
    }
    assert!(most_looks(&mut chain, 20) <= 2);
    let mut singletons = Model::default();
    for _ in 0..100_000 {
        let singleton = Some((UserId(0), "one".to_owned()));
        singletons.submit(Conditions { singleton, ..Conditions::default() }, UserId(0), "one");
    }
    assert!(most_looks(&mut singletons, 20) <= 2);
}

#[test]
fn a_place_in_an_array_that_a_held_task_does_not_take_is_the_next_ones() {
    let mut model = Model::default();
    model.submit_array(&Conditions::default(), 4, Some(1), "sweep");
    model.run_until_idle(true);
    // The place is offered to a task that is held in the same batch, then to the next.
    model.change(TaskId(2), &Step::Hold(0, true));
    model.end(TaskId(1), true);
    model.run_until_idle(true);
    assert_eq!(model.ids(State::Eligible).collect::<Vec<_>>(), [TaskId(3)]);
}

#[test]
fn a_task_must_not_come_to_wait_for_itself() {
    let mut model = Model::default();
    let held = Conditions { held: true, ..Conditions::default() };
    let first = model.submit(held.clone(), UserId(0), "a");
    let after = |task| vec![Dependency { task, kind: DependencyKind::AfterOk }];
    let second = model.submit(Conditions { after: after(first), ..held.clone() }, UserId(0), "b");
    let singleton = Some((UserId(0), "c".to_owned()));
    let third = model.submit(Conditions { singleton, ..held.clone() }, UserId(0), "c");
    let told = Told(&model.tasks, &model.looks);
    let waits = |task, after, name| {
        let conditions = Conditions { after, ..held.clone() };
        model.eligibility.waits_for_itself(task, &conditions, (UserId(0), name), &told)
    };
    assert!(waits(first, after(second), "a"), "each for the other");
    assert!(waits(first, after(first), "a"));
    assert!(!waits(first, after(third), "a"));
    assert!(waits(first, after(third), "c"), "the third would wait for it by its name");
    assert!(!waits(third, after(second), "c"));
}
