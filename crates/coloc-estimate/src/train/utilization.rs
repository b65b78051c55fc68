//! Forests for the utilization that was measured.

use super::TrainError;
use crate::boost::{Forest, Settings, fit};
use crate::dataset::{Measured, Row, RowOutcome};
use crate::features::shape_features;

const SETTINGS: Settings = Settings {
    trees: 220,
    depth: 5,
    rate: 0.08,
    leaf_rows: 4.0,
    rows: 0.8,
    columns: 0.6,
    forests: 1,
};

/// A forest for one of the measured shares.
pub(super) fn learn(
    rows: &[&Row],
    measured: impl Fn(&Measured) -> Option<f64>,
) -> Result<Forest, TrainError> {
    let (features, targets): (Vec<_>, Vec<_>) = rows
        .iter()
        .filter(|row| row.outcome == RowOutcome::Trained)
        .filter_map(|row| {
            let target = measured(&row.measured)?;
            Some((shape_features(row.graph.as_ref()?, &row.run), target))
        })
        .unzip();
    if targets.len() < 100 {
        let found = targets.len();
        return Err(TrainError::TooFewRows { what: "utilization", found, needed: 100 });
    }
    Ok(fit(&features, &targets, SETTINGS)?)
}
