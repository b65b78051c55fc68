//! Processes: joining, behaving, dying.

use super::layout::{MAX_PROCESSES, MAX_RESIDENTS, Process, Resident, Shares};
use super::{ProcessSlot, REAP_EVERY_NS, State};
use crate::error::{DriverError, ErrorKind};
use crate::process::Identity;
use crate::sys;
use coloc_model::Bytes;
use coloc_physics::Profile;

/// Counts as working for this long after a launch, unless its behaviour was declared.
const LAUNCH_KEEPS_BUSY_NS: u64 = 1_000_000_000;
/// What a process does that launches kernels and has not said more: a medium training task.
const ASSUMED: [f64; 4] = [0.85, 0.5, 0.25, 0.3];

/// A process that joined.
#[derive(Clone, Copy, Debug)]
pub struct Joined {
    /// Its row.
    pub slot: ProcessSlot,
    /// It had not joined before.
    pub new: bool,
}

/// A process as others see it.
#[derive(Clone, Copy, Debug)]
pub struct ProcessView {
    /// Which process it is.
    pub identity: Identity,
    /// The user it runs as.
    pub uid: u32,
    /// Share of its speed alone that it has now.
    pub rate: f64,
    /// Seconds of work done, as if alone.
    pub work_s: f64,
    /// Activity when alone.
    pub alone: Shares,
    /// Its activity now: what it adds to the device's.
    pub busy: bool,
    /// Kernels launched.
    pub launches: u64,
    /// Stuck.
    pub hung: bool,
    /// A client of MPS.
    pub mps: bool,
    /// Its contexts were ended from outside.
    pub ended: Option<&'static str>,
}

pub(crate) const ENDED_BY_MPS: u32 = 1;
pub(crate) const ENDED_BY_LOSS: u32 = 2;
pub(crate) const ENDED_BY_REPAIR: u32 = 3;

fn ended(reason: u32) -> Option<&'static str> {
    match reason {
        0 => None,
        ENDED_BY_MPS => Some("terminated by MPS"),
        ENDED_BY_LOSS => Some("the GPU was lost"),
        _ => Some("a fault on the device"),
    }
}

impl State {
    pub(crate) fn processes_mut(&mut self) -> impl Iterator<Item = &mut Process> {
        let high = (self.process_high as usize).min(MAX_PROCESSES);
        self.processes[..high].iter_mut().filter(|process| process.used != 0)
    }

    pub(crate) fn live_processes(&self) -> impl Iterator<Item = &Process> {
        let high = (self.process_high as usize).min(MAX_PROCESSES);
        self.processes[..high].iter().filter(|process| process.used != 0)
    }

    pub(crate) fn resident_slots(&self) -> impl Iterator<Item = (usize, &Resident)> {
        let high = (self.resident_high as usize).min(MAX_RESIDENTS);
        self.residents[..high].iter().enumerate().filter(|(_, resident)| resident.used != 0)
    }

    pub(crate) fn process(&self, slot: ProcessSlot) -> Result<&Process, DriverError> {
        self.processes
            .get(slot.0 as usize)
            .filter(|process| process.used != 0)
            .ok_or_else(|| ErrorKind::NotFound { what: "process" }.into())
    }

    pub(crate) fn process_mut(&mut self, slot: ProcessSlot) -> Result<&mut Process, DriverError> {
        self.processes
            .get_mut(slot.0 as usize)
            .filter(|process| process.used != 0)
            .ok_or_else(|| ErrorKind::NotFound { what: "process" }.into())
    }

    /// Enters a process into the table, or finds it there.
    pub fn join(&mut self, identity: Identity) -> Result<Joined, DriverError> {
        let known = self.processes.iter().position(|p| p.used != 0 && p.identity() == identity);
        if let Some(slot) = known {
            return Ok(Joined { slot: ProcessSlot(slot as u32), new: false });
        }
        let free = |state: &State| state.processes.iter().position(|process| process.used == 0);
        let slot = free(self)
            .or_else(|| {
                self.bury_all_dead();
                free(self)
            })
            .ok_or(ErrorKind::TableFull { what: "processes" })?;
        let [gpu, sm, occupancy, dram] = ASSUMED;
        let process = &mut self.processes[slot];
        // `used` comes last: a death in between leaves the row free.
        *process = Process { used: 0, ..blank(identity) };
        process.set_profile(&Profile::new(gpu, sm, occupancy, dram, Bytes::ZERO));
        process.used = 1;
        self.process_high = self.process_high.max(slot as u32 + 1);
        Ok(Joined { slot: ProcessSlot(slot as u32), new: true })
    }

    /// Says how a process behaves when alone; from now on it works when it says so, not when it launches.
    pub fn declare(&mut self, slot: ProcessSlot, profile: &Profile) -> Result<(), DriverError> {
        let process = self.process_mut(slot)?;
        process.set_profile(profile);
        process.declared = 1;
        self.recompute();
        Ok(())
    }

    /// Starts or stops the work of a process whose behaviour was declared.
    pub fn set_busy(&mut self, slot: ProcessSlot, busy: bool) -> Result<(), DriverError> {
        let process = self.process_mut(slot)?;
        let until = if busy { u64::MAX } else { 0 };
        if process.busy_until_ns != until {
            process.busy_until_ns = until;
            self.recompute();
        }
        Ok(())
    }

    /// Counts a kernel.
    pub fn launched(&mut self, slot: ProcessSlot) -> Result<(), DriverError> {
        let now = self.settled_ns;
        let process = self.process_mut(slot)?;
        process.launches += 1;
        if process.declared == 0 {
            let was_busy = process.busy_until_ns > now;
            process.busy_until_ns = now.saturating_add(LAUNCH_KEEPS_BUSY_NS);
            if !was_busy {
                self.recompute();
            }
        }
        Ok(())
    }

    /// Removes a process with all that it holds.
    pub fn leave(&mut self, slot: ProcessSlot) {
        if self.bury(slot.0 as usize) {
            self.recompute();
        }
    }

    /// One process.
    pub fn view(&self, slot: ProcessSlot) -> Result<ProcessView, DriverError> {
        let process = self.process(slot)?;
        Ok(ProcessView {
            identity: process.identity(),
            uid: process.uid,
            rate: process.rate,
            work_s: process.work_s,
            alone: process.alone,
            busy: process.busy_until_ns > self.settled_ns,
            launches: process.launches,
            hung: process.hung != 0,
            mps: process.mps != 0,
            ended: ended(process.ended),
        })
    }

    /// The rows of all processes.
    pub fn slots(&self) -> impl Iterator<Item = ProcessSlot> + '_ {
        let high = self.process_high.min(MAX_PROCESSES as u32);
        (0..high).filter(|&slot| self.processes[slot as usize].used != 0).map(ProcessSlot)
    }

    /// The row of the process with this id.
    pub fn find_pid(&self, pid: i32) -> Option<ProcessSlot> {
        self.slots().find(|slot| self.processes[slot.0 as usize].pid == pid)
    }

    /// Frees the row of a process and its residents; the caller works out the rates.
    fn bury(&mut self, slot: usize) -> bool {
        if self.processes.get(slot).is_none_or(|process| process.used == 0) {
            return false;
        }
        let high = (self.resident_high as usize).min(MAX_RESIDENTS);
        for at in 0..high {
            let resident = self.residents[at];
            if resident.used != 0 && resident.process as usize == slot {
                self.residents[at].used = 0;
                if let Ok(gpu) = self.gpu_mut(resident.gpu) {
                    gpu.held = gpu.held.saturating_sub(resident.held);
                }
            }
        }
        self.processes[slot].used = 0;
        self.shrink();
        true
    }

    /// Lowers the marks below which rows may be in use.
    pub(crate) fn shrink(&mut self) {
        let high = (self.process_high as usize).min(MAX_PROCESSES);
        let last = self.processes[..high].iter().rposition(|process| process.used != 0);
        self.process_high = last.map_or(0, |at| at as u32 + 1);
        let high = (self.resident_high as usize).min(MAX_RESIDENTS);
        let last = self.residents[..high].iter().rposition(|resident| resident.used != 0);
        self.resident_high = last.map_or(0, |at| at as u32 + 1);
    }

    /// Looks for the dead, as often as is worth it.
    pub(crate) fn reap(&mut self, host_now_ns: u64) {
        let due = |state: &State, which: usize| {
            host_now_ns.saturating_sub(state.reaped_ns[which]) >= REAP_EVERY_NS[which]
        };
        if due(self, 1) {
            self.reaped_ns = [host_now_ns; 2];
            self.bury_all_dead();
        } else if due(self, 0) {
            self.reaped_ns[0] = host_now_ns;
            self.bury_those(|identity| !identity.may_live());
        }
    }

    /// Buries every process that no longer runs.
    pub(crate) fn bury_all_dead(&mut self) {
        self.bury_those(|identity| !identity.lives());
        self.bury_dead_daemons();
    }

    fn bury_those(&mut self, dead: impl Fn(Identity) -> bool) {
        let high = (self.process_high as usize).min(MAX_PROCESSES);
        let mut buried = false;
        for slot in 0..high {
            let process = &self.processes[slot];
            if process.used != 0 && dead(process.identity()) {
                buried |= self.bury(slot);
            }
        }
        if buried {
            self.recompute();
        }
    }
}

fn blank(identity: Identity) -> Process {
    Process {
        used: 0,
        pid: identity.pid,
        start_ticks: identity.start_ticks,
        uid: sys::effective_user(),
        declared: 0,
        busy_until_ns: 0,
        alone: Shares::default(),
        sensitivity: 1.0,
        pressure: 1.0,
        rate: 0.0,
        work_s: 0.0,
        launches: 0,
        hung: 0,
        mps: 0,
        thread_share: 1.0,
        ended: 0,
        reserved: 0,
    }
}
