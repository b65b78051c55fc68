//! The GPUs as clients see them.

use crate::owner::Owner;
use coloc_api::view::{ForeignView, GpuView, InstanceView, ResidentView, VerdictView, VerdictWord};
use coloc_core::belief::slowdown_by_profile;
use coloc_core::gpus::{Booking, GpuState};
use coloc_core::policy::Gate;
use coloc_core::{Refusal, Scheduler, belief};
use coloc_gpu::process::Owner as ProcessOwner;
use coloc_gpu::sample::{Sample, Source};
use coloc_model::{Bytes, Fraction, GpuId, Share, TaskId, Time};

/// A source in a word.
fn source_name(source: Source, emulated: bool) -> String {
    let name = match source {
        Source::DcgmDmon | Source::DcgmExporter => "dcgm",
        Source::Gpm => "gpm",
        Source::ProcessUtilization | Source::Utilization => "nvml",
    };
    if emulated { format!("emulated {name}") } else { name.to_owned() }
}

/// Above this a device is full.
const FULL: f64 = 0.9;

/// How many times as long a task takes beside the others on a GPU.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slowed {
    /// As is believed.
    pub(crate) by: f64,
    /// There are others.
    pub(crate) shared: bool,
    /// Each of them was seen or estimated. If not, this is a guess that is fit for sums, and not to be shown.
    pub(crate) known: bool,
}

impl Slowed {
    /// Alone on a GPU, or on an instance of its own.
    pub(crate) const ALONE: Slowed = Slowed { by: 1.0, shared: false, known: true };
}

/// What is believed of a task beside the others on a GPU.
pub(crate) fn slowed(scheduler: &Scheduler, state: &GpuState, own: &Booking) -> Slowed {
    let residents = state.residents();
    if own.instance.is_some() || residents.len() < 2 {
        return Slowed::ALONE;
    }
    // On a full device what a task does is less than what it asks for.
    let tells = state.signal().activity.sm.get() < FULL;
    let seen = |booking: &Booking| booking.own_activity().filter(|_| tells);
    let load = |booking: &Booking| match scheduler.knows_load(booking.task) {
        true => booking.load,
        // What tasks are like in general says little of one that trains: many do not use their GPU at all.
        false => seen(booking).unwrap_or(booking.load.max(belief::FIRST_GUESS)),
    };
    let others = residents.iter().filter(|booking| booking.task != own.task);
    let by = belief::slowdown(belief::product(state.share()), load(own), others.map(load).sum());
    let known = |booking: &Booking| scheduler.knows_load(booking.task) || seen(booking).is_some();
    let known = residents.iter().all(known);
    Slowed { by, shared: true, known }
}

/// How many times as long a task takes because of one neighbour, as is believed.
pub(in crate::owner) fn slowed_by(share: Share, own: &Booking, other: &Booking) -> f64 {
    slowdown_by_profile(
        belief::product(share),
        (own.load, own.interference),
        (other.load, other.interference),
    )
}

impl Owner {
    pub(in crate::owner) fn gpu_views(&self, now: Time) -> Vec<GpuView> {
        let gpus = self.scheduler.gpus().iter();
        gpus.map(|(gpu, state)| self.gpu_view(now, gpu, state)).collect()
    }

    fn gpu_view(&self, now: Time, gpu: GpuId, state: &GpuState) -> GpuView {
        let residents = state.residents();
        let mut view = GpuView {
            index: gpu.0,
            uuid: self.gpu_names.get(gpu.index()).cloned().unwrap_or_default(),
            model: state.model.to_string(),
            memory_total_bytes: state.capacity.0,
            memory_used_bytes: state.signal().used.0,
            memory_promised_bytes: state.booked().0,
            smact: state.signal().activity.sm.get(),
            tasks: residents.iter().map(|booking| booking.task.0).collect(),
            residents: residents
                .iter()
                .filter_map(|booking| self.resident(gpu, state, booking))
                .collect(),
            lost: self.away.contains_key(&gpu),
            sharing: state.share().to_string(),
            power_limit_w: self.last_seen.power_limits.get(gpu.index()).copied().flatten(),
            verdict: self.verdict(now, gpu),
            sm_demand: Some(self.scheduler.gpus().load(gpu)),
            sm_demand_limit: match self.scheduler.policy().gate {
                Gate::Expected { limit, .. } => Some(limit),
                _ => None,
            },
            ..GpuView::default()
        };
        if let Some(sample) = self.sample(gpu) {
            self.show_sample(sample, &mut view);
        }
        self.show_service(gpu, &mut view);
        self.show_reservation(gpu, &mut view);
        view.pool = self.pool_table.of_gpu(gpu);
        let encroached = state.encroached();
        if encroached > Bytes::ZERO {
            let what = format!(
                "processes that are not tasks hold {encroached} of what tasks were promised"
            );
            view.faults.push(what);
        }
        view
    }

    /// What the monitor saw last of a GPU; `None` if it did not answer.
    pub(in crate::owner) fn sample(&self, gpu: GpuId) -> Option<&Sample> {
        self.last_seen.samples.iter().find(|sample| sample.id == gpu)
    }

    fn show_sample(&self, sample: &Sample, view: &mut GpuView) {
        let (reading, vitals) = (&sample.reading, &sample.vitals);
        view.smocc = reading.occupancy.map(Fraction::get);
        view.drama = reading.dram.or(vitals.memory_utilization).map(Fraction::get);
        view.gract = reading.gpu.or(vitals.utilization).map(Fraction::get);
        view.source = sample.source.map(|source| source_name(source, self.about.emulated));
        view.power_w = vitals.power_w;
        view.temperature_c = vitals.temperature_c.map(f64::from);
        view.energy_j = vitals.energy_j;
        view.clock_mhz = vitals.sm_clock_mhz.map(f64::from);
        view.mig = vitals.mig.is_on();
        let in_instance = |id: u32| {
            let process = sample.processes.iter().find(|p| p.process.gpu_instance == Some(id));
            process.and_then(|process| match process.attributed.owner {
                ProcessOwner::Task { task, .. } => Some(task.0),
                ProcessOwner::Foreign => None,
            })
        };
        // A task that has just begun has no process in its instance yet.
        let residents = self.scheduler.gpus().get(GpuId(view.index)).residents();
        let booked = |start: u8| {
            let theirs = residents.iter().find(|b| b.instance.is_some_and(|i| i.start == start));
            theirs.map(|booking| booking.task.0)
        };
        view.instances = sample
            .instances
            .iter()
            .map(|instance| InstanceView {
                profile: instance.profile.clone(),
                start_slice: instance.place.start.into(),
                slices: instance.place.span.into(),
                memory_bytes: instance_memory(&instance.profile),
                task: in_instance(instance.id.0).or_else(|| booked(instance.place.start)),
            })
            .collect();
        let foreign =
            sample.processes.iter().filter(|p| p.attributed.owner == ProcessOwner::Foreign);
        view.foreign = foreign
            .map(|process| ForeignView {
                pid: process.process.pid,
                user: process.attributed.user.clone(),
                bytes: process.process.memory.map(|memory| memory.0),
                name: process.attributed.command.clone(),
            })
            .collect();
    }

    fn resident(&self, gpu: GpuId, state: &GpuState, booking: &Booking) -> Option<ResidentView> {
        let task = booking.task;
        let live = self.tasks.get(&task)?;
        let seen = self.sample(gpu).and_then(|sample| sample.memory_of(task));
        Some(ResidentView {
            id: task.0,
            name: live.spec.name.clone(),
            user: crate::users::name(live.record.owner),
            promised_bytes: booking.bytes.0,
            leader_pid: self.executor.leader(task),
            used_bytes: seen.map(|used| used.0),
            estimate_bytes: live.spec.estimate.map(|estimate| estimate.peak.0),
            bound_bytes: live.spec.estimate.map(|estimate| estimate.bound.0),
            since_s: live.record.started.map(coloc_api::moment::Moment::secs),
            attempt: live.record.attempt,
            instance: booking.instance.map(|instance| instance.to_string()),
            settled: booking.settled,
            sm_share: self.sm_share(gpu, task),
            slowdown: Some(slowed(&self.scheduler, state, booking))
                .filter(|s| s.known)
                .map(|s| s.by),
            ooms: live.record.ooms,
            gpus: live.spec.gpus,
        })
    }

    /// SM activity that is a task's own: what a monitor tells, or all that a GPU does if no other task is on it.
    fn sm_share(&self, gpu: GpuId, task: TaskId) -> Option<f64> {
        let seen = &self.last_seen.tasks;
        let own = seen.binary_search_by_key(&task, |seen| seen.task).ok()?;
        let state = self.scheduler.gpus().get(gpu);
        let alone = (state.residents().len() == 1).then(|| state.signal().activity.sm);
        seen[own].activity.or(alone).map(Fraction::get)
    }

    /// Whether a GPU would take a task now.
    fn verdict(&self, now: Time, gpu: GpuId) -> VerdictView {
        let Some((refusal, until)) = self.scheduler.closed(now, gpu) else {
            let available = self.scheduler.gpus().available(gpu);
            let text = match self.told_reservation(gpu) {
                Some(reserved) => format!("{reserved}: {available} can be promised to them"),
                None => format!("takes tasks: {available} can be promised"),
            };
            return VerdictView { word: VerdictWord::Open, text, until_s: None };
        };
        let word = match &refusal {
            Refusal::Away => VerdictWord::Lost,
            Refusal::Drained => VerdictWord::Drained,
            Refusal::Busy { .. } => VerdictWord::Hot,
            Refusal::Memory { .. }
            | Refusal::NoInstance { .. }
            | Refusal::Crowded { .. }
            | Refusal::MpsClients { .. } => VerdictWord::Full,
            Refusal::HeldAlone { .. }
            | Refusal::Occupied { .. }
            | Refusal::Foreign { .. }
            | Refusal::Settling { .. }
            | Refusal::OtherUser { .. }
            | Refusal::Reserved { .. }
            | Refusal::OtherPool
            | Refusal::KeptForOthers
            | Refusal::OtherSharing { .. }
            | Refusal::Kind => VerdictWord::Taken,
        };
        let text = match (&refusal, self.drain_reason(gpu)) {
            (Refusal::Drained, Some(reason)) => format!("takes nothing new: {reason}"),
            // Any amount is too much: that of the least task says nothing.
            (Refusal::Memory { .. } | Refusal::NoInstance { .. }, _) => {
                "all of its memory is promised".to_owned()
            }
            _ => refusal.to_string(),
        };
        let until_s = until.map(|until| self.clock.moment(until).secs());
        VerdictView { word, text, until_s }
    }
}

/// The memory that NVIDIA's name of a MIG profile says, such as 20 GB of `3g.20gb`.
fn instance_memory(profile: &str) -> u64 {
    let size = profile.split('.').nth(1).and_then(|size| size.split("gb").next());
    size.and_then(|size| size.parse::<u64>().ok()).map_or(0, |size| size << 30)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_says_its_memory() {
        assert_eq!(instance_memory("3g.20gb"), 20 << 30);
        assert_eq!(instance_memory("1g.10gb+me"), 10 << 30);
        assert_eq!(instance_memory("odd"), 0);
    }
}
