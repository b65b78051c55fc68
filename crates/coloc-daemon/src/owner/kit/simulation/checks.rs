//! What must hold, whatever happens.

use super::*;
use crate::journal::Entry;
use crate::owner::Refused;
use crate::record::Record;
use coloc_api::request::{GpuName, GpuService};
use coloc_model::Share;

/// What the journal has to know of a task; the rest is what was last seen of it, and words for people.
fn essence(record: &Record) -> Record {
    Record {
        peak: Bytes::ZERO,
        usage: Default::default(),
        accounting: Default::default(),
        reason: None,
        memory: None,
        ..record.clone()
    }
}

/// What became of a task waits to be written down.
fn is_pending(owner: &Owner, task: TaskId) -> bool {
    owner.pending.iter().any(|entry| matches!(entry, Entry::Task(record) if record.id == task))
}

impl Run {
    /// Panics if a rule is broken.
    pub(super) fn check(&mut self) {
        if let Some(broken) = self.kit.machine.broken().first() {
            panic!("{broken}");
        }
        let owner = self.kit.owner();
        owner.scheduler.sanity_check();
        self.check_tasks();
        self.check_journal();
        self.check_attempts();
        self.check_gpus();
    }

    /// No acknowledged task is lost, and the journal says of each what the owner knows.
    fn check_tasks(&self) {
        let owner = self.kit.owner();
        for &task in &self.acknowledged {
            let row = self.kit.disk.row(task);
            let over =
                row.as_ref().is_some_and(|row| row.phase.is_over()) || is_pending(owner, task);
            assert!(
                over || owner.tasks.contains_key(&task),
                "task {task} was acknowledged, and is lost"
            );
        }
        for (task, live) in &owner.tasks {
            let on_gpus = owner.on_gpus.contains(task);
            assert_eq!(live.record.phase.is_on_gpus(), on_gpus, "task {task} is miscounted");
            if owner.pending.is_empty() {
                let row = self.kit.disk.row(*task).map(|row| essence(&row));
                assert_eq!(row, Some(essence(&live.record)), "the journal says otherwise");
            }
        }
    }

    /// A restart would know the same tasks. To read them all takes a while, so that is done now and then.
    fn check_journal(&self) {
        const PERIOD: u32 = 8;
        let owner = self.kit.owner();
        if !owner.pending.is_empty() || !self.step.is_multiple_of(PERIOD) {
            return;
        }
        let kept: Vec<Record> = owner.journal.records().iter().map(essence).collect();
        let known: Vec<Record> = owner.tasks.values().map(|l| essence(&l.record)).collect();
        assert_eq!(kept, known, "a restart would know other tasks");
    }

    /// Whatever runs is known to the owner, and what the owner has running is there or its end is on the way.
    fn check_attempts(&self) {
        let owner = self.kit.owner();
        for ((task, attempt), found) in self.kit.machine.alive() {
            let known = owner.tasks.get(&task).is_some_and(|live| live.runs_attempt(attempt));
            assert!(
                known || !found.has_begun(),
                "attempt {attempt} of task {task} runs, and the owner does not know it"
            );
        }
    }

    /// No GPU has more attempts than it has room for.
    fn check_gpus(&self) {
        let policy = self.kit.owner().scheduler.policy();
        // Without the contract, memory that was declared is not kept for long.
        let kept = policy.contract.is_some();
        let alive = self.kit.machine.alive();
        for gpu in self.kit.fleet.ids() {
            let here: Vec<_> =
                alive.iter().filter(|(_, found)| found.gpus.contains(&gpu)).collect();
            let names: Vec<_> = here.iter().map(|(name, _)| name).collect();
            let alone = here.iter().any(|(_, found)| found.alone);
            assert!(!alone || here.len() == 1, "GPU {gpu} holds {names:?}, one of them alone");
            let declared: Bytes = here.iter().filter_map(|(_, found)| found.memory).sum();
            let capacity = self.kit.fleet.gpu(gpu).model.memory();
            assert!(
                !kept || declared <= capacity,
                "GPU {gpu} holds {names:?}: {declared} declared"
            );
        }
        let exclusive = policy.share == Share::Exclusive;
        for (gpu, state) in self.kit.owner().scheduler.gpus().iter() {
            assert!(
                !exclusive || state.residents().len() <= 1,
                "GPU {gpu} holds two by the ledger"
            );
        }
    }

    /// What was answered to a change alone is on the disk.
    pub(super) fn check_changed(&self, each: &[(TaskId, Result<(), Refused>)], change: &Change) {
        for (task, _) in each.iter().filter(|(_, done)| done.is_ok()) {
            let row = self.kit.disk.row(*task);
            let is_kept = |row: &Record| match change {
                Change::Cancel => {
                    let intent_file =
                        self.kit.disk.intent_file().contains_key(&(*task, row.attempt));
                    row.cancelled || row.phase.is_over() || intent_file
                }
                Change::Hold => row.held || row.phase.is_over(),
                _ => true,
            };
            assert!(
                row.as_ref().is_some_and(is_kept),
                "{change:?} of task {task} was acknowledged, and is not on the disk"
            );
        }
    }

    /// Nothing fails any more: every task comes to its end, and the journal has what the owner has.
    pub(super) fn all_is_well(&mut self) {
        const MOST_ROUNDS: u32 = 100;
        self.kit.disk.crash_in(None);
        self.kit.disk.fill(false);
        self.kit.machine.be_well();
        for gpu in self.kit.fleet.ids() {
            let sighting = Sighting { there: vec![(gpu, true)], ..self.kit.sighting() };
            self.kit.inputs.push(Input::Seen(Box::new(sighting)));
        }
        let gpus = self.kit.fleet.ids().map(|gpu| GpuName::Index(gpu.0)).collect();
        let serve = GpuService { gpus, drained: false, reason: None };
        self.kit.tell(|reply| Command::ServeGpus(serve, reply));
        self.kit.tell(|reply| Command::Drain(false, reply));
        for _ in 0..MOST_ROUNDS {
            self.turn();
            self.check();
            self.last = "all is well".to_owned();
            let owner = self.kit.owner();
            if owner.tasks.is_empty() {
                break;
            }
            let held = owner.tasks.values().filter(|live| live.record.held);
            let held: Vec<TaskId> = held.map(|live| live.record.id).collect();
            self.kit.tell(|reply| Command::Change(held, Change::Release, reply));
            for ((task, attempt), found) in self.kit.machine.alive() {
                self.kit.machine.begin(task, attempt);
                let end = if found.stopping { stopped() } else { completed() };
                self.kit.machine.end(task, attempt, end);
            }
            self.kit.inputs.push(Input::Seen(Box::new(self.kit.sighting())));
            self.pass(Duration::from_secs(30));
        }
        let left = self.kit.owner().tasks.values();
        let left: Vec<_> =
            left.map(|live| (live.record.id, live.record.phase, &live.record.reason)).collect();
        assert!(left.is_empty(), "these do not end: {left:?}");
        assert!(self.kit.owner().journal.records().is_empty(), "the journal has more");
    }
}
