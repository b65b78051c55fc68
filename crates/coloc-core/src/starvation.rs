//! The starvation limit: GPUs are reserved for a task that has been passed over too long.

use crate::demand::Demand;
use crate::gpus::Reservation;
use crate::place::Search;
use crate::policy::{Place, Queue};
use crate::queue::backfill;
use crate::scheduler::{Pass, SchedulerState};
use coloc_model::{GpuId, TaskId, Time};

/// Work of a task that is counted at least, in SM seconds: a short task may be overtaken too.
const LEAST_WORK: f64 = 1800.0;

impl SchedulerState {
    /// A task is about to start: the first of each shape that came before it is overtaken by its work.
    pub(crate) fn count_overtaking(&mut self, task: TaskId) {
        if self.policy.overtaking.is_some() {
            let (ticket, work) = (self.tasks.live(task).ticket, self.expected_work(task));
            self.waiting.overtake(ticket, work);
        }
    }

    /// Reserves GPUs for the task that was overtaken most, for the work that it does itself.
    fn reserve_for_the_overtaken(&mut self, now: Time, times: f64) {
        if self.reserved.is_some() {
            return;
        }
        let mut most = (times, None);
        for (task, overtaken) in self.waiting.overtaken() {
            // By what it is expected to do at most, so that the dear look comes last.
            if overtaken <= most.0 * LEAST_WORK {
                continue;
            }
            let ratio = overtaken / self.expected_work(task).max(LEAST_WORK);
            if ratio > most.0 && !self.is_barred(task) {
                most = (ratio, Some(task));
            }
        }
        if let (_, Some(task)) = most {
            self.reserve_for(now, Some(task));
        }
    }

    /// Keeps GPUs of one node free for a task that has waited too long: the first of those that ran out of memory, since
    /// then, or the head of the queue.
    pub(crate) fn reserve_for_the_starving(&mut self, now: Time) {
        if let Some(times) = self.policy.overtaking {
            self.reserve_for_the_overtaken(now, times);
        }
        // A preemptive discipline promotes those that starve; GPUs kept free for one would idle.
        let may_reserve = self.reserved.is_none() && !self.policy.queue.is_ranked();
        let Some(limit) = self.policy.starvation_limit.filter(|_| may_reserve) else {
            return;
        };
        let starves = |since: Time| now.since(since) >= limit;
        let recovering = self.recovery.iter().find(|&task| !self.is_barred(task));
        let recovering =
            recovering.filter(|&task| starves(self.tasks.live(task).service_record.since));
        let by_time = self.policy.overtaking.is_none();
        let head = || {
            let head = self.head().filter(|_| by_time)?;
            starves(self.tasks.live(head).ticket.submitted).then_some(head)
        };
        if let Some(task) = recovering.or_else(head) {
            self.reserve_for(now, Some(task));
        }
    }

    /// Starts a task that GPUs are reserved for although another is asked before it. That one is refused because of the
    /// reservation, and would keep the tasks behind it from being asked.
    pub(crate) fn start_reserved(&mut self, pass: &mut Pass) {
        let Some(task) = self.reserved.filter(|&task| self.is_asked_after_others(task)) else {
            return;
        };
        if self.policy.queue.is_ranked() || self.is_barred(task) {
            // By its rank it would be preempted at once, or it cannot start: the GPUs are of use to others.
            self.reserve_for(pass.now, None);
        } else if self.try_start(pass, task, Search::Everywhere) {
            self.forget_refusals();
        }
    }

    /// A waiting task is asked only when another one was, and not at all if that is refused.
    fn is_asked_after_others(&self, task: TaskId) -> bool {
        let Some(record) = self.tasks.get(task).filter(|record| record.run.is_none()) else {
            return false;
        };
        if record.attempts.is_recovering() {
            return false;
        }
        let first = match self.policy.queue {
            queue if queue.is_ranked() => self.ranked.first_like(record),
            Queue::BestEffort | Queue::Fair | Queue::LeastWork => {
                self.waiting.first_like(&record.task, record.service_record.done)
            }
            _ => self.waiting.head(),
        };
        first != Some(task)
    }

    pub(crate) fn reserve_for(&mut self, now: Time, task: Option<TaskId>) {
        let Some(task) = task else {
            let kept: Vec<GpuId> = self
                .gpus
                .iter()
                .filter(|(_, state)| state.reserved.is_some())
                .map(|(gpu, _)| gpu)
                .collect();
            kept.into_iter().for_each(|gpu| self.gpus.reserve(gpu, None));
            self.reserved = None;
            return;
        };
        let demand = self.demand(task);
        for gpu in self.roomiest(&demand) {
            let until = backfill::free_at(self, gpu, now, &demand, None);
            self.gpus.reserve(gpu, Some(Reservation { reserved_for: task, until }));
        }
        self.reserved = Some(task);
    }

    /// The GPUs of one node, each large enough, that are closest to being free.
    fn roomiest(&self, demand: &Demand) -> Vec<GpuId> {
        let wanted = demand.gpus as usize;
        let by_room = |gpu: &GpuId| {
            let state = self.gpus.get(*gpu);
            (state.residents().len(), std::cmp::Reverse(self.gpus.available(*gpu)), *gpu)
        };
        let groups: Vec<Vec<GpuId>> = match self.policy.place {
            Place::Any => vec![self.fleet.ids().collect()],
            Place::Consolidate if wanted > self.fleet.widest_node() => {
                vec![self.fleet.ids().collect()]
            }
            _ => self.fleet.nodes().iter().map(|node| node.gpus().collect()).collect(),
        };
        let large_enough = |gpu: &GpuId| {
            let state = self.gpus.get(*gpu);
            state.capacity >= demand.need && !state.is_out() && demand.may_have(state)
        };
        groups
            .into_iter()
            .map(|gpus| gpus.into_iter().filter(large_enough).collect())
            .filter(|gpus: &Vec<GpuId>| gpus.len() >= wanted)
            .map(|mut gpus| {
                gpus.sort_unstable_by_key(by_room);
                gpus.truncate(wanted);
                gpus
            })
            .min_by_key(|gpus| gpus.last().map(by_room))
            .unwrap_or_default()
    }
}
