//! CPUs and memory of the machine as clients see them.

use crate::owner::Owner;
use coloc_api::view::HostView;

impl Owner {
    pub(in crate::owner) fn host_view(&self) -> HostView {
        let (capacity, used) = self.scheduler.host();
        HostView {
            cpus_total: capacity.cpus,
            cpus_used: used.cpus,
            memory_total_bytes: capacity.memory.map(|memory| memory.0),
            memory_used_bytes: used.memory.0,
        }
    }
}
