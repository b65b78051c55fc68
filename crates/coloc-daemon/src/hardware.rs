//! The GPUs: which there are, and what the monitor sees of them.

use crate::clock::Clock;
use coloc_gpu::device::{ProcessKind, Uuid, Versions};
use coloc_gpu::driver::{DriverError, Guarded};
use coloc_gpu::inventory::{Inventory, InventoryEvent};
use coloc_gpu::mig::{GpuInstanceId, Place};
use coloc_gpu::monitor::{Look, Monitor, MonitorConfig, Sources};
use coloc_gpu::mps::client_limit;
use coloc_gpu::process::{Attribution, Owner, ProcessTable, TaskRoots, Users};
use coloc_gpu::sample::dcgm::{self, dmon_feed};
use coloc_gpu::sample::{ProcessSample, Sample};
use coloc_model::mig::Layout;
use coloc_model::{Bytes, Fleet, FleetError, Fraction, GpuId, GpuSignal, Millis, Share, TaskId};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
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

/// What the monitor saw of a task.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TaskSighting {
    /// The task.
    pub task: TaskId,
    /// What it holds, on the GPU where it holds most.
    pub used: Bytes,
    /// SM activity that is its own, on the GPU where that is least; `None` where nothing tells it from that of others.
    pub activity: Option<Fraction>,
}

/// What a GPU tells of the energy that it draws.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct EnergyReading {
    /// Its counter, in joules; it begins anew when the driver is loaded.
    pub counter_j: Option<f64>,
    /// What it draws now.
    pub power_w: Option<f64>,
    /// It is made of software.
    pub emulated: bool,
}

/// What the monitor saw at one time.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Sighting {
    /// Each GPU that answered.
    pub gpus: Vec<(GpuId, GpuSignal)>,
    /// What each task holds and does.
    pub tasks: Vec<TaskSighting>,
    /// What GPUs tell of the energy that they draw.
    pub energy: Vec<(GpuId, EnergyReading)>,
    /// What processes that are not tasks hold.
    pub foreign: Vec<(GpuId, Bytes)>,
    /// Clients of MPS beside one of each task, and how many a GPU takes.
    pub clients: Vec<(GpuId, u32, u32)>,
    /// Slices that cannot be given: others are in them, or keep a GPU from being partitioned.
    pub slices: Vec<(GpuId, Layout)>,
    /// GPUs that went away (false) or came back (true).
    pub there: Vec<(GpuId, bool)>,
    /// All GPUs, when there are some that were not there before.
    pub grown: Option<Box<Gpus>>,
    /// The most power that each GPU may draw, in their order.
    pub power_limits: Vec<Option<f64>>,
    /// As it came, for callers that want to see it.
    pub samples: Vec<Sample>,
}

/// GPUs, in the order in which they were first seen.
#[derive(Clone, PartialEq, Debug)]
pub struct Gpus {
    /// The fleet that the scheduler works with.
    pub fleet: Fleet,
    /// Their names.
    pub uuids: Vec<Uuid>,
    /// The names of their boards.
    pub boards: Vec<String>,
    /// Their addresses on the bus.
    pub addresses: Vec<String>,
    /// Their memory.
    pub capacities: Vec<Bytes>,
    /// How many clients of MPS each takes.
    mps_limits: Vec<u32>,
    /// Which of them are made of software.
    emulated: Vec<bool>,
    /// The most power that each may draw.
    power_limits: Vec<Option<f64>>,
}

impl Gpus {
    /// Their names, in order.
    pub(crate) fn names(&self) -> Vec<String> {
        self.uuids.iter().map(|uuid| uuid.as_str().to_owned()).collect()
    }

    fn of(inventory: &Inventory, versions: &Versions) -> Result<Self, FleetError> {
        let identities = || inventory.devices().iter().map(|device| &device.identity);
        Ok(Gpus {
            fleet: inventory.fleet()?,
            uuids: identities().map(|identity| identity.uuid.clone()).collect(),
            boards: identities().map(|identity| identity.name.clone()).collect(),
            addresses: identities().map(|identity| identity.pci_bus_id.clone()).collect(),
            capacities: identities().map(|identity| identity.memory_total).collect(),
            power_limits: identities().map(|identity| identity.power_limit_w).collect(),
            mps_limits: identities().map(|identity| client_limit(identity, versions)).collect(),
            emulated: identities().map(|identity| identity.emulated).collect(),
        })
    }
}

/// The GPUs that were found when the daemon started, and what looks for others.
#[derive(Debug)]
pub struct Hardware {
    /// The GPUs.
    pub gpus: Gpus,
    versions: Versions,
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
        let versions = Guarded::nvml(DEADLINE).ask(|driver| driver.versions())?;
        let gpus = Gpus::of(monitor.inventory(), &versions)?;
        Ok(Hardware { gpus, versions, monitor })
    }

    /// At least one of them is made of software.
    pub fn is_emulated(&self) -> bool {
        self.monitor.inventory().devices().iter().any(|device| device.identity.emulated)
    }

    /// Whether GPUs can be shared in this way.
    pub fn check(&self, share: Share) -> Result<(), HardwareError> {
        can_share(&self.gpus.fleet, share)
    }

    /// Watches from a thread of its own, until the listener is gone. `roots` brings the tasks that run.
    pub fn watch(
        self,
        clock: Clock,
        period: Duration,
        roots: mpsc::Receiver<Vec<TaskRoots>>,
        mut tell: impl FnMut(Sighting) -> bool + Send + 'static,
    ) {
        let Hardware { mut gpus, versions, mut monitor } = self;
        let watch = move || {
            loop {
                match roots.recv_timeout(period) {
                    Ok(tasks) => monitor.set_tasks(roots.try_iter().last().unwrap_or(tasks)),
                    Err(mpsc::RecvTimeoutError::Timeout) => {}
                    Err(mpsc::RecvTimeoutError::Disconnected) => return,
                }
                let look = monitor.sample(clock.now());
                // More than a fleet can have are left alone.
                let grown = (monitor.inventory().devices().len() > gpus.uuids.len())
                    .then(|| Gpus::of(monitor.inventory(), &versions).ok())
                    .flatten();
                if let Some(grown) = &grown {
                    gpus = grown.clone();
                }
                let seen = Sighting { grown: grown.map(Box::new), ..sighting(look, &gpus) };
                if !tell(seen) {
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
        // Only an idle GPU can be partitioned. A process in an instance shows that it has been since.
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

/// SM activity of a GPU that is a task's own: that of the MIG instances that its processes are in, or the time in which its
/// kernels ran where the driver tells processes apart. Of clients of MPS it tells only what all of them do.
fn own_activity(sample: &Sample, task: TaskId) -> Option<Fraction> {
    let of_task =
        |owner: &Owner| matches!(owner, Owner::Task { task: known, .. } if *known == task);
    let own: Vec<_> = sample.processes.iter().filter(|p| of_task(&p.attributed.owner)).collect();
    let activity = |process: &&ProcessSample| match process.process.gpu_instance {
        Some(id) => {
            let instance = sample.instances.iter().find(|instance| instance.id.0 == id)?;
            instance.source.and(instance.reading.sm.or(instance.reading.gpu))
        }
        None => process.sm.filter(|_| process.process.kind != ProcessKind::Mps),
    };
    let told: Option<Vec<Fraction>> = own.iter().map(activity).collect();
    told.filter(|told| !told.is_empty())
        .and_then(|told| told.into_iter().max_by(|a, b| a.get().total_cmp(&b.get())))
}

fn sighting(look: Look, gpus: &Gpus) -> Sighting {
    let Gpus { uuids, mps_limits, .. } = gpus;
    let mut seen = Sighting::default();
    let mut tasks: BTreeMap<TaskId, TaskSighting> = BTreeMap::new();
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
        for (task, used) in here {
            let activity = own_activity(sample, task);
            let seen = tasks.entry(task).or_insert(TaskSighting { task, used, activity });
            seen.used = seen.used.max(used);
            seen.activity = seen.activity.zip(activity).map(|(a, b)| a.min(b));
        }
        seen.gpus.push((gpu, sample.signal()));
        let reading = EnergyReading {
            counter_j: sample.vitals.energy_j,
            power_w: sample.vitals.power_w,
            emulated: gpus.emulated[index],
        };
        seen.energy.push((gpu, reading));
        seen.foreign.push((gpu, foreign));
        seen.slices.push((gpu, taken_slices(sample)));
        seen.clients.push((gpu, clients_beside(sample), mps_limits[index]));
    }
    seen.tasks = tasks.into_values().collect();
    let there = |event: &InventoryEvent| match event {
        InventoryEvent::Appeared { gpu, .. } | InventoryEvent::Returned { gpu, .. } => (*gpu, true),
        InventoryEvent::Lost { gpu, .. } => (*gpu, false),
    };
    let known = |(gpu, _): &(GpuId, bool)| gpu.index() < uuids.len();
    seen.there = look.events.iter().map(there).filter(known).collect();
    seen.power_limits = gpus.power_limits.clone();
    seen.samples = look.samples;
    seen
}
