//! Small tables that people write: CSV with a header, and errors that say file, line and column.

pub(crate) mod slowdowns;
pub(crate) mod speeds;

use crate::error::CliError;
use coloc_model::LineCounter;
use csv::{DeserializeErrorKind, ErrorKind};
use serde::de::DeserializeOwned;
use std::path::Path;

/// Says what is wrong on a line of a table.
pub(crate) fn fault(file: &Path, line: u64, problem: impl Into<String>) -> CliError {
    CliError::Pairs { file: file.to_owned(), line, problem: problem.into() }
}

/// Reads all rows of a table, each with its line.
pub(crate) fn read<T: DeserializeOwned>(file: &Path) -> Result<Vec<(u64, T)>, CliError> {
    let text = std::fs::read(file).map_err(|error| fault(file, 1, error.to_string()))?;
    let mut csv = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(&text[..]);
    let header = csv.headers().map_err(|error| fault(file, 1, in_words(&error, None).1))?.clone();
    let mut lines = LineCounter::new(&text);
    let mut line_of = |place: Option<&csv::Position>| {
        lines.line_of(place.map_or(0, |place| usize::try_from(place.byte()).unwrap_or(usize::MAX)))
    };
    let mut rows = Vec::new();
    for record in csv.records() {
        let record = record
            .map_err(|error| fault(file, line_of(error.position()), in_words(&error, None).1))?;
        let line = line_of(record.position());
        let row = record.deserialize(Some(&header)).map_err(|error| {
            let (of_row, problem) = in_words(&error, Some((&header, &record)));
            fault(file, if of_row { line } else { 1 }, problem)
        })?;
        rows.push((line, row));
    }
    Ok(rows)
}

type Seen<'a> = (&'a csv::StringRecord, &'a csv::StringRecord);

/// Whether the row is at fault rather than the header, and what is wrong.
fn in_words(error: &csv::Error, seen: Option<Seen<'_>>) -> (bool, String) {
    match error.kind() {
        ErrorKind::UnequalLengths { expected_len, len, .. } => {
            (true, format!("the row has {len} values, the header {expected_len}"))
        }
        ErrorKind::Utf8 { .. } => (true, "the text is not UTF-8".to_owned()),
        ErrorKind::Deserialize { err, .. } => {
            let place = err.field().and_then(|field| usize::try_from(field).ok());
            let cell = seen.zip(place).and_then(|((header, record), place)| {
                Some((header.get(place)?, record.get(place)?))
            });
            match (cell, err.kind()) {
                (Some((column, value)), DeserializeErrorKind::Message(problem)) => {
                    (true, format!("column {column}: {value:?}: {problem}"))
                }
                (Some((column, value)), _) => {
                    (true, format!("column {column}: {value:?} is not a number"))
                }
                // Without a cell it is the header that lacks a column or has one too many.
                (None, DeserializeErrorKind::Message(problem)) => (false, problem.clone()),
                (None, _) => (false, "the header does not fit".to_owned()),
            }
        }
        _ => (true, "this is no row of comma-separated values".to_owned()),
    }
}
