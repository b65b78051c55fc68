//! A process that uses devices: what `libcuda` does for its caller, and the emulated trainer for itself.

use crate::error::{AttachError, DriverError, ErrorKind};
use crate::fleet::{MemoryView, MpsClient, Place, ProcessSlot, ProcessView};
use crate::mapping::{Emulator, Session};
use crate::process::Identity;
use crate::sys;
use coloc_model::Bytes;
use coloc_physics::Profile;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Where MPS listens unless the environment says otherwise.
pub const DEFAULT_PIPE_DIRECTORY: &str = "/tmp/nvidia-mps";
/// How long a daemon may take to start its server.
const SERVER_PATIENCE: Duration = Duration::from_secs(10);

/// A device could not be used.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The fleet does not answer.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// The driver refused.
    #[error(transparent)]
    Driver(#[from] DriverError),
    /// The MPS daemon started no server for us.
    #[error("the MPS control daemon of {pipe} started no server")]
    MpsSilent {
        /// Its pipe directory.
        pipe: String,
    },
}

impl ClientError {
    /// How much was wanted and how much was left, if memory ran out.
    pub fn out_of_memory(&self) -> Option<(Bytes, Bytes)> {
        match self {
            ClientError::Driver(DriverError { kind: ErrorKind::OutOfMemory { wanted, free } }) => {
                Some((*wanted, *free))
            }
            _ => None,
        }
    }
}

/// This process as a user of devices.
#[derive(Debug)]
pub struct Client {
    emulator: Arc<Emulator>,
    slot: ProcessSlot,
    limits: Vec<(u32, Bytes)>,
}

impl Client {
    /// Enters this process into the fleet, as a client of MPS if a control daemon listens where the environment says.
    /// `devices` are the devices that the process sees, in its order.
    pub fn join(emulator: Arc<Emulator>, devices: &[Place]) -> Result<Self, ClientError> {
        let slot = emulator.lock()?.join(Identity::of_self())?.slot;
        let client = mps_client(devices);
        let limits = client.limits.clone();
        let this = Client { emulator, slot, limits };
        this.join_mps(&client)?;
        Ok(this)
    }

    fn join_mps(&self, client: &MpsClient) -> Result<(), ClientError> {
        let pipe = pipe_directory();
        // A process that cannot reach the daemon's sockets runs without it.
        if !Path::new(&pipe).join(".").exists() {
            return Ok(());
        }
        let deadline = Instant::now() + SERVER_PATIENCE;
        loop {
            let seen = self.emulator.changes().load(Ordering::Acquire);
            let mut state = self.emulator.lock()?;
            let Some(daemon) = state.daemon(&pipe).filter(|daemon| !daemon.quitting) else {
                return Ok(());
            };
            if daemon.server.is_some() {
                return Ok(state.join_mps(self.slot, daemon.id, client)?);
            }
            state.want_server(daemon.id, sys::effective_user())?;
            drop(state);
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(ClientError::MpsSilent { pipe });
            }
            sys::wait_for_change(
                self.emulator.changes(),
                seen.wrapping_add(1),
                left.min(Duration::from_millis(20)),
            );
        }
    }

    /// The fleet.
    pub fn emulator(&self) -> &Arc<Emulator> {
        &self.emulator
    }

    /// This process's row.
    pub fn slot(&self) -> ProcessSlot {
        self.slot
    }

    /// The fleet's state, with this process's row.
    pub fn lock(&self) -> Result<(Session<'_>, ProcessSlot), AttachError> {
        Ok((self.emulator.lock()?, self.slot))
    }

    /// Opens a context; the first one on a device costs memory.
    pub fn open_context(&self, place: Place) -> Result<(), ClientError> {
        let (mut state, slot) = self.lock()?;
        state.open_context(slot, place)?;
        if state.view(slot)?.mps {
            for &(gpu, limit) in self.limits.iter().filter(|(gpu, _)| *gpu == place.gpu) {
                state.tighten_limit(slot, gpu, limit);
            }
        }
        Ok(())
    }

    /// Closes a context; the last one on a device gives back all that is held there.
    pub fn close_context(&self, place: Place) -> Result<(), ClientError> {
        let (mut state, slot) = self.lock()?;
        Ok(state.close_context(slot, place)?)
    }

    /// Takes device memory.
    pub fn allocate(&self, place: Place, amount: Bytes) -> Result<(), ClientError> {
        let (mut state, slot) = self.lock()?;
        Ok(state.allocate(slot, place, amount)?)
    }

    /// Gives device memory back.
    pub fn release(&self, place: Place, amount: Bytes) -> Result<(), ClientError> {
        let (mut state, slot) = self.lock()?;
        Ok(state.release(slot, place, amount)?)
    }

    /// What this process could still take.
    pub fn memory(&self, place: Place) -> Result<MemoryView, ClientError> {
        let (state, slot) = self.lock()?;
        Ok(state.free_for(slot, place)?)
    }

    /// Says how this process behaves when alone.
    pub fn declare(&self, profile: &Profile) -> Result<(), ClientError> {
        let (mut state, slot) = self.lock()?;
        Ok(state.declare(slot, profile)?)
    }

    /// Starts or stops working.
    pub fn set_busy(&self, busy: bool) -> Result<(), ClientError> {
        let (mut state, slot) = self.lock()?;
        Ok(state.set_busy(slot, busy)?)
    }

    /// Counts a kernel.
    pub fn launched(&self) -> Result<(), ClientError> {
        let (mut state, slot) = self.lock()?;
        Ok(state.launched(slot)?)
    }

    /// How this process fares.
    pub fn view(&self) -> Result<ProcessView, ClientError> {
        let (state, slot) = self.lock()?;
        Ok(state.view(slot)?)
    }
}

/// The MPS pipe directory that the environment names, as the kernel names it.
pub fn pipe_directory() -> String {
    let named = std::env::var("CUDA_MPS_PIPE_DIRECTORY").ok().filter(|name| !name.is_empty());
    let named = named.unwrap_or_else(|| DEFAULT_PIPE_DIRECTORY.to_owned());
    let real = Path::new(&named).canonicalize();
    real.map_or(named.clone(), |path| path.to_string_lossy().into_owned())
}

fn mps_client(devices: &[Place]) -> MpsClient {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let percentage = variable("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE").trim().parse().ok();
    let limits = pinned_limits(&variable("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"), devices);
    MpsClient { percentage: percentage.filter(|p| *p > 0.0 && *p <= 100.0), limits }
}

/// `0=1G,1=512M`: by the process's own ordinals. What cannot be read is passed over, as the real client does.
fn pinned_limits(text: &str, devices: &[Place]) -> Vec<(u32, Bytes)> {
    let entry = |entry: &str| {
        let (ordinal, limit) = entry.split_once('=')?;
        let place = devices.get(ordinal.trim().parse::<usize>().ok()?)?;
        Some((place.gpu, limit.trim().parse().ok()?))
    };
    text.split(',').filter_map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_by_the_ordinals_of_the_process() {
        let devices = [Place::whole(3), Place::whole(1)];
        let limits = pinned_limits("0=1G, 1=512M,7=1G,x=1G,0,=,1=lots", &devices);
        assert_eq!(limits, [(3, Bytes::from_mib(1024)), (1, Bytes::from_mib(512))]);
        assert!(pinned_limits("", &devices).is_empty());
    }
}
