//! Where the tasks of a trace come from: the file, the line and the id that each has there, and how many
//! rows became no task.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

/// The row of a task.
#[derive(Clone, Default, Debug)]
pub(super) struct Origin {
    pub(super) line: u64,
    pub(super) id: Option<Box<str>>,
}

/// Where a trace was read.
#[derive(Clone, Default, Debug)]
pub(super) struct Source {
    pub(super) file: PathBuf,
    /// Of each task, in the trace's order.
    pub(super) origins: Vec<Origin>,
    pub(super) passed_over: PassedOver,
    /// Columns that are not known, with those that are.
    pub(super) columns: Option<UnknownColumns>,
}

/// Columns of a trace file that are of no use.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownColumns {
    /// Their names.
    pub names: Vec<String>,
    /// The columns that the format has.
    pub known: &'static [&'static str],
}

impl fmt::Display for UnknownColumns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MOST: usize = 8;
        let mut names: Vec<String> =
            self.names.iter().take(MOST).map(|name| format!("{name:?}")).collect();
        let others = self.names.len().saturating_sub(MOST);
        names.extend((others > 0).then(|| format!("{others} others")));
        let noun = if self.names.len() == 1 { "column" } else { "columns" };
        let (names, known) = (names.join(", "), self.known.join(", "));
        write!(f, "passed over {noun} {names}, which this format does not have; it has {known}")
    }
}

/// A row of a trace file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// The file.
    pub file: PathBuf,
    /// The line, from 1.
    pub line: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, line {}", self.file.display(), self.line)
    }
}

/// Rows that are no work for a GPU, by the reason.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct PassedOver(BTreeMap<&'static str, usize>);

impl PassedOver {
    pub(super) fn note(&mut self, reason: &'static str) {
        *self.0.entry(reason).or_default() += 1;
    }

    /// How many rows.
    pub fn rows(&self) -> usize {
        self.0.values().sum()
    }

    /// Each reason with its number of rows.
    pub fn reasons(&self) -> impl Iterator<Item = (&'static str, usize)> + '_ {
        self.0.iter().map(|(&reason, &rows)| (reason, rows))
    }
}

impl fmt::Display for PassedOver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = self.rows();
        let parts: Vec<String> =
            self.reasons().map(|(why, rows)| format!("{rows} {why}")).collect();
        let noun = if rows == 1 { "row" } else { "rows" };
        write!(f, "passed over {rows} {noun}: {}", parts.join(", "))
    }
}
