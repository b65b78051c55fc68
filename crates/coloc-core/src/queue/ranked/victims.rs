//! Which running tasks to preempt: from the worst on until there is room, and of those, best first, each that
//! need not go stays. Whether there is room is counted where that is enough, and tried where it is not.

use super::Running;
use super::pass::{RankedPass, gpus};
use crate::demand::Demand;
use crate::gpus::{Booking, IdleByNode};
use crate::place::Search;
use crate::policy::Place;
use crate::scheduler::{Pass, SchedulerState};
use coloc_model::{GpuId, TaskId};

/// Room for a task, if some that run were gone.
pub(super) trait Room {
    fn suffices(&mut self) -> bool;
    /// A running task is taken to be gone, or to be back.
    fn shift(&mut self, running: &Running, gone: bool);
}

/// Any GPU will do, so they are counted.
pub(super) struct Counted {
    pub(super) free: u32,
    pub(super) wanted: u32,
}

impl Room for Counted {
    fn suffices(&mut self) -> bool {
        self.free >= self.wanted
    }

    fn shift(&mut self, running: &Running, gone: bool) {
        match gone {
            true => self.free += running.asks.gpus,
            false => self.free -= running.asks.gpus,
        }
    }
}

/// Whole GPUs are wanted close together: idle ones are counted by node.
struct ByNode<'a> {
    scheduler: &'a SchedulerState,
    idle: IdleByNode,
    demand: &'a Demand,
}

impl Room for ByNode<'_> {
    fn suffices(&mut self) -> bool {
        self.idle.fit(self.demand.gpus, self.demand.packed)
    }

    fn shift(&mut self, running: &Running, gone: bool) {
        let run = self.scheduler.tasks.live(running.task).run.iter();
        for gpu in run.flat_map(|run| run.placement.gpus()) {
            self.idle.shift(self.scheduler.gpus.get(gpu).node, gone);
        }
    }
}

/// Bookings are lifted and put back, and GPUs searched for each time.
struct Tried<'a> {
    scheduler: &'a mut SchedulerState,
    pass: &'a mut Pass,
    demand: &'a Demand,
    lifted: Vec<(TaskId, Vec<(GpuId, Booking)>)>,
}

impl Room for Tried<'_> {
    fn suffices(&mut self) -> bool {
        let SchedulerState { policy, gpus, .. } = &*self.scheduler;
        (!policy.needs_idle() || gpus.idle() >= self.demand.gpus)
            && self.scheduler.find(self.pass, self.demand, Search::Everywhere).is_some()
    }

    fn shift(&mut self, running: &Running, gone: bool) {
        let SchedulerState { tasks, gpus, .. } = &mut *self.scheduler;
        let task = running.task;
        if gone {
            let run = tasks.live(task).run.iter().flat_map(|run| run.placement.gpus());
            let bookings = run.map(|gpu| (gpu, gpus.lift(gpu, task))).collect();
            self.lifted.push((task, bookings));
        } else if let Some(at) = self.lifted.iter().position(|(lifted, _)| *lifted == task) {
            let (_, bookings) = self.lifted.remove(at);
            bookings.into_iter().for_each(|(gpu, booking)| gpus.put_back(gpu, booking));
        }
    }
}

impl RankedPass {
    /// The running tasks at risk that have to go for a task; `None` if that does not help.
    pub(super) fn fewest(&self, mut room: impl Room) -> Option<Vec<Running>> {
        let mut at_risk =
            self.running[self.at_risk..].iter().rev().filter(|running| !running.cancelled);
        let mut gone = Vec::new();
        let mut found = room.suffices();
        while !found && let Some(victim) = at_risk.next() {
            room.shift(victim, true);
            gone.push(victim);
            found = room.suffices();
        }
        gone.reverse();
        gone.retain(|victim| {
            room.shift(victim, false);
            let goes = found && !room.suffices();
            if goes {
                room.shift(victim, true);
            }
            goes
        });
        // So far they were only imagined to be gone.
        gone.iter().for_each(|victim| room.shift(victim, false));
        found.then(|| gone.into_iter().copied().collect())
    }

    /// The same, in whichever way is the quickest that is exact.
    pub(super) fn fewest_for(
        &self,
        scheduler: &mut SchedulerState,
        pass: &mut Pass,
        demand: &Demand,
    ) -> Option<Vec<Running>> {
        let any = scheduler.policy.needs_idle()
            && scheduler.policy.place == Place::Any
            && demand.takes_any()
            && scheduler.gpus.are_all_in_service();
        if any {
            return self.fewest(Counted { free: scheduler.gpus.idle(), wanted: demand.gpus });
        }
        match self.idle_by_node(scheduler, demand) {
            Some(idle) => self.fewest(ByNode { scheduler, idle, demand }),
            None => self.fewest(Tried { scheduler, pass, demand, lifted: Vec::new() }),
        }
    }

    /// Idle GPUs of each node, where that is enough to say whether a task fits.
    fn idle_by_node(&self, scheduler: &SchedulerState, demand: &Demand) -> Option<IdleByNode> {
        let SchedulerState { policy, gpus: all, .. } = scheduler;
        let any_time = !policy.time_matters() && !policy.reserves() && !policy.idle_first;
        let any_gpu = demand.takes_any() && all.are_alike() && all.are_all_ours();
        // Every GPU in use is that of one of these tasks, and of one only.
        let counted = gpus(&self.running) + all.idle() == all.len() as u32;
        all.idle_by_node().filter(|_| any_time && any_gpu && counted).cloned()
    }
}
