//! What can be changed while the daemon runs, and how it finds out what it should be.

use crate::administration::Administration;
use crate::bounds::Bounds;
use crate::notices::NotifySettings;
use crate::quotas::Quotas;
use crate::retention::Retention;
use coloc_api::view::ChosenSetting;
use coloc_core::service::GpuTime;
use coloc_core::{HostCapacity, Policy};
use coloc_model::Millis;
use std::fmt;

/// What can be changed while the daemon runs.
#[derive(Clone, PartialEq, Debug)]
pub struct Settings {
    /// How it schedules.
    pub policy: Policy,
    /// Weights and quotas.
    pub quotas: Quotas,
    /// CPUs and memory of the machine that tasks may ask for.
    pub host: HostCapacity,
    /// What Gittins indices are computed from, instead of the tasks that end here.
    pub history: Option<Vec<GpuTime>>,
    /// From a polite request to end to a kill, by the world's clock.
    pub grace: Millis,
    /// How long what ended tasks leave is kept.
    pub retention: Retention,
    /// What one user may have.
    pub bounds: Bounds,
    /// Hooks.
    pub notify: NotifySettings,
    /// What the administrator decides beside.
    pub administration: Administration,
    /// All of them as they were said, with where.
    pub chosen: Vec<ChosenSetting>,
}

impl Settings {
    /// The scheduler need not hear of the difference.
    pub(crate) fn schedules_like(&self, other: &Settings) -> bool {
        let parts = |s: &Settings| {
            let pools = s.administration.pools.clone();
            (s.policy, s.quotas.clone(), s.host, s.history.clone(), pools)
        };
        parts(self) == parts(other)
    }
}

/// What a reload came to.
#[derive(Clone, PartialEq, Debug)]
pub struct Reloaded {
    /// What is to be from now on.
    pub settings: Settings,
    /// Settings that differ but count at the next start only.
    pub at_next_start: Vec<String>,
}

type Read = dyn Fn() -> Result<Reloaded, String> + Send + Sync;

/// Reads the configuration again; says what was wrong, and where.
pub struct Source(Box<Read>);

impl Source {
    /// One that reads so.
    pub fn new(read: impl Fn() -> Result<Reloaded, String> + Send + Sync + 'static) -> Self {
        Source(Box::new(read))
    }

    /// Reads.
    pub fn read(&self) -> Result<Reloaded, String> {
        (self.0)()
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Source")
    }
}
