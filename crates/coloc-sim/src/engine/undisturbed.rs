//! Where tasks have whole GPUs to themselves and neither scheduler nor observer looks, nothing happens between a
//! launch and its end: such a task is no guest of its devices, and what they did for it is added up when it goes.

use super::Observer;
use super::run::Run;
use coloc_model::{GpuModel, Millis, Slot, TaskId, Time};
use coloc_physics::{Power, SharedGpu};
use std::iter;

impl<O: Observer> Run<'_, O> {
    /// A task whose memory grows like this is left alone until it goes.
    pub(super) fn is_undisturbed(&self, growth: Option<Millis>) -> bool {
        self.alone && growth.is_none()
    }

    /// Takes devices for a task; says how fast it is on them.
    pub(super) fn move_in(&mut self, now: Time, task: TaskId, slots: &[Slot], spread: bool) -> f64 {
        let mut slowest = f64::INFINITY;
        for slot in slots {
            slowest = slowest.min(self.speed_on(task, slot.gpu, spread));
            self.devices[slot.gpu.index()].account(now, &self.simulation.power);
        }
        slowest
    }

    /// Gives them back. The task held less than its plateau by `too_much` bytes times milliseconds on each.
    pub(super) fn move_out(&mut self, now: Time, task: TaskId, slots: &[Slot], too_much: u128) {
        let profile = &self.trace.tasks()[task.index()].profile;
        let activity = SharedGpu::observed(iter::once((profile.activity, 1.0)));
        let mut known: Option<(GpuModel, Power)> = None;
        for slot in slots {
            let device = &mut self.devices[slot.gpu.index()];
            let power = match known {
                Some((model, power)) if model == device.model => power,
                _ => self.simulation.power.draw(device.model, 1, &activity),
            };
            known = Some((device.model, power));
            let energy_j = device.account_only(now, activity.sm, power, profile.memory, too_much);
            self.results[task.index()].energy_j += energy_j;
        }
    }
}
