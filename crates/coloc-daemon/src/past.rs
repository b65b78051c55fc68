//! What ran, as a simulation needs it: the journal's ended tasks without their commands and environments.

use crate::journal::{Journal, JournalError};
use crate::record::{Record, SpecId};
use coloc_api::estimated::Replayed;
use coloc_api::moment::Moment;
use coloc_api::past::{Past, PastTask};
use coloc_api::spec::TaskSpec;
use coloc_estimate::history::History;
use coloc_model::{Basis, Bytes, TaskId, TaskState};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The most tasks in one answer.
const MOST: u32 = 100_000;

/// Ended tasks that the history looks back on.
const LOOK_BACK: u32 = 2000;

/// Reads what was submitted since then and has ended.
pub fn read(journal: &Journal, since: Moment, user: Option<&str>) -> Result<Past, JournalError> {
    let mut specs: FxHashMap<_, (TaskSpec, String)> = FxHashMap::default();
    let mut kinds = Kinds::default();
    let mut past = Past {
        schema: coloc_api::SCHEMA,
        setup: journal.setup()?.and_then(|setup| setup.try_map(serde_json::to_value).ok()),
        tasks: Vec::new(),
        never_ran: 0,
    };
    let mut records = journal.ended(since, MOST)?;
    records.retain(|record| record.submitted >= since);
    records.sort_by_key(|record| (record.submitted, record.id));
    for record in records {
        let owner = crate::users::name(record.owner);
        if user.is_some_and(|user| user != owner) {
            continue;
        }
        let (spec, kind) = journal.once_of(record.spec, &mut specs, |spec| {
            let kind = kinds.of(&spec);
            (spec, kind)
        })?;
        match past_task(&record, spec, kind, owner) {
            Some(task) => past.tasks.push(task),
            None => past.never_ran += 1,
        }
    }
    Ok(past)
}

fn past_task(record: &Record, spec: &TaskSpec, kind: &str, user: String) -> Option<PastTask> {
    let (started, ended) = (record.started?, record.ended?);
    let said = spec.gpu_memory.or(spec.estimate.map(|estimate| estimate.peak));
    let seen = Some(record.peak).filter(|peak| *peak > Bytes::ZERO);
    Some(PastTask {
        id: record.id.0,
        kind: kind.to_owned(),
        user,
        state: record.phase,
        gpus: spec.gpus,
        gpu_kinds: spec.gpu_kinds.clone(),
        exclusive: spec.exclusive,
        priority: spec.priority,
        submitted_s: record.submitted.secs(),
        first_started_s: record.first_started.unwrap_or(started).secs(),
        started_s: started.secs(),
        stopped_s: record.stopped.map(Moment::secs),
        ended_s: ended.secs(),
        ooms: record.ooms,
        preemptions: record.preemptions,
        memory_bytes: seen.or(said).map(|memory| memory.0),
        declared_bytes: spec.gpu_memory.map(|declared| declared.0),
        estimate_bytes: spec.estimate.map(|estimate| estimate.peak.0),
        bound_bytes: spec.estimate.map(|estimate| estimate.bound.0),
        basis: Some(basis(record, spec)),
        activity: record.usage.activity_alone(),
        slowdown: record.usage.slowdown(),
        energy_j: record.accounting.energy_j(),
        shared: record.usage.was_shared(),
        slowdown_guessed: !record.usage.is_slowdown_known(),
    })
}

/// What the booking of a task rested on: as it was written down, else as it was submitted.
fn basis(record: &Record, spec: &TaskSpec) -> Basis {
    if let Some(promised) = record.memory.as_ref().and_then(|memory| memory.promised) {
        return promised.basis;
    }
    match (spec.gpu_memory, spec.estimate, spec.estimator.as_deref()) {
        (Some(_), ..) => Basis::Declared,
        (None, Some(_), Some(coloc_estimate::history::NAME)) => Basis::History,
        (None, Some(_), _) => Basis::Estimated,
        (None, None, _) => Basis::Unknown,
    }
}

/// The tasks that ended last, the oldest first, with what was submitted.
pub(crate) fn look_back(journal: &Journal) -> Result<Vec<(Record, Arc<TaskSpec>)>, JournalError> {
    let mut specs: FxHashMap<SpecId, Arc<TaskSpec>> = FxHashMap::default();
    let ended = journal.ended(Moment(0), LOOK_BACK)?;
    let with_spec = |record: Record| {
        let spec = journal.once_of(record.spec, &mut specs, Arc::new)?.clone();
        Ok((record, spec))
    };
    ended.into_iter().rev().map(with_spec).collect()
}

/// What tasks held when they ran before, by signature.
pub fn history(journal: &Journal) -> Result<History, JournalError> {
    let mut history = History::default();
    for (record, spec) in look_back(journal)? {
        remember(&mut history, &record, &spec);
    }
    Ok(history)
}

/// Notes what a task held at most.
pub(crate) fn remember(history: &mut History, record: &Record, spec: &TaskSpec) {
    if has_shown_all(record) {
        history.remember(&spec.signature(), record.peak);
    }
}

/// A task whose layers were known when it was submitted, and what it then held.
#[derive(Clone, PartialEq, Debug)]
pub struct Measured {
    /// Its id.
    pub id: TaskId,
    /// For people.
    pub name: String,
    /// What the replay says.
    pub replayed: Replayed,
    /// The most that was seen on one of its GPUs.
    pub peak: Bytes,
}

/// Tasks of which both a replay and a peak are known, the oldest first.
pub fn measured(journal: &Journal) -> Result<Vec<Measured>, JournalError> {
    let both = |(record, spec): (Record, Arc<TaskSpec>)| {
        let replayed = spec.replayed.filter(|_| has_shown_all(&record))?;
        Some(Measured { id: record.id, name: spec.name.clone(), replayed, peak: record.peak })
    };
    Ok(look_back(journal)?.into_iter().filter_map(both).collect())
}

/// A task that was seen to train at a plateau of memory, or ran to its end, teaches how much its kind holds.
pub(crate) fn showed_its_peak(record: &Record) -> bool {
    let promised = record.memory.as_ref().and_then(|memory| memory.promised);
    has_shown_all(record) || promised.is_some_and(|promised| promised.settled)
}

/// Only a task that ran to its end has shown all that it needs.
fn has_shown_all(record: &Record) -> bool {
    record.phase == TaskState::Completed && record.peak > Bytes::ZERO
}

/// Names of kinds of tasks: different commands get different names.
#[derive(Default)]
struct Kinds {
    by_signature: FxHashMap<String, String>,
    of_name: FxHashMap<String, usize>,
}

impl Kinds {
    fn of(&mut self, spec: &TaskSpec) -> String {
        let known = self.by_signature.entry(spec.signature());
        known
            .or_insert_with(|| {
                let count = self.of_name.entry(spec.name.clone()).or_insert(0);
                *count += 1;
                match *count {
                    1 => spec.name.clone(),
                    more => format!("{}#{more}", spec.name),
                }
            })
            .clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Uid;
    use crate::record::tests::spec;
    use coloc_model::Estimate;

    #[test]
    fn commands_that_share_a_name_are_told_apart() {
        let mut kinds = Kinds::default();
        assert_eq!(kinds.of(&spec(&["train", "a"])), "test");
        assert_eq!(kinds.of(&spec(&["train", "b"])), "test#2");
        assert_eq!(kinds.of(&spec(&["train", "a", "--seed=3"])), "test");
    }

    #[test]
    fn what_was_known_of_memory_is_told() {
        let plain = spec(&["train"]);
        let estimate = Some(Estimate { bound: Bytes(12), ..Estimate::exact(Bytes(10)) });
        let estimated = TaskSpec { estimate, ..plain.clone() };
        let estimator = Some(coloc_estimate::history::NAME.to_owned());
        let seen_before = TaskSpec { estimator, ..estimated.clone() };
        let declared = TaskSpec { gpu_memory: Some(Bytes(30)), ..seen_before.clone() };
        for (spec, expected, bytes) in [
            (&plain, Basis::Unknown, [None; 3]),
            (&estimated, Basis::Estimated, [None, Some(10), Some(12)]),
            (&seen_before, Basis::History, [None, Some(10), Some(12)]),
            (&declared, Basis::Declared, [Some(30), Some(10), Some(12)]),
        ] {
            let mut record = Record::new(TaskId(1), SpecId(1), Uid(0), Moment(0));
            (record.started, record.ended) = (Some(Moment(1)), Some(Moment(2)));
            record.peak = Bytes(9);
            let task = past_task(&record, spec, "kind", "ann".to_owned()).expect("it ran");
            assert_eq!(task.basis, Some(expected));
            assert_eq!([task.declared_bytes, task.estimate_bytes, task.bound_bytes], bytes);
            assert_eq!(task.memory_bytes, Some(9), "what was seen is what it held");
        }
    }

    #[test]
    fn answers_of_older_daemons_are_read() {
        let old = r#"{"id":1,"kind":"a","user":"ann","state":"completed","gpus":1,"exclusive":false,"submitted_s":1.0,
            "first_started_s":2.0,"started_s":2.0,"ended_s":3.0,"ooms":0,"preemptions":0,"memory_bytes":9,"activity":null,
            "slowdown":1.0}"#;
        let task: PastTask = serde_json::from_str(old).expect("a task");
        assert_eq!((task.basis, task.declared_bytes, task.memory_bytes), (None, None, Some(9)));
        let text = serde_json::to_string(&task).expect("JSON");
        assert!(!text.contains("basis") && !text.contains("declared"), "{text}");
    }
}
