//! Tables of text: finds columns, reads values, and says file, line and column of what it cannot read.

use super::lines::BoundedLines;
use super::{TraceError, TraceErrorKind};
use coloc_model::{LineCounter, Millis, Time};
use std::io::Read;
use std::ops::RangeInclusive;
use std::path::Path;

/// Ten years: longer than any trace, short enough for arithmetic in milliseconds.
pub(super) const MAX_SECONDS: f64 = 10.0 * 365.0 * 86_400.0;
const MAX_GPUS: u32 = 65_536;
const SECONDS: &str = "a number of seconds from 0 to ten years";

/// Where columns get their names.
#[derive(Clone, Copy, Debug)]
pub(super) enum Header {
    /// From the first row.
    First,
    /// There is none: the number of columns tells which of these they are.
    None(&'static [&'static [&'static str]]),
}

/// What a format's table looks like.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    /// Columns that mean something, the required ones first.
    pub(super) columns: &'static [&'static str],
    /// How many of them must be there.
    pub(super) required: usize,
    /// A header that would do, for messages.
    pub(super) expected: &'static str,
    /// Where columns get their names.
    pub(super) header: Header,
    /// Its files have columns that are of no use here: they are passed over without a word.
    pub(super) lenient: bool,
    /// What stands between values.
    pub(super) delimiter: u8,
}

impl Layout {
    /// Comma-separated, with these columns. Others are passed over, and told.
    pub(super) const fn strict(
        columns: &'static [&'static str],
        required: usize,
        expected: &'static str,
    ) -> Self {
        let header = Header::First;
        Layout { columns, required, expected, header, lenient: false, delimiter: b',' }
    }

    /// Where the columns are, going by the first row.
    fn positions(&self, first: &csv::StringRecord) -> Result<Found, TraceErrorKind> {
        match self.header {
            Header::First => self.named(first.iter()),
            Header::None(alternatives) => {
                let fits = |names: &&&[&str]| names.len() == first.len();
                let names = alternatives.iter().find(fits).ok_or_else(|| {
                    let (found, expected) = (first.len(), self.expected);
                    TraceErrorKind::WrongWidth { found, expected }
                })?;
                self.named(names.iter().copied())
            }
        }
    }

    fn named<'a>(&self, header: impl Iterator<Item = &'a str>) -> Result<Found, TraceErrorKind> {
        let mut positions = vec![None; self.columns.len()];
        let mut unknown = Vec::new();
        for (position, column) in header.enumerate() {
            match self.columns.iter().position(|&name| name == column) {
                Some(index) if positions[index].replace(position).is_some() => {
                    return Err(TraceErrorKind::RepeatedColumn { column: column.to_owned() });
                }
                Some(_) => {}
                None => unknown.push(column.to_owned()),
            }
        }
        let lacks = |index: &usize| positions[*index].is_none();
        let missing: Vec<&str> =
            (0..self.required).filter(lacks).map(|index| self.columns[index]).collect();
        if !missing.is_empty() {
            // What is there instead may be what is missing, under another name.
            let expected = self.expected;
            return Err(TraceErrorKind::MissingColumns { missing, unknown, expected });
        }
        if self.lenient {
            unknown.clear();
        }
        Ok(Found { positions, unknown })
    }
}

/// Where a header has the columns of its format.
struct Found {
    positions: Vec<Option<usize>>,
    /// Columns that are not known, and worth a word.
    unknown: Vec<String>,
}

/// What is wrong with a row, and in which column.
pub(super) type Fault = (&'static str, TraceErrorKind);

/// One row of a table.
pub(super) struct Row<'a> {
    columns: &'static [&'static str],
    positions: &'a [Option<usize>],
    record: &'a csv::StringRecord,
    /// The line on which it begins.
    pub(super) line: u64,
}

impl Row<'_> {
    /// The text in a column, if the file has it and it is not empty.
    pub(super) fn text(&self, column: &'static str) -> Option<&str> {
        let index = self.columns.iter().position(|&name| name == column)?;
        self.record.get(self.positions[index]?).filter(|text| !text.is_empty())
    }

    /// The file has any of the columns from this one on.
    pub(super) fn has_any_from(&self, first: usize) -> bool {
        self.positions[first..].iter().any(Option::is_some)
    }

    /// A value, if the column has one.
    pub(super) fn parsed<T>(
        &self,
        column: &'static str,
        expected: &'static str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, Fault> {
        let Some(text) = self.text(column) else { return Ok(None) };
        let fault = || (column, TraceErrorKind::Value { value: text.to_owned(), expected });
        parse(text).map(Some).ok_or_else(fault)
    }

    /// A number within a range, if the column has one.
    pub(super) fn number(
        &self,
        column: &'static str,
        expected: &'static str,
        range: RangeInclusive<f64>,
    ) -> Result<Option<f64>, Fault> {
        let within = |text: &str| text.parse().ok().filter(|value| range.contains(value));
        self.parsed(column, expected, within)
    }

    /// A moment, which must be there.
    pub(super) fn time(&self, column: &'static str) -> Result<Time, Fault> {
        let seconds = self.number(column, SECONDS, 0.0..=MAX_SECONDS)?;
        seconds.map(Time::from_secs_f64).ok_or_else(|| empty(column, SECONDS))
    }

    /// A span of at least a millisecond, if the column has one.
    pub(super) fn span(&self, column: &'static str) -> Result<Option<Millis>, Fault> {
        Ok(self.number(column, SECONDS, 0.001..=MAX_SECONDS)?.map(Millis::from_secs_f64))
    }

    /// A number of GPUs, if the column has one.
    pub(super) fn gpus(&self, column: &'static str) -> Result<Option<u32>, Fault> {
        self.parsed(column, "a number of GPUs from 1 to 65536", |text| {
            text.parse().ok().filter(|gpus| (1..=MAX_GPUS).contains(gpus))
        })
    }
}

/// A value is not what belongs in its column.
pub(super) fn wrong(column: &'static str, value: &str, expected: &'static str) -> Fault {
    (column, TraceErrorKind::Value { value: value.to_owned(), expected })
}

/// A value that must be there is not.
pub(super) fn empty(column: &'static str, expected: &'static str) -> Fault {
    (column, TraceErrorKind::Value { value: String::new(), expected })
}

/// Reads every row of a table, and tells the columns that were passed over.
pub(super) fn read_rows(
    file: &Path,
    input: impl Read,
    layout: Layout,
    mut take: impl FnMut(&Row<'_>) -> Result<(), Fault>,
) -> Result<Vec<String>, TraceError> {
    let at_file = |place, kind| TraceError { file: file.to_owned(), place, kind };
    let mut text = Vec::new();
    let read = BoundedLines::new(input).read_to_end(&mut text);
    read.map_err(|error| at_file(None, error.into()))?;
    let mut csv = csv::ReaderBuilder::new()
        .trim(csv::Trim::All)
        .delimiter(layout.delimiter)
        // Only comma-separated values are quoted.
        .quoting(layout.delimiter == b',')
        .has_headers(matches!(layout.header, Header::First))
        .from_reader(&text[..]);
    let header = csv.headers().map_err(|e| at_file(Some((1, "")), csv_error(e)))?.clone();
    let Found { positions, unknown } =
        layout.positions(&header).map_err(|kind| at_file(Some((1, "")), kind))?;
    let mut record = csv::StringRecord::new();
    let mut lines = LineCounter::new(&text);
    let mut line_of = |position: Option<&csv::Position>| {
        lines.line_of(position.map_or(0, csv::Position::byte) as usize)
    };
    loop {
        match csv.read_record(&mut record) {
            Ok(false) => return Ok(unknown),
            Ok(true) => {}
            Err(error) => {
                let line = line_of(error.position());
                return Err(at_file(Some((line, "")), csv_error(error)));
            }
        }
        let line = line_of(record.position());
        let row = Row { columns: layout.columns, positions: &positions, record: &record, line };
        take(&row).map_err(|(column, kind)| at_file(Some((line, column)), kind))?;
    }
}

fn csv_error(error: csv::Error) -> TraceErrorKind {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => TraceErrorKind::Io(error),
        csv::ErrorKind::Utf8 { .. } => TraceErrorKind::Csv("the text is not UTF-8".into()),
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            TraceErrorKind::Csv(format!("the row has {len} values, the header {expected_len}"))
        }
        other => TraceErrorKind::Csv(format!("{other:?}")),
    }
}
