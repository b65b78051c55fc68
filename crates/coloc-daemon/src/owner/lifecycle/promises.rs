//! What tasks are promised of their GPUs' memory: as the scheduler is told, as it is kept over restarts, and as it limits them.

use crate::executor::MemoryLimit;
use crate::owner::memory_view;
use crate::owner::{Live, Owner};
use crate::record::{MemoryState, Record};
use coloc_api::spec::TaskSpec;
use coloc_api::view::MemoryView;
use coloc_core::{Attempts, Promised};
use coloc_estimate::history;
use coloc_model::{Basis, Bytes, Memory, Placement, Share, TaskId, TaskState};

/// Kept above what a task wanted under a daemon that did not write down what it was granted.
const UNWRITTEN: f64 = 1.1;

/// What is known of a task's memory before it runs. What runs of its kind held is the scheduler's own knowledge.
pub(in crate::owner) fn memory_of(spec: &TaskSpec, contract: bool) -> Memory {
    let by_history = contract && spec.estimator.as_deref() == Some(history::NAME);
    match (spec.gpu_memory, spec.estimate) {
        (Some(bytes), _) => Memory::Declared { bytes, reclaim: spec.reclaim },
        (None, Some(_)) if by_history => Memory::Unknown,
        (None, estimate) => estimate.into(),
    }
}

/// What the attempts of a task showed. Earlier versions wrote down only how often it ran out of memory, and what it wanted.
pub(in crate::owner) fn attempts_of(record: &Record) -> Option<Attempts> {
    let kept = record.memory.as_ref().map(|memory| memory.attempts);
    let kept = kept.filter(|attempts| *attempts != Attempts::default());
    let earlier = || Attempts {
        ooms: record.ooms,
        wanted: record.wanted,
        granted: record.wanted.unwrap_or_default().scale(UNWRITTEN),
        ..Attempts::default()
    };
    kept.or_else(|| (record.ooms > 0).then(earlier))
}

/// What a task's story says when its promise changed.
fn told(before: Option<Promised>, now: &Promised, held: Bytes) -> Option<String> {
    match (before.is_some_and(|before| before.settled), now.settled) {
        (false, true) => Some(format!(
            "has settled: it trains with {held}, and {} are booked for it from now on",
            now.bytes
        )),
        (true, false) => Some(format!(
            "holds {held}, more than was left to it: {} are booked for it again",
            now.bytes
        )),
        _ => None,
    }
}

impl Owner {
    /// What the scheduler knows of a task's memory and has to know again after a restart.
    fn memory_state(&self, live: &Live) -> Option<MemoryState> {
        let attempts = self.scheduler.attempts(live.record.id).filter(|_| live.in_core)?;
        let runs = live.record.phase.is_on_gpus();
        // Without a contract nothing is promised that would have to be kept.
        let kept = runs && self.has_contract();
        let promised = self.scheduler.promised(live.record.id).filter(|_| kept);
        Some(MemoryState { attempts, promised })
    }

    /// Tells the scheduler what the attempts of a task showed that is about to be submitted to it.
    pub(in crate::owner) fn recall_attempts(&mut self, record: &Record) {
        if let Some(attempts) = attempts_of(record) {
            self.scheduler.recall_attempts(record.id, attempts);
        }
    }

    /// Takes over what the scheduler promises a task, so that it is written down with the rest.
    pub(in crate::owner) fn note_promise(&mut self, task: TaskId) {
        let Some(state) = self.tasks.get(&task).and_then(|live| self.memory_state(live)) else {
            return;
        };
        let Some(live) = self.tasks.get_mut(&task) else { return };
        let record = &mut live.record;
        record.ooms = record.ooms.max(state.attempts.ooms);
        // What the last attempt was promised is of interest until the next one.
        let last = record.memory.as_ref().and_then(|memory| memory.promised);
        let state = MemoryState { promised: state.promised.or(last), ..state };
        record.memory = (state != MemoryState::default()).then(|| Box::new(state));
    }

    /// Writes down promises that changed, before others are launched into what was given back.
    pub(in crate::owner) fn keep_promises(&mut self) {
        if !self.has_contract() {
            return;
        }
        let mut changed = Vec::new();
        for live in self.at_work() {
            let Some(now) = self.memory_state(live).and_then(|state| state.promised) else {
                continue;
            };
            let before = live.record.memory.as_ref().and_then(|memory| memory.promised);
            if before != Some(now) {
                let held = self.scheduler.seen(live.record.id).unwrap_or_default();
                changed.push((live.record.id, told(before, &now, held)));
            }
        }
        for (task, what) in changed {
            self.changed(task, what);
        }
    }

    /// Why the scheduler takes a task off its GPUs, for its story.
    pub(in crate::owner) fn why_preempted(&self, task: TaskId) -> String {
        let Some(live) = self.tasks.get(&task) else { return String::new() };
        let ooms = self.scheduler.attempts(task).map_or(0, |attempts| attempts.ooms);
        if ooms > live.record.ooms {
            let held = live.record.peak;
            return format!(
                "is preempted: a neighbour ran out of memory because this task held {held}, more than it was promised"
            );
        }
        match live.spec.borrow && self.has_contract() {
            true => "is preempted: it ran in borrowed memory, and the task that lent it wants it"
                .to_owned(),
            false => "is preempted".to_owned(),
        }
    }

    /// GPU memory that an attempt is held to.
    pub(in crate::owner) fn memory_limit(&self, task: TaskId) -> MemoryLimit {
        let Some(live) = self.tasks.get(&task) else { return MemoryLimit::Unsaid };
        let died = live.record.ooms > 0;
        let limit = match self.scheduler.policy().contract {
            Some(_) => self.scheduler.promised(task).and_then(|promised| promised.limit),
            // A task that said its need is held to it until it has died of it; then its booking beside others counts.
            None if died => self.booked_to_share(task),
            None => live.spec.gpu_memory,
        };
        match limit {
            Some(bytes) => MemoryLimit::Bytes(bytes),
            None if died => MemoryLimit::Lifted,
            None if live.spec.exclusive => MemoryLimit::Alone,
            None => MemoryLimit::Unsaid,
        }
    }

    /// What the ledger has for a task on GPUs that it has not to itself.
    fn booked_to_share(&self, task: TaskId) -> Option<Bytes> {
        let placement = self.tasks.get(&task)?.record.placement.as_ref()?;
        let booking = |gpu| {
            let residents = self.scheduler.gpus().get(gpu).residents();
            residents.iter().find(|booking| booking.task == task && !booking.alone)
        };
        let shared = self.scheduler.policy().share != Share::Exclusive;
        placement.gpus().filter(|_| shared).filter_map(booking).map(|booking| booking.bytes).min()
    }

    /// What a running task may hold where others were promised the rest; `None` where it harms no other task. The ledger
    /// has given it all that was free by then.
    pub(in crate::owner) fn booked_beside_others(
        &self,
        task: TaskId,
        live: &Live,
    ) -> Option<Bytes> {
        let runs = live.record.phase == TaskState::Running && live.ending.is_none();
        // Without the contract, a task that said nothing and has not run out of memory promised nothing.
        let promised =
            self.has_contract() || live.spec.gpu_memory.is_some() || live.record.ooms > 0;
        if !runs || !promised {
            return None;
        }
        let gpus = live.record.placement.iter().flat_map(Placement::gpus);
        let booked = |gpu| {
            let residents = self.scheduler.gpus().get(gpu).residents();
            let own = residents.iter().find(|booking| booking.task == task)?;
            (residents.len() > 1 && own.instance.is_none()).then_some(own.bytes)
        };
        gpus.filter_map(booked).min()
    }

    /// What a task is promised on each GPU, and what that rests on, for people and programs: one that the scheduler has not heard of, what it would be.
    pub(in crate::owner) fn memory_view(&mut self, task: TaskId) -> (Option<u64>, MemoryView) {
        let known = self.scheduler.promised(task);
        let promised = known.or_else(|| {
            let core_task = self.as_core_task(task)?;
            self.scheduler.would_promise(core_task)
        });
        let Some(live) = self.tasks.get(&task) else { return Default::default() };
        let rule = rule(self.has_contract(), &live.spec, promised.as_ref());
        let mut view = memory_view(promised.as_ref(), rule);
        // What earlier runs of the command held is history, whatever was declared. After an out-of-memory of its own the
        // promise grew by that.
        if live.record.ooms == 0 && raised(&live.spec, promised.as_ref()).is_some() {
            view.memory_basis = Some(Basis::History.name().to_owned());
        }
        (promised.map(|promised| promised.bytes.0), view)
    }

    /// What a task is promised that was just submitted, in a sentence.
    pub(in crate::owner) fn memory_rule(
        &mut self,
        record: &Record,
        spec: &TaskSpec,
    ) -> Option<String> {
        let core_task = self.core_task(record, spec);
        let promised = self.scheduler.would_promise(core_task);
        rule(self.has_contract(), spec, promised.as_ref())
    }

    fn has_contract(&self) -> bool {
        self.scheduler.policy().contract.is_some()
    }
}

/// What was declared, if more is promised than that: earlier runs of the command held more, or this one wanted more.
fn raised(spec: &TaskSpec, promised: Option<&Promised>) -> Option<Bytes> {
    let promised = promised.filter(|promised| promised.basis == Basis::Declared)?;
    spec.gpu_memory.filter(|&declared| declared < promised.bytes)
}

/// Which row of the memory contract applies to a task; `None` where there is nothing to say.
fn rule(contract: bool, spec: &TaskSpec, promised: Option<&Promised>) -> Option<String> {
    if !contract {
        let declared = spec.gpu_memory?;
        return Some(format!(
            "declared, but the policy has no memory contract: {declared} are kept for it for a minute, then what it was seen to \
             hold"
        ));
    }
    let promised = promised?;
    let bytes = promised.bytes;
    let raised = raised(spec, Some(promised));
    if let Some(declared) = raised.filter(|_| !spec.exclusive) {
        return Some(format!(
            "history: {declared} were declared, and {bytes} are kept for it, because runs of the same command, or an attempt \
             that ran out of memory, wanted more"
        ));
    }
    Some(match (promised.basis, promised.settled) {
        _ if spec.exclusive => "exclusive: its GPUs are its own".to_owned(),
        (Basis::Declared, _) if spec.reclaim => {
            format!(
                "declared: {bytes} are kept for it; what it does not use is lent until it wants it"
            )
        }
        (Basis::Declared, _) if spec.borrow => format!(
            "declared: it has {bytes}; where they are borrowed, it is requeued when they are wanted back"
        ),
        (Basis::Declared, _) => {
            let more = spec.estimate.map(|estimate| estimate.peak).filter(|&peak| peak > bytes);
            let more = more.map(|peak| format!(", but it is estimated to need {peak}"));
            let more = more.unwrap_or_default();
            format!("declared: {bytes} are kept for it as long as it runs{more}")
        }
        (Basis::Estimated, false) => {
            format!("estimated: {bytes} are kept for it until it is seen to need less")
        }
        (Basis::History, false) => {
            format!("history: {bytes} are kept for it, by what runs of the same command held")
        }
        (Basis::Unknown, false) if promised.alone => {
            "unknown: it has a GPU to itself until it is seen to train; --gpu-mem avoids that"
                .to_owned()
        }
        (Basis::Unknown, false) if bytes == Bytes::ZERO => {
            "unknown: nothing is kept for it, and it shares GPUs at once (--share-blind)".to_owned()
        }
        (Basis::Unknown, false) => format!("unknown: {bytes} are kept for it"),
        (basis, true) => {
            format!("{}: it was seen to train, and {bytes} are kept for it", basis.name())
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::spec;
    use crate::record::{SpecId, Uid};
    use coloc_api::moment::Moment;
    use coloc_model::Estimate;

    #[test]
    fn a_declaration_is_no_estimate_and_history_is_the_schedulers() {
        let memory = Bytes::from_mib(100);
        let mut task = TaskSpec { gpu_memory: Some(memory), reclaim: true, ..spec(&["train"]) };
        assert_eq!(memory_of(&task, true), Memory::Declared { bytes: memory, reclaim: true });
        task = TaskSpec { estimate: Some(Estimate::exact(memory)), ..spec(&["train"]) };
        assert_eq!(memory_of(&task, true), Memory::exact(memory));
        task.estimator = Some(history::NAME.to_owned());
        assert_eq!(memory_of(&task, true), Memory::Unknown);
        assert_eq!(memory_of(&task, false), Memory::exact(memory));
    }

    #[test]
    fn records_of_earlier_versions_come_back_with_what_they_wanted() {
        let mut record = Record::new(TaskId(1), SpecId(1), Uid(0), Moment(0));
        assert_eq!(attempts_of(&record), None);
        (record.ooms, record.wanted) = (1, Some(Bytes::from_mib(1000)));
        let attempts = attempts_of(&record).expect("it ran out of memory");
        assert_eq!((attempts.ooms, attempts.granted), (1, Bytes::from_mib(1100)));
        let kept = Attempts { ooms: 2, ..attempts };
        record.memory = Some(Box::new(MemoryState { attempts: kept, promised: None }));
        assert_eq!(attempts_of(&record), Some(kept));
    }
}
