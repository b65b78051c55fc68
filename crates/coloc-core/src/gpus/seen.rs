//! What the monitor saw of GPUs.

use super::{Clients, Gpus};
use crate::policy::{Gate, MemoryBasis};
use coloc_model::mig::Layout;
use coloc_model::{Bytes, GpuId, GpuSignal, Time};

impl Gpus {
    /// Foreign processes hold this much on a GPU.
    pub(crate) fn see_foreign(&mut self, gpu: GpuId, used: Bytes) {
        let was_ours = self.get(gpu).is_ours();
        let before = std::mem::replace(&mut self.states[gpu.index()].foreign, used);
        self.count_ours(gpu, was_ours);
        self.usable_changed(gpu, before > used);
    }

    /// There are these clients of MPS on a GPU.
    pub(crate) fn see_clients(&mut self, gpu: GpuId, clients: Clients) {
        let before = std::mem::replace(&mut self.states[gpu.index()].clients, clients);
        self.usable_changed(gpu, clients.is_roomier_than(before));
    }

    /// Processes that are not tasks do so much of a GPU's work.
    pub(crate) fn see_foreign_load(&mut self, gpu: GpuId, load: f64) {
        let state = &mut self.states[gpu.index()];
        let before = std::mem::replace(&mut state.foreign_load, load);
        state.sum_load();
        self.usable_changed(gpu, load < before);
    }

    /// Others hold these slices of a GPU.
    pub(crate) fn see_slices(&mut self, gpu: GpuId, taken: Layout) {
        let before = std::mem::replace(&mut self.states[gpu.index()].foreign_slices, taken);
        self.usable_changed(gpu, before != taken);
    }

    pub(super) fn usable_changed(&mut self, gpu: GpuId, more: bool) {
        self.refresh(gpu);
        if more {
            self.note_improved(gpu);
        }
    }

    /// Something here depends on what the monitor shows.
    pub(crate) fn read_signals(&self) -> bool {
        !self.expects_load
            || matches!(self.policy.memory, MemoryBasis::Reported { .. })
            || matches!(self.policy.gate, Gate::TumblingMean { .. } | Gate::Risk { .. })
    }

    /// What was seen of a GPU so far says nothing of the tasks that are on it now.
    pub(crate) fn watch_anew(&mut self, now: Time, gpu: GpuId) {
        let state = &mut self.states[gpu.index()];
        let before = state.demand();
        state.watch_anew(now);
        if state.demand() < before {
            self.note_improved(gpu);
        }
    }

    pub(crate) fn see(&mut self, now: Time, gpu: GpuId, signal: GpuSignal) {
        let state = &mut self.states[gpu.index()];
        let (before, demand) = (state.signal, state.demand());
        state.see(now, signal);
        if state.demand() < demand {
            self.note_improved(gpu);
        }
        if self.read_signals() {
            self.refresh(gpu);
            if signal.used < before.used || signal.activity.sm < before.activity.sm {
                self.note_improved(gpu);
            }
        }
    }
}
