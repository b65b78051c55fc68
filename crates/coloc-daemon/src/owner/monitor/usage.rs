//! Adding up what the monitor sees of each task.

use crate::hardware::Sighting;
use crate::owner::Owner;
use coloc_core::belief;
use coloc_core::gpus::Gpus;
use coloc_model::{Placement, TaskId, TaskState, Time};

impl Owner {
    /// Takes note of how busy each running task kept its GPUs since the last look.
    pub(in crate::owner) fn account(&mut self, now: Time, sighting: &Sighting) {
        let since = std::mem::replace(&mut self.last_look, now).min(now);
        let gpus = self.scheduler.gpus();
        for live in self.tasks.values_mut().filter(|live| live.record.phase == TaskState::Running) {
            let record = &mut live.record;
            let (Some(placement), Some(started)) = (&record.placement, record.started) else {
                continue;
            };
            let span = now.since(since.max(self.clock.time(started)));
            if span.0 > 0
                && let Some((slowdown, activity)) = part(gpus, sighting, record.id, placement)
            {
                record.usage.add(span, slowdown, activity);
            }
        }
    }
}

/// How much longer a task takes for its neighbours, and its part of what its GPUs do, mean over them. What a shared GPU
/// does is divided by what was expected of the tasks on it.
fn part(
    gpus: &Gpus,
    sighting: &Sighting,
    task: TaskId,
    placement: &Placement,
) -> Option<(f64, [f64; 4])> {
    let (mut slowest, mut sums, mut seen) = (1.0f64, [0.0; 4], 0usize);
    for slot in placement.slots.iter() {
        let Some((_, signal)) = sighting.gpus.iter().find(|(gpu, _)| *gpu == slot.gpu) else {
            continue;
        };
        let residents = gpus.get(slot.gpu).residents();
        let own = residents.iter().find(|booking| booking.task == task)?.load;
        let all: f64 = residents.iter().map(|booking| booking.load).sum();
        // An instance of its own has no neighbours.
        if slot.instance.is_none() {
            slowest = slowest.max(belief::slowdown(own, (all - own).max(0.0)));
        }
        let part = if all > 0.0 { own / all } else { 1.0 / residents.len() as f64 };
        let user_usage = signal.activity;
        let user_usage = [user_usage.gpu, user_usage.sm, user_usage.occupancy, user_usage.dram];
        for (sum, share) in sums.iter_mut().zip(user_usage) {
            *sum += share.get() * part;
        }
        seen += 1;
    }
    (seen > 0).then(|| (slowest, sums.map(|sum| sum / seen as f64)))
}
