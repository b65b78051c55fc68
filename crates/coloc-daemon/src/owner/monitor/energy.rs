//! What GPUs draw, and which task is charged with how much of it: as in a simulation, what a GPU draws in any case is split
//! evenly by its tasks, and what it draws because they work by their share of its SM activity. A task without a process on
//! the GPU does not work there.

use crate::hardware::{EnergyReading, Sighting};
use coloc_api::report::EnergyKind;
use coloc_core::gpus::{Booking, Gpus};
use coloc_model::{Activity, Bytes, GpuId, GpuModel, TaskId};
use rustc_hash::FxHashMap;

/// The counters of GPUs when they were last looked at.
#[derive(Default, Debug)]
pub(in crate::owner) struct Meters {
    counters: FxHashMap<GpuId, f64>,
}

/// What a GPU drew between two looks.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(in crate::owner) struct Drawn {
    /// Whether or not its tasks worked.
    pub(in crate::owner) still_j: f64,
    /// Because they worked.
    pub(in crate::owner) dynamic_j: f64,
    pub(in crate::owner) kind: EnergyKind,
}

impl Meters {
    /// What a GPU drew since the last look, so many seconds ago. Its counter tells best; where that is not there or began
    /// anew, its power now; and where it tells nothing, a model of its board.
    pub(in crate::owner) fn drawn(
        &mut self,
        gpu: GpuId,
        reading: EnergyReading,
        model: GpuModel,
        activity: &Activity,
        span_s: f64,
    ) -> Drawn {
        let before = match reading.counter_j {
            Some(counter) => self.counters.insert(gpu, counter),
            None => self.counters.remove(&gpu),
        };
        let counted = reading.counter_j.zip(before).map(|(now, before)| now - before);
        // A counter that stands still on a board of this century is not kept up.
        let counted = counted.filter(|joules| *joules > 0.0 && joules.is_finite());
        let by_power = || reading.power_w.filter(|watts| *watts > 0.0).map(|watts| watts * span_s);
        let (still_w, dynamic_w) = coloc_sim::modelled_watts(model, 1, activity);
        let told = counted.or_else(by_power);
        let all_j = told.unwrap_or((still_w + dynamic_w) * span_s);
        let kind = match told {
            _ if reading.emulated => EnergyKind::Emulated,
            Some(_) => EnergyKind::Measured,
            None => EnergyKind::Modelled,
        };
        let still_j = (still_w * span_s).min(all_j);
        Drawn { still_j, dynamic_j: all_j - still_j, kind }
    }
}

/// The tasks that work on a GPU: those that have a process there. Where the driver lists no process of a GPU that works, all of its
/// tasks count.
fn workers<'a>(
    gpus: &'a Gpus,
    sighting: &'a Sighting,
    gpu: GpuId,
) -> impl Iterator<Item = &'a Booking> {
    let sample = sighting.samples.iter().find(|sample| sample.id == gpu);
    let is_active =
        sighting.gpus.iter().any(|(at, signal)| *at == gpu && signal.activity.sm.get() > 0.0);
    let sample = sample.filter(|sample| !sample.processes.is_empty() || !is_active);
    let residents = gpus.get(gpu).residents().iter();
    residents
        .filter(move |booking| sample.is_none_or(|sample| sample.memory_of(booking.task).is_some()))
}

/// A task's part of what the tasks on a GPU do there together, by what was expected of each. One that has no process there has
/// none.
pub(in crate::owner) fn part_of_work(
    gpus: &Gpus,
    sighting: &Sighting,
    gpu: GpuId,
    task: TaskId,
) -> f64 {
    let (mut own, mut load, mut count) = (None, 0.0, 0.0);
    for booking in workers(gpus, sighting, gpu) {
        own = own.or((booking.task == task).then_some(booking.load));
        load += booking.load;
        count += 1.0;
    }
    match own {
        None => 0.0,
        Some(own) if load > 0.0 => own / load,
        Some(_) => 1.0 / count,
    }
}

/// A task's parts of a GPU: of what it draws in any case, and of its SM activity. Processes that are no tasks count as one
/// more task that works as much as these do on average.
pub(in crate::owner) fn parts(
    gpus: &Gpus,
    sighting: &Sighting,
    gpu: GpuId,
    task: TaskId,
) -> Option<(f64, f64)> {
    let residents = gpus.get(gpu).residents();
    residents.iter().find(|booking| booking.task == task)?;
    let tasks = residents.len() as f64;
    let is_foreign = |(at, held): &&(GpuId, Bytes)| *at == gpu && *held > Bytes::ZERO;
    let foreign = sighting.foreign.iter().find(is_foreign).map_or(0.0, |_| 1.0);
    let workers = workers(gpus, sighting, gpu).count() as f64;
    let of_tasks = if workers > 0.0 { workers / (workers + foreign) } else { 0.0 };
    let even = 1.0 / (tasks + foreign);
    Some((even, part_of_work(gpus, sighting, gpu, task) * of_tasks))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_is_better_than_a_power_and_a_power_than_a_model() {
        let (gpu, model) = (GpuId(0), GpuModel::A100_40GB);
        let mut meters = Meters::default();
        let mut look =
            |reading: EnergyReading| meters.drawn(gpu, reading, model, &Activity::default(), 10.0);
        let blind = EnergyReading::default();
        let modelled = look(blind);
        assert_eq!((modelled.kind, modelled.dynamic_j), (EnergyKind::Modelled, 0.0));
        let power = EnergyReading { power_w: Some(300.0), ..blind };
        let told = look(power);
        assert_eq!(told.kind, EnergyKind::Measured);
        assert_eq!(told.still_j + told.dynamic_j, 3000.0);
        assert_eq!(told.still_j, modelled.still_j, "the same board");
        // The first reading of a counter has nothing to be compared with.
        let counter = |joules| EnergyReading { counter_j: Some(joules), ..power };
        assert_eq!(look(counter(50_000.0)), told);
        let counted = look(counter(52_000.0));
        assert_eq!(counted.still_j + counted.dynamic_j, 2000.0);
        assert_eq!(look(counter(10.0)), told, "the driver was loaded anew");
        let little = look(counter(15.0));
        assert_eq!((little.still_j, little.dynamic_j), (5.0, 0.0), "no more than there is");
        let emulated = look(EnergyReading { emulated: true, ..counter(515.0) });
        assert_eq!(emulated.kind, EnergyKind::Emulated);
    }
}
