//! Reading traces.
//!
//! Both formats are CSV with a header. `carma` has `submit_time_s,task` and takes everything else from
//! the catalogue; `coloc` may describe each task in full, and falls back on the catalogue for columns
//! that are left out.

use super::lines::BoundedLines;
use super::{Trace, TraceError, TraceErrorKind, TraceTask};
use crate::Names;
use coloc_model::{Bytes, Millis, SignatureId, Time, UserId};
use coloc_physics::Profile;
use coloc_physics::catalogue::{self, Workload};
use std::io::Read;
use std::path::Path;

/// The columns of the `coloc` format, in the order in which they are written.
pub(super) const COLUMNS: [&str; 11] = [
    "submit_s",
    "task",
    "user",
    "gpus",
    "duration_s",
    "memory_mib",
    "gpu_active",
    "sm",
    "occupancy",
    "dram",
    "exclusive",
];
const CARMA_COLUMNS: [&str; 2] = ["submit_time_s", "task"];

/// Ten years: longer than any trace, short enough for arithmetic in milliseconds.
const MAX_SECONDS: f64 = 10.0 * 365.0 * 86_400.0;
const MAX_GPUS: u32 = 65_536;

/// A trace format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// Our own: everything about each task.
    Coloc,
    /// CARMA's: a time and the name of a catalogued task.
    Carma,
}

/// Reads a trace from `input`; `file` is for error messages.
pub fn read(file: &Path, input: impl Read, format: Format) -> Result<Trace, TraceError> {
    let at_file = |place, kind| TraceError { file: file.to_owned(), place, kind };
    let mut text = Vec::new();
    let read = BoundedLines::new(input).read_to_end(&mut text);
    read.map_err(|error| at_file(None, error.into()))?;
    let mut csv = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(&text[..]);
    let header = csv.headers().map_err(|e| at_file(Some((1, "")), csv_error(e)))?.clone();
    let columns = Columns::new(&header, format).map_err(|kind| at_file(Some((1, "")), kind))?;
    let (mut names, mut users) = (Names::default(), Names::default());
    let mut tasks = Vec::new();
    let mut record = csv::StringRecord::new();
    loop {
        match csv.read_record(&mut record) {
            Ok(false) => break,
            Ok(true) => {}
            Err(error) => {
                let line = line_of(&text, error.position());
                return Err(at_file(Some((line, "")), csv_error(error)));
            }
        }
        let row = Row { columns: &columns, record: &record };
        let task = row.task(&mut names, &mut users).map_err(|(column, kind)| {
            let is_submission = column == COLUMNS[0] && format == Format::Carma;
            let column = if is_submission { CARMA_COLUMNS[0] } else { column };
            at_file(Some((line_of(&text, record.position()), column)), kind)
        })?;
        tasks.push(task);
    }
    if tasks.is_empty() {
        return Err(at_file(None, TraceErrorKind::Empty));
    }
    Ok(Trace::new(tasks, names, users))
}

/// The line on which a record begins, as an editor counts. The reader's own count is behind after empty
/// lines and where lines end in CRLF.
fn line_of(text: &[u8], position: Option<&csv::Position>) -> u64 {
    let at = position.map_or(0, csv::Position::byte) as usize;
    let empty = text[at..].iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
    1 + text[..at + empty].iter().filter(|&&byte| byte == b'\n').count() as u64
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

/// Where each known column is in the file.
struct Columns {
    positions: [Option<usize>; COLUMNS.len()],
}

impl Columns {
    fn new(header: &csv::StringRecord, format: Format) -> Result<Self, TraceErrorKind> {
        let known: &[&str] = match format {
            Format::Coloc => &COLUMNS,
            Format::Carma => &CARMA_COLUMNS,
        };
        let mut positions = [None; COLUMNS.len()];
        for (position, column) in header.iter().enumerate() {
            let index = known.iter().position(|&name| name == column);
            let index = index.ok_or_else(|| TraceErrorKind::UnknownColumn {
                column: column.to_owned(),
                known: known.join(", "),
            })?;
            if positions[index].replace(position).is_some() {
                return Err(TraceErrorKind::RepeatedColumn { column: column.to_owned() });
            }
        }
        let expected = match format {
            Format::Coloc => "at least submit_s,task",
            Format::Carma => "submit_time_s,task",
        };
        for (index, &column) in known[..2].iter().enumerate() {
            if positions[index].is_none() {
                return Err(TraceErrorKind::MissingColumn { column, expected });
            }
        }
        Ok(Columns { positions })
    }
}

struct Row<'a> {
    columns: &'a Columns,
    record: &'a csv::StringRecord,
}

type Fault = (&'static str, TraceErrorKind);

impl Row<'_> {
    /// The text in a column, if the file has it and it is not empty.
    fn text(&self, column: &'static str) -> Option<&str> {
        let index = COLUMNS.iter().position(|&name| name == column)?;
        self.record.get(self.columns.positions[index]?).filter(|text| !text.is_empty())
    }

    fn parsed<T>(
        &self,
        column: &'static str,
        expected: &'static str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, Fault> {
        let Some(text) = self.text(column) else { return Ok(None) };
        let fault = || (column, TraceErrorKind::Value { value: text.to_owned(), expected });
        parse(text).map(Some).ok_or_else(fault)
    }

    fn number(
        &self,
        column: &'static str,
        expected: &'static str,
        range: std::ops::RangeInclusive<f64>,
    ) -> Result<Option<f64>, Fault> {
        let within = |text: &str| text.parse().ok().filter(|value| range.contains(value));
        self.parsed(column, expected, within)
    }

    fn share(&self, column: &'static str) -> Result<Option<f64>, Fault> {
        self.number(column, "a share from 0 to 1", 0.0..=1.0)
    }

    fn task(&self, names: &mut Names, users: &mut Names) -> Result<TraceTask, Fault> {
        let name = self.text("task").ok_or((
            "task",
            TraceErrorKind::Value { value: String::new(), expected: "the name of a task" },
        ))?;
        let known = catalogue::find(name);
        let missing = |column| {
            ("task", TraceErrorKind::UnknownTask { name: name.to_owned(), missing: column })
        };
        let seconds = "a number of seconds from 0 to ten years";
        let submit = self.number("submit_s", seconds, 0.0..=MAX_SECONDS)?.ok_or((
            "submit_s",
            TraceErrorKind::Value { value: String::new(), expected: seconds },
        ))?;
        let gpus = self.parsed("gpus", "a number of GPUs from 1 to 65536", |text| {
            text.parse().ok().filter(|gpus| (1..=MAX_GPUS).contains(gpus))
        })?;
        let duration = self.number("duration_s", seconds, 0.001..=MAX_SECONDS)?;
        let exclusive = self.parsed("exclusive", "0, 1, true or false", |text| match text {
            "0" | "false" => Some(false),
            "1" | "true" => Some(true),
            _ => None,
        })?;
        let duration = duration
            .map(Millis::from_secs_f64)
            .or(known.map(Workload::duration))
            .ok_or_else(|| missing("duration_s"))?;
        Ok(TraceTask {
            submit: Time::from_secs_f64(submit),
            signature: SignatureId(names.number(name)),
            user: UserId(users.number(self.text("user").unwrap_or("user"))),
            gpus: gpus.or(known.map(|workload| workload.gpus)).unwrap_or(1),
            duration,
            profile: self.profile(known, missing)?,
            exclusive: exclusive.unwrap_or(false),
        })
    }

    fn profile(
        &self,
        known: Option<&Workload>,
        missing: impl Fn(&'static str) -> Fault,
    ) -> Result<Profile, Fault> {
        let base = known.map(Workload::profile);
        let memory = self.number("memory_mib", "MiB from 0 to 16777216", 0.0..=16_777_216.0)?;
        let memory = memory
            .map(Bytes::from_mib_f64)
            .or(base.map(|profile| profile.memory))
            .ok_or_else(|| missing("memory_mib"))?;
        let activity = base.map(|profile| profile.activity).unwrap_or_default();
        let sm = self.share("sm")?.or(base.map(|_| activity.sm.get()));
        let sm = sm.ok_or_else(|| missing("sm"))?;
        let gpu = self.share("gpu_active")?.unwrap_or(activity.gpu.get());
        let occupancy = self.share("occupancy")?.or(base.map(|_| activity.occupancy.get()));
        let dram = self.share("dram")?.or(base.map(|_| activity.dram.get()));
        // Where a trace gives SM activity only: about half of it in occupancy and in DRAM.
        Ok(Profile::new(gpu, sm, occupancy.unwrap_or(sm / 2.0), dram.unwrap_or(sm / 2.0), memory))
    }
}
