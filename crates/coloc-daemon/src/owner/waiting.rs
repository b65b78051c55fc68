//! What each waiting task waits for, in a word, and its place in the queue. It is worked out at most once a second, and for the first
//! tasks of the queue only: the others wait for those.

use super::Owner;
use coloc_api::view::ReasonCode;
use coloc_core::eligibility::Ineligible;
use coloc_core::screen::Measure;
use coloc_core::{Hindrance, Refusal};
use coloc_model::{TaskId, TaskState, Time};
use rustc_hash::FxHashMap;
use std::time::{Duration, Instant};

/// How old an answer may be.
const FRESH: Duration = Duration::from_secs(1);
/// Tasks of the queue for which GPUs are asked.
const FIRST: usize = 256;
/// Tasks that are told their place.
const PLACES: usize = 20_000;

/// What tasks wait for.
#[derive(Default, Debug)]
pub(super) struct Waiting {
    codes: FxHashMap<TaskId, ReasonCode>,
    places: FxHashMap<TaskId, u32>,
    at: Option<Instant>,
    /// What was last kept of tasks as a decision, and how many were since they came.
    kept: FxHashMap<TaskId, (ReasonCode, u32)>,
}

impl Waiting {
    /// A task's place, the first being 1.
    pub(super) fn place(&self, task: TaskId) -> Option<u32> {
        self.places.get(&task).copied()
    }

    /// A task is gone.
    pub(super) fn forget(&mut self, task: TaskId) {
        self.codes.remove(&task);
        self.places.remove(&task);
        self.kept.remove(&task);
    }

    /// A task waits no more.
    pub(super) fn has_started(&mut self, task: TaskId) {
        self.kept.remove(&task);
    }

    /// Notes that this is kept of a task as a decision; says whether it is to be.
    pub(super) fn is_to_be_kept(&mut self, task: TaskId, code: ReasonCode, most: u32) -> bool {
        let (last, count) = self.kept.get(&task).copied().unwrap_or((code, 0));
        let is_new = count == 0 || (last != code && count < most);
        if is_new {
            self.kept.insert(task, (code, count + 1));
        }
        is_new
    }
}

fn of_rule(why: &Ineligible) -> ReasonCode {
    match why {
        Ineligible::Held => ReasonCode::Held,
        Ineligible::BeginTime(_) => ReasonCode::Begin,
        Ineligible::Retry(_) => ReasonCode::Retry,
        Ineligible::Dependency(_)
        | Ineligible::ArrayDependency { .. }
        | Ineligible::AfterDelay { .. }
        | Ineligible::AnyDependency(_)
        | Ineligible::DependencyNeverSatisfied(_)
        | Ineligible::Singleton(_) => ReasonCode::Dependency,
        Ineligible::ArrayTaskLimit { .. } => ReasonCode::ArrayLimit,
        Ineligible::Unknown(_) => ReasonCode::Other,
    }
}

fn of_refusal(refusal: &Refusal) -> ReasonCode {
    match refusal {
        Refusal::Memory { .. } | Refusal::NoInstance { .. } => ReasonCode::Memory,
        Refusal::Busy { measure: Measure::ExpectedWithTask, .. } => ReasonCode::Sm,
        Refusal::Busy { .. } => ReasonCode::Hot,
        Refusal::HeldAlone { until_settled: true, .. } | Refusal::Settling { .. } => {
            ReasonCode::Settling
        }
        Refusal::HeldAlone { .. }
        | Refusal::OtherUser { .. }
        | Refusal::KeptForOthers
        | Refusal::OtherSharing { .. } => ReasonCode::Taken,
        Refusal::Occupied { .. } | Refusal::Foreign { .. } => ReasonCode::Exclusive,
        Refusal::Crowded { .. }
        | Refusal::MpsClients { .. }
        | Refusal::Kind
        | Refusal::OtherPool => ReasonCode::Gpus,
        Refusal::Reserved { .. } => ReasonCode::Order,
        Refusal::Drained => ReasonCode::Drained,
        Refusal::Away => ReasonCode::LostGpu,
    }
}

impl Owner {
    /// What a task waits for; `None` if it does not wait.
    pub(super) fn reason_code(&self, task: TaskId) -> Option<ReasonCode> {
        let live = self.tasks.get(&task)?;
        if !matches!(live.record.phase, TaskState::Pending | TaskState::Recovering) {
            return None;
        }
        let known = self.waiting.codes.get(&task).copied();
        Some(match known {
            _ if live.record.held => ReasonCode::Held,
            _ if live.in_core && self.draining => ReasonCode::Drained,
            _ if live.in_core && self.disk_full => ReasonCode::Disk,
            _ if live.in_core && self.machine_trouble().is_some() => ReasonCode::Machine,
            known => known.unwrap_or(ReasonCode::Order),
        })
    }

    /// The rules say that a task has to wait. Listeners hear of it if that is new.
    pub(super) fn is_ineligible(&mut self, task: TaskId, why: &Ineligible) {
        let code = of_rule(why);
        let known = self.waiting.codes.insert(task, code);
        let told = match why {
            Ineligible::BeginTime(at) => format!("{why}, {}", self.clock.moment(*at).utc()),
            _ => why.to_string(),
        };
        let Some(live) = self.tasks.get_mut(&task) else { return };
        let reason = Some(told);
        if live.record.reason != reason || known != Some(code) {
            live.record.reason = reason;
            self.note_news(task);
        }
    }

    /// Asks the GPUs for tasks of which is not known what they wait for.
    pub(super) fn find_codes(&mut self, now: Time, tasks: impl Iterator<Item = TaskId>) {
        for task in tasks.take(FIRST) {
            let waits = self.tasks.get(&task).is_some_and(|live| live.in_core);
            if waits && !self.waiting.codes.contains_key(&task) {
                self.find_code(now, task);
            }
        }
    }

    /// Asks the GPUs; says whether the answer is new.
    pub(super) fn find_code(&mut self, now: Time, task: TaskId) -> bool {
        let code = match self.scheduler.hindrance(now, task) {
            Some(Hindrance::Quota) => ReasonCode::Quota,
            Some(Hindrance::Host(_)) => ReasonCode::Host,
            Some(Hindrance::Order) => ReasonCode::Order,
            Some(Hindrance::Gpus) => ReasonCode::Gpus,
            Some(Hindrance::Refused(refusal)) => of_refusal(&refusal),
            None => return false,
        };
        self.waiting.codes.insert(task, code) != Some(code)
    }

    /// Looks anew at what tasks wait for, unless that was done a moment ago.
    pub(super) fn look_at_waiting(&mut self, now: Time) {
        let instant = self.clock.instant();
        let fresh = |at: Instant| instant.saturating_duration_since(at) < FRESH;
        if self.waiting.at.is_some_and(fresh) {
            return;
        }
        self.waiting.at = Some(instant);
        let queue: Vec<TaskId> = self.scheduler.waiting().take(PLACES).collect();
        self.waiting.places.clear();
        self.waiting.places.extend(queue.iter().copied().zip(1..));
        for (place, &task) in queue.iter().enumerate() {
            let is_new = match place < FIRST {
                true => self.find_code(now, task),
                false => {
                    let order = ReasonCode::Order;
                    self.waiting.codes.insert(task, order).is_some_and(|before| before != order)
                }
            };
            if is_new {
                self.note_news(task);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_that_comes_and_goes_is_kept_so_often_and_no_more() {
        let mut waiting = Waiting::default();
        let mut kept = 0;
        for round in 0..100 {
            let code = if round % 2 == 0 { ReasonCode::Memory } else { ReasonCode::Hot };
            kept += u32::from(waiting.is_to_be_kept(TaskId(1), code, 12));
            assert!(!waiting.is_to_be_kept(TaskId(1), code, 12), "it is known");
        }
        assert_eq!(kept, 12);
        waiting.has_started(TaskId(1));
        assert!(waiting.is_to_be_kept(TaskId(1), ReasonCode::Hot, 12), "it waits once more");
    }
}
