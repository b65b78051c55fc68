//! The GPUs: which there are, and what the monitor sees of them.

use crate::clock::Clock;
use coloc_gpu::device::{ProcessKind, Uuid};
use coloc_gpu::driver::{DriverError, Guarded};
use coloc_gpu::inventory::InventoryEvent;
use coloc_gpu::mig::{GpuInstanceId, Place};
use coloc_gpu::monitor::{Look, Monitor, MonitorConfig, Sources};
use coloc_gpu::mps::client_limit;
use coloc_gpu::process::{Attribution, Owner, ProcessTable, TaskRoots, Users};
use coloc_gpu::sample::Sample;
use coloc_gpu::sample::dcgm::{self, dmon_feed};
use coloc_model::mig::Layout;
use coloc_model::{Bytes, Fleet, FleetError, GpuId, GpuSignal, Millis, Share, TaskId};
use rustc_hash::FxHashMap;
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::Duration;

/// A driver that takes longer to answer is said to hang.
pub(crate) const DEADLINE: Duration = Duration::from_secs(10);

/// GPUs that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HardwareError {
    /// The driver says no.
    #[error("{0}; without GPUs, try --emulate 4xA100-40GB")]
    Driver(#[from] DriverError),
    /// There are none.
    #[error("there is no GPU; to try coloc without one, use --emulate 4xA100-40GB")]
    NoGpu,
    /// `--share mig` on GPUs that have no MIG.
    #[error(
        "--share mig needs GPUs that can be partitioned (A30, A100, H100, H200), and GPU {gpu} is a {model}; \
         use --share mps or --share streams"
    )]
    NoMig {
        /// The first that cannot.
        gpu: GpuId,
        /// What it is.
        model: coloc_model::GpuModel,
    },
    /// Their number is beyond what a fleet can be.
    #[error(transparent)]
    Fleet(#[from] FleetError),
}

/// What the monitor saw at one time.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Sighting {
    /// Each GPU that answered.
    pub gpus: Vec<(GpuId, GpuSignal)>,
    /// What each task holds, on the GPU where it holds most.
    pub tasks: Vec<(TaskId, Bytes)>,
    /// What processes that are not tasks hold.
    pub foreign: Vec<(GpuId, Bytes)>,
    /// Clients of MPS beside one of each task, and how many a GPU takes.
    pub clients: Vec<(GpuId, u32, u32)>,
    /// Slices that cannot be given: others are in them, or keep a GPU from being partitioned.
    pub slices: Vec<(GpuId, Layout)>,
    /// GPUs that went away (false) or came back (true).
    pub there: Vec<(GpuId, bool)>,
    /// As it came, for those who want to see it.
    pub samples: Vec<Sample>,
}

/// The GPUs that were found when the daemon started. Those that come later are used after a restart.
#[derive(Debug)]
pub struct Hardware {
    /// The fleet that the scheduler works with.
    pub fleet: Fleet,
    /// Its GPUs by name, in order.
    pub uuids: Vec<Uuid>,
    /// How many clients of MPS each takes.
    mps_limits: Vec<u32>,
    monitor: Monitor,
}

impl Hardware {
    /// Looks for GPUs, which will be looked at this often by the scheduler's clock and by the world's.
    pub fn find(period: Millis, world: Duration) -> Result<Self, HardwareError> {
        // Where time is scaled DCGM is emulated, and what it measures must be as young as the rest.
        let scaled = world.as_secs_f64() < period.secs() * 0.9;
        let shortest = if scaled { Duration::ZERO } else { dcgm::SHORTEST_PERIOD };
        let sources = Sources {
            driver: Guarded::nvml(DEADLINE),
            dmon: Some(dmon_feed(PathBuf::from("dcgmi"), world.max(shortest))),
            exporter: None,
        };
        let attribution = Attribution::new(ProcessTable::default(), Users::of_system());
        let config = MonitorConfig { period, ..MonitorConfig::default() };
        let mut monitor = Monitor::new(sources, config, attribution);
        let mut look = monitor.sample(coloc_model::Time::START);
        if monitor.inventory().devices().is_empty() {
            let trouble = look.trouble.pop();
            return Err(trouble.map_or(HardwareError::NoGpu, |(_, error)| error.into()));
        }
        let fleet = monitor.inventory().fleet()?;
        let uuids = monitor.inventory().devices().iter().map(|device| device.identity.uuid.clone());
        let uuids = uuids.collect();
        let versions = Guarded::nvml(DEADLINE).ask(|driver| driver.versions())?;
        let devices = monitor.inventory().devices().iter();
        let mps_limits = devices.map(|device| client_limit(&device.identity, &versions)).collect();
        Ok(Hardware { fleet, uuids, mps_limits, monitor })
    }

    /// At least one of them is made of software.
    pub fn is_emulated(&self) -> bool {
        self.monitor.inventory().devices().iter().any(|device| device.identity.emulated)
    }

    /// The addresses of the GPUs on their bus, in order.
    pub fn addresses(&self) -> Vec<String> {
        let devices = self.monitor.inventory().devices().iter();
        devices.map(|device| device.identity.pci_bus_id.clone()).collect()
    }

    /// The memory of the GPUs, in order.
    pub fn capacities(&self) -> Vec<Bytes> {
        let devices = self.monitor.inventory().devices().iter();
        devices.map(|device| device.identity.memory_total).collect()
    }

    /// Whether GPUs can be shared in this way.
    pub fn check(&self, share: Share) -> Result<(), HardwareError> {
        can_share(&self.fleet, share)
    }

    /// Watches from a thread of its own, until nobody listens. `roots` brings the tasks that run.
    pub fn watch(
        self,
        clock: Clock,
        period: Duration,
        roots: mpsc::Receiver<Vec<TaskRoots>>,
        mut tell: impl FnMut(Sighting) -> bool + Send + 'static,
    ) {
        let Hardware { uuids, mps_limits, mut monitor, .. } = self;
        let watch = move || {
            loop {
                match roots.recv_timeout(period) {
                    Ok(tasks) => monitor.set_tasks(roots.try_iter().last().unwrap_or(tasks)),
                    Err(mpsc::RecvTimeoutError::Timeout) => {}
                    Err(mpsc::RecvTimeoutError::Disconnected) => return,
                }
                let look = monitor.sample(clock.now());
                if !tell(sighting(look, &uuids, &mps_limits)) {
                    return;
                }
            }
        };
        // Without a thread nothing is seen, and the ledger alone decides.
        let _ = std::thread::Builder::new().name("monitor".to_owned()).spawn(watch);
    }
}

/// What of a GPU no instance for a task can be made of.
fn taken_slices(sample: &Sample) -> Layout {
    if !sample.vitals.mig.is_on() {
        // Only an idle GPU can be partitioned. Who is in an instance shows that it has been since.
        let in_use = sample.processes.iter().any(|p| p.process.gpu_instance.is_none());
        return if in_use { Layout::of(u8::MAX, 0, 16) } else { Layout::default() };
    }
    let is_foreign = |id: GpuInstanceId| {
        let others = sample.processes.iter().filter(|p| p.attributed.owner == Owner::Foreign);
        others.into_iter().any(|p| p.process.gpu_instance == Some(id.0))
    };
    let theirs = sample.instances.iter().filter(|instance| is_foreign(instance.id));
    theirs.fold(Layout::default(), |taken, instance| {
        let Place { start, span } = instance.place;
        taken.with(Layout::of(instance.compute, start, span))
    })
}

/// Clients of MPS on a GPU beside one of each task.
fn clients_beside(sample: &Sample) -> u32 {
    let clients = sample.processes.iter().filter(|p| p.process.kind == ProcessKind::Mps);
    let mut tasks = rustc_hash::FxHashSet::default();
    let beside = clients.filter(|process| match process.attributed.owner {
        Owner::Task { task, .. } => !tasks.insert(task),
        Owner::Foreign => true,
    });
    beside.count() as u32
}

/// Whether the GPUs of a fleet can be shared in this way.
pub(crate) fn can_share(fleet: &Fleet, share: Share) -> Result<(), HardwareError> {
    let mut unable = fleet.ids().filter(|&gpu| fleet.gpu(gpu).model.mig().is_none());
    match unable.next() {
        Some(gpu) if share == Share::Mig => {
            Err(HardwareError::NoMig { gpu, model: fleet.gpu(gpu).model })
        }
        _ => Ok(()),
    }
}

fn sighting(look: Look, uuids: &[Uuid], mps_limits: &[u32]) -> Sighting {
    let mut seen = Sighting::default();
    let mut tasks: FxHashMap<TaskId, Bytes> = FxHashMap::default();
    for sample in &look.samples {
        let Some(index) = uuids.iter().position(|uuid| *uuid == sample.gpu) else { continue };
        let gpu = GpuId::from(index);
        let (mut foreign, mut here) = (Bytes::ZERO, FxHashMap::<TaskId, Bytes>::default());
        for process in &sample.processes {
            let held = process.process.memory.unwrap_or(Bytes::ZERO);
            match process.attributed.owner {
                Owner::Task { task, .. } => *here.entry(task).or_default() += held,
                Owner::Foreign => foreign += held,
            }
        }
        for (task, held) in here {
            let most = tasks.entry(task).or_default();
            *most = held.max(*most);
        }
        seen.gpus.push((gpu, sample.signal()));
        seen.foreign.push((gpu, foreign));
        seen.slices.push((gpu, taken_slices(sample)));
        seen.clients.push((gpu, clients_beside(sample), mps_limits[index]));
    }
    seen.tasks = tasks.into_iter().collect();
    seen.tasks.sort_unstable();
    let there = |event: &InventoryEvent| match event {
        InventoryEvent::Appeared { gpu, .. } | InventoryEvent::Returned { gpu, .. } => (*gpu, true),
        InventoryEvent::Lost { gpu, .. } => (*gpu, false),
    };
    let known = |(gpu, _): &(GpuId, bool)| gpu.index() < uuids.len();
    seen.there = look.events.iter().map(there).filter(known).collect();
    seen.samples = look.samples;
    seen
}
