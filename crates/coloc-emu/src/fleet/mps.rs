//! The Multi-Process Service: control daemons, their servers and clients, and the limits at admission.

use super::layout::{Daemon, MAX_DAEMONS, MAX_GPUS};
use super::processes::ENDED_BY_MPS;
use super::{Place, ProcessSlot, State};
use crate::error::{DriverError, ErrorKind};
use crate::process::Identity;
use crate::sys;
use coloc_model::Bytes;

/// What a client brings along from its environment.
#[derive(Clone, Debug, Default)]
pub struct MpsClient {
    /// `CUDA_MPS_ACTIVE_THREAD_PERCENTAGE`, which can only tighten.
    pub percentage: Option<f64>,
    /// `CUDA_MPS_PINNED_DEVICE_MEM_LIMIT`, by GPU.
    pub limits: Vec<(u32, Bytes)>,
}

/// Which limits a command means: the limits of future servers or of the running one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limits {
    /// For servers yet to start.
    Default,
    /// For new clients of the running server.
    Server,
}

/// A control daemon as others see it.
#[derive(Clone, Debug)]
pub struct DaemonView {
    /// Its row.
    pub id: u32,
    /// The daemon's process.
    pub pid: i32,
    /// The pipe directory that names it.
    pub pipe: String,
    /// The server, once there is one.
    pub server: Option<Identity>,
    /// The user whose clients the server takes.
    pub server_uid: u32,
    /// A client waits for a server.
    pub server_wanted: bool,
    /// It was told to quit.
    pub quitting: bool,
    /// Thread percentage of future servers.
    pub default_percentage: f64,
    /// Thread percentage of new clients.
    pub server_percentage: f64,
    /// Priority of new clients.
    pub default_priority: u32,
}

const NO_DAEMON: ErrorKind = ErrorKind::NotFound { what: "MPS control daemon" };
const NO_SERVER: ErrorKind = ErrorKind::NotFound { what: "MPS server" };

impl Daemon {
    fn server(&self) -> Option<Identity> {
        (self.server_pid > 0)
            .then_some(Identity { pid: self.server_pid, start_ticks: self.server_start_ticks })
    }

    fn pipe(&self) -> String {
        let end = self.pipe.iter().position(|&byte| byte == 0).unwrap_or(self.pipe.len());
        String::from_utf8_lossy(&self.pipe[..end]).into_owned()
    }
}

impl State {
    /// The live daemons.
    pub fn daemons(&self) -> Vec<DaemonView> {
        let live = self.daemons.iter().enumerate().filter(|(_, daemon)| daemon.used != 0);
        live.map(|(id, daemon)| DaemonView {
            id: id as u32,
            pid: daemon.pid,
            pipe: daemon.pipe(),
            server: daemon.server(),
            server_uid: daemon.server_uid,
            server_wanted: daemon.server_wanted != 0,
            quitting: daemon.quitting != 0,
            default_percentage: daemon.default_percentage,
            server_percentage: daemon.server_percentage,
            default_priority: daemon.default_priority,
        })
        .collect()
    }

    /// The daemon of a pipe directory.
    pub fn daemon(&self, pipe: &str) -> Option<DaemonView> {
        self.daemons().into_iter().find(|daemon| daemon.pipe == pipe)
    }

    /// Enters a control daemon; there is one for each pipe directory.
    pub fn start_daemon(&mut self, pipe: &str, identity: Identity) -> Result<u32, DriverError> {
        self.bury_dead_daemons();
        if self.daemon(pipe).is_some() {
            return Err(ErrorKind::InUse { by: "another MPS control daemon" }.into());
        }
        if pipe.len() >= 256 {
            return Err(ErrorKind::Invalid { what: "pipe directory: too long" }.into());
        }
        let free = self.daemons.iter().position(|daemon| daemon.used == 0);
        let slot = free.ok_or(ErrorKind::TableFull { what: "MPS control daemons" })?;
        let mut name = [0; 256];
        name[..pipe.len()].copy_from_slice(pipe.as_bytes());
        self.daemons[slot] = Daemon {
            used: 1,
            pid: identity.pid,
            start_ticks: identity.start_ticks,
            uid: sys::effective_user(),
            server_wanted: 0,
            server_pid: 0,
            server_uid: 0,
            server_start_ticks: 0,
            default_percentage: 100.0,
            server_percentage: 100.0,
            default_priority: 0,
            quitting: 0,
            default_limits: [0; MAX_GPUS],
            server_limits: [0; MAX_GPUS],
            pipe: name,
        };
        Ok(slot as u32)
    }

    fn daemon_mut(&mut self, id: u32) -> Result<&mut Daemon, DriverError> {
        let daemon = self.daemons.get_mut(id as usize).filter(|daemon| daemon.used != 0);
        daemon.ok_or_else(|| NO_DAEMON.into())
    }

    /// Asks the daemon for a server; it starts one when it sees this.
    pub fn want_server(&mut self, id: u32, uid: u32) -> Result<(), DriverError> {
        let daemon = self.daemon_mut(id)?;
        daemon.server_wanted = 1;
        daemon.server_uid = uid;
        self.touched = 1;
        Ok(())
    }

    /// The server that the daemon started; it takes over the defaults of this moment.
    pub fn server_started(&mut self, id: u32, identity: Identity) -> Result<(), DriverError> {
        let daemon = self.daemon_mut(id)?;
        daemon.server_pid = identity.pid;
        daemon.server_start_ticks = identity.start_ticks;
        daemon.server_wanted = 0;
        daemon.server_percentage = daemon.default_percentage;
        daemon.server_limits = daemon.default_limits;
        self.touched = 1;
        Ok(())
    }

    /// The clients of a daemon's server.
    pub fn mps_clients(&self, id: u32) -> Vec<ProcessSlot> {
        self.slots().filter(|slot| self.processes[slot.0 as usize].mps == id + 1).collect()
    }

    /// Ends the server. Its clients' contexts go with it; without `force`, it must have none.
    pub fn stop_server(&mut self, id: u32, force: bool) -> Result<(), DriverError> {
        let clients = self.mps_clients(id);
        self.daemon_mut(id)?.server().ok_or(NO_SERVER)?;
        if !clients.is_empty() && !force {
            return Err(ErrorKind::InUse { by: "MPS clients" }.into());
        }
        for client in clients {
            self.terminate_client(client);
        }
        self.daemon_mut(id)?.server_pid = 0;
        self.touched = 1;
        Ok(())
    }

    /// Tells the daemon to quit; new clients run without MPS.
    pub fn quit_daemon(&mut self, id: u32) -> Result<(), DriverError> {
        self.daemon_mut(id)?.quitting = 1;
        self.touched = 1;
        Ok(())
    }

    /// Takes the daemon out of the table.
    pub fn remove_daemon(&mut self, id: u32) {
        for client in self.mps_clients(id) {
            self.terminate_client(client);
        }
        if let Ok(daemon) = self.daemon_mut(id) {
            daemon.used = 0;
        }
        self.touched = 1;
    }

    /// Ends a client's contexts without hurting its neighbours.
    pub fn terminate_client(&mut self, slot: ProcessSlot) {
        let held: Vec<(usize, u32, u64)> = self
            .resident_slots()
            .filter(|(_, resident)| resident.process == slot.0)
            .map(|(at, resident)| (at, resident.gpu, resident.held))
            .collect();
        for (at, gpu, held) in held {
            self.residents[at].used = 0;
            if let Ok(gpu) = self.gpu_mut(gpu) {
                gpu.held = gpu.held.saturating_sub(held);
            }
        }
        if let Ok(process) = self.process_mut(slot) {
            process.ended = ENDED_BY_MPS;
            process.mps = 0;
        }
        self.shrink();
        self.recompute();
    }

    /// Makes a process a client of a daemon's server, which must be up.
    pub fn join_mps(
        &mut self,
        slot: ProcessSlot,
        id: u32,
        client: &MpsClient,
    ) -> Result<(), DriverError> {
        let uid = self.process(slot)?.uid;
        let daemon = self.daemon_mut(id)?;
        if daemon.quitting != 0 {
            return Err(ErrorKind::MpsRefused { why: "the daemon is going down" }.into());
        }
        daemon.server().ok_or(NO_SERVER)?;
        if daemon.server_uid != uid && daemon.server_uid != 0 {
            return Err(ErrorKind::MpsRefused { why: "it serves another user" }.into());
        }
        let allowed = daemon.server_percentage;
        let asked = client.percentage.unwrap_or(allowed);
        let process = self.process_mut(slot)?;
        process.mps = id + 1;
        process.thread_share = (asked.min(allowed) / 100.0).clamp(0.01, 1.0);
        self.recompute();
        Ok(())
    }

    /// Sets the thread percentage.
    pub fn set_percentage(&mut self, id: u32, of: Limits, value: f64) -> Result<(), DriverError> {
        if !(value > 0.0 && value <= 100.0) {
            return Err(ErrorKind::Invalid { what: "thread percentage" }.into());
        }
        let daemon = self.daemon_mut(id)?;
        match of {
            Limits::Default => daemon.default_percentage = value,
            Limits::Server => daemon.server_percentage = value,
        }
        Ok(())
    }

    /// Sets the priority of new clients.
    pub fn set_default_priority(&mut self, id: u32, value: u32) -> Result<(), DriverError> {
        self.daemon_mut(id)?.default_priority = value;
        Ok(())
    }

    /// Sets the most device memory that a client may pin; zero is no limit.
    pub fn set_pinned_limit(
        &mut self,
        id: u32,
        of: Limits,
        gpu: u32,
        limit: Bytes,
    ) -> Result<(), DriverError> {
        self.gpu(gpu)?;
        let daemon = self.daemon_mut(id)?;
        let limits = match of {
            Limits::Default => &mut daemon.default_limits,
            Limits::Server => &mut daemon.server_limits,
        };
        limits[gpu as usize] = limit.0;
        Ok(())
    }

    /// The most device memory that a client may pin; zero is no limit.
    pub fn pinned(&self, id: u32, of: Limits, gpu: u32) -> Result<Bytes, DriverError> {
        let daemon = self.daemons.get(id as usize).filter(|daemon| daemon.used != 0);
        let daemon = daemon.ok_or(NO_DAEMON)?;
        let limits = match of {
            Limits::Default => &daemon.default_limits,
            Limits::Server => &daemon.server_limits,
        };
        let limit = limits.get(gpu as usize).ok_or(ErrorKind::NotFound { what: "GPU" })?;
        Ok(Bytes(*limit))
    }

    /// The limit that a process gets on a device at admission.
    pub(crate) fn pinned_limit(&self, slot: ProcessSlot, gpu: u32) -> u64 {
        let Ok(process) = self.process(slot) else { return 0 };
        let Some(id) = process.mps.checked_sub(1) else { return 0 };
        self.pinned(id, Limits::Server, gpu).map_or(0, |limit| limit.0)
    }

    /// Tightens a process's own limit on a device, as its environment asks.
    pub fn tighten_limit(&mut self, slot: ProcessSlot, gpu: u32, limit: Bytes) {
        let high = self.resident_high as usize;
        for resident in self.residents.iter_mut().take(high).filter(|r| r.used != 0) {
            if resident.process == slot.0 && resident.gpu == gpu {
                let own = if resident.limit == 0 { u64::MAX } else { resident.limit };
                resident.limit = own.min(limit.0);
            }
        }
    }

    /// A server takes so many clients on a device and no more.
    pub(crate) fn check_mps_room(
        &self,
        slot: ProcessSlot,
        place: Place,
    ) -> Result<(), DriverError> {
        let mps = self.process(slot)?.mps;
        if mps == 0 {
            return Ok(());
        }
        let limit = self.live_gpu(place.gpu)?.board().mps_clients();
        let clients = self.residents(Place::whole(place.gpu)).into_iter();
        let clients = clients.filter(|resident| resident.mps).count() as u32;
        if clients >= limit {
            return Err(ErrorKind::MpsClientsFull { limit }.into());
        }
        Ok(())
    }

    pub(crate) fn bury_dead_daemons(&mut self) {
        for id in 0..MAX_DAEMONS as u32 {
            let daemon = self.daemons[id as usize];
            if daemon.used == 0 {
                continue;
            }
            let identity = Identity { pid: daemon.pid, start_ticks: daemon.start_ticks };
            if !identity.lives() {
                self.remove_daemon(id);
            } else if daemon.server().is_some_and(|server| !server.lives()) {
                // The fate of a server is that of its clients.
                for client in self.mps_clients(id) {
                    self.terminate_client(client);
                }
                self.daemons[id as usize].server_pid = 0;
                self.touched = 1;
            }
        }
    }
}
