//! The correction of odd convolutions, its expected error, and the margin on top.

use super::{TrainError, fold_of};
use crate::boost::{Forest, Settings, fit};
use crate::bounds::{CALIBRATED, Margin, conformal_quantile};
use crate::dataset::{Row, RowOutcome};
use crate::environment::Environment;
use crate::features::{Replays, residual_features};
use crate::replay::{CopyRule, replay};
use crate::replay_estimator::{Family, residual_base, spread_of};

const RESIDUAL: Settings = Settings {
    trees: 300,
    depth: 4,
    rate: 0.04,
    leaf_rows: 8.0,
    rows: 0.7,
    columns: 0.4,
    forests: 1,
};
const SPREAD: Settings = Settings {
    trees: 80,
    depth: 3,
    rate: 0.04,
    leaf_rows: 15.0,
    rows: 0.7,
    columns: 0.4,
    forests: 1,
};
/// Above this a measurement is the device's size.
const SATURATED_MIB: f64 = 39_000.0;
const INNER_FOLDS: u64 = 8;

/// One net: what describes it, and the logarithm of measured over replayed memory.
pub(super) struct Example {
    features: Vec<f64>,
    target: f64,
    group: u64,
    /// Only odd nets are corrected.
    odd: bool,
}

/// The examples among `rows`.
pub(super) fn examples(rows: &[&Row], environment: Environment) -> Vec<Example> {
    rows.iter()
        .filter(|row| row.outcome == RowOutcome::Trained && row.measured_mib <= SATURATED_MIB)
        .filter_map(|row| {
            let graph = row.graph.as_ref()?;
            let rule = replay(graph, &row.run, &CopyRule::default());
            let replays = Replays::beside(rule, graph, &row.run);
            let base = residual_base(environment, graph, &rule);
            let ratio = (row.measured_mib - environment.base_mib).max(1.0) / base;
            Some(Example {
                features: residual_features(graph, &row.run, &replays),
                target: libm::log(ratio),
                group: row.group,
                odd: Family::of(graph) == Family::OddConvolutions,
            })
        })
        .collect()
}

/// What is learned of odd convolutions.
pub(super) struct Correction {
    pub(super) residual: Forest,
    pub(super) spread: Forest,
    pub(super) margin: Margin,
}

/// Every score comes from forests that saw neither its row nor its fold: the residuals that teach the
/// spread are out of fold, and so are the spreads that the margin is calibrated with.
pub(super) fn learn(examples: &[Example]) -> Result<Correction, TrainError> {
    if examples.len() < 200 {
        let found = examples.len();
        return Err(TrainError::TooFewRows { what: "convolutions", found, needed: 200 });
    }
    let odd: Vec<usize> = (0..examples.len()).filter(|&index| examples[index].odd).collect();
    let all: Vec<usize> = (0..examples.len()).collect();
    let targets: Vec<f64> = examples.iter().map(|example| example.target).collect();
    let corrections = out_of_fold(examples, &odd, &targets, RESIDUAL)?;
    let mut errors = targets.clone();
    odd.iter().zip(&corrections).for_each(|(&index, correction)| errors[index] -= correction);
    let sizes: Vec<f64> = errors.iter().map(|error| error.abs()).collect();
    let spreads = out_of_fold(examples, &all, &sizes, SPREAD)?;
    let scores: Vec<f64> =
        errors.iter().zip(&spreads).map(|(error, spread)| error / spread_of(*spread)).collect();
    Ok(Correction {
        residual: fit_on(examples, &odd, &targets, RESIDUAL)?,
        spread: fit_on(examples, &all, &sizes, SPREAD)?,
        margin: Margin::Normalised { errors: conformal_quantile(&scores, CALIBRATED) },
    })
}

fn fit_on(
    examples: &[Example],
    which: &[usize],
    targets: &[f64],
    settings: Settings,
) -> Result<Forest, TrainError> {
    let rows: Vec<Vec<f64>> = which.iter().map(|&index| examples[index].features.clone()).collect();
    let wanted: Vec<f64> = which.iter().map(|&index| targets[index]).collect();
    Ok(fit(&rows, &wanted, settings)?)
}

/// Predictions for the rows of `which`, each by a forest that did not see its fold.
fn out_of_fold(
    examples: &[Example],
    which: &[usize],
    targets: &[f64],
    settings: Settings,
) -> Result<Vec<f64>, TrainError> {
    let mut predicted = vec![0.0; which.len()];
    // Another seed than the outer folds, or inner folds would be empty.
    let fold = |index: usize| fold_of(examples[index].group ^ 0x5EED, INNER_FOLDS);
    for held in 0..INNER_FOLDS {
        let seen: Vec<usize> = which.iter().copied().filter(|&index| fold(index) != held).collect();
        let forest = fit_on(examples, &seen, targets, settings)?;
        for (place, &index) in which.iter().enumerate() {
            if fold(index) == held {
                predicted[place] = forest.predict(&examples[index].features);
            }
        }
    }
    Ok(predicted)
}
