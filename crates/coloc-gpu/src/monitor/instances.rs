//! The instances of a partitioned GPU: which there are, and how busy each is.

use super::Target;
use crate::device::{DeviceProcess, Vitals};
use crate::driver::{Driver, DriverError};
use crate::mig::{ExistingInstance, GpuInstanceId};
use crate::sample::{InstanceSample, Reading, Source};
use coloc_model::{Fraction, Millis, Time};

/// A GPU whose monitors cannot see into instances is asked again after this long.
const PAUSE: Millis = Millis::from_secs(60);

/// What is kept of a GPU's instances.
#[derive(Clone, Debug, Default)]
pub(super) struct Instances {
    pub(super) list: Vec<InstanceSample>,
    /// What an exporter says of them now.
    pub(super) exporter: Vec<(GpuInstanceId, Reading)>,
    /// GPM is not asked before.
    gpm_not_before: Time,
}

/// Looks at all instances of a GPU.
pub(super) fn look(
    driver: &mut dyn Driver,
    now: Time,
    target: &mut Target,
    vitals: &Vitals,
    processes: &[DeviceProcess],
) {
    if !vitals.mig.is_on() {
        return target.instances.list.clear();
    }
    find(driver, now, target, processes);
    let Instances { list, exporter, gpm_not_before } = &mut target.instances;
    for instance in list {
        let told = exporter.iter().find(|(id, _)| *id == instance.id).map(|(_, reading)| *reading);
        if let Some(reading) = told.filter(|reading| reading.sm.is_some()) {
            (instance.source, instance.reading) = (Some(Source::DcgmExporter), reading);
            continue;
        }
        if now >= *gpm_not_before {
            match driver.gpm_of_instance(target.index, instance.id) {
                Ok(Some(reading)) => {
                    (instance.source, instance.reading) = (Some(Source::Gpm), reading);
                    continue;
                }
                // It is too early for another look: what was seen still stands.
                Ok(None) => continue,
                Err(DriverError::NotSupported { .. }) => *gpm_not_before = now + PAUSE,
                // It went since, or the driver has other troubles.
                Err(_) => {}
            }
        }
        (instance.source, instance.reading) =
            (told.map(|_| Source::DcgmExporter), told.unwrap_or_default());
    }
}

/// Reads which instances there are, as often as what changes slowly, and when a process is in one that is not known.
fn find(driver: &mut dyn Driver, now: Time, target: &mut Target, processes: &[DeviceProcess]) {
    let list = &target.instances.list;
    let known = |id| list.iter().any(|instance| instance.id == GpuInstanceId(id));
    let all_known = processes.iter().filter_map(|process| process.gpu_instance).all(known);
    if all_known && target.vitals.is_some_and(|(_, read)| read != now) {
        return;
    }
    // A user who may not ask is told nothing, and goes on with what is known of the whole.
    let Ok(board) = driver.mig_board(target.index) else { return };
    let sample = |instance: &ExistingInstance| {
        let profile = board.profile(instance.profile);
        let before =
            list.iter().find(|known| (known.id, known.place) == (instance.id, instance.place));
        InstanceSample {
            id: instance.id,
            profile: profile.map_or(String::new(), |profile| profile.name.clone()),
            compute: profile.map_or(0, |profile| profile.compute),
            of_compute: board.compute_slices(),
            place: instance.place,
            source: before.and_then(|before| before.source),
            reading: before.map_or(Reading::default(), |before| before.reading),
        }
    };
    target.instances.list = board.instances.iter().map(sample).collect();
}

/// The whole GPU: as its best source has it, or put together from instances where that source sees no SMs.
pub(super) fn whole(
    best: Option<(Source, Reading)>,
    instances: &[InstanceSample],
) -> Option<(Source, Reading)> {
    if best.is_some_and(|(_, reading)| reading.sm.is_some()) {
        return best;
    }
    let source = instances.iter().find_map(|instance| instance.source);
    let Some(source) = source else { return best };
    let sum = |of: fn(&Reading) -> Option<Fraction>| -> Option<Fraction> {
        let mut total = 0.0;
        for instance in instances {
            // An instance that is not seen makes the sum unknown.
            let part = f64::from(instance.compute) / f64::from(instance.of_compute.max(1));
            total += of(&instance.reading)?.get() * part;
        }
        Some(Fraction::saturating(total))
    };
    let busiest = instances.iter().filter_map(|instance| instance.reading.gpu);
    let reading = Reading {
        gpu: busiest.reduce(|one, other| if one.get() > other.get() { one } else { other }),
        sm: sum(|reading| reading.sm),
        occupancy: sum(|reading| reading.occupancy),
        tensor: sum(|reading| reading.tensor),
        dram: sum(|reading| reading.dram),
    };
    if reading.sm.is_some() { Some((source, reading)) } else { best }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mig::Place;

    fn instance(compute: u8, sm: Option<f64>) -> InstanceSample {
        InstanceSample {
            id: GpuInstanceId(u32::from(compute)),
            profile: String::new(),
            compute,
            of_compute: 7,
            place: Place { start: 0, span: 1 },
            source: sm.map(|_| Source::Gpm),
            reading: Reading { sm: sm.map(Fraction::new), ..Reading::default() },
        }
    }

    #[test]
    fn a_whole_is_the_sum_of_its_parts_and_unknown_if_one_is() {
        let (source, reading) =
            whole(None, &[instance(3, Some(0.5)), instance(1, Some(1.0))]).expect("it is seen");
        let sm = reading.sm.expect("SM activity").get();
        assert!(source == Source::Gpm && (sm - 2.5 / 7.0).abs() < 1e-9, "{sm}");
        assert_eq!(whole(None, &[instance(3, Some(0.5)), instance(1, None)]), None);
        let own =
            Some((Source::DcgmDmon, Reading { sm: Some(Fraction::ONE), ..Reading::default() }));
        assert_eq!(whole(own, &[instance(1, Some(0.1))]), own, "what sees the whole is believed");
    }
}
