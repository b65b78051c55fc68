//! The workload catalogue: tasks whose time and memory were measured on an A100 with 40 GB.

mod activity;
mod facts;

use crate::Profile;
use coloc_model::{Bytes, Millis};
use std::fmt;

/// How much of a GPU a task takes, as the source sorts them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Class {
    /// Small nets on small images.
    Light,
    /// ImageNet-sized training.
    Medium,
    /// Language models and anything that needs most of a GPU.
    Heavy,
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Class::Light => "light",
            Class::Medium => "medium",
            Class::Heavy => "heavy",
        })
    }
}

/// Activity shares of a task that is alone.
#[derive(Clone, Copy, Debug)]
struct Alone {
    gpu: f64,
    sm: f64,
    occupancy: f64,
    dram: f64,
}

/// What other people's estimators said of a task, in MiB.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PublishedEstimates {
    /// Horus' formula.
    pub horus_mib: f64,
    /// PyTorch's FakeTensor mode.
    pub faketensor_mib: f64,
    /// GPUMemNet: the upper edge of the predicted class.
    pub gpumemnet_mib: f64,
}

/// One catalogued task.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// Its name in the published traces.
    pub name: &'static str,
    /// How large it is.
    pub class: Class,
    /// GPUs it needs at once.
    pub gpus: u32,
    /// Batch size.
    pub batch: u32,
    minutes: f64,
    memory_mib: u64,
    /// What published estimators said.
    pub estimates: PublishedEstimates,
    alone: Alone,
}

#[allow(clippy::too_many_arguments)] // One row of a table, in the table's order.
const fn work(
    name: &'static str,
    class: Class,
    gpus: u32,
    batch: u32,
    minutes: f64,
    memory_mib: u64,
    [horus_mib, faketensor_mib, gpumemnet_mib]: [f64; 3],
    alone: Alone,
) -> Workload {
    let estimates = PublishedEstimates { horus_mib, faketensor_mib, gpumemnet_mib };
    Workload { name, class, gpus, batch, minutes, memory_mib, estimates, alone }
}

impl Workload {
    /// Run time when alone.
    pub fn duration(&self) -> Millis {
        Millis::from_secs_f64(self.minutes * 60.0)
    }

    /// Measured memory per GPU, context included.
    pub fn memory(&self) -> Bytes {
        Bytes::from_mib(self.memory_mib)
    }

    /// Its behaviour on a device: memory as measured, activity as calibrated.
    pub fn profile(&self) -> Profile {
        let Alone { gpu, sm, occupancy, dram } = self.alone;
        Profile::new(gpu, sm, occupancy, dram, self.memory())
    }
}

/// Every catalogued task.
pub fn all() -> impl Iterator<Item = &'static Workload> {
    facts::IMAGENET.iter().chain(&facts::LANGUAGE).chain(&facts::OTHERS).chain(&facts::CIFAR)
}

/// The task of that name.
pub fn find(name: &str) -> Option<&'static Workload> {
    all().find(|workload| workload.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_profiles_physical() {
        let mut names: Vec<_> = all().map(|w| w.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all().count());
        for workload in all() {
            let activity = workload.profile().activity;
            assert!(activity.sm <= activity.gpu, "{}", workload.name);
            assert!(activity.occupancy <= activity.sm, "{}", workload.name);
            assert!(workload.memory() < Bytes::from_mib(40_960), "{}", workload.name);
            assert!(workload.duration() > Millis::ZERO, "{}", workload.name);
        }
    }
}
