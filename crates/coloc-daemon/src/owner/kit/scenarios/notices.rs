//! Hooks are told, at least once, and never too many.

use super::*;
use crate::notices::{DeliveryError, HookOf};
use coloc_api::notify::{Notify, NotifyEvent};

fn hooked(hooks: &[&str]) -> TaskSpec {
    let notify = hooks.iter().map(|hook| hook.parse::<Notify>().expect("a hook")).collect();
    TaskSpec { notify, ..train() }
}

/// Events that hooks were told of, with whose hooks.
fn told(kit: &OwnerKit) -> Vec<(NotifyEvent, HookOf)> {
    kit.machine.delivered().iter().map(|notice| (notice.event, notice.hook_of)).collect()
}

#[test]
fn hooks_hear_of_starts_ends_failures_and_long_waits_once_each() {
    let mut kit = one_gpu();
    kit.settings.notify.hooks = vec!["oom,fail:/bin/true".parse().unwrap()];
    kit.restart();
    let task = kit.submit(hooked(&["start,end,fail", "end:mail=ann"]));
    kit.fail(task);
    kit.run_until_idle();
    let user = |event| (event, HookOf::User);
    let admins = (NotifyEvent::Fail, HookOf::Administrators);
    let expected =
        [user(NotifyEvent::Start), admins, user(NotifyEvent::Fail), user(NotifyEvent::End)];
    assert_eq!(told(&kit), expected, "of both names of the end, a hook hears the more telling");
    assert!(
        kit.story(task).contains("mail was told of its fail (notice 3)"),
        "{}",
        kit.story(task)
    );
    let body: serde_json::Value =
        serde_json::from_str(&kit.machine.delivered()[2].body).expect("JSON");
    assert_eq!((&body["event"], &body["task"]["state"]), (&"fail".into(), &"failed".into()));
    assert_eq!(body["id"], 3);

    let (first, second) = (kit.submit(train()), kit.submit(hooked(&["wait=10m"])));
    kit.advance(590);
    assert_eq!(told(&kit).len(), 4);
    kit.restart();
    kit.advance(20);
    assert_eq!(told(&kit)[4..], [user(NotifyEvent::Wait)]);
    kit.restart();
    kit.advance(4000);
    assert_eq!(told(&kit).len(), 5, "once");
    kit.complete(first);
    kit.complete(second);
    assert_eq!(told(&kit).len(), 5, "nobody wants to know");
}

#[test]
fn a_notice_is_tried_again_for_a_while_and_survives_restarts() {
    let mut kit = one_gpu();
    let later = || Err(DeliveryError::Later("the host is away".to_owned()));
    kit.machine.deliver([later(), later()]);
    let task = kit.submit(hooked(&["end"]));
    kit.complete(task);
    assert_eq!(told(&kit).len(), 1);
    kit.advance(9);
    assert_eq!(told(&kit).len(), 1, "not at once");
    kit.advance(2);
    assert_eq!(told(&kit).len(), 2);
    // The daemon dies, and the next one has it at once.
    kit.restart();
    kit.run_until_idle();
    assert_eq!(told(&kit).len(), 3);
    let ids: Vec<u64> = kit.machine.delivered().iter().map(|notice| notice.id).collect();
    assert_eq!(ids, [1, 1, 1], "by which a receiver knows it");
    kit.restart();
    kit.advance(10_000);
    assert_eq!(told(&kit).len(), 3, "it was told");

    kit.machine.deliver((0..9).map(|_| later()));
    let other = kit.submit(hooked(&["end"]));
    kit.complete(other);
    kit.advance(100_000);
    assert_eq!(told(&kit).len(), 3 + 5, "it is given up");
    assert_eq!(kit.machine.delivered()[5].id, 2, "numbers are not used again");
    assert!(kit.story(other).contains("could not be told of its end (notice 2, try 5)"));
    let never = Err(DeliveryError::Never("no such program".to_owned()));
    kit.machine.deliver([never]);
}

#[test]
fn a_flood_of_notices_is_bounded() {
    let mut kit = OwnerKit::new("1xA100-40GB", whole());
    kit.machine.deliver((0..100_000).map(|_| Err(DeliveryError::Later("away".to_owned()))));
    let indices = (0..1_500).collect();
    let array = ArrayRequest { indices, at_once: None };
    let many = Submission { array: Some(array), ..Submission::of(hooked(&["end:/bin/false"])) };
    let tasks = kit.submit_all(many);
    for &task in &tasks {
        kit.change(task, Change::Cancel).expect("it goes");
    }
    kit.run_until_idle();
    let saved = kit.owner().journal.records();
    assert!(saved.iter().all(|record| record.phase.is_over() || record.id == tasks[0]));
    let refused = |task: &&TaskId| kit.story(**task).contains("notices of its user's tasks wait");
    let dropped = tasks.iter().filter(refused).count();
    assert!((499..=501).contains(&dropped), "{dropped} of 1,500 were not written down");
}

#[test]
fn webhooks_go_where_administrators_allow_them() {
    let mut kit = one_gpu();
    let spec = hooked(&["end:http://169.254.169.254/latest"]);
    let refused = kit.obey(|reply| Command::Submit(Box::new(Submission::of(spec.clone())), reply));
    let told_why = refused.expect_err("no host is allowed").to_string();
    assert!(told_why.contains("may go to no host here"), "{told_why}");
    kit.settings.notify.webhook_allow = vec!["169.254.169.254".to_owned()];
    kit.restart();
    let task = kit.submit(spec);
    kit.settings.notify.webhook_allow.clear();
    kit.restart();
    kit.complete(task);
    assert_eq!(told(&kit), [], "the administrators changed their mind");
    assert!(kit.story(task).contains("do not allow that address"), "{}", kit.story(task));
}
