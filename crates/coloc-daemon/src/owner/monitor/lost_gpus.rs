//! GPUs that are lost under running tasks. The tasks are not to blame: they start again elsewhere.

use crate::executor::SharingServer;
use crate::hardware::Sighting;
use crate::owner::Owner;
use crate::owner::lifecycle::intent::MOST_LOSSES;
use crate::record::Intent;
use coloc_core::{Effect, Event};
use coloc_model::{GpuId, Millis, Placement, TaskId, TaskState, Time};

/// A task that has not ended by itself this long after its GPU was lost is stopped.
const TIMEOUT: Millis = Millis::from_secs(60);

impl Owner {
    /// Takes note of GPUs that went or came back, and stops tasks that hang on one that is gone.
    pub(in crate::owner) fn see_losses(
        &mut self,
        now: Time,
        seen: &Sighting,
        effects: &mut Vec<Effect>,
    ) {
        for &(gpu, there) in &seen.there {
            self.set_there(now, gpu, there, effects);
        }
        // One that was taken for lost before the monitor looked may be back before it looks again.
        for &(gpu, _) in &seen.gpus {
            if self.away.contains_key(&gpu) && !seen.there.contains(&(gpu, false)) {
                self.set_there(now, gpu, true, effects);
            }
        }
        let stuck: Vec<(TaskId, GpuId)> = self
            .tasks
            .iter()
            .filter(|(_, live)| live.record.phase == TaskState::Running && live.ending.is_none())
            .filter_map(|(&task, live)| {
                let mut gpus = live.record.placement.iter().flat_map(Placement::gpus);
                let gone = |gpu: &GpuId| {
                    self.away.get(gpu).is_some_and(|&since| now.since(since) >= TIMEOUT)
                };
                Some((task, gpus.find(gone)?))
            })
            .collect();
        for (task, gpu) in stuck {
            let why = format!("GPU {gpu} is lost, and it did not end by itself");
            self.note_loss(task, &why);
            self.scheduler.note(now, Event::StopRequested(task), effects);
        }
    }

    fn set_there(&mut self, now: Time, gpu: GpuId, there: bool, effects: &mut Vec<Effect>) {
        let changed = match there {
            true => self.away.remove(&gpu).is_some(),
            false => {
                let new = !self.away.contains_key(&gpu);
                self.away.entry(gpu).or_insert(now);
                new
            }
        };
        if changed {
            let what = if there { "is back" } else { "is lost: nothing is started on it" };
            tracing::warn!("GPU {gpu} {what}");
            self.scheduler.note(now, Event::GpuThere { gpu, there }, effects);
        }
    }

    /// A task has failed: was it because one of its GPUs is gone, or had a fault? The driver is asked, since the monitor may not have
    /// looked yet; if so, nothing else is started there.
    pub(in crate::owner) fn lost_its_gpu(
        &mut self,
        now: Time,
        task: TaskId,
        effects: &mut Vec<Effect>,
    ) -> bool {
        let Some(live) = self.tasks.get(&task) else { return false };
        let gpus: Vec<GpuId> = live.record.placement.iter().flat_map(Placement::gpus).collect();
        let gone: Vec<GpuId> = gpus
            .into_iter()
            .filter(|gpu| self.away.contains_key(gpu) || self.executor.is_gone(*gpu))
            .collect();
        for &gpu in &gone {
            self.set_there(now, gpu, false, effects);
        }
        let why = match gone.first() {
            Some(gpu) => format!("GPU {gpu} was lost under it"),
            None => {
                let Some(record) = self.tasks.get(&task).map(|live| live.record.clone()) else {
                    return false;
                };
                let Some(why) = self.failed_of_its_gpu(now, &record, effects) else { return false };
                why
            }
        };
        self.note_loss(task, &why);
        true
    }

    /// A task has failed: was it because its MPS server or control daemon is gone, or because they let it down, as its
    /// last `words` say? One client's fault can end all others on a GPU, so that it is not to blame.
    pub(in crate::owner) fn lost_its_mps(&mut self, task: TaskId, words: Option<&str>) -> bool {
        let Some(live) = self.tasks.get(&task) else { return false };
        let why = match (self.executor.sharing_server(&live.record), words) {
            (SharingServer::None, _) | (SharingServer::There, None) => return false,
            (SharingServer::Ended, _) => "its MPS server ended under it".to_owned(),
            (SharingServer::There, Some(words)) => format!("MPS let it down: {words}"),
        };
        self.note_loss(task, &why);
        true
    }

    /// It starts again, unless that has happened too often.
    fn note_loss(&mut self, task: TaskId, why: &str) {
        let Some(live) = self.tasks.get_mut(&task) else { return };
        live.record.losses += 1;
        live.record.reason = Some(why.to_owned());
        let again = live.record.losses <= MOST_LOSSES;
        let then = if again { "it starts again" } else { "it has happened too often" };
        self.intend(task, Intent::Loss, format!("{why}; {then}"));
    }
}
