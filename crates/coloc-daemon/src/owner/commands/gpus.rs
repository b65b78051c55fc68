//! The GPUs as clients see them.

use crate::owner::Owner;
use coloc_api::view::{GpuView, HostView, ResidentView};
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

    /// CPUs and memory of the machine.
    pub(in crate::owner) fn host_view(&self) -> HostView {
        let (capacity, used) = self.scheduler.host();
        HostView {
            cpus_total: capacity.cpus,
            cpus_used: used.cpus,
            memory_total_bytes: capacity.memory.map(|memory| memory.0),
            memory_used_bytes: used.memory.0,
        }
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
