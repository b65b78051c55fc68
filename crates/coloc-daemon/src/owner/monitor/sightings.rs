//! The monitor looked at the GPUs: what it saw is told to the scheduler and to clients that watch tasks.

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
    pub(in crate::owner) fn mind_a_silent_monitor(&mut self, now: Time, effects: &mut Vec<Effect>) {
        if self.is_monitor_silent() {
            for gpu in self.fleet.ids() {
                self.scheduler.note(now, Event::GpuUnseen(gpu), effects);
            }
        }
    }

    /// The monitor told nothing for a while.
    pub(in crate::owner) fn is_monitor_silent(&self) -> bool {
        self.clock.instant().saturating_duration_since(self.heard_at) > SILENT
    }

    /// The monitor looked at the GPUs.
    pub(in crate::owner) fn seen(
        &mut self,
        now: Time,
        mut sighting: Sighting,
        effects: &mut Vec<Effect>,
    ) {
        if let Some(gpus) = sighting.grown.take() {
            self.have_more_gpus(now, *gpus, effects);
        }
        self.see_losses(now, &sighting, effects);
        self.see_faults(now, &sighting, effects);
        self.see_foreign(now, &mut sighting, effects);
        self.mind_foreign(now, &sighting, effects);
        for &(gpu, beside, limit) in &sighting.clients {
            if !self.last_seen.clients.contains(&(gpu, beside, limit)) {
                self.scheduler.note(now, Event::ClientsSeen { gpu, beside, limit }, effects);
            }
        }
        for &(gpu, taken) in &sighting.slices {
            let before = self.last_seen.slices.iter().find(|(known, _)| *known == gpu);
            if before.map_or(Layout::default(), |&(_, taken)| taken) != taken {
                self.scheduler.note(now, Event::SlicesSeen { gpu, taken }, effects);
            }
        }
        let left = self.just_left(now, &sighting);
        for &(gpu, signal) in sighting.gpus.iter().filter(|(gpu, _)| !left.contains(gpu)) {
            self.scheduler.note(now, Event::GpuSeen { gpu, signal }, effects);
        }
        let unseen = |gpu: &GpuId| sighting.gpus.iter().all(|(seen, _)| seen != gpu);
        for gpu in self.fleet.ids().filter(unseen) {
            self.scheduler.note(now, Event::GpuUnseen(gpu), effects);
        }
        for &TaskSighting { task, used, activity } in &sighting.tasks {
            if let Some(live) = self.tasks.get_mut(&task) {
                live.record.peak = live.record.peak.max(used);
                let peak = self.attempt_peaks.entry(task).or_default();
                *peak = used.max(*peak);
                self.scheduler.note(now, Event::TaskSeen { task, used, activity }, effects);
            }
        }
        self.heard_at = self.clock.instant();
        self.account(now, &sighting);
        self.look_for_progress(&sighting);
        self.stop_the_idle(now, &sighting, effects);
        self.run_memory_watchdog(now, &sighting);
        self.add_energy(&sighting);
        self.last_seen = sighting;
        if self.news.is_heard(self.heard_at) {
            self.look_at_waiting(now);
        }
        self.keep_waits(now);
        let views = self.gpu_views(now);
        self.series.add(self.clock.world_now(), &views, &self.last_seen);
        self.tell_samples(views);
        let at_work = self.on_gpus.iter().filter_map(|task| self.tasks.get(task));
        self.executor.sweep_sharing(now, &mut at_work.map(|live| &live.record));
    }
}
