//! `coloc estimate eval`: an estimator against measured rows. Everything learned ships with the product.

use super::json;
use super::{EstimateError, draw, estimator};
use clap::Args;
use coloc_estimate::dataset::{self, Kind, Prediction, Row, Scores, score};
use coloc_estimate::gpumemnet::GpuMemNet;
use coloc_estimate::horus::Counts;
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
    /// The software environment whose constant is added.
    #[arg(long, default_value = coloc_estimate::learned::DEFAULT_ENVIRONMENT)]
    env: String,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Passes over the rows to time an estimator, and how long they may take.
const PASSES: u32 = 20;
const LONGEST: Duration = Duration::from_secs(1);

/// What an estimator says of a row.
type Predict = Box<dyn Fn(&Row) -> Option<Prediction>>;

#[derive(Serialize)]
struct Answer {
    #[serde(flatten)]
    scores: Scores,
    us_per_estimate: Option<f64>,
}

pub(super) fn run(args: &EvalArgs) -> Result<String, EstimateError> {
    let kind: Kind = args.kind.parse()?;
    let predict: Predict = match args.estimator.as_str() {
        "replay" => {
            let replay = estimator(&args.env)?;
            Box::new(move |row| Prediction::by(&replay, row))
        }
        "horus" => Box::new(horus),
        "gpumemnet" => {
            let nets = GpuMemNet::shipped(kind);
            Box::new(move |row| nets.predict(row))
        }
        other => return Err(EstimateError::UnknownEstimator(other.to_owned())),
    };
    let rows = dataset::read(&args.data, kind)?;
    let (predictions, elapsed) = timed(&rows, &predict);
    let answered = predictions.iter().flatten().count();
    let us_per_estimate = (answered > 0).then(|| elapsed.as_secs_f64() * 1e6 / answered as f64);
    let scores = score(&rows, &predictions);
    if args.json {
        return json::text(&Answer { scores, us_per_estimate });
    }
    Ok(draw::scores(&scores, us_per_estimate))
}

/// What an estimator says of all rows, and how long the fastest of some passes over them took: the
/// machine's other work only ever adds time.
fn timed(rows: &[Row], predict: &Predict) -> (Vec<Option<Prediction>>, Duration) {
    let pass = || {
        let start = Instant::now();
        let predictions: Vec<Option<Prediction>> = rows.iter().map(predict).collect();
        (predictions, start.elapsed())
    };
    let began = Instant::now();
    let (predictions, mut fastest) = pass();
    for _ in 1..PASSES {
        if began.elapsed() > LONGEST {
            break;
        }
        fastest = fastest.min(pass().1);
    }
    (predictions, fastest)
}

/// The formula on the file's own totals, as it was published.
fn horus(row: &Row) -> Option<Prediction> {
    row.graph.as_ref()?;
    let (activations, parameters) = row.totals;
    let counts = Counts { activations: activations as u64, parameters: parameters as u64 };
    let mib = counts.capped_mib(row.run.batch);
    Some(Prediction { peak_mib: mib, class_mib: mib, bound_mib: mib, smact: None })
}
