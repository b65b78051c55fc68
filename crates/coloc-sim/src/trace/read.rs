//! Reading traces: one file per format, one table reader for all.

use super::origin::{Origin, Source};
use super::table::{Fault, Header, Layout, Row, read_rows};
use super::{
    PassedOver, Trace, TraceError, TraceErrorKind, TraceTask, UnknownColumns, alibaba, described,
    gavel, sacct, tiresias,
};
use crate::Names;
use coloc_model::{GroupId, Time, UserId};
use rustc_hash::FxHashMap;
use std::io::Read;
use std::path::Path;

/// A trace format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// Our own: everything about each task.
    Coloc,
    /// CARMA's: a time and the name of a catalogued task.
    Carma,
    /// The Tiresias simulator's: GPUs and durations.
    Tiresias,
    /// Alibaba's v2023: pods with parts of GPUs.
    Alibaba,
    /// Gavel's: steps of jobs whose speeds were published.
    Gavel,
    /// Slurm's accounting, as `sacct -P` prints it.
    Sacct,
}

/// The names that a trace gives to what runs, and to users and groups.
#[derive(Default)]
pub(super) struct Known {
    pub(super) names: Names,
    users: Names,
    groups: Names,
    memberships: Vec<Option<GroupId>>,
}

impl Known {
    /// A user and the group that it acts for. A user who acts for several groups is one user in each: quotas
    /// and shares are agreed with both together.
    pub(super) fn user(&mut self, user: Option<&str>, group: Option<&str>) -> UserId {
        let user = user.unwrap_or("user");
        let group = group.map(|group| GroupId(self.groups.number(group)));
        let id = UserId(self.users.number(user));
        if id.index() == self.memberships.len() {
            self.memberships.push(group);
        }
        match group {
            Some(group) if self.memberships[id.index()] != Some(group) => {
                let apart = format!("{user}@{}", self.groups.name(group.0));
                let id = UserId(self.users.number(&apart));
                if id.index() == self.memberships.len() {
                    self.memberships.push(Some(group));
                }
                id
            }
            _ => id,
        }
    }
}

/// What a row is.
#[expect(clippy::large_enum_variant, reason = "nearly all rows are tasks, and there are millions")]
pub(super) enum Taken {
    Task(TraceTask),
    /// No work for a GPU, and why.
    PassedOver(&'static str),
}

/// Says what a row is.
type TakeRow = fn(&Row<'_>, &mut Known) -> Result<Taken, Fault>;

impl Format {
    fn reader(self) -> (Layout, TakeRow) {
        match self {
            Format::Coloc => (described::COLOC, described::task),
            Format::Carma => (described::CARMA, described::catalogued),
            Format::Tiresias => (tiresias::LAYOUT, tiresias::task),
            Format::Alibaba => (alibaba::LAYOUT, alibaba::task),
            Format::Gavel => (gavel::LAYOUT, gavel::task),
            Format::Sacct => (sacct::LAYOUT, sacct::task),
        }
    }

    /// The column with a task's own id.
    fn id_column(self) -> Option<&'static str> {
        match self {
            Format::Tiresias => Some("job_id"),
            Format::Alibaba => Some("name"),
            Format::Sacct => Some("JobID"),
            Format::Coloc | Format::Carma | Format::Gavel => None,
        }
    }

    /// An id may stand there once only. Slurm's come again when a job is requeued.
    fn ids_differ(self) -> bool {
        self != Format::Sacct
    }
}

/// Refuses ids that were there before.
#[derive(Default)]
struct Ids(FxHashMap<Box<str>, u64>);

impl Ids {
    fn take(&mut self, column: &'static str, id: &str, line: u64) -> Result<(), Fault> {
        match self.0.insert(id.into(), line) {
            None => Ok(()),
            Some(line) => Err((column, TraceErrorKind::RepeatedId { id: id.to_owned(), line })),
        }
    }
}

/// Reads a trace from `input`; `file` is for error messages.
pub fn read(file: &Path, input: impl Read, format: Format) -> Result<Trace, TraceError> {
    let (layout, take) = format.reader();
    let mut known = Known::default();
    let mut rows: Vec<(TraceTask, Origin)> = Vec::new();
    let (mut passed_over, mut ids) = (PassedOver::default(), Ids::default());
    let unknown = read_rows(file, input, layout, |row| {
        let task = match take(row, &mut known)? {
            Taken::Task(task) => task,
            Taken::PassedOver(reason) => {
                passed_over.note(reason);
                return Ok(());
            }
        };
        let id = format.id_column().and_then(|column| Some((column, row.text(column)?)));
        if let Some((column, id)) = id.filter(|_| format.ids_differ()) {
            ids.take(column, id, row.line)?;
        }
        rows.push((task, Origin { line: row.line, id: id.map(|(_, id)| id.into()) }));
        Ok(())
    })?;
    if rows.is_empty() {
        let kind = match passed_over.rows() {
            0 => TraceErrorKind::Empty,
            _ => TraceErrorKind::AllPassedOver(passed_over),
        };
        return Err(TraceError { file: file.to_owned(), place: None, kind });
    }
    // As the trace will have them.
    rows.sort_by_key(|(task, _)| task.submit);
    let (mut tasks, origins): (Vec<TraceTask>, Vec<Origin>) = rows.into_iter().unzip();
    if format == Format::Sacct {
        // Its clock began in 1970, a trace's begins with the first task.
        let first = tasks.iter().map(|task| task.submit).min().unwrap_or(Time::START);
        tasks.iter_mut().for_each(|task| task.submit = Time::START + task.submit.since(first));
    }
    let trace = Trace::new(tasks, known.names, known.users);
    let trace = trace.with_groups(known.groups, known.memberships);
    let columns = UnknownColumns { names: unknown, known: layout.columns };
    let columns = Some(columns).filter(|columns| !columns.names.is_empty());
    let source = Some(Source { file: file.to_owned(), origins, passed_over, columns });
    Ok(Trace { source, ..trace })
}

/// The samples of a `duration` column in GPU seconds, whatever else the file holds.
const SAMPLES: Layout = Layout {
    columns: &["duration"],
    required: 1,
    expected: "a column duration",
    header: Header::First,
    lenient: true,
    delimiter: b',',
};

/// Reads the `duration` column of a CSV.
pub fn read_column(file: &Path, input: impl Read) -> Result<Vec<f64>, TraceError> {
    let mut samples = Vec::new();
    read_rows(file, input, SAMPLES, |row| {
        samples.extend(row.number("duration", "a number of seconds", 0.0..=1e12)?);
        Ok(())
    })?;
    if samples.is_empty() {
        let (file, kind) = (file.to_owned(), TraceErrorKind::NoSamples);
        return Err(TraceError { file, place: None, kind });
    }
    Ok(samples)
}
