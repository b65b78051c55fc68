//! An executor for tests: attempts are rows in memory, which live on when the owner crashes, and end when a test says so.
//!
//! It has the real one's rules: an attempt's number is used once, a program begins only if it claims its attempt before a daemon
//! revokes it, and what is told of an end is lost with the owner that it was told to, but not the end.

mod executor;

pub(crate) use executor::SimulatedExecutor;

use super::{
    Blame, Count, Counted, End, Executor, Found, GpuError, LaunchError, Launched, MemoryLimit,
    SharingServer, StopRequest, Verdict,
};
use crate::clock::Clock;
use crate::hardware::Gpus;
use crate::journal::disk::Disk;
use crate::notices::{DeliveryError, Notice};
use crate::owner::Input;
use crate::record::{Exit, Record};
use coloc_api::request::SignalRequest;
use coloc_api::spec::TaskSpec;
use coloc_api::view::{Containment, EnforcementView};
use coloc_gpu::health::{Condition, Xid};
use coloc_model::{Bytes, GpuId, Millis, Placement, TaskId, TaskState, Time};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Which program of an attempt may begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Claim {
    /// It has not begun yet.
    Open,
    /// It has begun.
    Begun,
    /// It never will.
    Revoked,
}

/// An attempt.
#[derive(Clone, Debug)]
pub(crate) struct Attempt {
    pub(crate) gpus: Vec<GpuId>,
    pub(crate) memory: Option<Bytes>,
    /// It shares its GPUs with no other attempt.
    pub(crate) alone: bool,
    /// Its time limit, as its shim knows it.
    pub(crate) limit: Option<Millis>,
    claim: Claim,
    /// It was asked to end.
    pub(crate) stopping: bool,
    end: Option<End>,
}

impl Attempt {
    /// Its program runs, or may begin.
    pub(crate) fn is_there(&self) -> bool {
        self.end.is_none() && self.claim != Claim::Revoked
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.end.is_none() && self.claim == Claim::Begun
    }
}

/// The machine, which outlives the owners that use it.
pub(crate) struct Machine {
    disk: Arc<Disk>,
    clock: Clock,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    attempts: BTreeMap<(TaskId, u32), Attempt>,
    /// What was told to the owner, and not heard yet.
    told: VecDeque<Input>,
    /// How the next launches fail.
    failures: VecDeque<Blame>,
    /// The machine cannot tell how attempts are.
    unclear: bool,
    gone: BTreeSet<GpuId>,
    errors: Vec<GpuError>,
    signals: BTreeMap<TaskId, usize>,
    /// Attempts are not claimed, so that one may begin that was given up.
    claims_ignored: bool,
    /// Notices that hooks were told of.
    delivered: Vec<Notice>,
    /// What becomes of the next ones.
    deliveries: VecDeque<Result<(), DeliveryError>>,
    /// Rules that the owner broke.
    broken: Vec<String>,
}

impl State {
    fn end(&mut self, task: TaskId, attempt: u32, end: End) {
        if let Some(running) = self.attempts.get_mut(&(task, attempt)).filter(|a| a.end.is_none()) {
            running.end = Some(end.clone());
            self.told.push_back(Input::Ended { task, attempt, end });
        }
    }

    /// Gives an attempt up that has not begun; says whether it has not.
    fn revoke(&mut self, task: TaskId, attempt: u32) -> bool {
        let ignored = self.claims_ignored;
        match self.attempts.get_mut(&(task, attempt)) {
            Some(found) if found.claim == Claim::Open => {
                if !ignored {
                    found.claim = Claim::Revoked;
                }
                true
            }
            Some(found) => found.claim == Claim::Revoked,
            None => true,
        }
    }
}

impl Machine {
    /// What hooks were told of, in order.
    pub(crate) fn delivered(&self) -> Vec<Notice> {
        self.state().delivered.clone()
    }

    /// Has the next notices end so.
    pub(crate) fn deliver(&self, results: impl IntoIterator<Item = Result<(), DeliveryError>>) {
        self.state().deliveries.extend(results);
    }

    pub(crate) fn new(disk: Arc<Disk>, clock: Clock) -> Arc<Self> {
        Arc::new(Machine { disk, clock, state: Mutex::default() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the owner is to hear.
    pub(crate) fn told(&self) -> Vec<Input> {
        self.state().told.drain(..).collect()
    }

    /// The owner crashed: it did not hear what it was told.
    pub(crate) fn lose_messages(&self) {
        self.state().told.clear();
    }

    /// Rules that were broken since the last question.
    pub(crate) fn broken(&self) -> Vec<String> {
        std::mem::take(&mut self.state().broken)
    }

    pub(crate) fn ignore_claims(&self) {
        self.state().claims_ignored = true;
    }

    /// The next launch fails in this way.
    pub(crate) fn fail_a_launch(&self, blame: Blame) {
        self.state().failures.push_back(blame);
    }

    /// The machine cannot tell how attempts are, or can again.
    pub(crate) fn set_unclear(&self, unclear: bool) {
        self.state().unclear = unclear;
    }

    pub(crate) fn set_gone(&self, gpu: GpuId, gone: bool) {
        match gone {
            true => self.state().gone.insert(gpu),
            false => self.state().gone.remove(&gpu),
        };
    }

    pub(crate) fn is_lost(&self, gpu: GpuId) -> bool {
        self.state().gone.contains(&gpu)
    }

    /// A GPU reports a critical error.
    pub(crate) fn report(&self, gpu: GpuId, xid: u64) {
        let at = self.clock.instant();
        self.state().errors.push(GpuError { gpu, xid: Xid(xid), at });
        self.state().told.push_back(Input::GpuError);
    }

    /// Attempts that run, or may begin.
    pub(crate) fn alive(&self) -> Vec<((TaskId, u32), Attempt)> {
        let state = self.state();
        let alive = state.attempts.iter().filter(|(_, attempt)| attempt.is_there());
        alive.map(|(&name, attempt)| (name, attempt.clone())).collect()
    }

    /// Attempts that have not begun, with whether they still may.
    pub(crate) fn open(&self) -> Vec<((TaskId, u32), bool)> {
        let state = self.state();
        let open = state.attempts.iter().filter(|(_, found)| found.claim == Claim::Open);
        open.map(|(&name, found)| (name, found.end.is_none())).collect()
    }

    /// How many launches worked.
    pub(crate) fn launches(&self) -> usize {
        self.state().attempts.len()
    }

    /// How many signals a task was sent.
    pub(crate) fn signals(&self, task: TaskId) -> usize {
        self.state().signals.get(&task).copied().unwrap_or_default()
    }

    /// Nothing fails any more.
    pub(crate) fn be_well(&self) {
        let mut state = self.state();
        state.failures.clear();
        state.gone.clear();
        state.unclear = false;
    }

    /// The attempt of a task that runs, or may begin.
    pub(crate) fn attempt_of(&self, task: TaskId) -> Option<u32> {
        self.alive().iter().find(|((id, _), _)| *id == task).map(|((_, attempt), _)| *attempt)
    }

    /// The program of an attempt begins, unless it was given up. Two of one task must never run.
    pub(crate) fn begin(&self, task: TaskId, attempt: u32) {
        let mut state = self.state();
        let Some(found) = state.attempts.get_mut(&(task, attempt)) else { return };
        if found.claim != Claim::Open || found.end.is_some() {
            return;
        }
        found.claim = Claim::Begun;
        let of_task = state.attempts.range((task, 0)..=(task, u32::MAX));
        let run: Vec<u32> = of_task.filter(|(_, a)| a.has_begun()).map(|((_, n), _)| *n).collect();
        if run.len() > 1 {
            state.broken.push(format!("task {task} runs twice: attempts {run:?}"));
        }
    }

    /// An attempt ends, and the owner is told.
    pub(crate) fn end(&self, task: TaskId, attempt: u32, end: End) {
        self.state().end(task, attempt, end);
    }

    /// What a journal must say before a task is told to go.
    fn check_intent(&self, record: &Record, what: &str) {
        let row = self.disk.row(record.id);
        let written = row.is_some_and(|row| row.attempt == record.attempt && row.intent.is_some());
        if !written && !self.disk.intent_file().contains_key(&(record.id, record.attempt)) {
            let (task, attempt) = (record.id, record.attempt);
            let broken = format!("task {task} is {what}, attempt {attempt}, without a row");
            self.state().broken.push(broken);
        }
    }
}

/// How a program that was asked to end does so.
pub(crate) fn stopped() -> End {
    End::Ended(Verdict::Stopped, Some(Exit::Signal(15)), None)
}

/// How one does that has done its work.
pub(crate) fn completed() -> End {
    End::Ended(Verdict::Completed, Some(Exit::Code(0)), None)
}

/// How one does that fails.
pub(crate) fn failed() -> End {
    End::Ended(Verdict::Failed, Some(Exit::Code(1)), None)
}
