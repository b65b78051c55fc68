//! Moving between queues by the paper's rules: when a task crosses a limit, promotion of the starving, and when
//! either is next due.

use super::order_key::{Group, TieBreak};
use super::{Ranked, ServiceRecord, simulator};
use crate::policy::{Policy, Queue};
use crate::scheduler::SchedulerState;
use crate::service::{GpuTime, RuleSet};
use crate::tasks::Record;
use coloc_model::{Millis, TaskId, Time};

pub(super) const fn uses_service(queue: Queue) -> bool {
    matches!(queue, Queue::Las2d | Queue::Gittins2d)
}

/// Ranks by attained service that no limits hold still.
pub(super) fn change_all_the_time(policy: &Policy) -> bool {
    let service = &policy.service;
    uses_service(policy.queue)
        && (service.rule_set == RuleSet::Simulator || !service.thresholds.is_some())
}

/// STARVELIMIT = PROMOTEKNOB x time executed: when a waiting task below the first queue reaches it.
pub(super) fn promotion(policy: &Policy, record: &Record) -> Option<Time> {
    let knob = policy.service.promote.filter(|_| uses_service(policy.queue))?;
    let ServiceRecord { ran, waited, since, level, .. } = record.service_record;
    let (level, limit) = match policy.service.rule_set {
        RuleSet::Paper => (
            policy.service.thresholds.level(GpuTime::of(ran, record.task.gpus)),
            Millis((knob * ran.0 as f64) as u64),
        ),
        RuleSet::Simulator => (level, simulator::starvation_limit(knob, ran)),
    };
    (level > 0).then(|| since + Millis(limit.0.saturating_sub(waited.0)))
}

/// When a running task changes queue.
pub(super) fn crossing(
    policy: &Policy,
    now: Time,
    gpus: u32,
    service_record: &ServiceRecord,
) -> Option<Time> {
    let thresholds = &policy.service.thresholds;
    match policy.service.rule_set {
        _ if !uses_service(policy.queue) => None,
        RuleSet::Simulator => simulator::crossing(thresholds, now, gpus, service_record),
        RuleSet::Paper => {
            let attained = service_record.attained(now, true, gpus);
            let limit = thresholds.limit(thresholds.level(attained))?;
            Some(now + GpuTime(limit.0 - attained.0).on(gpus))
        }
    }
}

impl SchedulerState {
    /// Tasks that waited too long start again in the first queue, behind tasks that arrived.
    pub(super) fn promote_the_starving(&mut self, now: Time) {
        while let Some(&(at, task)) = self.ranked.promotions.first()
            && at <= now
        {
            self.reorder(task, |scheduler, record| {
                record.service_record.promoted(now);
                let rank = scheduler.ranked.rank_of(now, &scheduler.policy, record);
                record.service_record.order_key = (rank, scheduler.ranked.tail(task.0));
            });
        }
    }

    /// After a change of history every waiting task has a new index.
    pub(crate) fn reorder_all(&mut self, now: Time) {
        for class in 0..self.ranked.classes.len() {
            let before = std::mem::take(&mut self.ranked.classes[class].waiting);
            for ((_, tie_break), task) in before {
                let rank = self.ranked.rank_of(now, &self.policy, self.tasks.live(task));
                if let Some(record) = self.tasks.get_mut(task) {
                    record.service_record.order_key = (rank, tie_break);
                }
                self.ranked.classes[class].waiting.insert((rank, tie_break), task);
            }
        }
    }

    fn reorder(&mut self, task: TaskId, change: impl FnOnce(&SchedulerState, &mut Record)) {
        let mut record = self.tasks.live(task).clone();
        self.ranked.remove(&self.policy, &record);
        change(self, &mut record);
        self.ranked.insert(&self.policy, &record);
        self.tasks.insert(record);
    }

    /// When a rank changes next although nothing happens.
    pub(super) fn next_change(&self, now: Time) -> Option<Time> {
        let (ranked, service) = (&self.ranked, &self.policy.service);
        let contended = ranked.classes.iter().any(|class| !class.waiting.is_empty());
        let quantum = service.quantum.filter(|_| contended).map(|quantum| now + quantum);
        let promotion = match service.rule_set {
            RuleSet::Paper => ranked.promotions.first().map(|&(at, _)| at),
            RuleSet::Simulator => ranked.next_promotion_by_simulator(now),
        };
        // Where no task waits, the paper's queues need no attention.
        let crossing = match contended || service.rule_set == RuleSet::Simulator {
            true => ranked.first_crossing(now, &self.policy),
            false => None,
        };
        quantum.into_iter().chain(promotion).chain(crossing).min()
    }
}

impl Ranked {
    /// Behind all other tasks of a queue.
    pub(super) fn tail(&self, index: u32) -> TieBreak {
        TieBreak { epoch: self.epoch, group: Group::Moved, index }
    }
}
