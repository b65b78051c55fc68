//! A scheduler that takes over from another, after a change of policy.

use crate::testkit::{at, exclusive, task};
use coloc_core::policy::Queue;
use coloc_core::{Effect, Event, Scheduler};
use coloc_model::{Fleet, Task};

fn plain(id: u32) -> Task {
    task().kind(id).build(id)
}

fn preempts(effects: &[Effect]) -> bool {
    effects.iter().any(|effect| matches!(effect, Effect::Preempt(_)))
}

#[test]
fn a_waiting_task_keeps_what_it_has_attained() {
    let fleet: Fleet = "1xA100-40GB".parse().expect("a fleet");
    let policy = exclusive(Queue::Las2d);
    let mut old = Scheduler::new(&fleet, policy);
    old.on_event(at(0), Event::Submitted(plain(0)));
    let effects = old.on_event(at(100), Event::Submitted(plain(1)));
    assert!(preempts(&effects), "the newcomer has had less");
    let placement = effects.iter().find_map(|effect| match effect {
        Effect::Launch { placement, .. } => Some(placement.clone()),
        _ => None,
    });
    let placement = placement.expect("it starts");
    for remembers in [true, false] {
        let mut new = Scheduler::new(&fleet, policy);
        if remembers {
            new.remember(at(110), &old);
        }
        let (placement, started) = (placement.clone(), at(100));
        let found = Event::Adopted { task: plain(1), placement, started, promised: None };
        let mut effects = new.on_event(at(110), found);
        effects.extend(new.on_event(at(110), Event::Submitted(plain(0))));
        assert_eq!(preempts(&effects), !remembers, "{effects:?}");
    }
}
