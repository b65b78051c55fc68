//! An owner for tests: with a journal and a machine in memory, in one thread, driven by virtual time.
//!
//! What is on the [`Disk`] and what runs on the [`Machine`] outlive the owner, which may crash at every write and restarts on
//! what they hold.

mod scenarios;
mod simulation;

use super::reply::{Flushed, PendingAnswer};
use super::{Caller, Command, Input, Live, Owner, Parts, Refused, Reply};
use crate::clock::VirtualTime;
use crate::executor::simulated::{Machine, SimulatedExecutor, completed, failed, stopped};
use crate::executor::{Blame, End, Verdict};
use crate::hardware::{Sighting, TaskSighting};
use crate::intent_file::IntentFile;
use crate::journal::disk::{Crash, Disk};
use crate::journal::{Journal, JournalError};
use crate::news::News;
use crate::record::Uid;
use crate::reserve::Reserve;
use crate::retention::Retention;
use crate::settings::Settings;
use coloc_api::request::{Change, Submission};
use coloc_api::spec::TaskSpec;
use coloc_core::Policy;
use coloc_model::{
    Activity, Bytes, Fleet, Fraction, GpuId, GpuSignal, Millis, Placement, TaskId, TaskState,
};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// A rule that a test has the owner break, to see that it is noticed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sabotage {
    /// Callers are answered before what they want is written down.
    AnswerUnwritten,
    /// Tasks are told to go before the reason is written down.
    SignalUnwritten,
    /// An attempt that was given up may begin.
    Claim,
    /// The scheduler is not told of a task that a restart finds running.
    LedgerEntry,
}

thread_local! {
    static SABOTAGE: Cell<Option<Sabotage>> = const { Cell::new(None) };
}

/// The owners of this thread break this rule.
pub(super) fn is_sabotaged(which: Sabotage) -> bool {
    SABOTAGE.get() == Some(which)
}

/// Answers as if all were on the disk, if that rule is broken; gives back what is left to answer.
pub(super) fn answer_unwritten_if_sabotaged(answers: Vec<PendingAnswer>) -> Vec<PendingAnswer> {
    if !is_sabotaged(Sabotage::AnswerUnwritten) {
        return answers;
    }
    let flushed = Flushed { unwritten: None, is_noted: &|_| true };
    answers.into_iter().for_each(|answer| answer.give(&flushed));
    Vec::new()
}

fn sabotage(which: Option<Sabotage>) {
    SABOTAGE.set(which);
}

/// An owner and its world.
pub(super) struct OwnerKit {
    time: &'static VirtualTime,
    disk: Arc<Disk>,
    machine: Arc<Machine>,
    fleet: Fleet,
    settings: Settings,
    owner: Option<Owner>,
    inputs: Vec<Input>,
    /// What listeners hear. It outlives the owner, which a daemon's does not: tests listen once.
    news: Arc<News>,
    /// What running tasks hold on each of their GPUs.
    used: Bytes,
}

/// An answer on its way.
type Answer<T> = tokio::sync::oneshot::Receiver<Result<T, Refused>>;

/// A program that trains, on one GPU.
fn train() -> TaskSpec {
    TaskSpec::new("train".to_owned(), vec!["train".into()], "/".into())
}

fn gib(gib: u64) -> Bytes {
    Bytes::from_mib(gib << 10)
}

impl OwnerKit {
    fn new(fleet: &str, policy: Policy) -> Self {
        let (time, disk) = (VirtualTime::new(), Disk::new());
        let settings = Settings {
            policy,
            quotas: Default::default(),
            host: Default::default(),
            history: None,
            grace: Millis::from_secs(5),
            retention: Retention::default(),
            administration: Default::default(),
            bounds: Default::default(),
            notify: Default::default(),
            chosen: Vec::new(),
        };
        let mut kit = OwnerKit {
            time,
            machine: Machine::new(disk.clone(), time.clock(1.0)),
            disk,
            fleet: fleet.parse().expect("a fleet"),
            settings,
            owner: None,
            inputs: Vec::new(),
            news: News::new("kit".to_owned()),
            used: gib(4),
        };
        if is_sabotaged(Sabotage::Claim) {
            kit.machine.ignore_claims();
        }
        kit.restart();
        kit
    }

    /// A new owner begins with what is on the disk. It may crash while it does.
    fn try_to_start(&mut self) -> Result<(), JournalError> {
        let start = || {
            let mut journal = Journal::on(&self.disk)?;
            let saved = journal.load(Path::new("/nonexistent"))?;
            let mut names = super::Names::default();
            let gpu_names: Vec<String> = self.fleet.ids().map(|gpu| format!("GPU-{gpu}")).collect();
            let tables = super::Tables::of(&self.settings, &self.fleet, &gpu_names)
                .expect("nothing is agreed with anybody");
            let scheduler = super::scheduler(&self.fleet, &self.settings, &mut names, &tables);
            let clock = self.time.clock(1.0);
            let parts = Parts {
                scheduler,
                fleet: self.fleet.clone(),
                settings: self.settings.clone(),
                tables,
                names,
                clock,
                journal,
                executor: Box::new(SimulatedExecutor(self.machine.clone())),
                gpu_names,
                reserve: Reserve::on(&self.disk, clock.instant()),
                intent_file: IntentFile::on(&self.disk, clock.instant()),
                retention: mpsc::channel().0,
                news: self.news.clone(),
                about: super::About::default(),
                series: Arc::default(),
            };
            Owner::new(parts, saved)
        };
        match catch_unwind(AssertUnwindSafe(start)) {
            Ok(started) => self.owner = Some(started?),
            Err(crash) if crash.is::<Crash>() => self.die(),
            Err(panic) => resume_unwind(panic),
        }
        Ok(())
    }

    /// The owner crashes, if it has not, and another one begins.
    fn restart(&mut self) {
        self.die();
        while self.owner.is_none() {
            self.try_to_start().expect("the journal can be opened");
        }
    }

    /// Whatever the owner had in mind, and had not told, is lost.
    fn die(&mut self) {
        self.owner = None;
        self.inputs.clear();
        self.machine.lose_messages();
    }

    fn owner(&self) -> &Owner {
        self.owner.as_ref().expect("the owner has not crashed")
    }

    fn owner_mut(&mut self) -> &mut Owner {
        self.owner.as_mut().expect("the owner has not crashed")
    }

    /// The owner deals with what lies before it. Says whether it survived.
    fn turn(&mut self) -> bool {
        self.inputs.extend(self.machine.told());
        let Some(owner) = &mut self.owner else { return false };
        match catch_unwind(AssertUnwindSafe(|| owner.batch(&mut self.inputs))) {
            Ok(()) => true,
            Err(crash) if crash.is::<Crash>() => {
                self.die();
                false
            }
            Err(panic) => resume_unwind(panic),
        }
    }

    /// Turns until nothing is left to do just now. Programs begin, and end when they are asked to.
    fn run_until_idle(&mut self) {
        loop {
            for ((task, attempt), found) in self.machine.alive() {
                self.machine.begin(task, attempt);
                if found.stopping {
                    self.machine.end(task, attempt, stopped());
                }
            }
            self.inputs.extend(self.machine.told());
            let idle = |owner: &Owner| owner.timeout() > Duration::ZERO;
            if self.inputs.is_empty() && self.owner.as_ref().is_none_or(idle) {
                return;
            }
            if !self.turn() {
                return;
            }
        }
    }

    /// Time passes, for each thing that the owner wants to do meanwhile.
    fn advance(&mut self, seconds: u64) {
        let mut left = Duration::from_secs(seconds);
        self.run_until_idle();
        while left > Duration::ZERO {
            // At least a millisecond: the clock has no less.
            let span = self.owner().timeout().max(Duration::from_millis(1)).min(left);
            self.time.pass(span);
            left = left.saturating_sub(span.max(Duration::from_millis(1)));
            if !self.turn() {
                return;
            }
            self.run_until_idle();
        }
    }

    /// Asks for something; the answer comes with a turn.
    fn ask<T: 'static>(&mut self, command: impl FnOnce(Reply<T>) -> Command) -> Answer<T> {
        let (reply, answer) = Reply::channel();
        let caller = Caller { uid: Uid(rustix::process::geteuid().as_raw()), admin: true };
        self.inputs.push(Input::Command(caller, command(reply)));
        answer
    }

    /// Asks for something, whatever the answer is.
    fn tell<T: 'static>(&mut self, command: impl FnOnce(Reply<T>) -> Command) {
        drop(self.ask(command));
    }

    fn obey<T: 'static>(
        &mut self,
        command: impl FnOnce(Reply<T>) -> Command,
    ) -> Result<T, Refused> {
        let mut answer = self.ask(command);
        self.run_until_idle();
        answer.try_recv().expect("an answer")
    }

    fn submit_all(&mut self, submission: Submission) -> Vec<TaskId> {
        let submitted = self.obey(|reply| Command::Submit(Box::new(submission), reply));
        submitted.expect("nothing is wrong with it").ids
    }

    fn submit(&mut self, spec: TaskSpec) -> TaskId {
        self.submit_all(Submission::of(spec))[0]
    }

    /// Changes a task; says what was refused.
    fn change(&mut self, task: TaskId, change: Change) -> Result<(), Refused> {
        let changed = self.obey(|reply| Command::Change(vec![task], change, reply));
        changed.and_then(|mut each| each.remove(0).1)
    }

    /// The attempt of a task that runs ends in this way.
    fn end(&mut self, task: TaskId, end: End) {
        let attempt = self.machine.attempt_of(task).expect("it runs");
        self.machine.end(task, attempt, end);
        self.run_until_idle();
    }

    fn complete(&mut self, task: TaskId) {
        self.end(task, completed());
    }

    fn fail(&mut self, task: TaskId) {
        self.end(task, failed());
    }

    /// It runs out of memory, and says what it held and asked for.
    fn oom(&mut self, task: TaskId, held: Bytes, asked: Bytes) {
        self.end(task, out_of_memory(held, asked));
    }

    /// A GPU falls off the bus, or comes back, and the monitor sees it.
    fn lose_gpu(&mut self, gpu: u32, lost: bool) {
        self.machine.set_gone(GpuId(gpu), lost);
        let sighting = Sighting { there: vec![(GpuId(gpu), !lost)], ..self.sighting() };
        self.see(sighting);
    }

    /// What a monitor would see.
    fn sighting(&self) -> Sighting {
        let alive = self.machine.alive();
        let on = |gpu: GpuId| alive.iter().filter(move |(_, found)| found.gpus.contains(&gpu));
        let there = self.fleet.ids().filter(|&gpu| !self.machine.is_lost(gpu));
        let busy = |count: usize| Fraction::new((count as f64 * 0.4).min(1.0));
        let gpus = there.map(|gpu| {
            let count = on(gpu).count();
            let activity = Activity { gpu: busy(count), sm: busy(count), ..Activity::default() };
            let used = Bytes(self.used.0 * count as u64).min(self.fleet.gpu(gpu).model.memory());
            (gpu, GpuSignal { activity, used })
        });
        let tasks = alive.iter().map(|((task, _), _)| TaskSighting {
            task: *task,
            used: self.used,
            activity: None,
        });
        Sighting { gpus: gpus.collect(), tasks: tasks.collect(), ..Sighting::default() }
    }

    fn see(&mut self, sighting: Sighting) {
        self.inputs.push(Input::Seen(Box::new(sighting)));
        self.run_until_idle();
    }

    /// Where a task stands, or stood when it ended.
    fn phase(&self, task: TaskId) -> TaskState {
        let ended = || self.disk.row(task).map(|row| row.phase);
        let live = self.owner().tasks.get(&task).map(|live| live.record.phase);
        live.or_else(ended).expect("a task")
    }

    fn phases<const N: usize>(&self, tasks: [TaskId; N]) -> [TaskState; N] {
        tasks.map(|task| self.phase(task))
    }

    fn live(&self, task: TaskId) -> &Live {
        &self.owner().tasks[&task]
    }

    /// The GPUs of a task that runs.
    fn gpus(&self, task: TaskId) -> Vec<u32> {
        let placement = &self.live(task).record.placement;
        placement.iter().flat_map(Placement::gpus).map(|gpu| gpu.0).collect()
    }

    /// What a task's story says.
    fn story(&self, task: TaskId) -> String {
        let lines = self.owner().journal.story(task).expect("the journal can be read");
        lines.into_iter().map(|line| line.what + "\n").collect()
    }
}

fn out_of_memory(held: Bytes, asked: Bytes) -> End {
    let said = crate::executor::outcome::FailedAllocation {
        held: Some(held),
        asked: Some(asked),
        ..Default::default()
    };
    let evidence = "CUDA out of memory".to_owned();
    let verdict = Verdict::GpuOutOfMemory { said, evidence };
    End::Ended(verdict, Some(crate::record::Exit::Code(1)), None)
}
