//! What the classifiers see, and the classes that they tell apart.

use crate::dataset::{Kind, Row, RowOutcome};

/// Classes of equal width.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Classes {
    first_mib: f64,
    width_mib: f64,
    count: usize,
}

impl Classes {
    /// The published classes: 1000 MiB for MLPs, 8000 MiB else with the last one open.
    pub fn of(kind: Kind) -> Self {
        match kind {
            Kind::Mlp => Classes { first_mib: 1000.0, width_mib: 1000.0, count: 5 },
            Kind::Cnn | Kind::Transformer => {
                Classes { first_mib: 0.0, width_mib: 8000.0, count: 6 }
            }
        }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The class of a row; a task that ran out of memory is in the last.
    pub fn class(&self, row: &Row) -> usize {
        if row.outcome == RowOutcome::OutOfMemory {
            return self.count - 1;
        }
        let place = (row.measured_mib - self.first_mib).max(0.0) / self.width_mib;
        (place as usize).min(self.count - 1)
    }

    /// What the scheduler is told.
    pub fn upper_mib(&self, class: usize) -> f64 {
        self.first_mib + self.width_mib * (class + 1) as f64
    }

    /// A point well inside.
    pub fn middle_mib(&self, class: usize) -> f64 {
        self.upper_mib(class) - 0.5 * self.width_mib
    }
}

const NAMES: [&str; 11] = [
    "ELU",
    "GELU",
    "Identity",
    "LeakyReLU",
    "Mish",
    "PReLU",
    "ReLU",
    "SELU",
    "SiLU",
    "Softplus",
    "Tanh",
];

/// The activation function as a point on the half circle.
fn angle(name: &str) -> (f64, f64) {
    let place = NAMES.iter().position(|known| *known == name).unwrap_or(0);
    let angle = std::f64::consts::PI * place as f64 / NAMES.len() as f64;
    (libm::sin(angle), libm::cos(angle))
}

fn count(row: &Row, kinds: &[&str]) -> f64 {
    row.layers.iter().filter(|layer| kinds.contains(&layer.kind.as_str())).count() as f64
}

/// Features of the MLP ensemble: layers, batch, parameters, activations, their product with the batch,
/// convolutions, norms, dropouts, the activation function's angle.
pub(crate) fn plain_features(row: &Row) -> Vec<f64> {
    let (activations, parameters) = row.totals;
    let batch = f64::from(row.run.batch);
    let (sin, cos) = angle(&row.activation);
    let plain = [
        row.layers.len() as f64,
        batch,
        parameters,
        activations,
        activations * batch,
        count(row, &["conv2d", "linear"]),
        count(row, &["batch_normalization", "batchnorm2d"]),
        count(row, &["dropout"]),
    ];
    both_scales(&plain).chain([sin, cos]).collect()
}

/// Each number as it is and its logarithm. Memory is nearly linear in the numbers, so that the classes' edges
/// are planes; the logarithms tell small nets apart.
fn both_scales(plain: &[f64]) -> impl Iterator<Item = f64> + '_ {
    plain.iter().flat_map(|&number| [number, libm::log1p(number)])
}

/// Features beside the sequence: batch, parameters, activations, their product with the batch.
pub(crate) fn extra_features(row: &Row) -> Vec<f64> {
    let (activations, parameters) = row.totals;
    let batch = f64::from(row.run.batch);
    both_scales(&[batch, parameters, activations, activations * batch]).collect()
}

/// Numbers that describe one layer.
pub(crate) const LAYER_FEATURES: usize = 4;

/// Layers in order: a two-bit code of the type, activations of the batch, parameters.
pub(crate) fn layer_sequence(row: &Row) -> Vec<[f64; LAYER_FEATURES]> {
    let batch = f64::from(row.run.batch);
    row.layers
        .iter()
        .map(|layer| {
            let (high, low) = match layer.kind.as_str() {
                "linear" | "conv2d" => (1.0, 0.0),
                "batch_normalization" | "batchnorm2d" => (0.0, 1.0),
                "dropout" => (0.0, 0.0),
                _ => (1.0, 1.0),
            };
            let activations = libm::log1p(layer.activations as f64 * batch);
            [high, low, activations, libm::log1p(layer.parameters as f64)]
        })
        .collect()
}
