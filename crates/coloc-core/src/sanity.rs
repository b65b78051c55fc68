//! Invariants as code: the simulator checks them after every step in debug builds.

use crate::gpus::Booking;
use crate::scheduler::Scheduler;
use coloc_model::{Bytes, TaskId};
use std::collections::BTreeSet;

impl Scheduler {
    /// Panics if the state contradicts itself: a GPU promised more than it has, a task in two places or
    /// in none, a gang that is not whole.
    pub fn sanity_check(&self) {
        let scheduler = &self.state;
        let mut on_gpus: BTreeSet<(TaskId, u32)> = BTreeSet::new();
        for (gpu, state) in scheduler.gpus.iter() {
            let booked: Bytes = state.residents().iter().map(|booking| booking.bytes).sum();
            assert_eq!(booked, state.booked(), "GPU {gpu}: the ledger does not add up");
            assert!(booked <= state.capacity, "GPU {gpu}: {booked} promised of {}", state.capacity);
            let claimed: Bytes = state.residents().iter().map(Booking::claim).sum();
            assert_eq!(claimed, state.claimed, "GPU {gpu}: the ledger of claims does not add up");
            // Declared floors and bounds of tasks that have not settled are among them.
            assert!(
                claimed <= state.capacity,
                "GPU {gpu}: {claimed} claimed of {}",
                state.capacity
            );
            let alone = state.residents().iter().any(|booking| booking.alone);
            assert!(!alone || state.residents().len() == 1, "GPU {gpu}: company for a lone task");
            for booking in state.residents() {
                assert!(on_gpus.insert((booking.task, gpu.0)), "a task is twice on GPU {gpu}");
            }
            assert_eq!(
                scheduler.gpus.offer(gpu),
                scheduler.gpus.summary(gpu),
                "GPU {gpu}: stale index"
            );
        }
        self.check_idle();
        let mut in_queues: Vec<TaskId> = self.waiting().collect();
        let waiting = in_queues.len();
        in_queues.sort_unstable();
        in_queues.dedup();
        assert_eq!(waiting, in_queues.len(), "a task waits twice");
        let mut running = 0;
        for record in scheduler.tasks.iter() {
            let task = record.task.id;
            let waits = in_queues.binary_search(&task).is_ok();
            assert_ne!(waits, record.run.is_some(), "task {task} must wait or run");
            if let Some(run) = &record.run {
                running += 1;
                assert_eq!(run.placement.slots.len(), record.task.gpus as usize, "a torn gang");
                for gpu in run.placement.gpus() {
                    assert!(on_gpus.remove(&(task, gpu.0)), "task {task} is not on GPU {gpu}");
                }
            }
        }
        assert!(on_gpus.is_empty(), "GPUs hold tasks that do not run: {on_gpus:?}");
        assert_eq!(
            waiting + running,
            scheduler.tasks.len(),
            "queues name tasks that are not alive"
        );
    }

    /// The sets of idle GPUs say what the GPUs say.
    fn check_idle(&self) {
        let gpus = &self.state.gpus;
        let idle = gpus.iter().filter(|(_, state)| state.is_idle()).map(|(gpu, _)| gpu);
        assert!(idle.eq(gpus.idle_ids()), "the set of idle GPUs is stale");
        let Some(by_node) = gpus.idle_by_node() else { return };
        for node in gpus.node_ids() {
            let idle = gpus.of_node(node).filter(|&gpu| gpus.get(gpu).is_idle()).count();
            assert_eq!(by_node.idle(node) as usize, idle, "node {node}: idle GPUs are miscounted");
        }
    }
}
