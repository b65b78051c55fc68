//! The fleet: devices, the processes on them, and what the physics make of it.
//!
//! Everything that moves with time (energy, temperature, progress) is accounted for at every change and
//! at every look, so all readers see one and the same value.

mod faults;
mod instances;
pub(crate) mod layout;
mod memory;
mod mps;
mod physics;
mod processes;
mod repair;
mod telemetry;

pub use faults::Fault;
pub use instances::{InstanceView, MigDevice};
pub use layout::{Gpu, MAX_GPUS, Shares, State};
pub use memory::{MemoryView, ResidentView};
pub use mps::{DaemonView, Limits, MpsClient};
pub use processes::{Joined, ProcessView};
pub use telemetry::{Reading, percent};

use crate::board::{self, Board};
use crate::clock::Clock;
use crate::error::{DriverError, ErrorKind};
use crate::mapping::Options;
use crate::process::need_root;
use coloc_model::{Fleet, GpuModel};

/// A process's row in the table of processes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ProcessSlot(pub(crate) u32);

/// A device as a process sees it: a whole GPU, or a MIG device.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Place {
    /// Which GPU.
    pub gpu: u32,
    /// GPU instance and compute instance, when the GPU is partitioned.
    pub mig: Option<MigDevice>,
}

impl Place {
    /// All of a GPU.
    pub fn whole(gpu: u32) -> Self {
        Place { gpu, mig: None }
    }
}

/// How often the dead are looked for: cheaply, and with a look into /proc.
const REAP_EVERY_NS: [u64; 2] = [1_000_000, 20_000_000];

impl State {
    /// Lays out a new fleet in zeroed memory.
    pub(crate) fn begin(&mut self, fleet: &Fleet, options: Options, host_now_ns: u64) {
        self.clock = Clock::start(host_now_ns, options.time_scale, options.frozen);
        self.gpu_count = fleet.len() as u32;
        for (index, (gpu, from)) in self.gpus.iter_mut().zip(fleet.gpus()).enumerate() {
            gpu.model = board::model_index(from.model);
            gpu.node = from.node.0;
            gpu.uuid = uuid(&[b"gpu", from.model.name().as_bytes(), &index.to_le_bytes()]);
            gpu.limit_watts = from.model.limit_watts();
            gpu.persistence = 1;
            gpu.celsius = f64::from(telemetry::AMBIENT_CELSIUS);
        }
        self.recompute();
        for gpu in &mut self.gpus[..fleet.len()] {
            gpu.celsius = gpu.settling_celsius();
        }
    }

    /// Buries the dead and accounts for the time that passed.
    pub(crate) fn bring_up_to(&mut self, host_now_ns: u64) {
        self.advance(self.clock.now_ns(host_now_ns));
        self.reap(host_now_ns);
    }

    /// The fleet's time, in nanoseconds since it began.
    pub fn now_ns(&self) -> u64 {
        self.settled_ns
    }

    /// The fleet's clock.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Goes on at another speed, or stands still.
    pub fn set_clock(&mut self, host_now_ns: u64, scale: f64, frozen: bool) {
        self.clock.change(host_now_ns, scale, frozen);
        self.touched = 1;
    }

    /// How many GPUs there are.
    pub fn gpu_count(&self) -> u32 {
        self.gpu_count.min(MAX_GPUS as u32)
    }

    /// The GPUs in order.
    pub fn gpus(&self) -> &[Gpu] {
        &self.gpus[..self.gpu_count() as usize]
    }

    /// One GPU, whether or not it still answers.
    pub fn gpu(&self, index: u32) -> Result<&Gpu, DriverError> {
        self.gpus().get(index as usize).ok_or_else(|| ErrorKind::NotFound { what: "GPU" }.into())
    }

    pub(crate) fn gpu_mut(&mut self, index: u32) -> Result<&mut Gpu, DriverError> {
        let count = self.gpu_count() as usize;
        self.gpus[..count]
            .get_mut(index as usize)
            .ok_or_else(|| ErrorKind::NotFound { what: "GPU" }.into())
    }

    /// One GPU that still answers.
    pub fn live_gpu(&self, index: u32) -> Result<&Gpu, DriverError> {
        let gpu = self.gpu(index)?;
        if gpu.lost != 0 || self.unloaded != 0 { Err(ErrorKind::GpuLost.into()) } else { Ok(gpu) }
    }

    /// How often the state had to be repaired after a process died while it held the lock.
    pub fn repairs(&self) -> u32 {
        self.repairs
    }
}

impl Gpu {
    /// The kind of device.
    pub fn model(&self) -> GpuModel {
        board::model_at(self.model)
    }

    /// What the driver says of the board.
    pub fn board(&self) -> &'static Board {
        // Only boards are let into a fleet; a scribbled number falls back to a board as well.
        Board::of(self.model()).or_else(|| Board::of(GpuModel::A100_40GB)).expect("in the table")
    }

    /// `GPU-` and a UUID.
    pub fn uuid(&self) -> String {
        format!("GPU-{}", uuid_text(&self.uuid))
    }

    /// What the driver calls the device, or a MIG device of it.
    pub fn name(&self, mig: Option<MigDevice>) -> Result<String, DriverError> {
        Ok(match mig {
            Some(mig) => format!("{} {}", self.board().name, self.mig_name(mig)?),
            None => self.board().name.to_owned(),
        })
    }

    /// The UUID of the device, or of a MIG device of it.
    pub fn uuid_of(&self, mig: Option<MigDevice>) -> Result<String, DriverError> {
        mig.map_or_else(|| Ok(self.uuid()), |mig| self.mig_uuid(mig))
    }

    /// PCI bus of the GPU with this index; its domain is its node.
    pub fn bus(index: u32) -> u32 {
        index % 0xF0 + 1
    }

    /// Place on the bus as NVML writes it, with eight digits of domain.
    pub fn bus_id(&self, index: u32) -> String {
        format!("{:08X}:{:02X}:00.0", self.node, Self::bus(index))
    }

    /// Serial number of the GPU with this index.
    pub fn serial(index: u32) -> String {
        format!("15600{:08}", index + 1)
    }

    /// The server that it sits in.
    pub fn node(&self) -> u32 {
        self.node
    }

    /// Fell off the bus.
    pub fn is_lost(&self) -> bool {
        self.lost != 0
    }

    /// Partitioned by MIG.
    pub fn mig_enabled(&self) -> bool {
        self.mig_enabled != 0
    }

    /// The power limit in force.
    pub fn limit_watts(&self) -> f64 {
        self.limit_watts
    }

    /// Corrected and uncorrected memory errors.
    pub fn ecc_errors(&self) -> (u64, u64) {
        (self.ecc_corrected, self.ecc_uncorrected)
    }

    /// Rows of memory that were replaced by spare ones.
    pub fn remapped_rows(&self) -> u32 {
        self.remapped_rows
    }

    /// A row waits for a reset to be replaced.
    pub fn remap_pending(&self) -> bool {
        self.remap_pending != 0
    }

    /// A row could not be replaced.
    pub fn remap_failed(&self) -> bool {
        self.remap_failed != 0
    }

    /// The last critical error.
    pub fn last_xid(&self) -> u32 {
        self.last_xid
    }

    /// Persistence mode is on.
    pub fn persistence(&self) -> bool {
        self.persistence != 0
    }

    /// NVML's number of the compute mode.
    pub fn compute_mode(&self) -> u32 {
        self.compute_mode
    }
}

impl State {
    /// Sets the power limit; the board's own range holds.
    pub fn set_power_limit(&mut self, index: u32, watts: f64) -> Result<(), DriverError> {
        need_root("changing the power limit")?;
        self.live_gpu(index)?;
        let gpu = self.gpu_mut(index)?;
        let range = gpu.board().lowest_limit_watts..=gpu.model().limit_watts();
        if !range.contains(&watts) {
            return Err(ErrorKind::Invalid { what: "power limit" }.into());
        }
        gpu.limit_watts = watts;
        self.recompute();
        Ok(())
    }

    /// Sets or clears (zeros) the range of SM clocks.
    pub fn set_locked_clocks(&mut self, index: u32, range: [u32; 2]) -> Result<(), DriverError> {
        need_root("locking clocks")?;
        self.live_gpu(index)?;
        self.gpu_mut(index)?.locked_mhz = range;
        self.touched = 1;
        Ok(())
    }

    /// Sets the persistence mode.
    pub fn set_persistence(&mut self, index: u32, on: bool) -> Result<(), DriverError> {
        need_root("changing the persistence mode")?;
        self.live_gpu(index)?;
        self.gpu_mut(index)?.persistence = on.into();
        Ok(())
    }

    /// Sets the compute mode: 0 default, 2 prohibited, 3 exclusive process.
    pub fn set_compute_mode(&mut self, index: u32, mode: u32) -> Result<(), DriverError> {
        need_root("changing the compute mode")?;
        self.live_gpu(index)?;
        if ![0, 2, 3].contains(&mode) {
            return Err(ErrorKind::Invalid { what: "compute mode" }.into());
        }
        self.gpu_mut(index)?.compute_mode = mode;
        Ok(())
    }
}

/// Sixteen bytes that follow from the parts: the same fleet has the same UUIDs every time.
pub(crate) fn uuid(parts: &[&[u8]]) -> [u8; 16] {
    let half = |seed: u64| {
        let bytes = parts.iter().flat_map(|part| part.iter().copied().chain([0xff]));
        // FNV-1a, then a finishing mix so that neighbours look unlike.
        let hash = bytes.fold(0xcbf2_9ce4_8422_2325 ^ seed, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        let mixed = (hash ^ (hash >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        (mixed ^ (mixed >> 32)).to_be_bytes()
    };
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&half(0));
    bytes[8..].copy_from_slice(&half(0x9e37_79b9_7f4a_7c15));
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    bytes
}

pub(crate) fn uuid_text(bytes: &[u8; 16]) -> String {
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}
