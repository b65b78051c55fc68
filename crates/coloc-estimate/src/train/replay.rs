//! Learns what the replay estimator needs, and checks it on rows that were held out.

use super::convolution::{self, Correction};
use super::utilization;
use super::{TrainError, fold_of};
use crate::boost::Forest;
use crate::bounds::{CALIBRATED, Margin, conformal_quantile};
use crate::dataset::{Kind, Prediction, Row, RowOutcome, Scores, score};
use crate::environment::{Environment, learn_constant};
use crate::graph::Op;
use crate::learned::{Calibration, DEFAULT_ENVIRONMENT, Forests, Margins};
use crate::replay::{CopyRule, replay};
use crate::replay_estimator::{Family, ReplayEstimator};
use std::path::Path;

/// Constants, margins and forests, ready to ship.
#[derive(Clone, Debug)]
pub struct Learned {
    /// Constants and margins.
    pub calibration: Calibration,
    /// Forests.
    pub forests: Forests,
}

/// Rows by kind.
#[derive(Clone, Copy)]
struct Split<'a> {
    mlp: &'a [&'a Row],
    cnn: &'a [&'a Row],
    transformer: &'a [&'a Row],
}

/// Learns from every row.
pub fn learn(mlp: &[Row], cnn: &[Row], transformer: &[Row]) -> Result<Learned, TrainError> {
    let (mlp, cnn, transformer): (Vec<_>, Vec<_>, Vec<_>) =
        (mlp.iter().collect(), cnn.iter().collect(), transformer.iter().collect());
    learn_from(Split { mlp: &mlp, cnn: &cnn, transformer: &transformer })
}

fn learn_from(split: Split<'_>) -> Result<Learned, TrainError> {
    let environment = learn_environment(split)?;
    let correction = convolution::learn(&convolution::examples(split.cnn, environment))?;
    let Correction { residual, spread, margin } = correction;
    let margins = Margins {
        dense: Margin::Added { mib: quantile(split.mlp, environment, Family::Dense, |_| 1.0) },
        convolutions: margin,
        attention: Margin::Scaled {
            share: quantile(split.transformer, environment, Family::Attention, |mib| mib),
        },
    };
    let pair = |measured: fn(&crate::dataset::Measured) -> Option<f64>| {
        Ok::<_, TrainError>([
            utilization::learn(split.mlp, measured)?,
            utilization::learn(split.cnn, measured)?,
        ])
    };
    let smact: [Forest; 2] = pair(|measured| measured.smact)?;
    let smocc: [Forest; 2] = pair(|measured| measured.smocc)?;
    let environments = [(DEFAULT_ENVIRONMENT.to_owned(), environment)].into_iter().collect();
    Ok(Learned {
        calibration: Calibration { environments, margins },
        forests: Forests { residual, spread, smact, smocc },
    })
}

/// The mode of measured minus replayed memory: of plain nets, with cuDNN, with batch normalisation.
fn learn_environment(split: Split<'_>) -> Result<Environment, TrainError> {
    let constant = |rows: &[&Row], keep: fn(bool) -> bool, what: &'static str| {
        let differences: Vec<f64> =
            usable(rows)
                .filter(|row| {
                    keep(row.graph.as_ref().is_some_and(|graph| {
                        graph.nodes().iter().any(|node| node.op == Op::BatchNorm)
                    }))
                })
                .filter_map(|row| Some(row.measured_mib - replayed(row)?))
                .collect();
        let found = differences.len();
        learn_constant(&differences).ok_or(TrainError::TooFewRows { what, found, needed: 1 })
    };
    let base = constant(split.mlp, |_| true, "the environment's base")?;
    let conv = constant(split.cnn, |normalised| !normalised, "the cuDNN constant")?;
    let normalised = constant(split.cnn, |normalised| normalised, "the BatchNorm constant")?;
    Ok(Environment {
        base_mib: base,
        convolution_mib: conv - base,
        batch_norm_mib: normalised - conv,
        spread_mib: 0.0,
    })
}

/// The conformal quantile of measured minus estimated, over the unit that `scale` makes of the
/// allocator's memory.
fn quantile(
    rows: &[&Row],
    environment: Environment,
    family: Family,
    scale: impl Fn(f64) -> f64,
) -> f64 {
    let scores: Vec<f64> = usable(rows)
        .filter_map(|row| {
            let graph = row.graph.as_ref()?;
            let reserved = replayed(row)?;
            let error = row.measured_mib - reserved - environment.constant_mib(graph);
            (Family::of(graph) == family).then(|| error / scale(reserved))
        })
        .collect();
    conformal_quantile(&scores, CALIBRATED).max(0.0)
}

fn usable<'a>(rows: &'a [&'a Row]) -> impl Iterator<Item = &'a Row> {
    let fits = |row: &&Row| row.outcome == RowOutcome::Trained && row.measured_mib <= 39_000.0;
    rows.iter().copied().filter(fits)
}

fn replayed(row: &Row) -> Option<f64> {
    Some(replay(row.graph.as_ref()?, &row.run, &CopyRule::default()).reserved.mib())
}

impl Learned {
    /// Writes everything into `folder`, where the crate's next build finds it. Environments that were
    /// there before and were not learned now are kept.
    pub fn write(&self, folder: &Path) -> std::io::Result<()> {
        std::fs::create_dir_all(folder)?;
        let mut calibration = self.calibration.clone();
        for (name, environment) in &crate::learned::calibration().environments {
            calibration.environments.entry(name.clone()).or_insert(*environment);
        }
        let text = serde_json::to_string_pretty(&calibration).map_err(std::io::Error::other)?;
        std::fs::write(folder.join("calibration.json"), text + "\n")?;
        let forests = &self.forests;
        let files = [
            ("cnn_residual", &forests.residual),
            ("cnn_spread", &forests.spread),
            ("mlp_smact", &forests.smact[0]),
            ("cnn_smact", &forests.smact[1]),
            ("mlp_smocc", &forests.smocc[0]),
            ("cnn_smocc", &forests.smocc[1]),
        ];
        for (name, forest) in files {
            std::fs::write(folder.join(format!("{name}.forest")), forest.to_bytes())?;
        }
        Ok(())
    }
}

/// Scores of rows of one kind that were held out, fold by fold, everything learned from the rest.
pub fn cross_validate(
    mlp: &[Row],
    cnn: &[Row],
    transformer: &[Row],
    folds: u64,
) -> Result<Vec<(Kind, Scores)>, TrainError> {
    let sets = [(Kind::Mlp, mlp), (Kind::Cnn, cnn), (Kind::Transformer, transformer)];
    let mut predictions: Vec<Vec<Option<Prediction>>> =
        sets.iter().map(|(_, rows)| vec![None; rows.len()]).collect();
    for held in 0..folds {
        let seen = |rows| held_in(rows, folds, held);
        let (mlp_rows, cnn_rows, transformer_rows) = (seen(mlp), seen(cnn), seen(transformer));
        let learned =
            learn_from(Split { mlp: &mlp_rows, cnn: &cnn_rows, transformer: &transformer_rows })?;
        let environment = learned.calibration.environments[DEFAULT_ENVIRONMENT];
        let estimator = ReplayEstimator::new(environment, &learned.calibration, &learned.forests);
        for ((_, rows), predictions) in sets.iter().zip(&mut predictions) {
            for (row, prediction) in rows.iter().zip(predictions) {
                if fold_of(row.group, folds) == held {
                    *prediction = Prediction::by(&estimator, row);
                }
            }
        }
    }
    Ok(sets
        .iter()
        .zip(&predictions)
        .map(|((kind, rows), predictions)| (*kind, score(rows, predictions)))
        .collect())
}

/// The rows outside fold `held`.
fn held_in(rows: &[Row], folds: u64, held: u64) -> Vec<&Row> {
    rows.iter().filter(|row| fold_of(row.group, folds) != held).collect()
}
