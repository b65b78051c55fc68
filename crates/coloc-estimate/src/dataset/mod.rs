//! GPUMemNet's measured training runs: rows of its CSV files as graphs.

mod cnn;
mod config;
mod layers;
mod mlp;
mod score;
mod transformer;

use crate::graph::Graph;
use crate::run::RunConfig;
use coloc_model::{Bytes, LineCounter};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Samples in the generators' data sets.
const SAMPLES: u32 = 4096;
/// What the A100 of these runs left to the allocator beside context and libraries.
const DEVICE_ROOM: Bytes = Bytes::from_mib(38_800);

/// Which generator made the rows, and so which columns they have.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    /// Fully connected nets.
    Mlp,
    /// Convolutional nets of seven topologies.
    Cnn,
    /// Transformer encoders.
    Transformer,
}

impl FromStr for Kind {
    type Err = DatasetError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "gpumemnet-mlp" => Ok(Kind::Mlp),
            "gpumemnet-cnn" => Ok(Kind::Cnn),
            "gpumemnet-transformer" => Ok(Kind::Transformer),
            _ => Err(DatasetError::UnknownKind(text.to_owned())),
        }
    }
}

/// A data file could not be used.
#[derive(Debug, thiserror::Error)]
pub enum DatasetError {
    /// Not one of the kinds.
    #[error("unknown kind {0:?}; known are gpumemnet-mlp, gpumemnet-cnn and gpumemnet-transformer")]
    UnknownKind(String),
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A line is no row of a table.
    #[error("{}: line {line}: {problem}", path.display())]
    Row {
        /// Which file.
        path: PathBuf,
        /// Which line.
        line: u64,
        /// What is wrong with it.
        problem: String,
    },
    /// There is nothing in it.
    #[error("{}: line 1: there are no rows below a header", path.display())]
    Empty {
        /// Which file.
        path: PathBuf,
    },
    /// A column is missing.
    #[error(
        "{}: line 1: there is no column {column:?}; is this a file of another --kind?", path.display()
    )]
    Column {
        /// Which file.
        path: PathBuf,
        /// Which column.
        column: &'static str,
    },
    /// A cell makes no sense.
    #[error("{}: line {line}, column {column:?}: {problem}", path.display())]
    Cell {
        /// Which file.
        path: PathBuf,
        /// Which line.
        line: u64,
        /// Which column.
        column: &'static str,
        /// What is wrong with it and what would be right.
        problem: String,
    },
}

/// Mean utilization of a run alone on its GPU; what was not measured is absent.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Measured {
    /// SMs with work, as a share of time.
    pub smact: Option<f64>,
    /// Warps resident, as a share of the most.
    pub smocc: Option<f64>,
    /// Single-precision pipe in use, as a share of time.
    pub fp32: Option<f64>,
}

/// How a row counts in an evaluation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RowOutcome {
    /// Trained to the end of its minute; everything counts.
    Trained,
    /// Ran out of memory: counts only in the last bin.
    OutOfMemory,
    /// Cannot have trained; outside every mean.
    Crashed,
    /// Without a usable measurement or without layers.
    Skipped,
}

/// One run.
#[derive(Clone, Debug)]
pub struct Row {
    /// Its line in the file.
    pub line: u64,
    /// Rows of one draw must not be split between training and test.
    pub group: u64,
    /// The computation; `None` when the row has no layers.
    pub graph: Option<Graph>,
    /// How it was trained.
    pub run: RunConfig,
    /// What the driver reported at most, in MiB.
    pub measured_mib: f64,
    /// Utilization.
    pub measured: Measured,
    /// How it counts.
    pub outcome: RowOutcome,
    /// The layer list as the file has it: kind, activations of a sample, parameters.
    pub layers: Vec<layers::Layer>,
    /// Activations of a sample and parameters as the file adds them up.
    pub totals: (f64, f64),
    /// The activation function's name.
    pub activation: String,
}

pub use layers::Layer;
pub use score::{BinAccuracy, Prediction, Scores, r2, score};

/// Reads every row of a file.
pub fn read(path: &Path, kind: Kind) -> Result<Vec<Row>, DatasetError> {
    let file = std::fs::File::open(path)
        .map_err(|source| DatasetError::Read { path: path.to_owned(), source })?;
    read_from(file, path, kind)
}

/// Reads every row of what `path` names in errors.
pub fn read_from(
    mut input: impl std::io::Read,
    path: &Path,
    kind: Kind,
) -> Result<Vec<Row>, DatasetError> {
    let mut text = Vec::new();
    input
        .read_to_end(&mut text)
        .map_err(|source| DatasetError::Read { path: path.to_owned(), source })?;
    let mut reader = csv::Reader::from_reader(&text[..]);
    let headers = reader.headers().map_err(|error| row_error(path, 1, &error))?.clone();
    let columns = config::Columns::new(path, &headers);
    let mut rows = Vec::new();
    let mut lines = LineCounter::new(&text);
    let mut line_at = |place: Option<&csv::Position>| {
        lines.line_of(place.map_or(0, |place| usize::try_from(place.byte()).unwrap_or(usize::MAX)))
    };
    for record in reader.records() {
        let record = record.map_err(|error| row_error(path, line_at(error.position()), &error))?;
        let line = line_at(record.position());
        // The reader's own count: folds stay those of the published results.
        let group = record.position().map_or(0, csv::Position::line);
        let cells = config::Cells { columns: &columns, record: &record, line, group };
        rows.push(match kind {
            Kind::Mlp => mlp::row(&cells)?,
            Kind::Cnn => cnn::row(&cells)?,
            Kind::Transformer => transformer::row(&cells)?,
        });
    }
    if rows.is_empty() {
        return Err(DatasetError::Empty { path: path.to_owned() });
    }
    Ok(rows)
}

fn row_error(path: &Path, line: u64, error: &csv::Error) -> DatasetError {
    let problem = match error.kind() {
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            format!("the row has {len} values, the header {expected_len}")
        }
        csv::ErrorKind::Utf8 { .. } => "the text is not UTF-8".to_owned(),
        _ => "this is no row of comma-separated values".to_owned(),
    };
    DatasetError::Row { path: path.to_owned(), line, problem }
}

#[cfg(test)]
mod tests;
