//! Trace files that cannot be read: where, and what was expected.

use super::PassedOver;
use std::fmt;
use std::path::PathBuf;

/// A trace could not be read.
#[derive(Debug)]
pub struct TraceError {
    /// The file.
    pub file: PathBuf,
    /// Line and column name, once the file is open.
    pub place: Option<(u64, &'static str)>,
    /// What was wrong.
    pub kind: TraceErrorKind,
}

/// What was wrong with a trace.
#[derive(Debug, thiserror::Error)]
pub enum TraceErrorKind {
    /// The file could not be read.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// It is not CSV.
    #[error("not a CSV file: {0}")]
    Csv(String),
    /// A table without a header has an unknown number of columns.
    #[error("the row has {found} columns; expected {expected}")]
    WrongWidth {
        /// Columns that there are.
        found: usize,
        /// What would do.
        expected: &'static str,
    },
    /// Columns that must be there are not.
    #[error("{}; expected {expected}", missing_columns(missing, unknown))]
    MissingColumns {
        /// The columns.
        missing: Vec<&'static str>,
        /// Columns that are there and not known.
        unknown: Vec<String>,
        /// A header that would do.
        expected: &'static str,
    },
    /// A column that is there more than once.
    #[error("column {column:?} is there twice")]
    RepeatedColumn {
        /// The column.
        column: String,
    },
    /// A value is not what the column holds.
    #[error("{value:?} is not {expected}")]
    Value {
        /// The value.
        value: String,
        /// What belongs there.
        expected: &'static str,
    },
    /// A task is not in the catalogue and its row does not describe it.
    #[error("unknown task {name:?}: not in the built-in catalogue, and the row gives no {missing}")]
    UnknownTask {
        /// The task.
        name: String,
        /// The first column that is missing.
        missing: &'static str,
    },
    /// Two rows have one id.
    #[error("{id:?} is the id of line {line} too; each task has its own")]
    RepeatedId {
        /// The id.
        id: String,
        /// Where it was first.
        line: u64,
    },
    /// There is nothing in it.
    #[error("the trace has no tasks")]
    Empty,
    /// There are rows, and none of them is a task.
    #[error("the trace has no tasks: {0}")]
    AllPassedOver(PassedOver),
    /// There is no sample in it.
    #[error("the duration column has no values")]
    NoSamples,
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if let Some((line, column)) = self.place {
            write!(f, ", line {line}")?;
            if !column.is_empty() {
                write!(f, ", column {column}")?;
            }
        }
        write!(f, ": {}", self.kind)
    }
}

impl std::error::Error for TraceError {}

/// `no column "a", no column "b" in the header, which has "c" instead`.
fn missing_columns(missing: &[&str], unknown: &[String]) -> String {
    let each: Vec<String> = missing.iter().map(|column| format!("{column:?}")).collect();
    let noun = if each.len() == 1 { "column" } else { "columns" };
    let others: Vec<String> = unknown.iter().take(8).map(|column| format!("{column:?}")).collect();
    let instead = match others.is_empty() {
        true => String::new(),
        false => format!(", which has {} instead", others.join(", ")),
    };
    format!("no {noun} {} in the header{instead}", each.join(", "))
}
