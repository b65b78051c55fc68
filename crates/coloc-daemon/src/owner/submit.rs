//! New tasks.

use super::{Caller, Live, Owner, Refused};
use crate::journal::{Entry, Keyed, StoryLine};
use crate::record::{ArrayPlace, Moment, Record, SpecId};
use crate::script;
use crate::spec::{Dependency, DependencyKind, TaskSpec};
use coloc_model::{Bytes, Estimate, Millis, Task, TaskId};
use rustc_hash::FxHashSet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The most tasks that one submission may have.
const LARGEST_ARRAY: usize = 100_000;
/// The largest environment and command that are taken, in bytes.
const LARGEST_SPEC: usize = 4 << 20;

/// The longest key of a submission, in bytes.
const LONGEST_KEY: usize = 200;

/// What somebody submits.
#[derive(Clone, PartialEq, Debug, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Submission {
    /// The task.
    pub spec: TaskSpec,
    /// Many of them.
    #[serde(default)]
    pub array: Option<ArrayRequest>,
    /// They wait until they are released.
    #[serde(default)]
    pub held: bool,
    /// A name that the sender gives this submission alone: when it is sent again within a week, the answer is that of the
    /// first time and nothing is submitted twice.
    #[serde(default)]
    pub key: Option<String>,
    /// They wait until whatever the caller submitted before under the same name has ended.
    #[serde(default)]
    pub singleton: bool,
}

impl Submission {
    /// One task.
    pub fn of(spec: TaskSpec) -> Self {
        Submission { spec, array: None, held: false, key: None, singleton: false }
    }
}

/// Tasks that differ in a number.
#[derive(Clone, PartialEq, Eq, Debug, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArrayRequest {
    /// The numbers.
    pub indices: Vec<u32>,
    /// How many may run at once.
    #[serde(default)]
    pub at_once: Option<u32>,
}

impl Owner {
    /// Takes a submission, all of it or nothing. It counts once it is on the disk.
    pub(super) fn submit(
        &mut self,
        caller: Caller,
        submission: Submission,
    ) -> Result<Vec<TaskId>, Refused> {
        if let Some(key) = &submission.key
            && let Some(tasks) = self.submitted_before(caller, key)?
        {
            return Ok(tasks);
        }
        if self.draining {
            return Err(Refused::Draining);
        }
        if self.disk_full {
            return Err(Refused::DiskFull);
        }
        let daemon = rustix::process::geteuid();
        if !daemon.is_root() && caller.uid.0 != daemon.as_raw() {
            // It could run them only as itself.
            let user = crate::users::name(crate::record::Uid(daemon.as_raw()));
            return Err(Refused::Invalid(format!("this daemon runs tasks of {user} only")));
        }
        let Submission { mut spec, array, held, key, singleton } = submission;
        if spec.priority > 0 && !caller.admin {
            return Err(Refused::PriorityAboveZero);
        }
        self.check(&spec, array.as_ref())?;
        spec.singleton |= singleton;
        self.estimate(&mut spec);
        // The way in of whoever submitted, which is nobody else's business and not the task's.
        spec.environment
            .retain(|(name, _)| !matches!(name.as_bytes(), b"COLOC_TOKEN" | b"COLOC_HOST"));
        let (now, spec_id) = (Moment::now(), SpecId(self.next_spec));
        self.next_spec += 1;
        self.texts.share(&mut spec);
        let spec = Arc::new(spec);
        self.pending.push(Entry::Spec(spec_id, spec.clone()));
        let first = TaskId(self.next_task);
        let indices: Vec<Option<u32>> = match &array {
            Some(array) => {
                // In order, so that one of them is found by its number.
                let mut indices = array.indices.clone();
                indices.sort_unstable();
                indices.into_iter().map(Some).collect()
            }
            None => vec![None],
        };
        let at_once = array.and_then(|array| array.at_once);
        for index in &indices {
            let id = TaskId(self.next_task);
            self.next_task += 1;
            let mut record = Record::new(id, spec_id, caller.uid, now);
            record.held = held;
            record.array = index.map(|index| ArrayPlace { array: first, index, at_once });
            self.pending.push(Entry::Task(Box::new(record.clone())));
            let live = Live { record, spec: spec.clone(), in_core: false, ending: None };
            self.tasks.insert(id, live);
            self.gates.knock(id);
        }
        let what = match indices.len() {
            1 => "submitted".to_owned(),
            many => format!("submitted as an array of {many}"),
        };
        self.pending.push(Entry::Story(first, StoryLine { at: now, what }));
        let count = indices.len() as u32;
        self.pending.extend(
            key.map(|key| Entry::Key(Keyed { owner: caller.uid, key, at: now, first, count })),
        );
        Ok(Keyed::tasks(first, count))
    }

    /// The tasks that came with this key, in this batch or before.
    fn submitted_before(&self, caller: Caller, key: &str) -> Result<Option<Vec<TaskId>>, Refused> {
        if key.is_empty() || key.len() > LONGEST_KEY || key.chars().any(char::is_control) {
            let what = "a submission's key has 1 to 200 bytes, and no control characters";
            return Err(Refused::Invalid(what.to_owned()));
        }
        let now = self.pending.iter().find_map(|entry| match entry {
            Entry::Key(keyed) if keyed.owner == caller.uid && keyed.key == key => {
                Some(Keyed::tasks(keyed.first, keyed.count))
            }
            _ => None,
        });
        match now {
            Some(tasks) => Ok(Some(tasks)),
            None => self.journal.keyed(caller.uid, key, Moment::now()).map_err(|error| {
                // Without knowing, to take it could be to take it twice.
                Refused::Invalid(error.to_string())
            }),
        }
    }

    pub(super) fn check(
        &self,
        spec: &TaskSpec,
        array: Option<&ArrayRequest>,
    ) -> Result<(), Refused> {
        let invalid = |what: &str| Err(Refused::Invalid(what.to_owned()));
        if spec.command.is_empty() {
            return invalid("no command was given");
        }
        let text = |texts: &mut dyn Iterator<Item = &crate::text::RawText>| {
            texts.map(|text| text.as_bytes().len() + 8).sum::<usize>()
        };
        let environment = spec.environment.iter().flat_map(|(name, value)| [name, value]);
        if spec.script.as_ref().is_some_and(|script| script.as_bytes().len() > script::LARGEST) {
            return invalid("a script has at most 2 MiB");
        }
        if spec.script.as_ref().is_some_and(|body| script::interpreter(body.as_bytes()).is_none()) {
            return invalid("a script's first line must be #! and a program, such as #!/bin/bash");
        }
        if text(&mut spec.command.iter().chain(environment)) > LARGEST_SPEC {
            return invalid("command and environment are larger than 4 MiB together");
        }
        let zero = |text: &crate::text::RawText| text.as_bytes().contains(&0);
        let variables = spec.environment.iter().flat_map(|(name, value)| [name, value]);
        if spec.command.iter().chain(variables).chain([&spec.directory]).any(zero) {
            return invalid("a zero byte cannot be passed to a program");
        }
        if spec.sm_percent.is_some_and(|percent| !(1..=100).contains(&percent)) {
            return invalid("a share of the SMs is from 1 to 100 percent");
        }
        if !spec.directory.as_path().is_absolute() {
            return invalid("the working directory must be an absolute path");
        }
        if let Some(array) = array {
            match array.indices.len() {
                0 => return invalid("an array needs at least one index"),
                many if many > LARGEST_ARRAY => {
                    return invalid("an array has at most 100000 tasks");
                }
                _ if array.at_once == Some(0) => return invalid("%0 would never run anything"),
                _ => {}
            }
        }
        if let (Some(limit), Some(warning)) = (spec.time_limit, spec.warning)
            && warning.before >= limit
        {
            return Err(Refused::Invalid(format!(
                "the signal is to come {} s before a time limit of {} s: give it more time, or the signal less",
                warning.before.secs(),
                limit.secs()
            )));
        }
        for Dependency { task, when, delay } in &spec.after {
            if *delay > Millis::ZERO && *when != DependencyKind::After {
                return invalid(
                    "only who waits for the start of a task (after) can wait on for a while",
                );
            }
            if !self.tasks.contains_key(task) && !matches!(self.journal.task(*task), Ok(Some(_))) {
                return Err(Refused::Invalid(format!(
                    "it is to wait for task {task}, which never was"
                )));
            }
        }
        if spec.gpus > 1 && self.scheduler.policy().share == coloc_model::Share::Mig {
            return invalid(
                "this daemon gives tasks MIG instances, and a process sees one of them: ask for one GPU",
            );
        }
        self.check_kinds(spec)?;
        let largest = self.scheduler.most_memory(spec.gpus);
        if spec.gpu_memory.is_some_and(|need| need > largest) && largest > Bytes::ZERO {
            return Err(Refused::Invalid(format!(
                "no GPU has {}: the largest that {} GPUs at once have is {largest}",
                spec.gpu_memory.unwrap_or_default(),
                spec.gpus
            )));
        }
        let task = Task {
            id: TaskId(self.next_task),
            // What kinds it may have was looked at before.
            signature: self.names.next(),
            user: coloc_model::UserId(0),
            gpus: spec.gpus,
            exclusive: spec.exclusive,
            estimate: None,
            duration: None,
            priority: 0,
        };
        let fits = self.scheduler.check(&task);
        fits.map_err(|rejected| Refused::Invalid(rejected.to_string()))
    }

    /// A submission that could not be written down never was. One that was only changed is known to the disk, and
    /// stays.
    pub(super) fn forget_unwritten_submissions(&mut self) {
        let mut unwritten = FxHashSet::default();
        let (mut forgotten, mut kept) = (FxHashSet::default(), FxHashSet::default());
        for entry in &self.pending {
            match entry {
                Entry::Spec(spec, _) => {
                    unwritten.insert(*spec);
                }
                Entry::Task(record) if unwritten.contains(&record.spec) => {
                    match self.journal.task(record.id) {
                        Ok(Some(_)) => kept.insert(record.spec),
                        _ => forgotten.insert(record.id),
                    };
                }
                _ => {}
            }
        }
        self.tasks.retain(|task, _| !forgotten.contains(task));
        self.pending.retain(|entry| match entry {
            Entry::Spec(spec, _) => kept.contains(spec),
            Entry::Task(record) => !forgotten.contains(&record.id),
            Entry::Story(task, _) => !forgotten.contains(task),
            // It can be asked for again; nothing was promised.
            Entry::Lesson(..) => false,
            Entry::Key(keyed) => !forgotten.contains(&keyed.first),
        });
    }

    /// A task as the scheduler is told of it.
    pub(super) fn as_core_task(&mut self, task: TaskId) -> Option<Task> {
        let live = self.tasks.get(&task)?;
        let (spec, owner) = (live.spec.clone(), live.record.owner);
        let exclusive = spec.exclusive
            || (live.record.ooms > 0 && spec.on_oom == crate::spec::OnOom::Exclusive);
        // Whoever says what it needs is believed; how busy a GPU it keeps is still worth knowing.
        let sm = spec.estimate.and_then(|estimate| estimate.sm);
        let declared = spec.gpu_memory.map(|said| Estimate { sm, ..Estimate::exact(said) });
        // What it wanted when it ran out of memory is worth more than what was said before.
        let (wanted, said) = (live.record.wanted, declared.or(spec.estimate));
        let estimate = wanted.map(|wanted| match said {
            Some(said) => {
                Estimate { peak: said.peak.max(wanted), bound: said.bound.max(wanted), ..said }
            }
            None => Estimate::exact(wanted),
        });
        let user = self.user(owner);
        // What is wished for because of it is wished for at the next decision.
        let signature = self.signature(self.clock.now(), &spec, &mut Vec::new());
        Some(Task {
            id: task,
            signature,
            user,
            gpus: spec.gpus,
            exclusive,
            estimate: estimate.or(said),
            duration: spec.time_limit,
            priority: spec.priority,
        })
    }
}
