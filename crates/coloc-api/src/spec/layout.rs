//! What a task asks of the machine beside GPUs, and how `srun` divides it: copies, CPUs, GPUs of each.

use crate::text::RawText;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Copies and CPUs of a task. A command is started once: copies are what `srun` starts in it.
#[derive(Clone, PartialEq, Eq, Default, Debug, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TaskLayout {
    /// Copies that `srun` starts unless it is told otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ntasks: Option<u32>,
    /// CPUs of each copy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus_per_task: Option<u32>,
    /// GPUs of each copy; without it each sees all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpus_per_task: Option<u32>,
    /// Where it was submitted, if it runs elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub submit_directory: Option<RawText>,
    /// The numbers of its array. The daemon says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub array: Option<ArrayExtent>,
}

/// The numbers of an array.
#[derive(Clone, Copy, PartialEq, Eq, Debug, JsonSchema, Serialize, Deserialize)]
pub struct ArrayExtent {
    /// How many there are.
    pub count: u32,
    /// The smallest.
    pub min: u32,
    /// The largest.
    pub max: u32,
    /// From each to the next, where that is always the same; else 1.
    pub step: u32,
}

impl ArrayExtent {
    /// Of these numbers; `None` without any.
    pub fn of(indices: &[u32]) -> Option<Self> {
        let (&min, &max) = (indices.iter().min()?, indices.iter().max()?);
        let count = indices.len() as u32;
        let first = indices.get(1).and_then(|second| second.checked_sub(indices[0]));
        let even =
            |step: u32| indices.windows(2).all(|two| two[1].checked_sub(two[0]) == Some(step));
        let step = first.filter(|&step| step > 0 && even(step)).unwrap_or(1);
        Some(ArrayExtent { count, min, max, step })
    }
}

impl TaskLayout {
    /// Nothing was said.
    pub fn is_plain(&self) -> bool {
        *self == TaskLayout::default()
    }

    /// CPUs of all copies together, if any were asked for.
    pub fn cpus(&self) -> Option<u32> {
        self.cpus_per_task.map(|cpus| cpus.saturating_mul(self.ntasks.unwrap_or(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_are_told_by_their_numbers() {
        let extent =
            |indices: &[u32]| ArrayExtent::of(indices).map(|a| (a.count, a.min, a.max, a.step));
        assert_eq!(extent(&[1, 2, 3]), Some((3, 1, 3, 1)));
        assert_eq!(extent(&[0, 3, 6, 9]), Some((4, 0, 9, 3)));
        assert_eq!(extent(&[5, 1, 2]), Some((3, 1, 5, 1)));
        assert_eq!(extent(&[7]), Some((1, 7, 7, 1)));
        assert_eq!(extent(&[]), None);
    }

    #[test]
    fn cpus_are_those_of_all_copies() {
        let layout =
            |ntasks, cpus_per_task| TaskLayout { ntasks, cpus_per_task, ..Default::default() };
        assert_eq!(layout(Some(4), Some(8)).cpus(), Some(32));
        assert_eq!(layout(None, Some(8)).cpus(), Some(8));
        assert_eq!(layout(Some(4), None).cpus(), None);
    }
}
