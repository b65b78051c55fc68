//! New tasks.

use crate::bounds;
use crate::journal::{Array, Entry, Keyed};
use crate::owner::commands::Submitted;
use crate::owner::commands::bulk::{Bulk, COMERS};
use crate::owner::commands::form::check_form;
use crate::owner::commands::invalid::Invalid;
use crate::owner::lifecycle::promises::memory_of;
use crate::owner::reply::{PendingAnswer, Reply};
use crate::owner::{Caller, Live, Owner, Refused};
use crate::record::{Record, SpecId, Uid};
use coloc_api::request::{ArrayRequest, Submission};
use coloc_api::spec::{ArrayExtent, Dependency, DependencyKind, TaskSpec};
use coloc_api::variables::Variable;
use coloc_api::view::StoryLine;
use coloc_model::{Bytes, HostNeed, Millis, Task, TaskId};
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// No process has less of a GPU: a CUDA context takes more. A limit of nothing would be none under MPS.
pub(in crate::owner) const LEAST_MEMORY: Bytes = Bytes::from_mib(128);

/// What a task asks of the machine beside GPUs.
fn host_need(spec: &TaskSpec) -> HostNeed {
    HostNeed {
        cpus: spec.layout.cpus().unwrap_or(0),
        memory: spec.host_memory.unwrap_or(Bytes::ZERO),
    }
}

/// An array that comes in parts, with what all of its tasks are.
type LargeArray = (Arc<Array>, Arc<TaskSpec>);

impl Owner {
    /// Takes a submission, all of it or nothing. It counts once it is on the disk. The tasks of a large array come in parts, and
    /// the answer when all have come.
    pub(in crate::owner) fn submit(
        &mut self,
        caller: Caller,
        submission: Submission,
        reply: Reply<Submitted>,
    ) -> Option<PendingAnswer> {
        match self.take_submission(caller, submission) {
            Ok((submitted, Some((array, spec)))) => {
                self.bulk = Some(Bulk::Array { array, spec, come: 0, submitted, reply });
                None
            }
            Ok((submitted, None)) => Some(reply.once_written(Ok(submitted), Refused::Journal)),
            Err(refused) => Some(reply.anyway(Err(refused))),
        }
    }

    /// Says what was submitted, and which large array of it has to come yet.
    fn take_submission(
        &mut self,
        caller: Caller,
        submission: Submission,
    ) -> Result<(Submitted, Option<LargeArray>), Refused> {
        if let Some(key) = &submission.key
            && let Some(tasks) = self.submitted_before(caller, key)?
        {
            self.check_key(&tasks, &submission.spec)?;
            return Ok((Submitted { ids: tasks, memory_rule: None }, None));
        }
        self.may_submit(caller, &submission.spec)?;
        let Submission { mut spec, array, held, key, singleton } = submission;
        self.check_pools(caller, caller.uid, &spec)?;
        spec.time_limit = self.times_of(caller.uid, &spec).given(spec.time_limit);
        self.check_time_limit(caller.uid, &spec)?;
        self.check(caller.uid, &spec, array.as_ref())?;
        self.has_room(caller, array.as_ref().map_or(1, |array| array.indices.len()), &spec)?;
        spec.singleton |= singleton;
        spec.layout.array = array.as_ref().and_then(|array| ArrayExtent::of(&array.indices));
        self.estimate(&mut spec);
        // How the submitting user reaches the daemon is a secret, and none of the task's business.
        let is_way_in =
            |(name, _): &Variable| matches!(name.as_bytes(), b"COLOC_TOKEN" | b"COLOC_HOST");
        if spec.environment.iter().any(is_way_in) {
            let others = spec.environment.iter().filter(|variable| !is_way_in(variable));
            spec.environment = others.cloned().collect();
        }
        let (now, spec_id) = (self.clock.world_now(), SpecId(self.next_spec));
        self.next_spec += 1;
        self.shared_texts.share(&mut spec);
        let spec = Arc::new(spec);
        self.keep_spec(caller.uid, spec_id, spec.clone());
        let first = TaskId(self.next_task);
        let mut record = Record::new(first, spec_id, caller.uid, now);
        record.held = held;
        let count = array.as_ref().map_or(1, |array| array.indices.len() as u32);
        self.next_task += count;
        self.user_usage.many_came(&record, count);
        let memory_rule = self.memory_rule(&record, &spec);
        let mut to_come = None;
        match array {
            Some(ArrayRequest { indices, at_once }) => {
                let array = Arc::new(Array::new(record, at_once, indices));
                self.pending.push(Entry::Array(array.clone()));
                match array.ids().len() > COMERS {
                    true => to_come = Some((array, spec)),
                    false => array.tasks().for_each(|record| self.have(record, &spec)),
                }
            }
            None => {
                self.pending.push(Entry::Task(Box::new(record.clone())));
                self.have(record, &spec);
            }
        }
        let what = match count {
            1 => "submitted".to_owned(),
            many => format!("submitted as an array of {many}"),
        };
        self.pending.push(Entry::Story(first, StoryLine { at: now, what }));
        self.pending.extend(
            key.map(|key| Entry::Key(Keyed { owner: caller.uid, key, at: now, first, count })),
        );
        Ok((Submitted { ids: Keyed::tasks(first, count), memory_rule }, to_come))
    }

    /// Whether a user may submit such tasks now.
    fn may_submit(&self, caller: Caller, spec: &TaskSpec) -> Result<(), Refused> {
        if self.draining {
            return Err(Refused::Draining);
        }
        if self.disk_full {
            return Err(Refused::Journal(self.why_unwritten()));
        }
        let daemon = rustix::process::geteuid();
        if !daemon.is_root() && caller.uid.0 != daemon.as_raw() {
            // It could run them only as itself.
            let user = crate::users::name(crate::record::Uid(daemon.as_raw()));
            return Err(Invalid::OtherUser(user).into());
        }
        match spec.priority > 0 && !caller.admin {
            true => Err(Refused::PriorityAboveZero),
            false => Ok(()),
        }
    }

    /// Has a new task, which waits.
    pub(in crate::owner) fn have(&mut self, record: Record, spec: &Arc<TaskSpec>) {
        let id = record.id;
        self.keep(Live { record, spec: spec.clone(), in_core: false, ending: None });
        self.eligibility.look_at(id);
        self.mind_long_wait(id);
    }

    /// The tasks that came with this key, in this batch or before.
    fn submitted_before(&self, caller: Caller, key: &str) -> Result<Option<Vec<TaskId>>, Refused> {
        if key.is_empty() || key.len() > bounds::KEY || key.chars().any(char::is_control) {
            return Err(Invalid::Key.into());
        }
        let now = self.pending.iter().find_map(|entry| match entry {
            Entry::Key(keyed) if keyed.owner == caller.uid && keyed.key == key => {
                Some(Keyed::tasks(keyed.first, keyed.count))
            }
            _ => None,
        });
        match now {
            Some(tasks) => Ok(Some(tasks)),
            None => self.journal.keyed(caller.uid, key, self.clock.world_now()).map_err(|error| {
                // Without knowing, to take it could be to take it twice.
                Refused::Journal(error.trouble())
            }),
        }
    }

    /// A key stands for one submission: one that runs something else has been given it by mistake.
    fn check_key(&self, before: &[TaskId], spec: &TaskSpec) -> Result<(), Refused> {
        let Some(&first) = before.first() else { return Ok(()) };
        let known = self.tasks.get(&first).map(|live| live.spec.trimmed()).or_else(|| {
            let record = self.journal.task(first).ok()??;
            self.journal.spec(record.spec).ok().map(|spec| spec.trimmed())
        });
        // What was removed from the journal cannot be compared, and was acknowledged all the same.
        let is_other = known.is_some_and(|known| {
            known.command != spec.command || known.script != spec.trimmed().script
        });
        if is_other { Err(Invalid::KeyOfAnother(first).into()) } else { Ok(()) }
    }

    /// Whether tasks of a submission can ever run, within the bounds and the quota of their user.
    pub(in crate::owner) fn check(
        &mut self,
        owner: Uid,
        spec: &TaskSpec,
        array: Option<&ArrayRequest>,
    ) -> Result<(), Refused> {
        let tasks = array.map_or(1, |array| array.indices.len());
        bounds::check(spec, tasks, &self.settings.bounds).map_err(Invalid::from)?;
        check_form(spec, array)?;
        self.check_hooks(spec)?;
        self.check_dependencies(spec)?;
        self.check_gang_share(owner, spec)?;
        self.check_kinds(spec)?;
        self.check_memory(spec)?;
        let task = Task {
            id: TaskId(self.next_task),
            signature: self.names.next(),
            user: self.user(owner),
            gpus: spec.gpus,
            exclusive: spec.exclusive,
            models: self.models(spec),
            pools: self.pools_of(owner, spec),
            memory: memory_of(spec, self.scheduler.policy().contract.is_some()),
            sm: None,
            borrows: false,
            checkpoint: None,
            host: host_need(spec),
            duration: None,
            priority: 0,
        };
        self.scheduler.check_host(task.host).map_err(Invalid::Host)?;
        let fits = self.scheduler.check(&task).and_then(|()| self.scheduler.check_pools(&task));
        Ok(fits.map_err(Invalid::from)?)
    }

    /// What a task waits for is, or was, there.
    fn check_dependencies(&self, spec: &TaskSpec) -> Result<(), Refused> {
        for Dependency { task, when, delay } in &spec.after {
            if *delay > Millis::ZERO && *when != DependencyKind::After {
                return Err(Invalid::DelayAfterEnd.into());
            }
            if !self.tasks.contains_key(task) && !matches!(self.journal.task(*task), Ok(Some(_))) {
                return Err(Invalid::NoSuchDependency(*task).into());
            }
        }
        Ok(())
    }

    /// No GPU can give what a task declares or is expected to hold. What an estimate only does not rule out may fit.
    fn check_memory(&self, spec: &TaskSpec) -> Result<(), Invalid> {
        if spec.reclaim && spec.gpu_memory.is_none() {
            return Err(Invalid::ReclaimUndeclared);
        }
        if let Some(declared) = spec.gpu_memory.filter(|&declared| declared < LEAST_MEMORY) {
            return Err(Invalid::LittleMemory(declared));
        }
        if spec.estimate.is_some_and(|estimate| estimate.bound < estimate.peak) {
            return Err(Invalid::BoundBelowPeak);
        }
        let (gpus, largest) = (spec.gpus, self.scheduler.most_memory(spec.gpus));
        let declared = spec.gpu_memory.is_some();
        let needs = spec.gpu_memory.or(spec.estimate.map(|estimate| estimate.peak));
        match needs.filter(|&needs| needs > largest && !spec.force && largest != Bytes::ZERO) {
            Some(needs) => Err(Invalid::MuchMemory { declared, needs, gpus, largest }),
            None => Ok(()),
        }
    }

    /// A submission that could not be written down never was. One that was only changed is known to the disk, and
    /// stays.
    pub(in crate::owner) fn forget_unwritten_submissions(&mut self) {
        if self.pending.iter().any(|entry| matches!(entry, Entry::Array(_))) {
            self.forget_unwritten_array();
        }
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
                Entry::Array(array) => forgotten.extend(array.ids().map(TaskId)),
                _ => {}
            }
        }
        let mut gone = Vec::new();
        for task in &forgotten {
            gone.extend(self.drop_task(*task).map(|live| live.record));
        }
        gone.iter().for_each(|record| self.never_was(record));
        // It names a submission that may not be on the disk.
        self.updated = None;
        let mut not_kept = Vec::new();
        self.pending.retain(|entry| match entry {
            Entry::Spec(spec, _) => kept.contains(spec),
            Entry::Kept { owner, spec, bytes } if unwritten.contains(spec) => {
                let is_kept = kept.contains(spec);
                not_kept.extend((!is_kept).then_some((*owner, *bytes)));
                is_kept
            }
            Entry::Kept { .. } | Entry::Respec(..) => true,
            Entry::Task(record) => !forgotten.contains(&record.id),
            Entry::Array(_) => false,
            Entry::Story(task, _) => !forgotten.contains(task),
            // It can be asked for again; nothing was promised.
            Entry::Lesson(..) => false,
            // It counts already, and is written down when there is room.
            Entry::Gpu(_) | Entry::Setup(_) => true,
            Entry::Notice(_) | Entry::NoticeDone(_) => true,
            Entry::Key(keyed) => !forgotten.contains(&keyed.first),
            Entry::Draining(_) => true,
            Entry::Attempt(_) | Entry::Series(..) | Entry::NoSeries(_) => true,
            Entry::Decision(task, _) => !forgotten.contains(task),
        });
        for (owner, bytes) in not_kept {
            self.was_not_kept(owner, bytes);
        }
    }

    /// A task as the scheduler is told of it.
    pub(in crate::owner) fn as_core_task(&mut self, task: TaskId) -> Option<Task> {
        let live = self.tasks.get(&task)?;
        let (spec, record) = (live.spec.clone(), live.record.clone());
        Some(self.core_task(&record, &spec))
    }

    /// A task of that submission as the scheduler is told of it.
    pub(in crate::owner) fn core_task(&mut self, record: &Record, spec: &TaskSpec) -> Task {
        let on_oom = coloc_api::spec::OnOom::Exclusive;
        Task {
            id: record.id,
            signature: self.names.number(spec.signature()),
            user: self.user(record.owner),
            gpus: spec.gpus,
            exclusive: spec.exclusive || (record.ooms > 0 && spec.on_oom == on_oom),
            models: self.models(spec),
            pools: self.pools_of(record.owner, spec),
            memory: memory_of(spec, self.scheduler.policy().contract.is_some()),
            // How busy a GPU it keeps is worth knowing also where its memory was declared.
            sm: spec.estimate.and_then(|estimate| estimate.sm),
            borrows: spec.borrow,
            checkpoint: spec.checkpoint,
            host: host_need(spec),
            duration: spec.time_limit,
            priority: spec.priority,
        }
    }
}
