//! Tasks as clients of MPS: what their server lets them have.

use super::{LaunchError, Launcher};
use crate::record::{Holds, MpsHold, Record};
use crate::sharing::{Admitted, Newcomer, SharingError};
use crate::spec::TaskSpec;
use coloc_gpu::device::Uuid;
use coloc_gpu::enforce::{Enforcement, Rung, hold_by_mps};
use coloc_gpu::mps::ClientLimits;
use coloc_model::mig::Instance;
use coloc_model::{Bytes, Fraction, GpuId, Placement, Share};

/// What a launch has to know of those who are there.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Beside {
    /// The MIG instances of other tasks.
    pub instances: Vec<(GpuId, Instance)>,
    /// What the clients of its MPS server may use.
    pub clients: Vec<ClientLimits>,
    /// What the ledger has for it where others may join it.
    pub booked: Option<Bytes>,
}

impl MpsHold {
    /// What MPS lets the task's processes use.
    pub(crate) fn limits(&self) -> ClientLimits {
        client_limits(self.threads_percent, self.memory)
    }
}

fn client_limits(percent: Option<u8>, memory: Option<Bytes>) -> ClientLimits {
    let threads = percent.map(|percent| Fraction::new(f64::from(percent.clamp(1, 100)) / 100.0));
    ClientLimits { threads, memory, processes: 1 }
}

impl Launcher {
    /// Makes a task a client of MPS if it shares its GPUs in that way; says what it has to do without.
    pub(super) fn admit_to_mps(
        &mut self,
        record: &Record,
        spec: &TaskSpec,
        memory: Option<Bytes>,
        devices: &[Uuid],
        others: &[ClientLimits],
    ) -> Result<(Option<Admitted>, Option<String>), LaunchError> {
        let Some(placement) = record.placement.as_ref().filter(|p| p.share == Share::Mps) else {
            return Ok((None, None));
        };
        let newcomer = Newcomer {
            owner: record.owner,
            gpus: devices,
            limits: client_limits(spec.sm_percent, memory),
            others,
            whole: self.largest(placement),
        };
        match self.sharing.mps.admit(&newcomer) {
            Ok(admitted) => {
                let by_itself = |why| format!("MPS does not limit it, only its environment: {why}");
                let without = admitted.unlimited.clone().map(by_itself);
                Ok((Some(admitted), without))
            }
            Err(error @ SharingError::NotYet) => Err(LaunchError::Mps(error)),
            Err(error) => Ok((None, Some(format!("runs without MPS: {error}")))),
        }
    }
}

impl Launcher {
    /// The MPS server that a task was a client of has ended, or the control daemon has.
    pub fn lost_mps(&self, record: &Record) -> bool {
        let Some(mps) = record.holds.as_ref().and_then(|holds| holds.mps) else { return false };
        let gpus = record.placement.iter().flat_map(Placement::gpus);
        let gpus: Vec<Uuid> = gpus.filter_map(|gpu| self.uuids.get(gpu.index()).cloned()).collect();
        self.sharing.mps.has_lost(record.owner, &gpus, mps.server)
    }
}

impl Holds {
    /// What holds a task after its MPS server was told of another limit; `None` if nothing has changed for it.
    pub(crate) fn with_server_memory(&self, server_memory: Option<Bytes>) -> Option<Holds> {
        let mps = self.mps.filter(|mps| mps.server_memory != server_memory)?;
        let by_mps = [Rung::MpsPinnedLimit, Rung::MpsEnvironment]
            .iter()
            .any(|rung| self.gpu_memory.starts_with(rung.name()));
        let gpu_memory = match mps.memory.filter(|_| by_mps) {
            Some(memory) => {
                Enforcement { holds: vec![hold_by_mps(memory, 1, server_memory)] }.says()
            }
            None => self.gpu_memory.clone(),
        };
        Some(Holds { gpu_memory, mps: Some(MpsHold { server_memory, ..mps }), ..self.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(memory: u64, gpu_memory: &str) -> Holds {
        let memory = Some(Bytes::from_mib(memory));
        Holds {
            processes: String::new(),
            gpu_memory: gpu_memory.to_owned(),
            host_memory: None,
            mps: Some(MpsHold {
                memory,
                server_memory: memory,
                threads_percent: None,
                server: crate::run::Process { pid: 1, began: 0 },
            }),
            sms: None,
        }
    }

    #[test]
    fn a_larger_neighbour_leaves_a_task_to_its_environment() {
        let small = holds(4096, "mps_pinned_limit: 4.0 GiB, for each of its processes");
        assert_eq!(small.with_server_memory(Some(Bytes::from_mib(4096))), None);
        let beside = small.with_server_memory(Some(Bytes::from_mib(8192))).expect("it changes");
        assert!(beside.gpu_memory.starts_with("mps_environment: 4.0 GiB"), "{}", beside.gpu_memory);
        assert!(beside.gpu_memory.ends_with("its server refuses above 8.0 GiB"));
        let again = beside.with_server_memory(Some(Bytes::from_mib(4096))).expect("it changes");
        assert_eq!(again, small);
        // What something stronger holds is none of MPS's business.
        let strong = holds(4096, "dmem: 4.0 GiB").with_server_memory(None).expect("it changes");
        assert_eq!(strong.gpu_memory, "dmem: 4.0 GiB");
    }
}
