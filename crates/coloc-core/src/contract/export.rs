//! What outlives a scheduler: the promise that a running task was made.

use crate::demand::Demand;
use crate::gpus::Booking;
use crate::queue::Ticket;
use crate::scheduler::{Scheduler, SchedulerState};
use crate::tasks::Record;
use coloc_model::{Basis, Bytes, GpuId, Placement, Task, TaskId, Time};
use serde::{Deserialize, Serialize};

/// What a task was promised, and what that rests on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Promised {
    /// Booked on each of its GPUs.
    pub bytes: Bytes,
    /// What the booking rests on.
    pub basis: Basis,
    /// It was seen to train at a plateau of memory.
    pub settled: bool,
    /// No other task may come beside it.
    pub alone: bool,
    /// It is to be held to this much; `None` for as much as there is. Fixed at its launch.
    pub limit: Option<Bytes>,
}

impl Scheduler {
    /// What a task is promised: a running one what is booked for it, a waiting one what will be.
    pub fn promised(&self, task: TaskId) -> Option<Promised> {
        let scheduler = &self.state;
        let record = scheduler.tasks.get(task)?;
        let Some(run) = &record.run else { return Some(scheduler.will_promise(record)) };
        let bookings = run.placement.gpus().filter_map(|gpu| scheduler.booking(gpu, task));
        let booking = bookings.max_by_key(|booking| booking.bytes)?;
        Some(Promised {
            bytes: booking.bytes,
            basis: booking.basis,
            settled: booking.settled,
            alone: booking.alone,
            // An instance holds its task to its own memory.
            limit: booking.instance.map_or(run.limit, |_| Some(booking.bytes)),
        })
    }

    /// The most that was seen of a task's present run, on one of its GPUs.
    pub fn seen(&self, task: TaskId) -> Option<Bytes> {
        let run = self.state.tasks.get(task)?.run.as_ref()?;
        Some(run.seen)
    }
}

impl Scheduler {
    /// What a task would be promised that is not here yet; `None` for one that can never run.
    pub fn would_promise(&self, task: Task) -> Option<Promised> {
        self.check(&task).ok()?;
        Some(self.state.will_promise(&Record::new(task, Ticket::FIRST)))
    }
}

impl SchedulerState {
    /// What a task that waits will be promised.
    fn will_promise(&self, record: &Record) -> Promised {
        let demand = self.demand_of(record);
        let Demand { book: bytes, basis, alone, .. } = demand;
        Promised { bytes, basis, settled: false, alone, limit: limit(&demand) }
    }
}

/// What a task that is launched now is held to. Beside others that is its booking, on every attempt: how much a task needs that
/// died of its limit is not known, and its neighbours were promised the rest.
pub(crate) fn limit(demand: &Demand) -> Option<Bytes> {
    (!demand.alone && demand.basis != Basis::Unknown).then_some(demand.book)
}

impl SchedulerState {
    /// Books a task that runs already with what it was promised before, if that is known. Declared floors come first.
    pub(crate) fn book_as_promised(
        &mut self,
        now: Time,
        demand: Demand,
        placement: Placement,
        promised: Option<Promised>,
    ) {
        let mut asked = demand;
        if let Some(promised) = promised {
            // Only a task that has settled lends what it declared.
            let floor = if promised.settled { Bytes::ZERO } else { demand.declared };
            asked.book = promised.bytes.max(floor);
            asked.basis = promised.basis;
            asked.alone = promised.alone;
        }
        let gpus: Vec<GpuId> = placement.gpus().collect();
        for &gpu in &gpus {
            self.make_room(gpu, demand.declared);
        }
        self.book_on(now, &asked, placement);
        for gpu in gpus {
            self.honour(gpu, &demand, promised);
        }
        let run = self.run_mut(demand.task);
        if let (Some(run), Some(promised)) = (run, promised) {
            run.limit = promised.limit;
            run.promised = demand.book.max(promised.bytes);
        }
    }

    /// Books a task that runs already under a policy without a contract. What it was promised under one stays promised.
    pub(crate) fn book_without_contract(
        &mut self,
        now: Time,
        mut demand: Demand,
        placement: Placement,
        promised: Option<Promised>,
    ) {
        if let Some(promised) = promised {
            (demand.book, demand.alone) = (promised.bytes, promised.alone);
        }
        self.book_on(now, &demand, placement);
        let run = self.run_mut(demand.task);
        if let (Some(run), Some(_)) = (run, promised) {
            run.settled = true;
        }
    }

    /// Takes over the rest of a promise. A task of which nothing is known is not made alone again if it has company.
    fn honour(&mut self, gpu: GpuId, demand: &Demand, promised: Option<Promised>) {
        let state = self.gpus.get(gpu);
        let (capacity, claimed) = (state.capacity, state.claimed);
        let company = state.residents().len() > 1;
        self.gpus.amend(gpu, demand.task, |booking| {
            let others = claimed.saturating_sub(booking.claim());
            if !booking.borrowed && others + demand.declared <= capacity {
                booking.declared = demand.declared;
            }
            booking.settled = promised.is_some_and(|promised| promised.settled);
        });
        if company {
            self.allow_company(gpu);
        }
    }

    /// Tasks that were alone because nothing is known of them, and have company all the same, are not alone.
    fn allow_company(&mut self, gpu: GpuId) {
        let lone = |booking: &Booking| booking.alone && booking.basis == Basis::Unknown;
        let residents = self.gpus.get(gpu).residents();
        let lone: Vec<TaskId> = residents.iter().filter(|b| lone(b)).map(|b| b.task).collect();
        for task in lone {
            self.gpus.amend(gpu, task, |booking| booking.alone = false);
        }
    }
}
