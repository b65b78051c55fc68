//! The ledger of one GPU: what each task on it was promised.
//!
//! A task is booked with what it was said or estimated to need until it has been seen to settle; free memory as
//! a device reports it says nothing of what a young task is about to allocate.

use super::activity::OwnActivity;
use crate::demand::Demand;
use crate::policy::{MemoryBasis, Policy};
use crate::window::Window;
use coloc_model::mig::{Instance, Layout};
use coloc_model::{
    Basis, Bytes, Gpu, GpuModel, GpuSignal, InterferenceProfile, NodeId, PoolSet, Share, TaskId,
    Time, UserId,
};
use std::sync::Arc;

/// A GPU on which foreign processes hold less counts as idle: a display server holds some.
const NOTICEABLE: Bytes = Bytes::from_mib(1024);
/// One task's place on one GPU.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Booking {
    /// The task.
    pub task: TaskId,
    /// Its user.
    pub user: UserId,
    /// Memory promised to it.
    pub bytes: Bytes,
    /// What the promise rests on.
    pub basis: Basis,
    /// What its user declared, where that is a promise: if more than `bytes`, the rest is lent.
    pub declared: Bytes,
    /// It was seen to train at a plateau of memory.
    pub settled: bool,
    /// A monitor tells its own activity: that of the GPU says nothing new of it.
    pub told: bool,
    /// It holds memory that others lend: it goes when they want it back.
    pub borrowed: bool,
    /// SM demand expected of it, in devices.
    pub load: f64,
    /// How it takes neighbours, and is one.
    pub interference: InterferenceProfile,
    /// It must stay alone.
    pub alone: bool,
    /// The MIG instance made for it.
    pub instance: Option<Instance>,
    /// SM activity that is its own, where a monitor can tell.
    pub(crate) own: OwnActivity,
}

impl Booking {
    /// What it may come to hold whatever others want.
    pub fn claim(&self) -> Bytes {
        if self.borrowed { Bytes::ZERO } else { self.bytes.max(self.declared) }
    }
}

/// A GPU kept free for a task that has waited too long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reservation {
    /// The task it is kept for.
    pub reserved_for: TaskId,
    /// Until then the GPU is expected to be in use anyway: a task that is gone by then may still use it.
    pub until: Time,
}

/// What the scheduler knows of one GPU.
#[derive(Clone, Debug)]
pub struct GpuState {
    /// Its server.
    pub node: NodeId,
    /// Its kind.
    pub model: GpuModel,
    /// Its memory.
    pub capacity: Bytes,
    pub(crate) residents: Vec<Booking>,
    pub(crate) booked: Bytes,
    /// The sum of what tasks may come to hold whatever others want.
    pub(crate) claimed: Bytes,
    pub(crate) load: f64,
    pub(crate) signal: GpuSignal,
    /// Held by processes that are not tasks.
    pub(crate) foreign: Bytes,
    /// SM activity of processes that are not tasks, where that counts.
    pub(crate) foreign_load: f64,
    /// Clients of MPS.
    pub(crate) clients: Clients,
    /// It is lost.
    pub(crate) lost: bool,
    /// It takes nothing new.
    pub(crate) drained: bool,
    /// It takes new tasks of these users only.
    pub(crate) kept_for: Option<Arc<[UserId]>>,
    /// The pools that it is in.
    pub(crate) pools: PoolSet,
    /// How tasks share it.
    pub(crate) share: Share,
    pub(crate) window: Option<Window>,
    /// A young task settles until then.
    pub(crate) busy_until: Time,
    pub(crate) layout: Layout,
    /// Slices that no task holds and that cannot be given.
    pub(crate) foreign_slices: Layout,
    pub(crate) reserved: Option<Reservation>,
    /// When a task last came, was first seen at work, or went.
    pub(crate) crowd_changed: Time,
    /// SM activity times seconds since [`LAG`](super::activity::LAG) after that, up to `sm_since`.
    pub(crate) sm_seconds: f64,
    pub(crate) sm_since: Time,
    /// Mean SM activity since then, once it was watched long enough to say something.
    pub(crate) seen_load: f64,
}

impl GpuState {
    /// A GPU on which nothing runs yet.
    pub(super) fn new(gpu: &Gpu, share: Share, window: Option<Window>) -> Self {
        GpuState {
            node: gpu.node,
            model: gpu.model,
            capacity: gpu.model.memory(),
            residents: Vec::new(),
            booked: Bytes::ZERO,
            claimed: Bytes::ZERO,
            load: 0.0,
            signal: GpuSignal::default(),
            foreign: Bytes::ZERO,
            foreign_load: 0.0,
            clients: Clients { beside: 0, limit: gpu.model.mps_clients() },
            lost: false,
            drained: false,
            kept_for: None,
            pools: PoolSet::default(),
            share,
            window,
            busy_until: Time::START,
            layout: Layout::default(),
            foreign_slices: Layout::default(),
            reserved: None,
            crowd_changed: Time::START,
            sm_seconds: 0.0,
            sm_since: Time::START,
            seen_load: 0.0,
        }
    }
}

/// Clients of MPS on a GPU, of which every task is one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Clients {
    /// Clients beside one of each task.
    pub(crate) beside: u32,
    /// How many it takes.
    pub(crate) limit: u32,
}

impl Clients {
    /// More can come.
    fn room(self) -> u32 {
        self.limit.saturating_sub(self.beside)
    }

    /// More can come than before.
    pub(crate) fn is_roomier_than(self, before: Clients) -> bool {
        self.room() > before.room()
    }
}

impl GpuState {
    /// The tasks on it.
    pub fn residents(&self) -> &[Booking] {
        &self.residents
    }

    /// It is lost or drained: nothing can be started on it.
    pub(crate) fn is_out(&self) -> bool {
        self.lost || self.drained
    }

    /// It can be used, no task is on it, and foreign processes hold next to nothing.
    pub fn is_idle(&self) -> bool {
        self.residents.is_empty() && !self.is_out() && self.foreign < NOTICEABLE
    }

    /// It can be used by every user, and no foreign process is on it.
    pub(super) fn is_ours(&self) -> bool {
        !self.is_out() && self.foreign == Bytes::ZERO && self.kept_for.is_none()
    }

    /// Tasks have MIG instances of it.
    pub(crate) fn is_partitioned(&self) -> bool {
        self.share == Share::Mig && self.model.mig().is_some()
    }

    /// How tasks share it.
    pub fn share(&self) -> Share {
        self.share
    }

    /// Memory that foreign processes leave to tasks.
    pub fn usable(&self) -> Bytes {
        if self.is_out() { Bytes::ZERO } else { self.capacity.saturating_sub(self.foreign) }
    }

    /// Memory promised to the tasks on it.
    pub fn booked(&self) -> Bytes {
        self.booked
    }

    /// Memory that may be promised for good: what is lent is not there for that.
    pub fn available_for_good(&self, policy: &Policy) -> Bytes {
        let lent = self.claimed.saturating_sub(self.booked);
        self.available(policy).saturating_sub(lent)
    }

    /// What of its memory is neither booked nor claimed.
    pub(crate) fn room(&self) -> Bytes {
        self.capacity.saturating_sub(self.booked.max(self.claimed))
    }

    /// Memory that may be promised to a newcomer, if need be until it is wanted back.
    pub fn available(&self, policy: &Policy) -> Bytes {
        if let (Share::Mig, Some(table)) = (self.share, self.model.mig()) {
            return self.slices().largest_memory(table);
        }
        match policy.memory {
            MemoryBasis::Ledger => self.usable().saturating_sub(self.booked),
            MemoryBasis::Reported { reserve } => {
                self.capacity.saturating_sub(self.signal.used).saturating_sub(reserve)
            }
        }
    }

    /// Slices that cannot be given: held by tasks, or foreign.
    pub(crate) fn slices(&self) -> Layout {
        self.layout.with(self.foreign_slices)
    }

    /// The MIG instance that a task would get here: the whole board if the GPU had to be empty, else the
    /// smallest with enough memory and, where its demand is known and room allows, enough compute.
    pub(crate) fn instance_for(&self, demand: &Demand) -> Option<Instance> {
        let table = self.model.mig()?;
        let slice = f64::from(table.sms_per_slice) / f64::from(self.model.sms());
        let compute = (demand.load / slice).ceil().min(f64::from(table.compute_slices)) as u8;
        let slices = self.slices();
        let largest = slices.largest_memory(table);
        let memory = if demand.idle_only { largest } else { demand.need.min(largest) };
        let smallest = |compute| slices.smallest(table, memory, compute);
        smallest(compute).or_else(|| smallest(1))
    }

    /// A task's place here. The ledger never promises more than there is, whatever the policy reads.
    pub(crate) fn booking(&self, demand: &Demand, instance: Option<Instance>) -> Booking {
        let Demand { task, user, load, interference, alone, basis, declared, .. } = *demand;
        let wanted = instance.map_or(demand.book, |instance| instance.memory);
        let room = self.room();
        let borrowed = demand.borrows && wanted > room;
        let room = if borrowed { self.capacity.saturating_sub(self.booked) } else { room };
        let bytes = wanted.min(room);
        let declared = if borrowed { Bytes::ZERO } else { declared.min(bytes) };
        let (settled, told) = (false, false);
        Booking {
            task,
            user,
            bytes,
            basis,
            declared,
            settled,
            told,
            borrowed,
            load,
            interference,
            alone,
            instance,
            own: OwnActivity::default(),
        }
    }

    /// What processes that are not tasks hold of memory that was promised to tasks.
    pub fn encroached(&self) -> Bytes {
        (self.booked + self.foreign).saturating_sub(self.capacity).min(self.foreign)
    }

    /// What the monitor saw last.
    pub fn signal(&self) -> &GpuSignal {
        &self.signal
    }

    pub(crate) fn book(&mut self, now: Time, booking: Booking) {
        self.put_back(booking);
        self.watch_anew(now);
    }

    pub(crate) fn release(&mut self, now: Time, task: TaskId) {
        // It is the youngest that settles.
        if self.residents.last().is_some_and(|youngest| youngest.task == task) {
            self.busy_until = now;
        }
        self.lift(task);
        self.left(now);
    }

    /// Takes a booking out to see what would be possible without it: it is put back, or it has left.
    pub(crate) fn lift(&mut self, task: TaskId) -> Booking {
        // Mostly it is the only one: no other booking has to move up.
        let only = self.residents.pop_if(|last| last.task == task);
        let booking = only.unwrap_or_else(|| self.residents.remove(self.index_of(task)));
        if let Some(instance) = booking.instance {
            self.layout.destroy(instance);
        }
        self.booked -= booking.bytes;
        self.claimed -= booking.claim();
        self.sum_load();
        booking
    }

    pub(crate) fn put_back(&mut self, booking: Booking) {
        if let Some(instance) = booking.instance {
            self.layout.create(instance);
        }
        self.booked += booking.bytes;
        self.claimed += booking.claim();
        self.residents.push(booking);
        self.sum_load();
    }

    pub(crate) fn left(&mut self, now: Time) {
        if self.residents.is_empty() {
            self.busy_until = now;
        }
        self.watch_anew(now);
    }

    /// Changes what a task was promised; says whether that set memory free.
    pub(crate) fn rebook(&mut self, task: TaskId, bytes: Bytes) -> bool {
        self.amend(task, |booking| booking.bytes = bytes)
    }

    /// Changes a task's booking; says whether another task may profit from that.
    pub(crate) fn amend(&mut self, task: TaskId, change: impl FnOnce(&mut Booking)) -> bool {
        let index = self.index_of(task);
        let booking = &mut self.residents[index];
        let before = *booking;
        change(booking);
        let after = *booking;
        self.booked = self.booked - before.bytes + after.bytes;
        self.claimed = self.claimed - before.claim() + after.claim();
        after.bytes < before.bytes
            || after.claim() < before.claim()
            || (before.alone && !after.alone)
    }

    /// Changes the demand expected of a task; says whether that is less than before.
    pub(crate) fn expect_load(&mut self, task: TaskId, load: f64) -> bool {
        let index = self.index_of(task);
        let before = std::mem::replace(&mut self.residents[index].load, load);
        self.sum_load();
        load < before
    }

    pub(super) fn index_of(&self, task: TaskId) -> usize {
        let found = self.residents.iter().position(|booking| booking.task == task);
        found.expect("a task is released only from GPUs it was booked on")
    }

    /// Summed anew instead of adjusted, so that rounding never accumulates.
    pub(super) fn sum_load(&mut self) {
        // Not `sum`: of nothing that is -0.0, whose bits make an empty GPU look like the busiest.
        self.load = self.residents.iter().fold(self.foreign_load, |load, b| load + b.load);
    }
}
