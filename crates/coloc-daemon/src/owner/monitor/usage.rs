//! Adding up what the monitor sees of each task.

use super::energy::{Drawn, Meters, part_of_work, parts};
use crate::accounting::GpuUsage;
use crate::hardware::{EnergyReading, Sighting};
use crate::journal::Entry;
use crate::owner::{Live, Owner, Slowed, slowed};
use crate::record::Record;
use crate::report::LiveUsage;
use coloc_api::moment::Moment;
use coloc_api::notify::NotifyEvent;
use coloc_core::Scheduler;
use coloc_core::gpus::Gpus;
use coloc_model::{Activity, Bytes, GpuId, Placement, Slot, TaskId, TaskState, Time};
use rustc_hash::FxHashMap;
use std::time::{Duration, Instant};

/// What running attempts used is on the disk at least this often: a daemon that dies forgets no more.
const KEEP_EVERY: Duration = Duration::from_secs(60);

/// Up to when running attempts are added up.
#[derive(Debug)]
pub(in crate::owner) struct Bookkeeping {
    last_look: Time,
    meters: Meters,
    /// When the sums were last written down.
    kept_at: Instant,
}

impl Bookkeeping {
    pub(in crate::owner) fn begin(now: Instant) -> Self {
        Bookkeeping { last_look: Time::NEVER, meters: Meters::default(), kept_at: now }
    }
}

/// What a GPU did and drew since the last look.
type Looks = FxHashMap<GpuId, (Activity, Drawn)>;

impl Owner {
    /// Takes note of how busy each running task kept its GPUs since the last look, and what it drew.
    pub(in crate::owner) fn account(&mut self, now: Time, sighting: &Sighting) {
        let since = std::mem::replace(&mut self.bookkeeping.last_look, now).min(now);
        let looks = self.looks(sighting, now.since(since).secs());
        let (moment, whole) = (self.clock.world_now(), self.scheduler.policy().needs_idle());
        let Owner { tasks, on_gpus, scheduler, fleet, gpu_names, clock, .. } = self;
        for task in on_gpus.iter() {
            let Some(live) = tasks.get_mut(task) else { continue };
            let record = &mut live.record;
            let (TaskState::Running, Some(placement), Some(started)) =
                (record.phase, record.placement.clone(), record.started)
            else {
                continue;
            };
            let span = now.since(since.max(clock.time(started)));
            if span.0 > 0
                && let Some((slowed, activity)) = part(scheduler, sighting, record.id, &placement)
            {
                record.usage.add(span, slowed, activity);
            }
            // What others did with its GPUs before it began is not its own.
            let ran = span.secs() / now.since(since).secs().max(f64::MIN_POSITIVE);
            let ledger = Ledger { gpus: scheduler.gpus(), fleet, names: gpu_names, whole };
            let counted = since_of(record, started);
            let promised_s = clock.time(moment).since(clock.time(counted)).secs();
            let attempt = ledger.attempt(record, started, promised_s, moment);
            let Some(attempt) = attempt else { continue };
            for slot in placement.slots.iter() {
                let Some((activity, drawn)) = looks.get(&slot.gpu) else { continue };
                let shares = parts(scheduler.gpus(), sighting, slot.gpu, *task);
                let Some((even, share)) = shares.filter(|_| span.0 > 0) else { continue };
                attempt.drew(drawn.kind);
                let held = held(sighting, slot.gpu, *task).0 as f64;
                let capacity = fleet.gpu(slot.gpu).model.memory().0.max(1) as f64;
                let Some(gpu) = of_gpu(&mut attempt.gpus, gpu_names, slot) else { continue };
                gpu.watched_s += span.secs();
                gpu.held_s += (held / capacity).min(1.0) * span.secs();
                gpu.sm_s += activity.sm.get() * share * span.secs();
                gpu.energy_j += (drawn.still_j * even + drawn.dynamic_j * share) * ran.min(1.0);
            }
        }
        self.keep_usage();
    }

    /// What each GPU did and drew since the last look.
    fn looks(&mut self, sighting: &Sighting, span_s: f64) -> Looks {
        let (meters, fleet) = (&mut self.bookkeeping.meters, &self.fleet);
        let reading = |gpu| sighting.energy.iter().find(|(known, _)| *known == gpu);
        let look = |&(gpu, signal): &(GpuId, coloc_model::GpuSignal)| {
            let reading = reading(gpu).map_or(EnergyReading::default(), |&(_, reading)| reading);
            let model = (gpu.index() < fleet.len()).then(|| fleet.gpu(gpu).model)?;
            let drawn = meters.drawn(gpu, reading, model, &signal.activity, span_s);
            Some((gpu, (signal.activity, drawn)))
        };
        sighting.gpus.iter().filter_map(look).collect()
    }

    /// Has what running attempts used written down now and then, so that a restart goes on from there.
    fn keep_usage(&mut self) {
        let now = self.clock.instant();
        if now.saturating_duration_since(self.bookkeeping.kept_at) < KEEP_EVERY {
            return;
        }
        self.bookkeeping.kept_at = now;
        let running = self.on_gpus.iter().filter_map(|task| self.tasks.get(task));
        let entries = running.map(|live| Entry::Task(Box::new(live.record.clone())));
        self.pending.extend(entries.collect::<Vec<_>>());
    }

    /// What tasks used that have not ended and were started.
    pub(in crate::owner) fn live_usage(&self) -> LiveUsage {
        let started = |live: &&Live| !live.record.accounting.attempts.is_empty();
        let records = self.tasks.values().filter(started).map(|live| live.record.clone());
        LiveUsage { records: records.collect(), groups: self.account_table.limited_groups() }
    }

    /// An attempt is off its GPUs: what it was promised counts to its end.
    pub(in crate::owner) fn close_usage(
        &mut self,
        task: TaskId,
        ended: Moment,
        ran_out_of_memory: bool,
    ) {
        self.count_to_end(task, ended, ran_out_of_memory);
        if ran_out_of_memory {
            self.notify(task, &[NotifyEvent::Oom]);
        }
    }

    fn count_to_end(&mut self, task: TaskId, moment: Moment, ran_out_of_memory: bool) {
        let whole = self.scheduler.policy().needs_idle();
        let Owner { tasks, scheduler, fleet, gpu_names, clock, .. } = self;
        let Some(live) = tasks.get_mut(&task) else { return };
        let record = &mut live.record;
        record.stopped = Some(moment);
        let Some(started) = record.started.filter(|_| record.phase != TaskState::Launching) else {
            return;
        };
        let ledger = Ledger { gpus: scheduler.gpus(), fleet, names: gpu_names, whole };
        let since = since_of(record, started);
        let promised_s = clock.time(moment).since(clock.time(since)).secs();
        if let Some(attempt) = ledger.attempt(record, started, promised_s, moment) {
            attempt.ooms += u32::from(ran_out_of_memory);
        }
    }
}

/// Up to when the running attempt was added up.
fn since_of(record: &Record, started: Moment) -> Moment {
    let last = record.accounting.attempts.last();
    let last = last.filter(|last| last.number == record.attempt);
    // A launch that did not begin has its number used again.
    last.map_or(started, |last| last.to.max(started))
}

/// What is promised of the GPUs.
struct Ledger<'a> {
    gpus: &'a Gpus,
    fleet: &'a coloc_model::Fleet,
    names: &'a [String],
    /// Tasks have whole GPUs.
    whole: bool,
}

impl Ledger<'_> {
    /// The running attempt, with what it was promised for so many more seconds.
    fn attempt<'r>(
        &self,
        record: &'r mut Record,
        started: Moment,
        promised_s: f64,
        now: Moment,
    ) -> Option<&'r mut crate::accounting::AttemptUsage> {
        let placement = record.placement.clone()?;
        let names = placement.gpus().filter_map(|gpu| self.names.get(gpu.index()));
        let attempt = record.accounting.attempt(record.attempt, started, names.map(String::as_str));
        attempt.to = attempt.to.max(now);
        for slot in placement.slots.iter() {
            let part = self.promised(slot.gpu, record.id);
            if let Some(gpu) = of_gpu(&mut attempt.gpus, self.names, slot) {
                gpu.promised_s += part * promised_s;
            }
        }
        Some(attempt)
    }

    /// The part of a GPU that a task is promised: all of it if it has it to itself, else the part of its memory.
    fn promised(&self, gpu: GpuId, task: TaskId) -> f64 {
        if gpu.index() >= self.fleet.len() {
            return 0.0;
        }
        let booking = self.gpus.get(gpu).residents().iter().find(|booking| booking.task == task);
        let capacity = self.fleet.gpu(gpu).model.memory();
        match booking {
            Some(booking) if self.whole || booking.alone => 1.0,
            Some(booking) => (booking.bytes.0 as f64 / capacity.0.max(1) as f64).min(1.0),
            // A GPU that the scheduler does not count as the task's is not promised.
            None => 0.0,
        }
    }
}

fn of_gpu<'a>(gpus: &'a mut [GpuUsage], names: &[String], slot: &Slot) -> Option<&'a mut GpuUsage> {
    let name = names.get(slot.gpu.index())?;
    gpus.iter_mut().find(|gpu| gpu.uuid == *name)
}

/// What a task holds of a GPU; where samples do not tell, what it holds at most on any of its GPUs.
fn held(sighting: &Sighting, gpu: GpuId, task: TaskId) -> Bytes {
    let sample = sighting.samples.iter().find(|sample| sample.id == gpu);
    let seen = sighting.tasks.iter().find(|seen| seen.task == task);
    let told = sample.and_then(|sample| sample.memory_of(task));
    told.or(seen.map(|seen| seen.used)).unwrap_or(Bytes::ZERO)
}

/// How much longer a task takes for its neighbours, and its part of what its GPUs do, mean over them. What a shared GPU
/// does is divided by what was expected of the tasks that work on it.
fn part(
    scheduler: &Scheduler,
    sighting: &Sighting,
    task: TaskId,
    placement: &Placement,
) -> Option<(Slowed, [f64; 4])> {
    let (mut slowest, mut sums, mut seen) = (Slowed::ALONE, [0.0; 4], 0usize);
    for slot in placement.slots.iter() {
        let Some((_, signal)) = sighting.gpus.iter().find(|(gpu, _)| *gpu == slot.gpu) else {
            continue;
        };
        let gpus = scheduler.gpus();
        let state = gpus.get(slot.gpu);
        let booking = state.residents().iter().find(|booking| booking.task == task)?;
        let here = slowed(scheduler, state, booking);
        slowest = Slowed {
            by: slowest.by.max(here.by),
            shared: slowest.shared || here.shared,
            known: slowest.known && here.known,
        };
        let part = part_of_work(gpus, sighting, slot.gpu, task);
        let user_usage = signal.activity;
        let user_usage = [user_usage.gpu, user_usage.sm, user_usage.occupancy, user_usage.dram];
        for (sum, share) in sums.iter_mut().zip(user_usage) {
            *sum += share.get() * part;
        }
        seen += 1;
    }
    (seen > 0).then(|| (slowest, sums.map(|sum| sum / seen as f64)))
}
