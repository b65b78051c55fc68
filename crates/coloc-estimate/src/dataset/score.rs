//! How good predictions are on measured rows.

use super::{Row, RowOutcome};
use crate::estimate::Estimator;
use serde::Serialize;

/// Above this a measurement says that the device was full, not what was needed.
const SATURATED_MIB: f64 = 39_000.0;
/// From here on everything is one class: it does not fit.
const FULL_MIB: f64 = 40_000.0;

/// What an estimator said of one row.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Prediction {
    /// The estimate in MiB.
    pub peak_mib: f64,
    /// A point within the class that is meant; the estimate itself for estimators without classes.
    pub class_mib: f64,
    /// The upper bound in MiB.
    pub bound_mib: f64,
    /// SM activity, if the estimator knows.
    pub smact: Option<f64>,
}

impl Prediction {
    /// What an estimator says of a row; nothing of rows without layers.
    pub fn by(estimator: &dyn Estimator, row: &Row) -> Option<Self> {
        let estimate = estimator.estimate(row.graph.as_ref()?, &row.run);
        let peak_mib = estimate.peak.mib();
        Some(Prediction {
            peak_mib,
            class_mib: estimate.class_mib.unwrap_or(peak_mib),
            bound_mib: estimate.bound.mib(),
            smact: estimate.utilization.map(|utilization| utilization.smact.get()),
        })
    }
}

/// Shares of rows whose class is right, for bins of 1000, 2000 and 8000 MiB.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize)]
pub struct BinAccuracy {
    /// 1000 MiB.
    #[serde(rename = "1gb")]
    pub one: f64,
    /// 2000 MiB.
    #[serde(rename = "2gb")]
    pub two: f64,
    /// 8000 MiB.
    #[serde(rename = "8gb")]
    pub eight: f64,
}

/// The figures of an evaluation. Shares are 0 to 1; what cannot be computed is absent.
#[derive(Clone, PartialEq, Default, Debug, Serialize)]
pub struct Scores {
    /// Rows that count in the means.
    pub rows: usize,
    /// Rows without a usable measurement or without layers.
    pub skipped: usize,
    /// Rows that cannot have trained.
    pub crashed: usize,
    /// Rows that ran out of memory or filled the device: they count only in bins.
    pub bins_only: usize,
    /// Mean absolute error as a share of the measurement.
    pub mape: Option<f64>,
    /// Its median.
    pub median_ape: Option<f64>,
    /// Its maximum.
    pub max_ape: Option<f64>,
    /// Rows whose rounded MiB are equal.
    pub exact_share: Option<f64>,
    /// Rows within 10 %.
    pub within10_share: Option<f64>,
    /// Rows estimated below the measurement.
    pub under_share: Option<f64>,
    /// Rows in the right class.
    pub bin_accuracy: BinAccuracy,
    /// Rows that stayed at or below their bound.
    pub bound_coverage: Option<f64>,
    /// How far the bound lies above the measurement, as a share of it.
    pub bound_over_mean: Option<f64>,
    /// Mean absolute error of the SM activity.
    pub smact_mae: Option<f64>,
    /// Share of the SM activity's variance that is explained.
    pub smact_r2: Option<f64>,
}

/// Compares predictions with their rows; rows without a prediction are skipped.
pub fn score(rows: &[Row], predictions: &[Option<Prediction>]) -> Scores {
    let mut tally = Tally::default();
    for (row, prediction) in rows.iter().zip(predictions) {
        tally.add(row, *prediction);
    }
    tally.scores()
}

#[derive(Default)]
struct Tally {
    errors: Vec<f64>,
    exact: usize,
    under: usize,
    covered: usize,
    over: f64,
    right: [usize; 3],
    binned: usize,
    skipped: usize,
    crashed: usize,
    activity: Vec<(f64, f64)>,
}

impl Tally {
    fn add(&mut self, row: &Row, prediction: Option<Prediction>) {
        match (row.outcome, prediction) {
            (RowOutcome::Crashed, _) => self.crashed += 1,
            (RowOutcome::Skipped, _) | (_, None) => self.skipped += 1,
            (RowOutcome::OutOfMemory, Some(prediction)) => self.add_bins(f64::MAX, prediction),
            (RowOutcome::Trained, Some(prediction)) => {
                self.add_bins(row.measured_mib, prediction);
                if row.measured_mib <= SATURATED_MIB {
                    self.add_errors(row.measured_mib, prediction);
                }
                if let (Some(measured), Some(predicted)) = (row.measured.smact, prediction.smact) {
                    self.activity.push((measured, predicted));
                }
            }
        }
    }

    fn add_bins(&mut self, measured: f64, prediction: Prediction) {
        self.binned += 1;
        for (count, width) in self.right.iter_mut().zip([1000.0, 2000.0, 8000.0]) {
            *count += usize::from(class(measured, width) == class(prediction.class_mib, width));
        }
    }

    fn add_errors(&mut self, measured: f64, prediction: Prediction) {
        self.errors.push((prediction.peak_mib - measured).abs() / measured);
        self.exact += usize::from(prediction.peak_mib.round() == measured.round());
        self.under += usize::from(prediction.peak_mib.round() < measured.round());
        self.covered += usize::from(prediction.bound_mib.round() >= measured.round());
        self.over += (prediction.bound_mib - measured) / measured;
    }

    fn scores(mut self) -> Scores {
        self.errors.sort_unstable_by(f64::total_cmp);
        let rows = self.errors.len();
        let share = |count: usize| (rows > 0).then(|| count as f64 / rows as f64);
        let binned = |index: usize| self.right[index] as f64 / self.binned.max(1) as f64;
        Scores {
            rows,
            skipped: self.skipped,
            crashed: self.crashed,
            bins_only: self.binned - rows,
            mape: mean(&self.errors),
            median_ape: self.errors.get(rows / 2).copied(),
            max_ape: self.errors.last().copied(),
            exact_share: share(self.exact),
            within10_share: share(self.errors.partition_point(|error| *error <= 0.1)),
            under_share: share(self.under),
            bin_accuracy: BinAccuracy { one: binned(0), two: binned(1), eight: binned(2) },
            bound_coverage: share(self.covered),
            bound_over_mean: (rows > 0).then(|| self.over / rows as f64),
            smact_mae: self.smact_mae(),
            smact_r2: r2(&self.activity),
        }
    }

    fn smact_mae(&self) -> Option<f64> {
        let errors: Vec<f64> =
            self.activity.iter().map(|(seen, said)| (seen - said).abs()).collect();
        mean(&errors)
    }
}

fn class(mib: f64, width: f64) -> u32 {
    if mib >= FULL_MIB { u32::MAX } else { (mib.max(0.0) / width) as u32 }
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Share of the variance of the first that the second explains.
pub fn r2(pairs: &[(f64, f64)]) -> Option<f64> {
    let seen: Vec<f64> = pairs.iter().map(|(seen, _)| *seen).collect();
    let middle = mean(&seen)?;
    let total: f64 = seen.iter().map(|seen| (seen - middle) * (seen - middle)).sum();
    let left: f64 = pairs.iter().map(|(seen, said)| (seen - said) * (seen - said)).sum();
    (total > 0.0).then(|| 1.0 - left / total)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::Measured;
    use crate::run::RunConfig;

    fn row(measured_mib: f64, outcome: RowOutcome) -> Row {
        Row {
            line: 2,
            group: 2,
            graph: None,
            run: RunConfig::new(1),
            measured_mib,
            measured: Measured::default(),
            outcome,
            layers: Vec::new(),
            totals: (0.0, 0.0),
            activation: String::new(),
        }
    }

    fn said(peak_mib: f64) -> Option<Prediction> {
        Some(Prediction { peak_mib, class_mib: peak_mib, bound_mib: peak_mib + 20.0, smact: None })
    }

    #[test]
    fn each_standing_counts_where_it_should() {
        let rows = [
            row(2000.0, RowOutcome::Trained),
            row(4000.0, RowOutcome::Trained),
            row(39_500.0, RowOutcome::Trained),
            row(37_000.0, RowOutcome::OutOfMemory),
            row(2000.0, RowOutcome::Crashed),
            row(0.0, RowOutcome::Skipped),
        ];
        let predictions =
            [said(2000.4), said(3600.0), said(39_000.0), said(45_000.0), said(1.0), said(1.0)];
        let scores = score(&rows, &predictions);
        assert_eq!((scores.rows, scores.bins_only), (2, 2));
        assert_eq!((scores.crashed, scores.skipped), (1, 1));
        assert_eq!(scores.exact_share, Some(0.5));
        assert_eq!(scores.under_share, Some(0.5));
        assert_eq!(scores.bound_coverage, Some(0.5));
        assert_eq!(scores.bin_accuracy.one, 0.75);
        assert!((scores.mape.unwrap() - 0.0501).abs() < 1e-4);
    }

    #[test]
    fn bins_are_left_closed_and_the_last_is_open() {
        assert_eq!(class(1999.9, 1000.0), 1);
        assert_eq!(class(2000.0, 1000.0), 2);
        assert_eq!(class(40_000.0, 8000.0), class(90_000.0, 8000.0));
        assert_ne!(class(39_999.0, 8000.0), class(40_000.0, 8000.0));
    }
}
