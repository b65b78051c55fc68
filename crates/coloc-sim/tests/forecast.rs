//! What is foreseen is what comes: a forecast from the middle of a queue against arithmetic.

use coloc_core::eligibility::{ArrayMember, Conditions, Dependency, DependencyKind};
use coloc_core::policy::{Contract, Place, Queue};
use coloc_core::{Effect, Event, Policy, Preset, Scheduler, preset::MemoryKnowledge};
use coloc_model::{
    Bytes, Memory, Millis, Placement, Share, SignatureId, Task, TaskId, Time, UserId,
};
use coloc_sim::forecast::{Expectation, Forecast, Foreseen};

fn task(id: u32) -> Task {
    Task {
        id: TaskId(id),
        signature: SignatureId(id),
        user: UserId(0),
        gpus: 1,
        exclusive: false,
        models: None,
        pools: None,
        memory: Memory::exact(Bytes::from_mib(1000)),
        sm: None,
        borrows: false,
        checkpoint: None,
        host: coloc_model::HostNeed::NONE,
        duration: None,
        priority: 0,
    }
}

fn at(seconds: u64) -> Time {
    Time::START + Millis::from_secs(seconds)
}

fn takes(seconds: u64) -> Expectation {
    Expectation::new(Some(Millis::from_secs(seconds)), 0.95, Bytes::from_mib(1000))
}

/// A scheduler to which these tasks were submitted at the start, and where the tasks run that it started.
fn begun(policy: Policy, fleet: &str, tasks: u32) -> (Scheduler, Vec<(TaskId, Placement)>) {
    let mut scheduler = Scheduler::new(&fleet.parse().expect("a fleet"), policy);
    let mut running = Vec::new();
    for id in 1..=tasks {
        for effect in scheduler.on_event(Time::START, Event::Submitted(task(id))) {
            if let Effect::Launch { task, placement } = effect {
                running.push((task, placement));
            }
        }
    }
    (scheduler, running)
}

fn exclusive() -> Policy {
    Policy::plain(Queue::Fifo, Place::Exclusive, Share::Exclusive)
}

/// A forecast that knows of no task that has ended before.
fn ahead(scheduler: Scheduler, now: Time, wake: Time) -> Forecast<'static> {
    Forecast::new(scheduler, now, wake, &|_| None)
}

fn after(tasks: [u32; 2]) -> Vec<Dependency> {
    let kind = DependencyKind::AfterAny;
    tasks.map(|task| Dependency { task: TaskId(task), kind }).to_vec()
}

fn play(forecast: Forecast<'_>) -> Foreseen {
    forecast.play(None, |steps| steps < 10_000)
}

#[test]
fn a_queue_on_one_gpu_goes_one_after_the_other() {
    let (scheduler, running) = begun(exclusive(), "1xA100-40GB", 3);
    assert_eq!(running.len(), 1);
    let mut forecast = ahead(scheduler, at(40), Time::NEVER);
    forecast.runs(TaskId(1), running[0].1.clone(), Some(at(100)), takes(100));
    forecast.waits(TaskId(2), takes(50));
    forecast.waits(TaskId(3), takes(7));
    let seen = play(forecast);
    assert_eq!(seen.ends[&TaskId(1)], at(100));
    assert_eq!((seen.starts[&TaskId(2)], seen.ends[&TaskId(2)]), (at(100), at(150)));
    assert_eq!((seen.starts[&TaskId(3)], seen.ends[&TaskId(3)]), (at(150), at(157)));
}

#[test]
fn nobody_knows_when_somebody_starts_behind_a_task_of_unknown_length() {
    let (scheduler, running) = begun(exclusive(), "2xA100-40GB", 4);
    let mut forecast = ahead(scheduler, at(1), Time::NEVER);
    forecast.runs(TaskId(1), running[0].1.clone(), None, Expectation::default());
    forecast.runs(TaskId(2), running[1].1.clone(), Some(at(10)), takes(10));
    forecast.waits(TaskId(3), Expectation { run: None, ..takes(1) });
    forecast.waits(TaskId(4), takes(1));
    let seen = play(forecast);
    assert_eq!(seen.starts[&TaskId(3)], at(10));
    assert!(!seen.ends.contains_key(&TaskId(3)) && !seen.starts.contains_key(&TaskId(4)));
    assert!(!seen.cut_short);
}

#[test]
fn hours_dependencies_and_arrays_are_waited_for() {
    let (scheduler, running) = begun(exclusive(), "4xA100-40GB", 1);
    let mut forecast = ahead(scheduler, at(5), Time::NEVER);
    forecast.runs(TaskId(1), running[0].1.clone(), Some(at(20)), takes(20));
    let begin = Conditions { begin: Some(at(60)), ..Conditions::default() };
    forecast.comes(task(2), begin, takes(10));
    let all = Conditions { after: after([1, 2]), ..Conditions::default() };
    forecast.comes(task(3), all.clone(), takes(1));
    forecast.comes(task(4), Conditions { any: true, ..all }, takes(1));
    for id in 10..14 {
        let array = Some(ArrayMember { array: TaskId(10), index: id, at_once: Some(2) });
        forecast.comes(task(id), Conditions { array, ..Conditions::default() }, takes(3));
    }
    let seen = play(forecast);
    assert_eq!((seen.starts[&TaskId(2)], seen.starts[&TaskId(3)]), (at(60), at(70)));
    assert_eq!(seen.starts[&TaskId(4)], at(20), "one of them is enough");
    let array: Vec<Time> = (10..14).map(|id| seen.starts[&TaskId(id)]).collect();
    assert_eq!(array, [at(5), at(5), at(8), at(8)]);
}

#[test]
fn gates_on_activity_open_when_the_busy_have_left() {
    let policy = Preset::CarmaV2.policy(MemoryKnowledge::Estimate);
    let (scheduler, running) = begun(policy, "1xA100-40GB", 2);
    assert_eq!(running.len(), 1, "one decision a second");
    let mut forecast = ahead(scheduler, at(0), at(1));
    forecast.runs(TaskId(1), running[0].1.clone(), Some(at(300)), takes(300));
    forecast.waits(TaskId(2), takes(10));
    let start = play(forecast).starts[&TaskId(2)];
    assert!(start <= at(302), "{start:?}");
}

/// By the contract a task of which nothing is known has its GPU alone until it was seen to train for three minutes.
#[test]
fn others_start_when_the_first_of_its_kind_has_settled() {
    let contract = Some(Contract::default());
    let policy = Policy { contract, ..Preset::Coloc.policy(MemoryKnowledge::Estimate) };
    let unknown = |id| Task { memory: Memory::Unknown, signature: SignatureId(1), ..task(id) };
    let light = |warm_up| Expectation {
        warm_up: Millis::from_secs(warm_up),
        ..Expectation::new(Some(Millis::from_secs(5000)), 0.2, Bytes::from_mib(1000))
    };
    for (warm_up, starts) in [(0, 180), (300, 480)] {
        // A task runs already, has shown nothing so far, and its sibling waits.
        let mut scheduler = Scheduler::new(&"1xA100-40GB".parse().expect("a fleet"), policy);
        let effects = scheduler.on_event(Time::START, Event::Submitted(unknown(1)));
        let launched = effects.into_iter().find_map(|effect| match effect {
            Effect::Launch { placement, .. } => Some(placement),
            _ => None,
        });
        scheduler.on_event(Time::START, Event::Submitted(unknown(2)));
        let mut forecast = ahead(scheduler.clone(), Time::START, Time::NEVER);
        let placement = launched.expect("an empty GPU");
        forecast.runs(TaskId(1), placement, Some(at(5000)), light(warm_up));
        forecast.waits(TaskId(2), light(warm_up));
        assert_eq!(play(forecast).starts[&TaskId(2)], at(starts));
        // Neither of them runs yet.
        let scheduler = Scheduler::new(&"1xA100-40GB".parse().expect("a fleet"), policy);
        let mut forecast = ahead(scheduler, Time::START, Time::NEVER);
        forecast.comes(unknown(1), Conditions::default(), light(warm_up));
        forecast.comes(unknown(2), Conditions::default(), light(warm_up));
        let seen = play(forecast);
        assert_eq!((seen.starts[&TaskId(1)], seen.starts[&TaskId(2)]), (at(0), at(starts)));
    }
}

#[test]
fn a_forecast_can_be_cut_short() {
    let (scheduler, running) = begun(exclusive(), "1xA100-40GB", 3);
    let mut forecast = ahead(scheduler, at(0), Time::NEVER);
    forecast.runs(TaskId(1), running[0].1.clone(), Some(at(100)), takes(100));
    forecast.waits(TaskId(2), takes(50));
    let seen = forecast.play(None, |steps| steps < 1);
    assert!(seen.cut_short && seen.starts.contains_key(&TaskId(2)));
}
