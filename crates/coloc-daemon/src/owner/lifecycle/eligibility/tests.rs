//! The daemon and the forecast rule alike: tasks that the daemon would start now are forecast to start now.

use super::*;
use crate::forecast::{RunTimes, forecast};
use crate::journal::Entry;
use crate::owner::{Snapshot, TaskSnapshot};
use crate::record::tests::spec;
use crate::record::{ArrayPlace, SpecId};
use coloc_core::eligibility::Eligibility;
use coloc_core::policy::{Place, Queue};
use coloc_core::{Policy, Scheduler};
use coloc_model::{Bytes, Memory, Millis, Share, SignatureId, Task};
use proptest::prelude::*;
use std::sync::Arc;

/// A task that may stand in any way, and ask for anything of the tasks before it.
#[derive(Clone, Debug)]
struct Random {
    standing: u8,
    held: bool,
    begins_in: Option<i64>,
    retries_in: Option<i64>,
    after: Vec<(u32, u8, u64)>,
    after_any: bool,
    singleton: bool,
    name: u8,
    owner: u32,
    in_array: bool,
}

const AT_ONCE: u32 = 2;

fn any_task() -> impl Strategy<Value = Random> {
    let moment = || prop::option::weighted(0.2, -5_000i64..5_000);
    let after = prop::collection::vec((any::<u32>(), 0u8..5, select_delay()), 0..4);
    let flags = (
        prop::bool::weighted(0.1),
        any::<bool>(),
        prop::bool::weighted(0.2),
        prop::bool::weighted(0.6),
    );
    (0u8..8, moment(), moment(), after, flags, 0u8..3, 0u32..2).prop_map(
        |(standing, begins_in, retries_in, after, flags, name, owner)| {
            let (held, after_any, singleton, in_array) = flags;
            Random {
                standing,
                held,
                begins_in,
                retries_in,
                after,
                after_any,
                singleton,
                name,
                owner,
                in_array,
            }
        },
    )
}

fn select_delay() -> impl Strategy<Value = u64> {
    prop_oneof![2 => Just(0u64), 1 => 1u64..20_000]
}

/// The task as it is written down and was submitted.
fn built(id: u32, random: &Random, array: Option<ArrayPlace>, now: Moment) -> Live {
    let at = |offset: i64| Moment(now.0.saturating_add_signed(offset));
    let when = |kind| match kind {
        0 => spec::DependencyKind::AfterOk,
        1 => spec::DependencyKind::AfterNotOk,
        2 => spec::DependencyKind::AfterAny,
        3 => spec::DependencyKind::AfterCorr,
        _ => spec::DependencyKind::After,
    };
    let first = array.map_or(id, |place| place.array.0);
    let after = random.after.iter().filter(|_| first > 1).map(|&(task, kind, delay)| {
        let task = TaskId(1 + task % (first - 1));
        spec::Dependency { task, when: when(kind), delay: Millis(delay) }
    });
    let mut record = Record::new(TaskId(id), SpecId(1), Uid(random.owner), at(-60_000));
    record.array = array;
    record.held = random.held;
    record.retry_at = random.retries_in.map(at);
    record.phase = match random.standing {
        0 => TaskState::Completed,
        1 => TaskState::Failed,
        2 => TaskState::Cancelled,
        _ => TaskState::Pending,
    };
    record.ended = record.phase.is_over().then(|| at(-1_000));
    record.first_started = matches!(random.standing, 0 | 1 | 3).then(|| at(-10_000));
    let spec = TaskSpec {
        name: format!("name {}", random.name),
        after: after.collect(),
        after_any: random.after_any,
        singleton: random.singleton,
        begin_ms: random.begins_in.map(|offset| at(offset).0),
        ..spec(&["train"])
    };
    Live { record, spec: Arc::new(spec), in_core: false, ending: None }
}

/// All tasks; some of those that follow each other are arrays.
fn tasks(random: &[Random], now: Moment) -> Vec<Live> {
    let mut array = None;
    let build = |(index, random): (usize, &Random)| {
        let id = index as u32 + 1;
        array = random.in_array.then(|| array.unwrap_or(id));
        let place = array.map(|first: u32| ArrayPlace {
            array: TaskId(first),
            index: 3 * (id - first),
            at_once: Some(AT_ONCE),
        });
        built(id, random, place, now)
    };
    random.iter().enumerate().map(build).collect()
}

/// Which tasks the daemon starts now, if there are GPUs for all.
fn started_by_daemon(
    live: &mut BTreeMap<TaskId, Live>,
    journal: &Journal,
    clock: &Clock,
    now: Moment,
) -> Vec<TaskId> {
    let mut eligibility = Eligibility::default();
    for (&task, Live { record, spec, .. }) in live.iter() {
        eligibility.named(task, user(record.owner), &spec.name);
        eligibility.look_at(task);
    }
    let (mut started, mut eligible) = (Vec::new(), Vec::new());
    loop {
        let next = eligibility.next(clock.time(now), &Known::of(live, journal, clock));
        let Some((task, verdict)) = next else {
            // Nothing is decided until all were looked at.
            if eligible.is_empty() {
                break;
            }
            for task in eligible.drain(..) {
                let Some(live) = live.get_mut(&task) else { continue };
                live.record.first_started.get_or_insert(now);
                eligibility.started(task);
                started.push(task);
            }
            continue;
        };
        match verdict {
            Ok(()) => {
                if let Some(live) = live.get_mut(&task) {
                    live.in_core = true;
                    eligible.push(task);
                }
            }
            Err(Ineligible::DependencyNeverSatisfied(_)) => {
                let Some(Live { record, spec, .. }) = live.remove(&task) else { continue };
                let array = record.array.map(|place| place.array);
                eligibility.ended(task, array, user(record.owner), &spec.name);
            }
            Err(_) => {}
        }
    }
    started.sort_unstable();
    started
}

fn snapshot(live: &BTreeMap<TaskId, Live>, clock: Clock, now: Moment) -> Snapshot {
    let policy = Policy::plain(Queue::Fifo, Place::Exclusive, Share::Exclusive);
    let standing = |Live { record, spec, .. }: &Live| TaskSnapshot {
        task: Task {
            id: record.id,
            signature: SignatureId(0),
            user: user(record.owner),
            gpus: 1,
            exclusive: false,
            models: None,
            pools: None,
            memory: Memory::Unknown,
            sm: None,
            borrows: false,
            checkpoint: None,
            host: coloc_model::HostNeed::NONE,
            duration: None,
            priority: 0,
        },
        spec: spec.clone(),
        phase: record.phase,
        started: None,
        placement: None,
        in_core: false,
        owner: record.owner,
        conditions: conditions(record, spec, &clock),
        facts: facts(record, &clock),
        peak: Bytes::ZERO,
        left: None,
    };
    Snapshot {
        scheduler: Scheduler::new(&"8x8xA100-40GB".parse().expect("a fleet"), policy),
        clock,
        now: clock.time(now),
        wake_at: Time::NEVER,
        stands_still: None,
        tasks: live.values().map(standing).collect(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn the_daemon_and_the_look_ahead_rule_alike(random in prop::collection::vec(any_task(), 1..30)) {
        let now = Moment::now();
        let clock = Clock::new(Moment(now.0 - 100_000), 1.0);
        let directory = tempfile::tempdir().expect("a directory");
        let mut journal = Journal::open(&directory.path().join("journal")).expect("a journal");
        let all = tasks(&random, now);
        let entries = all.iter().map(|live| Entry::Task(Box::new(live.record.clone())));
        let spec = Entry::Spec(SpecId(1), Arc::new(spec(&["train"])));
        journal.write(&[spec].into_iter().chain(entries).collect::<Vec<_>>()).expect("room");
        let live = all.into_iter().filter(|live| !live.record.phase.is_over());
        let mut live: BTreeMap<TaskId, Live> = live.map(|live| (live.record.id, live)).collect();
        let foreseen = forecast(snapshot(&live, clock, now), &RunTimes::default(), &journal, None);
        let at_once = |task: &coloc_api::view::Expected| {
            task.expected_start_s.is_some_and(|start| start <= now.secs())
        };
        let foreseen: Vec<TaskId> =
            foreseen.iter().filter(|task| at_once(task)).map(|task| TaskId(task.id)).collect();
        prop_assert_eq!(foreseen, started_by_daemon(&mut live, &journal, &clock, now));
    }
}
