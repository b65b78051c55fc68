//! The GPUs as clients see them.

use crate::owner::Owner;
use coloc_api::view::{GpuView, ResidentView};
use coloc_model::{Bytes, GpuId, TaskId};

impl Owner {
    pub(in crate::owner) fn gpu_views(&self) -> Vec<GpuView> {
        let gpus = self.scheduler.gpus().iter();
        let views = gpus.map(|(gpu, state)| GpuView {
            index: gpu.0,
            uuid: self.gpu_names.get(gpu.index()).cloned().unwrap_or_default(),
            model: state.model.to_string(),
            memory_total_bytes: state.capacity.0,
            memory_used_bytes: state.signal().used.0,
            memory_promised_bytes: state.booked().0,
            smact: state.signal().activity.sm.get(),
            tasks: state.residents().iter().map(|booking| booking.task.0).collect(),
            residents: state
                .residents()
                .iter()
                .filter_map(|booking| self.resident(booking.task, booking.bytes))
                .collect(),
            lost: self.away.contains_key(&gpu),
            ..GpuView::default()
        });
        let mut views: Vec<GpuView> = views.collect();
        for view in &mut views {
            let gpu = GpuId(view.index);
            self.show_service(gpu, view);
            self.show_reservation(gpu, view);
            view.pool = self.pool_table.of_gpu(gpu);
            let encroached = self.scheduler.gpus().get(gpu).encroached();
            if encroached > Bytes::ZERO {
                let what = format!(
                    "processes that are not tasks hold {encroached} of what tasks were promised"
                );
                view.faults.push(what);
            }
        }
        views
    }

    fn resident(&self, task: TaskId, promised: Bytes) -> Option<ResidentView> {
        let live = self.tasks.get(&task)?;
        Some(ResidentView {
            id: task.0,
            name: live.spec.name.clone(),
            user: crate::users::name(live.record.owner),
            promised_bytes: promised.0,
            leader_pid: self.executor.leader(task),
            ..ResidentView::default()
        })
    }
}
