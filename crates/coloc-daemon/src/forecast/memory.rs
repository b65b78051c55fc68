//! What tasks are expected to hold, and when they will have shown it.

use crate::owner::TaskSnapshot;
use coloc_core::Scheduler;
use coloc_core::belief::Beliefs;
use coloc_model::{Bytes, Millis, SignatureId, Task, Time};
use rustc_hash::FxHashMap;

/// Of the largest GPU, what a task of which nothing is known is taken to come to: one of its kind may come beside it,
/// and large neighbours may not.
const UNKNOWN: f64 = 0.3;

/// What is known of memory and of settling when a forecast begins.
pub(super) struct ExpectedMemory {
    beliefs: Beliefs,
    contract: bool,
    /// What tasks of a kind hold that run now.
    running: FxHashMap<SignatureId, Bytes>,
    /// The memory of the largest GPUs, by how many a task has.
    largest: FxHashMap<u32, Bytes>,
}

impl ExpectedMemory {
    pub(super) fn new(scheduler: &Scheduler, tasks: &[TaskSnapshot]) -> Self {
        let mut running: FxHashMap<SignatureId, Bytes> = FxHashMap::default();
        for standing in tasks.iter().filter(|standing| standing.placement.is_some()) {
            let held = running.entry(standing.task.signature).or_default();
            *held = (*held).max(standing.peak);
        }
        let gpus = tasks.iter().map(|standing| standing.task.gpus);
        let largest = gpus.map(|gpus| (gpus, scheduler.most_memory(gpus))).collect();
        let contract = scheduler.policy().contract.is_some();
        ExpectedMemory { beliefs: scheduler.beliefs().clone(), contract, running, largest }
    }

    /// What a task is expected to hold on each GPU.
    pub(super) fn of(&self, standing: &TaskSnapshot) -> Bytes {
        let task = &standing.task;
        let seen = self.beliefs.peak(task.signature).map(|peak| peak.exact);
        let said = task.memory.peak();
        if !self.contract {
            return standing.peak.max(seen.or(said).unwrap_or_default());
        }
        // What tasks show counts, also where they declared or were estimated to hold more.
        let shown = self.running.get(&task.signature).copied().filter(|held| *held > Bytes::ZERO);
        let expected = seen.max(shown).or(said);
        // It will settle all the same.
        let part = || self.largest.get(&task.gpus).map_or(Bytes::ZERO, |most| most.scale(UNKNOWN));
        standing.peak.max(expected.unwrap_or_else(part))
    }

    /// How busy a task is expected to keep each GPU.
    pub(super) fn sm_demand(&self, task: &Task) -> f64 {
        self.beliefs.sm_demand(task.signature, task.sm)
    }

    /// How long it takes from now, or from its start, until a task trains at its plateau.
    pub(super) fn warm_up(&self, standing: &TaskSnapshot, now: Time) -> Millis {
        let usual = self.beliefs.warm_up(standing.task.signature).unwrap_or_default();
        match standing.started.filter(|_| standing.placement.is_some()) {
            Some(started) => Millis(usual.0.saturating_sub(now.since(started).0)),
            None => usual,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Uid;
    use crate::record::tests::spec;
    use coloc_core::eligibility::{Conditions, Facts};
    use coloc_core::policy::Contract;
    use coloc_core::preset::MemoryKnowledge;
    use coloc_core::{Effect, Event, Policy, Preset};
    use coloc_model::{Fraction, Memory, Placement, TaskId, TaskState, UserId};
    use std::sync::Arc;

    const GIB: Bytes = Bytes::from_mib(1024);

    fn at(secs: u64) -> Time {
        Time::START + Millis::from_secs(secs)
    }

    fn task(id: u32, kind: u32) -> Task {
        Task {
            id: TaskId(id),
            signature: SignatureId(kind),
            user: UserId(0),
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
        }
    }

    fn standing(task: Task, placement: Option<Placement>, peak: Bytes) -> TaskSnapshot {
        let started = placement.as_ref().map(|_| Time::START);
        TaskSnapshot {
            task,
            spec: Arc::new(spec(&["train"])),
            phase: if placement.is_some() { TaskState::Running } else { TaskState::Pending },
            started,
            placement,
            in_core: true,
            owner: Uid(0),
            conditions: Conditions::default(),
            facts: Facts::default(),
            peak,
            left: None,
        }
    }

    #[test]
    fn memory_and_settling_are_expected_as_they_were_seen() {
        let contract = Some(Contract::default());
        let policy = Policy { contract, ..Preset::Coloc.policy(MemoryKnowledge::Estimate) };
        let mut scheduler = Scheduler::new(&"1xA100-40GB".parse().expect("a fleet"), policy);
        let effects = scheduler.on_event(at(0), Event::Submitted(task(1, 1)));
        let placement = effects.into_iter().find_map(|effect| match effect {
            Effect::Launch { placement, .. } => Some(placement),
            _ => None,
        });
        let first = standing(task(1, 1), placement, GIB);
        let sibling = standing(task(2, 1), None, Bytes::ZERO);
        let declared = Task { memory: Memory::declared(GIB.scale(30.0)), ..task(3, 3) };
        let tasks = [first, sibling, standing(declared, None, Bytes::ZERO)];
        let expected = ExpectedMemory::new(&scheduler, &tasks);
        let other = standing(task(4, 4), None, Bytes::ZERO);
        let gib = |standing| expected.of(standing).gib();
        assert_eq!([&tasks[0], &tasks[1], &tasks[2], &other].map(gib), [1.0, 1.0, 30.0, 12.0]);
        assert_eq!(expected.warm_up(&tasks[1], at(50)), Millis::ZERO, "nothing was learned");
        // It loads for 100 s, and has settled three minutes later.
        let seen = |sm| {
            let activity = Some(Fraction::new(sm));
            Event::TaskSeen { task: TaskId(1), used: GIB.scale(5.0), activity }
        };
        for (secs, event) in [(1, seen(0.0)), (100, seen(0.5)), (280, Event::Wake)] {
            scheduler.on_event(at(secs), event);
        }
        let expected = ExpectedMemory::new(&scheduler, &tasks);
        assert_eq!(expected.of(&tasks[1]), GIB.scale(5.0), "its history");
        assert_eq!(expected.warm_up(&tasks[1], at(300)), Millis::from_secs(100));
        assert_eq!(
            expected.warm_up(&tasks[0], at(60)),
            Millis::from_secs(40),
            "what is left of it"
        );
    }
}
