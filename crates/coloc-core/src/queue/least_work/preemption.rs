//! Tasks that can save their work make room for tasks that are expected to be done with much less.

use super::super::best_effort::{Head, head};
use super::MORE_THAN_ITS_SHARE;
use crate::gpus::Booking;
use crate::place::{Gang, Search};
use crate::policy::Preemption;
use crate::scheduler::{Pass, SchedulerState};
use coloc_model::{GpuId, TaskId, Time, UserId};

/// Waiting tasks for which room is made in one look.
const MOST_HEADS: usize = 256;
/// Running tasks that are tried for one waiting task.
const MOST_VICTIMS: usize = 64;

/// A running task that can save, and its rank.
#[derive(Clone, Copy)]
struct Running {
    rank: f64,
    priority: i32,
    user: UserId,
    task: TaskId,
}

/// Which running tasks a waiting one may take the place of.
#[derive(Clone, Copy)]
struct Claim {
    /// Those that rank worse,
    rank: f64,
    /// have no higher priority,
    priority: i32,
    /// and, if its user holds more than its share, are that user's.
    only: Option<UserId>,
}

impl Claim {
    fn covers(&self, running: &Running) -> bool {
        running.rank > self.rank
            && running.priority <= self.priority
            && self.only.is_none_or(|user| user == running.user)
    }
}

/// Bookings that were lifted, to see what would be possible without them.
type Lifted = Vec<(GpuId, Booking)>;

impl SchedulerState {
    pub(crate) fn preempt_longer_ones(&mut self, pass: &mut Pass, preemption: Preemption) {
        let now = pass.now;
        if self.preempts_at > now || !self.preempts() || self.waiting.is_empty() {
            return;
        }
        self.preempts_at = now + preemption.every;
        let mut running = self.that_can_save(now, preemption);
        if running.is_empty() {
            return;
        }
        let shapes = self.waiting.active.clone();
        let mut heads: Vec<Head> =
            shapes.into_iter().filter_map(|shape| head(self, now, shape)).collect();
        heads.sort_unstable();
        if let Some(starving) = self.reserved.filter(|&task| self.tasks.live(task).run.is_none()) {
            // It was overtaken too often: whatever can save makes room for it.
            let priority = self.tasks.live(starving).task.priority;
            let claim = Claim { rank: f64::NEG_INFINITY, priority, only: None };
            self.displace(pass, starving, &mut running, claim);
        }
        let mut tried = 0;
        let mut heads = std::collections::VecDeque::from(heads);
        while let Some(Head { due, shape, task, .. }) = heads.pop_front() {
            tried += 1;
            if tried > MOST_HEADS || pass.is_over() {
                break;
            }
            let record = self.tasks.live(task);
            let greedy = due & MORE_THAN_ITS_SHARE > 0;
            let claim = Claim {
                rank: f64::from_bits(due & !MORE_THAN_ITS_SHARE),
                priority: record.task.priority,
                only: greedy.then_some(record.task.user),
            };
            if record.run.is_some() || !self.displace(pass, task, &mut running, claim) {
                continue;
            }
            if let Some(next) = head(self, now, shape) {
                let at = heads.partition_point(|head| *head < next);
                heads.insert(at, next);
            }
        }
        self.forget_refusals();
    }

    /// Starts a task in place of running tasks that it has a claim to; says whether that was possible.
    fn displace(
        &mut self,
        pass: &mut Pass,
        task: TaskId,
        running: &mut Vec<Running>,
        claim: Claim,
    ) -> bool {
        let worse = running.partition_point(|running| running.rank > claim.rank);
        let worse = running[..worse].iter().filter(|running| claim.covers(running));
        let worse: Vec<TaskId> = worse.take(MOST_VICTIMS).map(|running| running.task).collect();
        if worse.is_empty() || self.is_barred(task) {
            return false;
        }
        let Some((victims, gpus)) = self.room_without(pass, task, &worse) else {
            return false;
        };
        for &victim in &victims {
            self.lift_for_good(victim);
            self.send_back(pass, victim);
        }
        running.retain(|running| !victims.contains(&running.task));
        let demand = self.demand(task);
        self.start(pass, &demand, &gpus);
        true
    }

    /// Running tasks that can save, worst first.
    fn that_can_save(&self, now: Time, preemption: Preemption) -> Vec<Running> {
        let mut running: Vec<Running> = self
            .tasks
            .iter()
            .filter(|record| record.task.checkpoint.is_some() && !record.cancelled)
            // What ran out of memory is brought back before all others, and stays.
            .filter(|record| !record.attempts.is_recovering())
            .filter(|record| {
                let run = record.run.as_ref();
                run.is_some_and(|run| now.since(run.started) >= preemption.every)
            })
            .map(|record| Running {
                rank: self.rank(now, record) * preemption.stays,
                priority: record.task.priority,
                user: record.task.user,
                task: record.task.id,
            })
            .collect();
        running.sort_unstable_by(|a, b| b.rank.total_cmp(&a.rank).then(b.task.cmp(&a.task)));
        running
    }

    /// The tasks that have to go for a task, and the GPUs that it gets; `None` if that does not help.
    fn room_without(
        &mut self,
        pass: &mut Pass,
        task: TaskId,
        worse: &[TaskId],
    ) -> Option<(Vec<TaskId>, Gang)> {
        let demand = self.demand(task);
        let mut lifted: Vec<(TaskId, Lifted)> = Vec::new();
        let mut found = self.find(pass, &demand, Search::Everywhere);
        for &running in worse {
            if found.is_some() {
                break;
            }
            let bookings = self.lift_all(running);
            // Nowhere else is there more room than before.
            let improved: Vec<GpuId> = bookings.iter().map(|(gpu, _)| *gpu).collect();
            found = self.find(pass, &demand, Search::Only(&improved));
            lifted.push((running, bookings));
        }
        // The best of them stay if there is room with them.
        let mut gone: Vec<(TaskId, Lifted)> = Vec::new();
        while let Some((victim, bookings)) = lifted.pop() {
            self.put_all_back(&bookings);
            if found.is_none() {
                continue;
            }
            match self.find(pass, &demand, Search::Everywhere) {
                Some(gang) => found = Some(gang),
                None => {
                    let bookings = self.lift_all(victim);
                    gone.push((victim, bookings));
                }
            }
        }
        let victims = gone.iter().map(|(victim, _)| *victim).collect();
        gone.iter().rev().for_each(|(_, bookings)| self.put_all_back(bookings));
        found.map(|gpus| (victims, gpus))
    }

    fn lift_all(&mut self, task: TaskId) -> Lifted {
        let SchedulerState { tasks, gpus, .. } = self;
        let run = tasks.live(task).run.iter().flat_map(|run| run.placement.gpus());
        run.map(|gpu| (gpu, gpus.lift(gpu, task))).collect()
    }

    fn put_all_back(&mut self, bookings: &Lifted) {
        for &(gpu, booking) in bookings {
            self.gpus.put_back(gpu, booking);
        }
    }
}
