//! `coloc estimate eval`: an estimator against measured rows. Everything learned ships with the product.

use super::json;
use super::{EstimateError, draw};
use crate::config::environments;
use crate::estimating::LayersError;
use clap::Args;
use coloc_estimate::ReplayEstimator;
use coloc_estimate::dataset::{self, Kind, Prediction, Row, Scores, score};
use coloc_estimate::gpumemnet::GpuMemNet;
use coloc_estimate::horus::Counts;
use coloc_estimate::learned::DEFAULT_ENVIRONMENT;
use serde::Serialize;
use std::path::PathBuf;
use std::time::{Duration, Instant};

#[derive(Args, Debug)]
pub(super) struct EvalArgs {
    /// Measured rows.
    #[arg(long, value_name = "FILE")]
    data: PathBuf,
    /// gpumemnet-mlp, gpumemnet-cnn or gpumemnet-transformer.
    #[arg(long)]
    kind: String,
    /// replay, horus or gpumemnet.
    #[arg(long, default_value = "replay")]
    estimator: String,
    /// The software environment whose constant replay adds: carma, gpumemnet, or one that `estimate learn` stored
    /// [default: gpumemnet, where the published rows were measured]
    #[arg(long, value_name = "NAME", value_parser = environments::name)]
    env: Option<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Passes over the rows to time an estimator, and how long they may take.
const PASSES: u32 = 200;
const LONGEST: Duration = Duration::from_secs(1);

/// What an estimator says of a row.
type Predict = Box<dyn Fn(&Row) -> Option<Prediction>>;

#[derive(Serialize)]
struct Answer {
    #[serde(flatten)]
    scores: Scores,
    #[serde(flatten)]
    times: Times,
}

/// How long an estimate takes, in microseconds; nothing where there was none.
#[derive(Clone, Copy, Default, Debug, Serialize)]
pub(super) struct Times {
    /// Of each row's fastest time: the mean.
    pub(super) us_per_estimate: Option<f64>,
    /// The one in the middle.
    pub(super) us_median: Option<f64>,
    /// The one that 19 of 20 rows stay below.
    pub(super) us_p95: Option<f64>,
    /// The slowest.
    pub(super) us_max: Option<f64>,
}

pub(super) fn run(args: &EvalArgs) -> Result<String, EstimateError> {
    let kind: Kind = args.kind.parse()?;
    if args.env.is_some() && args.estimator != "replay" {
        let problem = "--env changes nothing here: this estimator knows no environments";
        return Err(EstimateError::from(LayersError::Unused(problem.to_owned())));
    }
    let predict: Predict = match args.estimator.as_str() {
        "replay" => {
            let env = args.env.as_deref().unwrap_or(DEFAULT_ENVIRONMENT);
            let replay = ReplayEstimator::within(environments::find(env)?.constants);
            Box::new(move |row| Prediction::by(&replay, row))
        }
        "horus" => Box::new(horus),
        "gpumemnet" => {
            let nets = GpuMemNet::shipped(kind);
            Box::new(move |row| nets.predict(row))
        }
        other => return Err(EstimateError::UnknownEstimator(other.to_owned())),
    };
    if args.estimator == "gpumemnet" && kind == Kind::Transformer {
        return Err(EstimateError::NoNet);
    }
    let rows = dataset::read(&args.data, kind)?;
    let (predictions, times) = timed(&rows, &predict);
    let scores = score(&rows, &predictions);
    if args.json {
        return json::text(&Answer { scores, times });
    }
    Ok(draw::scores(&scores, times))
}

/// What an estimator says of all rows, and how long each takes at the fastest of some passes over them: the
/// machine's other work only ever adds time.
fn timed(rows: &[Row], predict: &Predict) -> (Vec<Option<Prediction>>, Times) {
    let began = Instant::now();
    let mut predictions = Vec::new();
    let mut fastest = vec![Duration::MAX; rows.len()];
    for _ in 0..PASSES {
        let timed = |(row, fastest): (&Row, &mut Duration)| {
            let start = Instant::now();
            let prediction = predict(row);
            *fastest = start.elapsed().min(*fastest);
            prediction
        };
        predictions = rows.iter().zip(&mut fastest).map(timed).collect();
        if began.elapsed() > LONGEST {
            break;
        }
    }
    let answered = predictions.iter().zip(&fastest).filter(|(answer, _)| answer.is_some());
    let times = Times::of(answered.map(|(_, time)| time.as_secs_f64() * 1e6).collect());
    (predictions, times)
}

impl Times {
    /// All figures of the same times, so that the mean never passes the slowest.
    fn of(mut each: Vec<f64>) -> Self {
        each.sort_unstable_by(f64::total_cmp);
        Times {
            us_per_estimate: (!each.is_empty())
                .then(|| each.iter().sum::<f64>() / each.len() as f64),
            us_median: each.get(each.len() / 2).copied(),
            us_p95: each.get(each.len() * 95 / 100).copied(),
            us_max: each.last().copied(),
        }
    }
}

/// The formula on the file's own totals, as it was published.
fn horus(row: &Row) -> Option<Prediction> {
    row.graph.as_ref()?;
    let (activations, parameters) = row.totals;
    let counts = Counts { activations: activations as u64, parameters: parameters as u64 };
    let mib = counts.capped_mib(row.run.batch);
    Some(Prediction { peak_mib: mib, class_mib: mib, bound_mib: mib, smact: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_lies_among_the_times() {
        let times = Times::of(vec![9.0, 1.0, 2.0]);
        assert_eq!((times.us_per_estimate, times.us_median), (Some(4.0), Some(2.0)));
        assert_eq!((times.us_p95, times.us_max), (Some(9.0), Some(9.0)));
        assert_eq!(Times::of(Vec::new()).us_per_estimate, None);
    }

    #[test]
    fn one_row_takes_on_the_mean_what_it_takes_at_most() {
        let text = "Filename,Activations-Params,Activation Function,Total Activations,Total Parameters,\
            Batch Size,Max GPU Memory (MiB)\ninput:8.out,\"[('linear', 8, 72)]\",ReLU,8,72,4,1451\n";
        let rows =
            dataset::read_from(text.as_bytes(), "rows.csv".as_ref(), Kind::Mlp).expect("a row");
        let predict: Predict = Box::new(|row| {
            std::thread::sleep(Duration::from_micros(50));
            horus(row)
        });
        let (_, times) = timed(&rows, &predict);
        assert_eq!(times.us_per_estimate, times.us_max);
    }
}
