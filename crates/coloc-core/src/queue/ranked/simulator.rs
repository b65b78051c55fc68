//! Tiresias by its published simulator, to the letter: whatever it does otherwise than the paper says.
//!
//! - A task drops one queue at the next event after it crossed a limit, to the tail; its queue is a matter of
//!   history, not of what it attained.
//! - Inside a queue of 2D-LAS its list alone decides: running tasks stand at the head, then tasks that were just
//!   preempted. 2D-Gittins goes by submission where the paper goes by the first start.
//! - The moment of the next crossing subtracts time from service, in whole seconds: late, unless the task is new.
//! - Promotion is reckoned in whole seconds, and a task that is overdue waits for the next event.
//! - The index has one quantum for all queues, and its expectation is of `S` where it should be of `S − a`.

use super::order_key::{Group, Rank, TieBreak};
use super::{Ranked, ServiceRecord, levels};
use crate::queue::history::History;
use crate::scheduler::SchedulerState;
use crate::service::{GpuTime, RuleSet, Thresholds};
use coloc_model::{Millis, TaskId, Time};

/// Its only quantum, in seconds.
const QUANTUM: u64 = 3250;

pub(super) fn las2d(level: usize) -> Rank {
    Rank::new(level, 0, 0)
}

pub(super) fn gittins2d(
    level: usize,
    history: &History,
    attained: GpuTime,
    submitted: Time,
) -> Rank {
    Rank::falling(level, history.simulators_index(attained), submitted.0)
}

/// Where a running task stands among equals: at the head, unless it was demoted in this pass.
pub(super) fn tie_break(pass: i64, service_record: &ServiceRecord, index: u32) -> TieBreak {
    let own = service_record.order_key.1;
    let demoted = own.group == Group::Moved && own.epoch == pass;
    if demoted { own } else { TieBreak { epoch: -pass, group: Group::Ran, index } }
}

/// How long a task may wait: so many times as long as it ran.
pub(super) fn starvation_limit(knob: f64, ran: Millis) -> Millis {
    Millis::from_secs((knob * (ran.0 / 1000) as f64) as u64)
}

/// When a running task changes queue.
pub(super) fn crossing(
    thresholds: &Thresholds,
    now: Time,
    gpus: u32,
    service_record: &ServiceRecord,
) -> Option<Time> {
    let limit = thresholds.limit(service_record.level)?;
    let left = limit.0.saturating_sub(service_record.ran(now, true).0) / 1000;
    Some(now + Millis::from_secs(left / u64::from(gpus))).filter(|&at| at > now)
}

impl Ranked {
    /// When the next waiting task that is not overdue is promoted.
    pub(super) fn next_promotion_by_simulator(&self, now: Time) -> Option<Time> {
        self.promotions.range((now + Millis(1), TaskId(0))..).next().map(|&(at, _)| at)
    }
}

impl SchedulerState {
    /// Demotes running tasks that crossed a limit, by one queue. By the paper's rules the queue follows from what was attained.
    pub(super) fn demote(&mut self, now: Time) {
        let service = self.policy.service;
        if service.rule_set == RuleSet::Paper || !levels::uses_service(self.policy.queue) {
            return;
        }
        for index in 0..self.ranked.running.len() {
            let tail = self.ranked.tail(self.ranked.running[index].task.0);
            let running = &mut self.ranked.running[index];
            let service_record = &mut running.service_record;
            let attained = service_record.attained(now, true, running.asks.gpus);
            if service.thresholds.limit(service_record.level).is_some_and(|limit| attained >= limit)
            {
                service_record.level += 1;
                service_record.order_key.1 = tail;
                if let Some(record) = self.tasks.get_mut(running.task) {
                    record.service_record = *service_record;
                }
            }
        }
    }
}

/// The index of a task that has attained as many seconds as each sample, which rise.
pub(crate) fn index_table(samples: &[u64]) -> Vec<(u64, f64)> {
    let seconds: Vec<u64> = samples.iter().map(|&sample| sample / 1000).collect();
    let n = seconds.len();
    let Some(&last) = seconds.last() else { return Vec::new() };
    let up_to = |service: u64| seconds.partition_point(|&sample| sample <= service);
    let index = |sample: u64| {
        let a = sample.saturating_sub(1);
        let i = up_to(a);
        // Where everything ended at once there is nothing left to expect.
        if i == n {
            return 0.0;
        }
        let k = if a + QUANTUM > last.saturating_sub(1) { n - 1 } else { up_to(a + QUANTUM) };
        let k = k.max(i);
        let spent: u64 = seconds[i..k].iter().sum::<u64>() + QUANTUM * (n - k) as u64;
        let (share, mean) = ((k - i) as f64 / (n - i) as f64, spent / (n - i) as u64);
        rounded(1e6 * rounded(share, 1e5) / mean as f64, 1e4)
    };
    seconds.iter().map(|&sample| (sample, index(sample))).collect()
}

/// Looked up at the next sample; nothing beyond the last.
pub(crate) fn index(table: &[(u64, f64)], attained: GpuTime) -> f64 {
    let next = table.partition_point(|&(sample, _)| sample <= attained.0 / 1000);
    table.get(next).map_or(0.0, |&(_, index)| index)
}

fn rounded(value: f64, scale: f64) -> f64 {
    (value * scale).round_ties_even() / scale
}
