//! Measured runs: rows of a CSV, or one on the command line.

use super::super::{EstimateError, LayersArgs};
use super::Run;
use crate::args::training::TrainingArgs;
use crate::config::environments;
use crate::estimating::{self, Layers, Source, teaches};
use coloc_estimate::environment::{Environment, LearnError};
use coloc_estimate::learned::DEFAULT_ENVIRONMENT;
use coloc_estimate::{Estimator as _, ReplayEstimator};
use coloc_model::Bytes;
use csv::StringRecord;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Columns that a row can have.
const COLUMNS: [&str; 11] = [
    "summary",
    "graph",
    "hf_config",
    "task",
    "batch",
    "seq",
    "optimizer",
    "precision",
    "samples",
    "summary_pass",
    "measured",
];

/// Nothing can be learned from what was given.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LearnRunsError {
    #[error(
        "no measured runs: give --rows FILE, --from-history, or one run with --measured and its layers"
    )]
    NothingGiven,
    #[error("how much memory did it hold? give --measured, such as 5262M")]
    NotMeasured,
    #[error(
        "no ended task of that daemon teaches anything: they must be submitted with --model-summary or --hf-config and run to their end"
    )]
    NoTasks,
    #[error("{}: {problem}", file.display())]
    File { file: PathBuf, problem: String },
    #[error("{}, line {line}: {problem}", file.display())]
    Row { file: PathBuf, line: u64, problem: String },
    #[error(transparent)]
    Lesson(#[from] LearnError),
    #[error("no run can be learned from: {0}")]
    AllLeftOut(String),
}

/// Why nothing was learned, from the runs that were left out if there are any.
pub(super) fn nothing_learned(error: LearnError, runs: &[Run]) -> EstimateError {
    let first = runs.iter().find_map(|run| Some((&run.what, run.left_out.as_ref()?)));
    match first {
        Some((what, reason)) => LearnRunsError::AllLeftOut(format!("{what}: {reason}")).into(),
        None => LearnRunsError::Lesson(error).into(),
    }
}

/// The run on the command line.
pub(super) fn one(args: &LayersArgs, measured: Bytes) -> Result<Run, EstimateError> {
    beside_replay(&args.layers()?, measured)
}

/// What a run held beside what its replay does.
fn beside_replay(layers: &Layers<'_>, measured: Bytes) -> Result<Run, EstimateError> {
    let usual = environments::find(DEFAULT_ENVIRONMENT)?;
    let (graph, run) = estimating::load(layers, &usual)?;
    let nothing = ReplayEstimator::within(Environment::default());
    let (measured, replayed) = (measured.mib(), nothing.estimate(&graph, &run).peak.mib());
    if measured <= replayed {
        return Err(LearnRunsError::Lesson(LearnError::BelowReplay { measured, replayed }).into());
    }
    let teaches = teaches(&graph);
    let what = match layers.source {
        Source::Summary(path) | Source::Graph(path) | Source::Config(path) => {
            path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
        }
        Source::Task(name) => name.to_owned(),
    };
    Ok(Run {
        what: format!("{what}, batch {}", run.batch),
        measured_mib: measured,
        replayed_mib: replayed,
        difference_mib: measured - replayed,
        loads: teaches.ok(),
        left_out: teaches.err().map(|reason| format!("it has {reason}")),
    })
}

/// Rows of a file; the paths in it are relative to its folder.
pub(super) fn read(file: &Path) -> Result<Vec<Run>, EstimateError> {
    let failed = |error: csv::Error| LearnRunsError::File {
        file: file.to_owned(),
        problem: error.to_string(),
    };
    let text = estimating::read(file)?;
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text.as_bytes());
    let headers = reader.headers().map_err(failed)?.clone();
    if let Some(unknown) = headers.iter().find(|name| !COLUMNS.contains(name)) {
        let problem = format!("unknown column {unknown:?}; there are {}", COLUMNS.join(", "));
        return Err(LearnRunsError::File { file: file.to_owned(), problem }.into());
    }
    let mut runs = Vec::new();
    for record in reader.records() {
        let record = record.map_err(failed)?;
        let line = record.position().map_or(0, csv::Position::line);
        let wrong = |problem: String| LearnRunsError::Row { file: file.to_owned(), line, problem };
        let run = of_record(&Cells { headers: &headers, record: &record }, file);
        runs.push(run.map_err(|problem| EstimateError::from(wrong(problem)))?);
    }
    match runs.is_empty() {
        true => {
            Err(LearnRunsError::File { file: file.to_owned(), problem: "no rows".to_owned() }
                .into())
        }
        false => Ok(runs),
    }
}

struct Cells<'a> {
    headers: &'a StringRecord,
    record: &'a StringRecord,
}

impl<'a> Cells<'a> {
    /// What is written in a column, if anything is.
    fn text(&self, column: &str) -> Option<&'a str> {
        let place = self.headers.iter().position(|name| name == column)?;
        self.record.get(place).filter(|text| !text.is_empty())
    }

    fn value<T: FromStr>(&self, column: &str) -> Result<Option<T>, String>
    where
        T::Err: std::fmt::Display,
    {
        let parsed = self.text(column).map(|text| text.parse().map_err(|error| (text, error)));
        parsed.transpose().map_err(|(text, error)| format!("{column} {text:?}: {error}"))
    }

    /// A number that the flag of this name would take.
    fn count(&self, column: &str) -> Result<Option<u32>, String> {
        match self.value::<u32>(column)? {
            Some(count) if !(1..=1 << 20).contains(&count) => {
                Err(format!("{column}: expected 1 to {}, found {count}", 1 << 20))
            }
            count => Ok(count),
        }
    }
}

fn of_record(cells: &Cells<'_>, file: &Path) -> Result<Run, String> {
    let folder = file.parent().unwrap_or(Path::new(""));
    let path = |column| cells.text(column).map(|path| folder.join(path));
    let layers = LayersArgs {
        summary: path("summary"),
        graph: path("graph"),
        hf_config: path("hf_config"),
        task: cells.text("task").map(str::to_owned),
        training: TrainingArgs {
            batch: cells.count("batch")?,
            seq: cells.count("seq")?,
            optimizer: cells.value("optimizer")?,
            precision: cells.value("precision")?,
            samples: cells.value("samples")?.map(NonZeroU64::get),
            summary_pass: cells.value("summary_pass")?.unwrap_or(false),
            ..TrainingArgs::default()
        },
        gpus: None,
    };
    if COLUMNS[..4].iter().filter(|column| cells.text(column).is_some()).count() != 1 {
        return Err(format!("expected one of {}", COLUMNS[..4].join(", ")));
    }
    let measured: Option<Bytes> = cells.value("measured")?;
    let measured =
        measured.ok_or("measured is missing: expected memory such as 5262 (MiB) or 5.2G")?;
    one(&layers, measured).map_err(|error| error.to_string())
}
