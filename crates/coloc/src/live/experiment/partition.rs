//! MIG instances for the copies of an experiment.

use super::copies::Variables;
use coloc_daemon::executor::local::sharing::{Partitions, place_of};
use coloc_gpu::device::Uuid;
use coloc_model::mig::{Instance, Layout};
use coloc_model::{GpuModel, TaskId};

/// The largest instances of one size that so many copies can have, and their profile's name.
pub(super) fn equal(model: GpuModel, copies: usize) -> Option<(Vec<Instance>, &'static str)> {
    let table = model.mig()?;
    table.profiles.iter().rev().find_map(|profile| {
        let mut layout = Layout::default();
        let mut instances = Vec::new();
        for _ in 0..copies {
            let instance = layout.fit(table, profile)?;
            layout.create(instance);
            instances.push(instance);
        }
        Some((instances, profile.name))
    })
}

/// Makes instances, and says what shows each copy its own.
pub(super) fn give(
    partitions: &mut Partitions,
    gpu: &Uuid,
    instances: &[Instance],
) -> Result<Vec<Variables>, String> {
    let mut given = Vec::new();
    let mut kept = Vec::new();
    for (index, &instance) in instances.iter().enumerate() {
        let device = partitions.give(TaskId::from(index), gpu, instance, &kept);
        let device = device.map_err(|error| format!("MIG cannot be had: {error}"))?;
        kept.push(place_of(instance));
        given.push(vec![("CUDA_VISIBLE_DEVICES".to_owned(), Some(device.as_str().to_owned()))]);
    }
    Ok(given)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_get_instances_of_one_size() {
        let names = |copies| equal(GpuModel::A100_40GB, copies).map(|(_, name)| name);
        assert_eq!(
            [1, 2, 3, 7].map(names),
            [Some("7g.40gb"), Some("3g.20gb"), Some("2g.10gb"), Some("1g.5gb")]
        );
        assert_eq!(names(8), None);
        assert_eq!(equal("V100-16GB".parse().expect("a model"), 1).map(|(_, name)| name), None);
    }
}
