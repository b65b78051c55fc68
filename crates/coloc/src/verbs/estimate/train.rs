//! `coloc estimate train`: learns again from measured rows.

use super::EstimateError;
use clap::Args;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub(super) struct TrainArgs {
    /// Measured MLP rows; may be given several times.
    #[arg(long, value_name = "FILE", required = true)]
    mlp: Vec<PathBuf>,
    /// Measured CNN rows.
    #[arg(long, value_name = "FILE")]
    cnn: PathBuf,
    /// Measured transformer rows.
    #[arg(long, value_name = "FILE")]
    transformer: PathBuf,
    /// Show results on held-out rows, with this many folds, instead of writing anything.
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u64).range(2..=20))]
    folds: Option<u64>,
    /// Which part: replay (constants, margins, forests) or gpumemnet.
    #[arg(long, default_value = "replay")]
    estimator: String,
    /// Where to write what was learned.
    #[arg(long, value_name = "FOLDER", default_value = "models")]
    out: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[cfg(not(feature = "train"))]
pub(super) fn run(_: &TrainArgs) -> Result<String, EstimateError> {
    let problem = "this build cannot train; build with `cargo build --release --features train`";
    Err(EstimateError::Train(problem.to_owned()))
}

#[cfg(feature = "train")]
pub(super) fn run(args: &TrainArgs) -> Result<String, EstimateError> {
    with_framework::run(args)
}

#[cfg(feature = "train")]
mod with_framework {
    use super::{EstimateError, TrainArgs};
    use crate::verbs::estimate::eval::Times;
    use crate::verbs::estimate::{draw, json};
    use coloc_estimate::dataset::{self, Kind, Row, Scores};
    use coloc_estimate::train::gpumemnet::{self, Architecture};
    use coloc_estimate::train::{self, TrainError};
    use serde::Serialize;
    use std::path::PathBuf;

    struct Rows {
        mlp: Vec<Row>,
        cnn: Vec<Row>,
        transformer: Vec<Row>,
    }

    #[derive(Serialize)]
    struct Held {
        what: String,
        #[serde(flatten)]
        scores: Scores,
    }

    #[derive(Serialize)]
    struct Folds {
        held: Vec<Held>,
    }

    fn failed(error: impl std::fmt::Display) -> EstimateError {
        EstimateError::Train(error.to_string())
    }

    pub(super) fn run(args: &TrainArgs) -> Result<String, EstimateError> {
        let rows = Rows {
            mlp: read_all(&args.mlp, Kind::Mlp)?,
            cnn: dataset::read(&args.cnn, Kind::Cnn)?,
            transformer: dataset::read(&args.transformer, Kind::Transformer)?,
        };
        let held = match (args.estimator.as_str(), args.folds) {
            ("replay", Some(folds)) => validate_replay(&rows, folds).map_err(failed)?,
            ("gpumemnet", Some(folds)) => validate_nets(&rows, folds).map_err(failed)?,
            ("replay", None) => {
                let learned =
                    train::learn(&rows.mlp, &rows.cnn, &rows.transformer).map_err(failed)?;
                learned.write(&args.out).map_err(failed)?;
                return Ok(written(args));
            }
            ("gpumemnet", None) => {
                write_nets(&rows, &args.out)?;
                return Ok(written(args));
            }
            (other, _) => return Err(EstimateError::UnknownEstimator(other.to_owned())),
        };
        if args.json {
            return json::text(&Folds { held });
        }
        let texts = held.iter().map(|Held { what, scores }| {
            format!("{what}\n{}", draw::scores(scores, Times::default()))
        });
        Ok(texts.collect::<Vec<_>>().join("\n"))
    }

    fn written(args: &TrainArgs) -> String {
        format!("What was learned is in {}", args.out.display())
    }

    /// Files in turn; a row's group stays its own.
    fn read_all(paths: &[PathBuf], kind: Kind) -> Result<Vec<Row>, EstimateError> {
        let mut all: Vec<Row> = Vec::new();
        for path in paths {
            let offset = all.iter().map(|row| row.group + 1).max().unwrap_or(0);
            let rows = dataset::read(path, kind)?;
            all.extend(rows.into_iter().map(|row| Row { group: row.group + offset, ..row }));
        }
        Ok(all)
    }

    fn validate_replay(rows: &Rows, folds: u64) -> Result<Vec<Held>, TrainError> {
        let scores = train::cross_validate(&rows.mlp, &rows.cnn, &rows.transformer, folds)?;
        let held = |(kind, scores)| Held { what: format!("replay on {kind:?} rows"), scores };
        Ok(scores.into_iter().map(held).collect())
    }

    const NETS: [(Kind, Architecture); 3] = [
        (Kind::Mlp, Architecture::Mlp),
        (Kind::Mlp, Architecture::Transformer),
        (Kind::Cnn, Architecture::Mlp),
    ];

    fn validate_nets(rows: &Rows, folds: u64) -> Result<Vec<Held>, TrainError> {
        NETS.into_iter()
            .map(|(kind, architecture)| {
                let data = if kind == Kind::Mlp { &rows.mlp } else { &rows.cnn };
                let scores = gpumemnet::cross_validate(data, kind, architecture, folds)?;
                Ok(Held { what: format!("{architecture:?} ensemble on {kind:?} rows"), scores })
            })
            .collect()
    }

    fn write_nets(rows: &Rows, out: &std::path::Path) -> Result<(), EstimateError> {
        std::fs::create_dir_all(out).map_err(failed)?;
        let nets = [
            ("gpumemnet_mlp.net", &rows.mlp, Kind::Mlp, Architecture::Transformer),
            ("gpumemnet_cnn.net", &rows.cnn, Kind::Cnn, Architecture::Mlp),
        ];
        for (name, rows, kind, architecture) in nets {
            let bytes = gpumemnet::learn(rows, kind, architecture).map_err(failed)?;
            std::fs::write(out.join(name), bytes).map_err(failed)?;
        }
        Ok(())
    }
}
