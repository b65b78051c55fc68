//! What ran, as a simulation needs it: the journal's ended tasks without their commands and environments.

use crate::estimated::Replayed;
use crate::journal::{Journal, JournalError, Setup};
use crate::record::{Moment, Phase, Record, SpecId};
use crate::spec::TaskSpec;
use coloc_estimate::history::History;
use coloc_model::{Activity, Bytes, TaskId};
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The most tasks in one answer.
const MOST: u32 = 100_000;

/// Ended tasks that the history looks back on.
const LOOK_BACK: u32 = 2000;

/// Ended tasks, and how the daemon that ran them was set up.
#[derive(Clone, PartialEq, Debug, JsonSchema, Serialize, Deserialize)]
pub struct Past {
    /// The version of the answer.
    pub schema: u32,
    /// The last setup; `None` if the journal does not say.
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    pub setup: Option<Setup>,
    /// Tasks that ran, by when they were submitted.
    pub tasks: Vec<PastTask>,
    /// Tasks that ended without having run.
    pub never_ran: usize,
}

/// A task that ran and has ended.
#[derive(Clone, PartialEq, Debug, JsonSchema, Serialize, Deserialize)]
pub struct PastTask {
    /// Its id.
    pub id: u32,
    /// What it ran: its name, with a number where another command had the same.
    pub kind: String,
    /// Whose it was.
    pub user: String,
    /// How it ended.
    pub state: Phase,
    /// GPUs at once.
    pub gpus: u32,
    /// Kinds of GPU that it named; none means any.
    #[serde(default)]
    pub gpu_kinds: Vec<String>,
    /// It wanted them to itself.
    pub exclusive: bool,
    /// Higher goes first.
    #[serde(default)]
    pub priority: i32,
    /// When it was submitted, in seconds since 1970.
    pub submitted_s: f64,
    /// When it was first started.
    pub first_started_s: f64,
    /// When its last attempt began.
    pub started_s: f64,
    /// When it ended.
    pub ended_s: f64,
    /// Times it ran out of GPU memory.
    pub ooms: u32,
    /// Times it was preempted.
    pub preemptions: u32,
    /// Memory on each GPU: the most that was seen, else what it said or was estimated to need.
    pub memory_bytes: Option<u64>,
    /// How busy it would keep a GPU to itself, from what was seen; `None` if nobody looked.
    #[schemars(with = "Option<BTreeMap<String, f64>>")]
    pub activity: Option<Activity>,
    /// How many times as long it took as alone, as the scheduler believes.
    pub slowdown: f64,
}

/// Reads what was submitted since then and has ended.
pub fn read(journal: &Journal, since: Moment, user: Option<&str>) -> Result<Past, JournalError> {
    let mut specs: FxHashMap<_, (TaskSpec, String)> = FxHashMap::default();
    let mut kinds = Kinds::default();
    let mut past = Past {
        schema: crate::api::SCHEMA,
        setup: journal.setup()?,
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
        let (spec, kind) = match specs.entry(record.spec) {
            std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::hash_map::Entry::Vacant(new) => {
                let spec = journal.spec(record.spec)?;
                let kind = kinds.of(&spec);
                new.insert((spec, kind))
            }
        };
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
        ended_s: ended.secs(),
        ooms: record.ooms,
        preemptions: record.preemptions,
        memory_bytes: seen.or(said).map(|memory| memory.0),
        activity: record.usage.activity_alone(),
        slowdown: record.usage.slowdown(),
    })
}

/// The tasks that ended last, the oldest first, with what was submitted.
pub(crate) fn look_back(journal: &Journal) -> Result<Vec<(Record, Arc<TaskSpec>)>, JournalError> {
    let mut specs: FxHashMap<SpecId, Arc<TaskSpec>> = FxHashMap::default();
    let ended = journal.ended(Moment(0), LOOK_BACK)?;
    let with_spec = |record: Record| {
        let spec = match specs.entry(record.spec) {
            std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::hash_map::Entry::Vacant(new) => {
                new.insert(Arc::new(journal.spec(record.spec)?))
            }
        };
        Ok((record, spec.clone()))
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
        let replayed = spec.replayed.filter(|_| has_shown_all(&record) && record.ooms == 0)?;
        Some(Measured { id: record.id, name: spec.name.clone(), replayed, peak: record.peak })
    };
    Ok(look_back(journal)?.into_iter().filter_map(both).collect())
}

/// Only a task that ran to its end has shown all that it needs.
fn has_shown_all(record: &Record) -> bool {
    record.phase == Phase::Completed && record.peak > Bytes::ZERO
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
    use crate::spec::tests::spec;

    #[test]
    fn commands_that_share_a_name_are_told_apart() {
        let mut kinds = Kinds::default();
        assert_eq!(kinds.of(&spec(&["train", "a"])), "test");
        assert_eq!(kinds.of(&spec(&["train", "b"])), "test#2");
        assert_eq!(kinds.of(&spec(&["train", "a", "--seed=3"])), "test");
    }
}
