//! GPUs that take nothing new, because they are faulty or an administrator wants it so. Tasks on them go on.
//!
//! A drain is on the disk before the scheduler decides anything by it, and lasts until an administrator ends it. Faults
//! that were there then are accepted: only a new one drains the GPU again.

use crate::executor::GpuError;
use crate::hardware::Sighting;
use crate::journal::{Drain, Entry, GpuRecord, Reserved};
use crate::owner::commands::invalid::Invalid;
use crate::owner::{Caller, GpusServed, Owner, Refused};
use crate::record::{Record, Uid};
use coloc_api::moment::Moment;
use coloc_api::request::{GpuName, GpuService, LONGEST_REASON, MOST_GPU_NAMES};
use coloc_api::view::GpuView;
use coloc_core::{Effect, Event};
use coloc_gpu::health::{Condition, Fault};
use coloc_model::{GpuId, Placement, TaskId, Time};
use rustc_hash::FxHashMap;
use std::time::{Duration, Instant};

/// A task that fails so soon after a fault of its GPU failed of it.
const MOMENTS: Duration = Duration::from_secs(10);
/// The longest reason that is kept, in bytes.
const LONGEST_KEPT: usize = 1024;

/// What is known of the GPUs' service.
#[derive(Default, Debug)]
pub(in crate::owner) struct Service {
    records: FxHashMap<GpuId, GpuRecord>,
    /// What is kept of GPUs that are not there.
    absent: Vec<GpuRecord>,
    /// How the memory of each GPU was at the last look.
    seen: FxHashMap<GpuId, Condition>,
    /// What each GPU had last that programs fail of, and when.
    faults: FxHashMap<GpuId, (String, Instant)>,
    /// Why no critical errors are heard, as it was last told.
    deaf: Option<String>,
}

impl Service {
    fn drain(&self, gpu: GpuId) -> Option<&Drain> {
        self.records.get(&gpu)?.drained.as_ref()
    }
}

impl Owner {
    /// What an earlier daemon wrote down of GPUs.
    pub(in crate::owner) fn recall_gpus(&mut self, saved: Vec<GpuRecord>) {
        if saved.iter().any(|record| record.reserved.is_some()) {
            self.scheduler.tell_users_apart();
        }
        self.service.absent = saved;
        // No task is there yet, so there are no effects.
        self.recall_absent_gpus(self.clock.now(), &mut Vec::new());
    }

    /// What was written down of GPUs that are there now.
    pub(in crate::owner) fn recall_absent_gpus(&mut self, now: Time, effects: &mut Vec<Effect>) {
        for record in std::mem::take(&mut self.service.absent) {
            let Some(gpu) = self.gpu_of(&record.uuid) else {
                self.service.absent.push(record);
                continue;
            };
            if let Some(drain) = &record.drained {
                tracing::info!("GPU {gpu} is still drained: {}", drain.reason);
                self.scheduler.note(now, Event::GpuDrained { gpu, drained: true }, effects);
            }
            self.service.records.insert(gpu, record);
            self.tell_of_reservation(now, gpu, effects);
        }
    }

    /// Which users a GPU is reserved for.
    pub(super) fn reservation(&self, gpu: GpuId) -> Option<&Reserved> {
        self.service.records.get(&gpu)?.reserved.as_ref()
    }

    /// All GPUs that are reserved.
    pub(super) fn reservations(&self) -> impl Iterator<Item = (GpuId, &Reserved)> {
        let records = self.service.records.iter();
        records.filter_map(|(gpu, record)| Some((*gpu, record.reserved.as_ref()?)))
    }

    /// Some GPU is reserved.
    pub(in crate::owner) fn has_reserved_gpus(&self) -> bool {
        self.reservations().next().is_some()
    }

    fn gpu_of(&self, uuid: &str) -> Option<GpuId> {
        self.gpu_names.iter().position(|known| known == uuid).map(GpuId::from)
    }

    /// Takes note of what the monitor and the driver say of the hardware.
    pub(in crate::owner) fn see_faults(
        &mut self,
        now: Time,
        seen: &Sighting,
        effects: &mut Vec<Effect>,
    ) {
        self.hear_gpu_errors(now, effects);
        let deaf = self.executor.deaf_to_gpu_errors();
        if deaf != self.service.deaf {
            match &deaf {
                Some(error) => tracing::warn!("XIDs of GPUs are not heard: {error}"),
                None => tracing::info!("XIDs of GPUs are heard again"),
            }
            self.service.deaf = deaf;
        }
        for sample in &seen.samples {
            if let Some(gpu) = self.gpu_of(sample.gpu.as_str()) {
                self.see_condition(now, gpu, sample.vitals.condition, effects);
            }
        }
    }

    /// Drains GPUs of which a critical error was heard.
    pub(in crate::owner) fn hear_gpu_errors(&mut self, now: Time, effects: &mut Vec<Effect>) {
        for GpuError { gpu, xid, at } in self.executor.gpu_errors() {
            // Others are what programs do to themselves.
            if xid.hardware_fault().is_none() {
                continue;
            }
            let reason = xid.to_string();
            if xid.ends_programs() {
                self.service.faults.insert(gpu, (reason.clone(), at));
            }
            self.drain_for_fault(now, gpu, &reason, effects);
        }
    }

    /// Drains a GPU whose memory has a fault that was not accepted.
    fn see_condition(
        &mut self,
        now: Time,
        gpu: GpuId,
        condition: Condition,
        effects: &mut Vec<Effect>,
    ) {
        let accepted = self.service.records.get(&gpu).map_or(Condition::default(), |r| r.accepted);
        // What a reset has mended is no longer accepted.
        let still = accepted.still(&condition);
        if still != accepted {
            self.record_gpu(gpu, |record| record.accepted = still);
        }
        // Programs fail of errors on a GPU that is drained already, too.
        let before = self.service.seen.insert(gpu, condition).unwrap_or(still);
        let ecc = |fault: &Fault| matches!(fault, Fault::UncorrectedEcc { .. });
        if let Some(fault) = condition.new_faults(&before).find(ecc) {
            // An XID of a moment ago says more of the same.
            let now = self.clock.instant();
            let recent = |at: Instant| now.saturating_duration_since(at) <= MOMENTS;
            if !self.service.faults.get(&gpu).is_some_and(|&(_, at)| recent(at)) {
                self.service.faults.insert(gpu, (fault.to_string(), now));
            }
        }
        let new: Vec<String> =
            condition.new_faults(&still).map(|fault| fault.to_string()).collect();
        // Of one that is drained the count may rise at every look: the reason stays the first.
        if !new.is_empty() && self.service.drain(gpu).is_none() {
            self.drain_for_fault(now, gpu, &new.join(", "), effects);
        }
    }

    pub(in crate::owner) fn drain_for_fault(
        &mut self,
        now: Time,
        gpu: GpuId,
        why: &str,
        effects: &mut Vec<Effect>,
    ) {
        let before = self.service.drain(gpu).cloned();
        let drain = match before {
            Some(drain) if drain.reason.contains(why) => return,
            Some(drain) => {
                let mut reason = format!("{}; {why}", drain.reason);
                if reason.len() > LONGEST_KEPT {
                    return;
                }
                reason.shrink_to_fit();
                Drain { reason, ..drain }
            }
            None => Drain { reason: why.to_owned(), since: self.clock.world_now(), by: None },
        };
        self.set_drained(now, gpu, Some(drain), effects);
    }

    fn set_drained(
        &mut self,
        now: Time,
        gpu: GpuId,
        drain: Option<Drain>,
        effects: &mut Vec<Effect>,
    ) {
        match &drain {
            Some(Drain { reason, by: Some(by), .. }) => {
                let by = crate::users::name(*by);
                tracing::info!("GPU {gpu} is drained, by {by}: {reason}");
            }
            Some(Drain { reason, by: None, .. }) => {
                tracing::info!("GPU {gpu} is drained: {reason}")
            }
            None => {}
        }
        let drained = drain.is_some();
        self.record_gpu(gpu, |record| record.drained = drain);
        self.scheduler.note(now, Event::GpuDrained { gpu, drained }, effects);
    }

    /// Changes what is kept of a GPU; nothing is decided before that is on the disk.
    pub(super) fn record_gpu(&mut self, gpu: GpuId, change: impl FnOnce(&mut GpuRecord)) {
        let Some(uuid) = self.gpu_names.get(gpu.index()) else { return };
        let record = self.service.records.entry(gpu).or_default();
        record.uuid.clone_from(uuid);
        change(record);
        self.pending.push(Entry::Gpu(Box::new(record.clone())));
    }

    /// A task is about to be launched on a GPU that was drained since that was decided.
    pub(in crate::owner) fn is_drained_for(&self, task: TaskId) -> bool {
        let placement = self.tasks.get(&task).and_then(|live| live.record.placement.as_ref());
        placement
            .is_some_and(|placement| placement.gpus().any(|gpu| self.service.drain(gpu).is_some()))
    }

    /// A task has failed: was it of a fault of one of its GPUs? The driver is asked, since the monitor may not have
    /// looked yet.
    pub(in crate::owner) fn failed_of_its_gpu(
        &mut self,
        now: Time,
        record: &Record,
        effects: &mut Vec<Effect>,
    ) -> Option<String> {
        self.hear_gpu_errors(now, effects);
        let began = record.started?;
        let gpus: Vec<GpuId> = record.placement.iter().flat_map(Placement::gpus).collect();
        gpus.into_iter().find_map(|gpu| {
            if let Some(condition) = self.executor.condition(gpu) {
                self.see_condition(now, gpu, condition, effects);
            }
            let (fault, at) = self.service.faults.get(&gpu)?;
            let age = self.clock.instant().saturating_duration_since(*at);
            let happened = self.clock.world_now().0.saturating_sub(age.as_millis() as u64);
            let happened = Moment(happened);
            let of_it = age <= MOMENTS && began <= happened;
            of_it.then(|| format!("GPU {gpu} had {fault} under it"))
        })
    }

    /// An administrator wants GPUs to take nothing new, or tasks again.
    pub(in crate::owner) fn serve_gpus(
        &mut self,
        now: Time,
        caller: Caller,
        request: &GpuService,
        effects: &mut Vec<Effect>,
    ) -> Result<GpusServed, Refused> {
        if !caller.admin {
            return Err(Refused::NotAdmin);
        }
        let gpus = self.named_gpus(&request.gpus)?;
        let reason = self.checked_reason(request.reason.as_deref())?;
        let reason = reason.as_deref();
        let mut notes = Vec::new();
        for &gpu in &gpus {
            match request.drained {
                true => self.drain_by_wish(now, gpu, caller.uid, reason, effects),
                false => self.resume(now, gpu, caller.uid, &mut notes, effects),
            }
        }
        let views = self.gpu_views(now).into_iter();
        let gpus = views.filter(|view| gpus.contains(&GpuId(view.index))).collect();
        Ok(GpusServed { gpus, notes })
    }

    /// A reason in one line; `None` if there is none.
    pub(super) fn checked_reason(&self, reason: Option<&str>) -> Result<Option<String>, Invalid> {
        let reason = reason.map(str::trim).filter(|reason| !reason.is_empty());
        let wrong =
            |reason: &str| reason.len() > LONGEST_REASON || reason.chars().any(char::is_control);
        match reason.is_some_and(wrong) {
            true => Err(Invalid::Reason { most: LONGEST_REASON }),
            false => Ok(reason.map(str::to_owned)),
        }
    }

    pub(super) fn named_gpus(&self, names: &[GpuName]) -> Result<Vec<GpuId>, Refused> {
        if names.is_empty() || names.len() > MOST_GPU_NAMES {
            return Err(Invalid::GpuNames { most: MOST_GPU_NAMES }.into());
        }
        let find = |name: &GpuName| {
            let found = match name {
                GpuName::Index(index) => Some(GpuId(*index)),
                GpuName::Uuid(uuid) => self.gpu_of(uuid),
            };
            let there = |gpu: &GpuId| gpu.index() < self.gpu_names.len();
            found.filter(there).ok_or_else(|| Refused::NoSuchGpu(name.to_string()))
        };
        let mut gpus = names.iter().map(find).collect::<Result<Vec<GpuId>, Refused>>()?;
        gpus.sort_unstable();
        gpus.dedup();
        Ok(gpus)
    }

    fn drain_by_wish(
        &mut self,
        now: Time,
        gpu: GpuId,
        by: Uid,
        reason: Option<&str>,
        effects: &mut Vec<Effect>,
    ) {
        let drain = match (self.service.drain(gpu), reason) {
            // It is drained, and nothing new is said of why.
            (Some(_), None) => return,
            (Some(before), Some(reason)) => {
                Drain { reason: reason.to_owned(), since: before.since, by: Some(by) }
            }
            (None, reason) => {
                let reason = reason.unwrap_or("an administrator wants it so").to_owned();
                Drain { reason, since: self.clock.world_now(), by: Some(by) }
            }
        };
        self.set_drained(now, gpu, Some(drain), effects);
    }

    fn resume(
        &mut self,
        now: Time,
        gpu: GpuId,
        by: Uid,
        notes: &mut Vec<String>,
        effects: &mut Vec<Effect>,
    ) {
        if self.service.drain(gpu).is_none() {
            notes.push(format!("GPU {gpu} was not drained"));
            return;
        }
        // Errors that came until now are what is known.
        self.hear_gpu_errors(now, effects);
        let condition = self.executor.condition(gpu).or_else(|| self.last_condition(gpu));
        for fault in condition.iter().flat_map(Condition::faults) {
            notes.push(format!("GPU {gpu} takes tasks again, but {fault}"));
        }
        if self.away.contains_key(&gpu) {
            notes.push(format!("GPU {gpu} is lost: it takes tasks when it is back"));
        }
        self.service.faults.remove(&gpu);
        tracing::info!("GPU {gpu} takes tasks again, by {}", crate::users::name(by));
        self.set_drained(now, gpu, None, effects);
        self.record_gpu(gpu, |record| record.accepted = condition.unwrap_or(record.accepted));
    }

    fn last_condition(&self, gpu: GpuId) -> Option<Condition> {
        let uuid = self.gpu_names.get(gpu.index())?;
        let sample = self.last_seen.samples.iter().find(|sample| sample.gpu.as_str() == uuid)?;
        Some(sample.vitals.condition)
    }

    /// What is shown of a GPU's service.
    pub(in crate::owner) fn show_service(&self, gpu: GpuId, view: &mut GpuView) {
        let condition = self.last_condition(gpu);
        let faults = condition.iter().flat_map(Condition::faults);
        view.faults = faults.map(|fault| fault.to_string()).collect();
        if let Some(Drain { reason, since, by }) = self.service.drain(gpu) {
            view.drained = true;
            view.drain_reason = Some(reason.clone());
            view.drained_s = Some(since.secs());
            view.drained_by = by.map(crate::users::name);
        }
    }

    /// Why a GPU takes nothing new.
    pub(in crate::owner) fn drain_reason(&self, gpu: GpuId) -> Option<&str> {
        self.service.drain(gpu).map(|drain| drain.reason.as_str())
    }
}
