//! Tasks as clients of MPS: what their server lets them have.

use super::sharing::{Admitted, Newcomer, SharingError};
use super::{LocalExecutor, NotStarted};
use crate::executor::SharingServer;
use crate::record::{Record, Uid};
use coloc_api::spec::TaskSpec;
use coloc_api::view::{EnforcementView, MpsEnforcementView};
use coloc_gpu::device::Uuid;
use coloc_gpu::enforce::{Enforcement, Rung, hold_by_mps};
use coloc_gpu::mps::ClientLimits;
use coloc_model::{Bytes, Fraction, GpuId, Placement, Share, TaskId};

/// What MPS lets the processes of a task use.
fn limits_of(mps: &MpsEnforcementView) -> ClientLimits {
    client_limits(mps.threads_percent, mps.memory)
}

fn client_limits(percent: Option<u8>, memory: Option<Bytes>) -> ClientLimits {
    let threads = percent.map(|percent| Fraction::new(f64::from(percent.clamp(1, 100)) / 100.0));
    ClientLimits { threads, memory, processes: 1 }
}

impl LocalExecutor {
    /// Makes a task a client of MPS if it shares its GPUs in that way; says what it has to do without.
    pub(super) fn admit_to_mps(
        &mut self,
        record: &Record,
        spec: &TaskSpec,
        memory: Option<Bytes>,
        devices: &[Uuid],
        neighbours: &[&Record],
    ) -> Result<(Option<Admitted>, Option<String>), NotStarted> {
        let Some(placement) = record.placement.as_ref().filter(|p| p.share == Share::Mps) else {
            return Ok((None, None));
        };
        let others = on_its_server(record, neighbours);
        let others: Vec<ClientLimits> =
            others.filter_map(|other| Some(limits_of(&other.enforcement.as_ref()?.mps?))).collect();
        let newcomer = Newcomer {
            owner: record.owner,
            gpus: devices,
            limits: client_limits(spec.sm_percent, memory),
            others: &others,
            whole: self.largest(placement),
        };
        match self.sharing.mps.admit(&newcomer) {
            Ok(admitted) => {
                let by_itself = |why| format!("MPS does not limit it, only its environment: {why}");
                let without = admitted.unlimited.clone().map(by_itself);
                Ok((Some(admitted), without))
            }
            Err(error @ SharingError::NotYet) => Err(NotStarted::Mps(error)),
            Err(error) => Ok((None, Some(format!("runs without MPS: {error}")))),
        }
    }
}

impl LocalExecutor {
    /// How the MPS server is that a task is a client of.
    pub(super) fn mps_server(&self, record: &Record) -> SharingServer {
        let mps = record.enforcement.as_ref().and_then(|enforcement| enforcement.mps);
        let Some(mps) = mps else { return SharingServer::None };
        let gpus = record.placement.iter().flat_map(Placement::gpus);
        let gpus: Vec<Uuid> = gpus.filter_map(|gpu| self.uuids.get(gpu.index()).cloned()).collect();
        match self.sharing.mps.has_lost(record.owner, &gpus, mps.server) {
            true => SharingServer::Ended,
            false => SharingServer::There,
        }
    }
}

/// Which MPS server an attempt has: one for each user and set of GPUs.
fn server_of(record: &Record) -> Option<(Uid, Vec<GpuId>)> {
    let placement = record.placement.as_ref().filter(|placement| placement.share == Share::Mps)?;
    let mut gpus: Vec<GpuId> = placement.gpus().collect();
    gpus.sort_unstable();
    Some((record.owner, gpus))
}

/// The neighbours of an attempt that have the same MPS server.
fn on_its_server<'a>(
    record: &Record,
    neighbours: &'a [&'a Record],
) -> impl Iterator<Item = &'a Record> + use<'a> {
    let own = server_of(record);
    neighbours.iter().copied().filter(move |other| own.is_some() && server_of(other) == own)
}

/// The server of an attempt has another limit since it came: the enforcement of its neighbours from now on.
pub(super) fn restated(
    record: &Record,
    enforcement: &EnforcementView,
    neighbours: &[&Record],
) -> Vec<(TaskId, EnforcementView)> {
    let Some(mps) = enforcement.mps else { return Vec::new() };
    let anew = |other: &Record| {
        Some((other.id, with_server_memory(other.enforcement.as_ref()?, mps.server_memory)?))
    };
    on_its_server(record, neighbours).filter_map(anew).collect()
}

/// What holds a task after its MPS server was told of another limit; `None` if nothing has changed for it.
fn with_server_memory(
    enforcement: &EnforcementView,
    server_memory: Option<Bytes>,
) -> Option<EnforcementView> {
    let mps = enforcement.mps.filter(|mps| mps.server_memory != server_memory)?;
    let by_mps = [Rung::MpsPinnedLimit, Rung::MpsEnvironment]
        .iter()
        .any(|rung| enforcement.gpu_memory.starts_with(rung.name()));
    let gpu_memory = match mps.memory.filter(|_| by_mps) {
        Some(memory) => Enforcement { holds: vec![hold_by_mps(memory, 1, server_memory)] }.says(),
        None => enforcement.gpu_memory.clone(),
    };
    Some(EnforcementView {
        gpu_memory,
        mps: Some(MpsEnforcementView { server_memory, ..mps }),
        ..enforcement.clone()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use coloc_api::view::Containment;

    fn enforcement(memory: u64, gpu_memory: &str) -> EnforcementView {
        let memory = Some(Bytes::from_mib(memory));
        EnforcementView {
            containment: Containment::Session,
            processes: String::new(),
            gpu_memory: gpu_memory.to_owned(),
            dmem: false,
            host_memory: None,
            cpus: None,
            mps: Some(MpsEnforcementView {
                memory,
                server_memory: memory,
                threads_percent: None,
                server: coloc_api::view::Process { pid: 1, began: 0 },
            }),
            sms: None,
        }
    }

    #[test]
    fn a_larger_neighbour_leaves_a_task_to_its_environment() {
        let small = enforcement(4096, "mps_pinned_limit: 4.0 GiB, for each of its processes");
        assert_eq!(with_server_memory(&small, Some(Bytes::from_mib(4096))), None);
        let beside = with_server_memory(&small, Some(Bytes::from_mib(8192))).expect("it changes");
        assert!(beside.gpu_memory.starts_with("mps_environment: 4.0 GiB"), "{}", beside.gpu_memory);
        assert!(beside.gpu_memory.ends_with("its server refuses above 8.0 GiB"));
        let again = with_server_memory(&beside, Some(Bytes::from_mib(4096))).expect("it changes");
        assert_eq!(again, small);
        // What something stronger holds is none of MPS's business.
        let strong =
            with_server_memory(&enforcement(4096, "dmem: 4.0 GiB"), None).expect("it changes");
        assert_eq!(strong.gpu_memory, "dmem: 4.0 GiB");
    }
}
