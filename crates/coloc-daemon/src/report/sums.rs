//! The sums behind a row.

use crate::accounting::{AttemptUsage, GpuUsage};
use coloc_api::report::{EnergyKind, ReportRow};

/// What is added up for a row.
#[derive(Clone, PartialEq, Default, Debug)]
pub(super) struct Sums {
    tasks: usize,
    usage: GpuUsage,
    /// Seconds in which tasks had GPUs, seen or not.
    gpu_s: f64,
    energy_kind: Option<EnergyKind>,
    waits: Vec<f64>,
    pub(super) ooms: u32,
}

impl Sums {
    /// A part of an attempt, with the GPU seconds that it took.
    pub(super) fn add(&mut self, usage: &GpuUsage, gpu_s: f64, attempt: &AttemptUsage) {
        self.tasks = 1;
        self.gpu_s += gpu_s;
        self.energy_kind = self.energy_kind.max(attempt.energy_kind);
        self.usage.add(usage);
    }

    /// A task waited so long for its first start.
    pub(super) fn waited(&mut self, seconds: f64) {
        self.waits.push(seconds);
    }

    /// Takes another task's.
    pub(super) fn merge(&mut self, other: &Sums) {
        self.tasks += other.tasks;
        self.usage.add(&other.usage);
        self.gpu_s += other.gpu_s;
        self.energy_kind = self.energy_kind.max(other.energy_kind);
        self.waits.extend_from_slice(&other.waits);
        self.ooms += other.ooms;
    }

    pub(super) fn row(self, key: String) -> ReportRow {
        let GpuUsage { promised_s, held_s, watched_s, sm_s, energy_j, .. } = self.usage;
        let hours = |seconds: f64| seconds / 3600.0;
        let waits = self.waits.len() as f64;
        ReportRow {
            key,
            tasks: self.tasks,
            gpu_hours_promised: hours(promised_s),
            gpu_hours_used: hours(held_s),
            wait_mean_s: (waits > 0.0).then(|| self.waits.iter().sum::<f64>() / waits),
            ooms: self.ooms,
            energy_j: self.energy_kind.map(|_| energy_j),
            energy_kind: self.energy_kind,
            smact_mean: (watched_s > 0.0).then(|| (sm_s / watched_s).clamp(0.0, 1.0)),
            gpu_hours_unwatched: hours((self.gpu_s - watched_s).max(0.0)),
        }
    }
}
