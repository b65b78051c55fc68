//! Which devices a process sees: `CUDA_VISIBLE_DEVICES` with indices, UUIDs and MIG UUIDs.

use crate::fleet::{Place, State};

/// A device that a process may use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VisibleDevice {
    /// Where it is.
    pub place: Place,
}

/// The devices that a process sees, in its order. As with CUDA, the list ends at the first entry that names
/// nothing, and a process sees one MIG device at most.
pub fn visible_devices(state: &State, variable: Option<&str>) -> Vec<VisibleDevice> {
    let mut seen: Vec<Place> = Vec::new();
    match variable {
        None => seen.extend((0..state.gpu_count()).filter_map(|gpu| by_index(state, gpu))),
        Some(list) => {
            for entry in list.split(',').map(str::trim) {
                match find(state, entry) {
                    // A device that is named twice is an error of the whole list.
                    Some(place) if seen.contains(&place) => return Vec::new(),
                    Some(place) => seen.push(place),
                    None => break,
                }
            }
        }
    }
    if let Some(first_mig) = seen.iter().position(|place| place.mig.is_some()) {
        seen = vec![seen[first_mig]];
    }
    seen.into_iter().map(|place| VisibleDevice { place }).collect()
}

fn by_index(state: &State, gpu: u32) -> Option<Place> {
    let device = state.live_gpu(gpu).ok()?;
    if !device.mig_enabled() {
        return Some(Place::whole(gpu));
    }
    // A partitioned GPU is seen by its first MIG device.
    let mig = device.mig_devices().first().copied()?;
    Some(Place { gpu, mig: Some(mig) })
}

/// The device of this index, UUID or unique beginning of a UUID.
pub(crate) fn find(state: &State, entry: &str) -> Option<Place> {
    if let Ok(index) = entry.parse::<u32>() {
        return by_index(state, index);
    }
    let mut found = Vec::new();
    for (gpu, device) in (0u32..).zip(state.gpus()) {
        if device.is_lost() {
            continue;
        }
        if entry.starts_with("GPU-") && device.uuid().starts_with(entry) {
            found.extend(by_index(state, gpu));
        }
        if entry.starts_with("MIG-") {
            let own = device.mig_devices().into_iter();
            let own =
                own.filter(|&mig| device.mig_uuid(mig).is_ok_and(|uuid| uuid.starts_with(entry)));
            found.extend(own.map(|mig| Place { gpu, mig: Some(mig) }));
        }
    }
    if let [only] = found[..] { Some(only) } else { None }
}

impl State {
    /// The device of this index, UUID or unique beginning of a UUID.
    pub fn find_device(&self, name: &str) -> Option<Place> {
        find(self, name)
    }
}
