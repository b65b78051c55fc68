//! The shared state as it lies in memory: tables of plain numbers, no pointers, valid when all zero.
//!
//! Every process that joined a fleet can write here, so readers take nothing for granted: indices are
//! checked, and numbers that make no sense are repaired when an owner died halfway.

use crate::clock::Clock;
use crate::process::Identity;
use coloc_model::{Activity, Fraction};
use coloc_physics::Profile;

/// Bumped whenever a table changes.
pub(crate) const VERSION: u32 = 4;
/// GPUs of one fleet.
pub const MAX_GPUS: usize = 128;
/// Processes that have joined at one time.
pub(crate) const MAX_PROCESSES: usize = 1024;
/// Pairs of process and device at one time.
pub(crate) const MAX_RESIDENTS: usize = 2048;
/// GPU instances of one board.
pub(crate) const MAX_INSTANCES: usize = 8;
/// Compute instances of one GPU instance.
pub(crate) const MAX_COMPUTE: usize = 7;
/// MPS control daemons at one time.
pub(crate) const MAX_DAEMONS: usize = 64;
/// Critical events that are kept for processes that wait for them.
pub(crate) const MAX_EVENTS: usize = 64;

/// Four activity shares as plain numbers.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Shares {
    /// Share of time with any kernel.
    pub gpu: f64,
    /// SM activity.
    pub sm: f64,
    /// SM occupancy.
    pub occupancy: f64,
    /// DRAM activity.
    pub dram: f64,
}

impl Shares {
    /// Adds what these shares make in so many seconds.
    pub(crate) fn add(&mut self, shares: Shares, seconds: f64) {
        self.gpu += shares.gpu * seconds;
        self.sm += shares.sm * seconds;
        self.occupancy += shares.occupancy * seconds;
        self.dram += shares.dram * seconds;
    }

    /// The mean over so many seconds between an earlier sum and this one.
    #[must_use]
    pub fn mean_since(self, earlier: Shares, seconds: f64) -> Shares {
        let mean = |now: f64, then: f64| ((now - then) / seconds).clamp(0.0, 1.0);
        Shares {
            gpu: mean(self.gpu, earlier.gpu),
            sm: mean(self.sm, earlier.sm),
            occupancy: mean(self.occupancy, earlier.occupancy),
            dram: mean(self.dram, earlier.dram),
        }
    }
}

impl From<Activity> for Shares {
    fn from(activity: Activity) -> Self {
        let Activity { gpu, sm, occupancy, dram } = activity;
        Shares { gpu: gpu.get(), sm: sm.get(), occupancy: occupancy.get(), dram: dram.get() }
    }
}

impl From<Shares> for Activity {
    fn from(shares: Shares) -> Self {
        Activity {
            gpu: Fraction::saturating(shares.gpu),
            sm: Fraction::saturating(shares.sm),
            occupancy: Fraction::saturating(shares.occupancy),
            dram: Fraction::saturating(shares.dram),
        }
    }
}

/// A part of a GPU instance's compute slices.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct ComputeInstance {
    pub(crate) used: u32,
    pub(crate) slices: u32,
    pub(crate) generation: u32,
}

/// A partition of a board.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct GpuInstance {
    pub(crate) used: u32,
    /// The profile's id.
    pub(crate) profile: u32,
    pub(crate) start: u32,
    pub(crate) span: u32,
    pub(crate) slices: u32,
    pub(crate) reserved: u32,
    pub(crate) memory: u64,
    pub(crate) compute: [ComputeInstance; MAX_COMPUTE],
}

/// One device.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Gpu {
    pub(crate) model: u32,
    pub(crate) node: u32,
    pub(crate) uuid: [u8; 16],
    /// Bytes held by all processes: the sum over residents.
    pub(crate) held: u64,
    /// What its residents make of it since the state was last settled.
    pub(crate) shares: Shares,
    /// Activity summed over time, in share seconds, for averages between two looks.
    pub(crate) share_seconds: Shares,
    pub(crate) watts: f64,
    pub(crate) energy_j: f64,
    pub(crate) celsius: f64,
    pub(crate) limit_watts: f64,
    pub(crate) locked_mhz: [u32; 2],
    pub(crate) persistence: u32,
    pub(crate) compute_mode: u32,
    pub(crate) mig_enabled: u32,
    /// Counts instances that were ever made, so that no MIG UUID returns.
    pub(crate) instances_made: u32,
    pub(crate) instances: [GpuInstance; MAX_INSTANCES],
    pub(crate) lost: u32,
    pub(crate) last_xid: u32,
    pub(crate) ecc_corrected: u64,
    pub(crate) ecc_uncorrected: u64,
    /// A row waits for a reset to be replaced by a spare one.
    pub(crate) remap_pending: u32,
    /// There was no spare row left.
    pub(crate) remap_failed: u32,
    /// Rows that were replaced since the board was made.
    pub(crate) remapped_rows: u32,
    pub(crate) unused: u32,
}

/// A process that uses the driver.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Process {
    pub(crate) used: u32,
    pub(crate) pid: i32,
    pub(crate) start_ticks: u64,
    pub(crate) uid: u32,
    /// Its behaviour was declared rather than assumed.
    pub(crate) declared: u32,
    /// Counts as working until then, in fleet nanoseconds; 0 is idle.
    pub(crate) busy_until_ns: u64,
    pub(crate) alone: Shares,
    pub(crate) sensitivity: f64,
    pub(crate) pressure: f64,
    /// Share of its speed alone that it has now.
    pub(crate) rate: f64,
    /// Seconds of work done, as if alone.
    pub(crate) work_s: f64,
    pub(crate) launches: u64,
    /// Stuck in a kernel that never ends.
    pub(crate) hung: u32,
    /// The MPS daemon that it is a client of, plus one.
    pub(crate) mps: u32,
    /// Share of the SMs that MPS leaves to it.
    pub(crate) thread_share: f64,
    /// Its contexts were ended from outside; a reason of `ending`.
    pub(crate) ended: u32,
    pub(crate) reserved: u32,
}

impl Process {
    pub(crate) fn identity(&self) -> Identity {
        Identity { pid: self.pid, start_ticks: self.start_ticks }
    }

    pub(crate) fn set_profile(&mut self, profile: &Profile) {
        self.alone = profile.activity.into();
        self.sensitivity = profile.sensitivity;
        self.pressure = profile.pressure;
    }

    pub(crate) fn profile(&self) -> Profile {
        let activity = Activity::from(self.alone);
        Profile {
            activity,
            memory: coloc_model::Bytes::ZERO,
            sensitivity: self.sensitivity,
            pressure: self.pressure,
        }
    }
}

/// A process on a device.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Resident {
    pub(crate) used: u32,
    pub(crate) process: u32,
    pub(crate) gpu: u32,
    /// Slot of the GPU instance, plus one; 0 is the whole device.
    pub(crate) instance: u32,
    pub(crate) compute: u32,
    pub(crate) contexts: u32,
    /// Bytes held, contexts included.
    pub(crate) held: u64,
    /// The most it may hold; 0 is no limit of its own.
    pub(crate) limit: u64,
    /// Share of its speed alone that this device leaves to it.
    pub(crate) rate: f64,
}

/// An MPS control daemon and its server.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Daemon {
    pub(crate) used: u32,
    pub(crate) pid: i32,
    pub(crate) start_ticks: u64,
    pub(crate) uid: u32,
    /// A client waits for a server.
    pub(crate) server_wanted: u32,
    pub(crate) server_pid: i32,
    pub(crate) server_uid: u32,
    pub(crate) server_start_ticks: u64,
    pub(crate) default_percentage: f64,
    pub(crate) server_percentage: f64,
    pub(crate) default_priority: u32,
    pub(crate) quitting: u32,
    pub(crate) default_limits: [u64; MAX_GPUS],
    pub(crate) server_limits: [u64; MAX_GPUS],
    pub(crate) pipe: [u8; 256],
}

/// A critical event, for processes that wait for one.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Event {
    pub(crate) gpu: u32,
    pub(crate) xid: u32,
}

/// The whole fleet.
#[derive(Debug)]
#[repr(C)]
pub struct State {
    pub(crate) clock: Clock,
    /// The fleet's time up to which everything is accounted for.
    pub(crate) settled_ns: u64,
    /// The machine's time at which the dead were last looked for, cheaply and thoroughly.
    pub(crate) reaped_ns: [u64; 2],
    pub(crate) gpu_count: u32,
    pub(crate) process_high: u32,
    pub(crate) resident_high: u32,
    /// Milliseconds that every NVML call takes, and how many calls time out.
    pub(crate) nvml_delay_ms: u32,
    pub(crate) nvml_timeouts: u32,
    /// The kernel module is not there.
    pub(crate) unloaded: u32,
    pub(crate) spare: u32,
    pub(crate) repairs: u32,
    /// Something changed that others may be waiting for.
    pub(crate) touched: u32,
    /// The fleet is gone; its file may be too.
    pub(crate) closed: u32,
    pub(crate) event_count: u64,
    pub(crate) events: [Event; MAX_EVENTS],
    pub(crate) gpus: [Gpu; MAX_GPUS],
    pub(crate) processes: [Process; MAX_PROCESSES],
    pub(crate) residents: [Resident; MAX_RESIDENTS],
    pub(crate) daemons: [Daemon; MAX_DAEMONS],
}
