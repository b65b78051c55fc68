//! The default estimator: a replay, a constant, a correction where cuDNN is hard to foresee, a bound.

use crate::bounds::Margin;
use crate::environment::Environment;
use crate::estimate::{Breakdown, Estimate, Estimator, Promise, doubt};
use crate::features::{Replays, residual_features, shape_features};
use crate::graph::{Flag, FlagKind, Graph};
use crate::learned::{Calibration, Forests, Margins, calibration, forests};
use crate::replay::{CopyRule, Replayed, replay};
use crate::run::RunConfig;
use crate::utilization;
use coloc_model::Bytes;

/// What a margin and a correction depend on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Family {
    /// Matrix products only.
    Dense,
    /// Convolutions whose channels all suit the hardware.
    RegularConvolutions,
    /// Convolutions with odd channel counts.
    OddConvolutions,
    /// Attention.
    Attention,
}

impl Family {
    /// The family of a graph.
    pub fn of(graph: &Graph) -> Self {
        if graph.has_attention() {
            Family::Attention
        } else if !graph.has_convolutions() {
            Family::Dense
        } else if graph.has_odd_convolutions() {
            Family::OddConvolutions
        } else {
            Family::RegularConvolutions
        }
    }

    fn margin(self, margins: &Margins) -> Margin {
        match self {
            Family::Dense => margins.dense,
            Family::RegularConvolutions | Family::OddConvolutions => margins.convolutions,
            Family::Attention => margins.attention,
        }
    }
}

/// Replays training against a model of the caching allocator.
#[derive(Clone, Debug)]
pub struct ReplayEstimator<'a> {
    environment: Environment,
    calibration: &'a Calibration,
    forests: &'a Forests,
}

impl ReplayEstimator<'static> {
    /// With what ships with the crate, in an environment that it knows.
    pub fn shipped(environment: &str) -> Option<Self> {
        calibration().environments.get(environment).copied().map(Self::within)
    }

    /// With what ships with the crate, in an environment of one's own.
    pub fn within(environment: Environment) -> Self {
        ReplayEstimator { environment, calibration: calibration(), forests: forests() }
    }
}

impl<'a> ReplayEstimator<'a> {
    /// With constants and forests of one's own.
    pub fn new(
        environment: Environment,
        calibration: &'a Calibration,
        forests: &'a Forests,
    ) -> Self {
        ReplayEstimator { environment, calibration, forests }
    }

    /// Whose constant is added.
    pub fn environment(&self) -> Environment {
        self.environment
    }

    /// Memory at the peak in MiB and its bound, from replays and the family's learned parts.
    fn memory(&self, graph: &Graph, run: &RunConfig, rule: &Replayed) -> (f64, f64) {
        let family = Family::of(graph);
        let constant = self.environment.constant_mib(graph);
        let mut peak = constant + rule.reserved.mib();
        let mut spread = 0.0;
        if graph.has_convolutions() {
            let features = residual_features(graph, run, &Replays::beside(*rule, graph, run));
            spread = spread_of(self.forests.spread.predict(&features));
            if family == Family::OddConvolutions {
                peak = residual_base(self.environment, graph, rule)
                    * libm::exp(self.forests.residual.predict(&features))
                    + self.environment.base_mib;
            }
        }
        let allocator = (peak - constant).max(0.0);
        let doubtful = allocator * doubt(&graph.flags);
        let bound = match family.margin(&self.calibration.margins) {
            Margin::Added { mib } => peak + mib,
            Margin::Scaled { share } => peak + allocator * share,
            Margin::Normalised { errors } => {
                let base = self.environment.base_mib;
                base + (peak - base).max(0.0) * libm::exp(errors * spread)
            }
        };
        // More than the device has cannot be held on it.
        let device = run.limit.map_or(f64::INFINITY, |limit| limit.mib() + constant);
        let bound = bound + doubtful + self.environment.spread_mib;
        (peak, bound.min(device).max(peak))
    }
}

/// What the residual forest multiplies.
pub(crate) fn residual_base(environment: Environment, graph: &Graph, rule: &Replayed) -> f64 {
    rule.reserved.mib() + environment.libraries_mib(graph)
}

/// An expected error is never taken to be small: forests may answer anything, and rows that look easy
/// are now and then not.
pub(crate) fn spread_of(predicted: f64) -> f64 {
    predicted.max(0.005) + 0.02
}

impl Estimator for ReplayEstimator<'_> {
    fn estimate(&self, graph: &Graph, run: &RunConfig) -> Estimate {
        let rule = replay(graph, run, &CopyRule::default());
        let (peak, mut bound) = self.memory(graph, run, &rule);
        if let Some(guess) = graph.with_guesses() {
            // What is not known may need workspaces, libraries and a margin that the rest does not.
            let rule = replay(&guess, run, &CopyRule::default());
            bound = bound.max(self.memory(&guess, run, &rule).1);
        }
        let mut flags = graph.flags.clone();
        if rule.ran_out {
            let detail = "the allocator's memory passes the device's limit".to_owned();
            flags.push(Flag { kind: FlagKind::OutOfMemory, detail });
        }
        let utilization = (!graph.has_attention())
            .then(|| utilization::predict(self.forests, graph, run, &shape_features(graph, run)));
        let context = Bytes::from_mib_f64(self.environment.constant_mib(graph)).0;
        let peak = Bytes::from_mib_f64(peak);
        // What the forest adds or takes is memory that the replay's rule does not explain.
        let mut usage = rule.usage;
        let correction = peak.0 as i64 - (rule.reserved.0 + context) as i64;
        usage.fragmentation = usage.fragmentation.saturating_add_signed(correction);
        Estimate {
            peak,
            bound: Bytes::from_mib_f64(bound),
            promise: match Family::of(graph) {
                _ if !graph.flags.is_empty() => Promise::Widened,
                Family::Attention => Promise::LargestError,
                Family::Dense | Family::RegularConvolutions | Family::OddConvolutions => {
                    Promise::NinetyNine
                }
            },
            class_mib: None,
            utilization,
            estimator: "replay",
            flags,
            breakdown: Some(Breakdown { usage, context }),
        }
    }
}
