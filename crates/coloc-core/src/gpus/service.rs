//! Which GPUs can be used: those that are there, take tasks, and are not in use by others.

use super::{GpuState, Gpus};
use coloc_model::{GpuId, Share, UserId};
use std::sync::Arc;

impl Gpus {
    /// A GPU went away or came back.
    pub(crate) fn set_there(&mut self, gpu: GpuId, there: bool) {
        self.change_service(gpu, |state| state.lost = !there);
    }

    /// A GPU takes nothing new, or takes tasks again.
    pub(crate) fn set_drained(&mut self, gpu: GpuId, drained: bool) {
        self.change_service(gpu, |state| state.drained = drained);
    }

    /// A GPU takes new tasks of these users only, or of all.
    pub(crate) fn set_kept_for(&mut self, gpu: GpuId, users: Option<Arc<[UserId]>>) {
        let (was, is) = (self.get(gpu).kept_for.is_some(), users.is_some());
        self.kept = self.kept + usize::from(is) - usize::from(was);
        self.change_service(gpu, |state| state.kept_for = users);
    }

    /// A GPU is in this pool, too. An exclusive pool says nothing of how others share it.
    pub(crate) fn put_into_pool(&mut self, gpu: GpuId, pool: usize, share: Share) {
        self.change_service(gpu, |state| {
            state.pools.insert(pool);
            state.share = if share == Share::Exclusive { state.share } else { share };
        });
    }

    fn change_service(&mut self, gpu: GpuId, change: impl FnOnce(&mut GpuState)) {
        let (was_ours, was_out) = (self.get(gpu).is_ours(), self.get(gpu).is_out());
        change(&mut self.states[gpu.index()]);
        let is_out = self.get(gpu).is_out();
        self.out = self.out + usize::from(is_out) - usize::from(was_out);
        self.count_ours(gpu, was_ours);
        self.usable_changed(gpu, !is_out);
    }

    /// Every GPU is there and takes tasks of all users, so that each that becomes idle can be given.
    pub(crate) fn are_all_in_service(&self) -> bool {
        self.out == 0 && self.kept == 0
    }

    pub(super) fn count_ours(&mut self, gpu: GpuId, was_ours: bool) {
        let is_ours = self.get(gpu).is_ours();
        self.not_ours = self.not_ours + usize::from(was_ours) - usize::from(is_ours);
    }

    /// All can be used by every user, and no foreign process is on any.
    pub(crate) fn are_all_ours(&self) -> bool {
        self.not_ours == 0
    }
}
