//! The monitor looked at the GPUs: what it saw is told to the scheduler and to those who watch tasks.

use crate::hardware::{Sighting, TaskSighting};
use crate::owner::Owner;
use coloc_core::{Effect, Event};
use coloc_model::mig::Layout;
use coloc_model::{GpuId, Time};
use std::time::Duration;

/// A monitor that told nothing for this long does not look.
const SILENT: Duration = Duration::from_secs(30);

impl Owner {
    /// What was seen last of the GPUs is no evidence of anything once nothing more is heard of them.
    pub(in crate::owner) fn mind_a_silent_monitor(&mut self, now: Time, wishes: &mut Vec<Effect>) {
        if self.clock.instant().saturating_duration_since(self.heard_at) > SILENT {
            for gpu in self.fleet.ids() {
                self.scheduler.note(now, Event::GpuUnseen(gpu), wishes);
            }
        }
    }

    /// The monitor looked at the GPUs.
    pub(in crate::owner) fn seen(
        &mut self,
        now: Time,
        mut sighting: Sighting,
        wishes: &mut Vec<Effect>,
    ) {
        if let Some(gpus) = sighting.grown.take() {
            self.have_more_gpus(now, *gpus, wishes);
        }
        self.see_losses(now, &sighting, wishes);
        self.see_faults(now, &sighting, wishes);
        self.see_foreign(now, &mut sighting, wishes);
        for &(gpu, beside, limit) in &sighting.clients {
            if !self.last_seen.clients.contains(&(gpu, beside, limit)) {
                self.scheduler.note(now, Event::ClientsSeen { gpu, beside, limit }, wishes);
            }
        }
        for &(gpu, taken) in &sighting.slices {
            let before = self.last_seen.slices.iter().find(|(known, _)| *known == gpu);
            if before.map_or(Layout::default(), |&(_, taken)| taken) != taken {
                self.scheduler.note(now, Event::SlicesSeen { gpu, taken }, wishes);
            }
        }
        let left = self.just_left(now, &sighting);
        for &(gpu, signal) in sighting.gpus.iter().filter(|(gpu, _)| !left.contains(gpu)) {
            self.scheduler.note(now, Event::GpuSeen { gpu, signal }, wishes);
        }
        let unseen = |gpu: &GpuId| sighting.gpus.iter().all(|(seen, _)| seen != gpu);
        for gpu in self.fleet.ids().filter(unseen) {
            self.scheduler.note(now, Event::GpuUnseen(gpu), wishes);
        }
        for &TaskSighting { task, used, activity } in &sighting.tasks {
            if let Some(live) = self.tasks.get_mut(&task) {
                live.record.peak = live.record.peak.max(used);
                self.scheduler.note(now, Event::TaskSeen { task, used, activity }, wishes);
            }
        }
        self.heard_at = self.clock.instant();
        self.account(now, &sighting);
        self.look_for_progress(&sighting);
        self.stop_the_idle(now, &sighting, wishes);
        self.stop_the_greedy(now, &sighting);
        self.last_seen = sighting;
        let at_work = self.on_gpus.iter().filter_map(|task| self.tasks.get(task));
        self.executor.sweep_sharing(now, &mut at_work.map(|live| &live.record));
    }
}
