//! Whether a task fits a device.

use coloc_estimate::graph::FlagKind;
use coloc_estimate::run::RunConfig;
use coloc_estimate::{Estimate, Estimator, ReplayEstimator};
use coloc_model::Bytes;

/// What a device's memory means for a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fit {
    /// The bound does.
    Surely,
    /// The peak does, the bound does not.
    Likely,
    /// What it would take does not, but it can do with less workspace.
    Squeezed,
    /// It runs out of memory.
    Not,
}

impl Fit {
    /// From what is needed where nothing is short.
    pub(super) fn of(needed: &Estimate, device: Bytes) -> Self {
        match (needed.peak <= device, needed.bound <= device) {
            (true, true) => Fit::Surely,
            (true, false) => Fit::Likely,
            _ => Fit::Not,
        }
    }

    pub(super) const fn in_words(self) -> &'static str {
        match self {
            Fit::Surely => "fits",
            Fit::Likely => "may fit: the peak does, the bound does not",
            Fit::Squeezed => "may fit with less workspace than it would take",
            Fit::Not => "does not fit",
        }
    }
}

/// Memory of a device: nothing is none.
pub(super) fn device(text: &str) -> Result<Bytes, String> {
    let memory: Bytes = text.parse().map_err(|error| format!("{error}"))?;
    match memory {
        Bytes(0) => Err("a device has some memory, such as 40G".to_owned()),
        memory => Ok(memory),
    }
}

/// What a task needs where nothing is short, and whether that or less fits the device.
pub(super) fn on_device(
    estimator: &ReplayEstimator<'_>,
    graph: &coloc_estimate::graph::Graph,
    run: &RunConfig,
    device: Option<Bytes>,
) -> (Estimate, Option<Fit>) {
    let mut needed = estimator.estimate(graph, run);
    let Some(device) = device else { return (needed, None) };
    let fit = Fit::of(&needed, device);
    if fit != Fit::Not {
        return (needed, Some(fit));
    }
    let constant = Bytes::from_mib_f64(estimator.environment().constant_mib(graph));
    let limit = Some(device.saturating_sub(constant));
    let tight = estimator.estimate(graph, &RunConfig { limit, ..run.clone() });
    let short = tight.flags.into_iter().find(|flag| flag.kind == FlagKind::OutOfMemory);
    let fit = if short.is_none() && tight.peak <= device { Fit::Squeezed } else { Fit::Not };
    needed.flags.extend(short);
    (needed, Some(fit))
}
