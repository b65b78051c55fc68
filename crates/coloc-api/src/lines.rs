//! Tasks as lines of tab-separated values, which are written and read several times as fast as JSON: a list may be long.
//!
//! A cell that is empty stands for null, zero or nothing, by the kind of its column. Times are in milliseconds.

use crate::view::{Progress, ReasonCode, TaskView, WAITING};
use coloc_model::TaskState;
use std::borrow::Cow;
use std::str::FromStr;

/// The first line. Later versions may have more columns on the right.
pub const HEADER: &str = "id\tstate\tarray_id\tarray_index\tsubmitted_ms\tstarted_ms\tended_ms\tpriority\ttime_limit_ms\t\
    gpus\tgpu_mem_bytes\testimate_bytes\tpeak_bytes\tattempts\tooms\tpreemptions\texit_code\tgpu_ids\tname\tuser\treason\t\
    bound_bytes\tpromised_bytes\tused_bytes\tfirst_started_ms\theld_by\tposition\treason_code\tprogress\tstopped_ms";

/// A line that is no task.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadLine {
    /// A column is missing.
    #[error("a line of the list ends before its column {0}")]
    Short(&'static str),
    /// A cell cannot be what it is.
    #[error("a line of the list has {found:?} as {column}")]
    Cell {
        /// Where.
        column: &'static str,
        /// What was found.
        found: String,
    },
    /// It is no text.
    #[error("a line of the list is not in UTF-8")]
    NoText,
}

/// Writes a number.
pub fn write_number(text: &mut Vec<u8>, number: u64) {
    text.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Writes a task and ends the line.
pub fn write<T: AsRef<str>>(text: &mut Vec<u8>, task: &TaskView<T>) {
    let mut line = Line(text);
    line.number(task.id.into());
    line.word(task.state.name());
    line.maybe(task.array_id.map(u64::from));
    line.maybe(task.array_index.map(u64::from));
    line.maybe(Some(millis(task.submitted_s)));
    line.maybe(task.started_s.map(millis));
    line.maybe(task.ended_s.map(millis));
    line.signed(task.priority);
    line.maybe(task.time_limit_s.map(millis));
    line.number(task.gpus.into());
    line.maybe(task.gpu_mem_bytes);
    line.maybe(task.estimate_bytes);
    line.number(task.peak_bytes);
    line.number(task.attempts.into());
    line.number(task.ooms.into());
    line.number(task.preemptions.into());
    match task.exit_code {
        Some(0) => line.word("0"),
        code => line.signed(code.unwrap_or(0)),
    }
    for (index, &gpu) in task.gpu_ids.iter().enumerate() {
        line.0.extend_from_slice(if index > 0 { b"," } else { b"" });
        write_number(line.0, gpu.into());
    }
    line.end_cell();
    line.text(task.name.as_ref());
    line.text(task.user.as_ref());
    let reason = task.reason.as_ref().map_or("", AsRef::as_ref);
    // Most tasks of a long list wait for the same reason.
    let usual = task.state == TaskState::Pending && reason == WAITING;
    line.text(if usual { "" } else { reason });
    line.maybe(task.bound_bytes);
    line.maybe(task.promised_bytes);
    line.maybe(task.used_bytes);
    line.maybe(task.first_started_s.map(millis));
    line.text(task.held_by.as_ref().map_or("", AsRef::as_ref));
    line.number(task.position.unwrap_or(0).into());
    line.word(task.reason_code.map_or("", ReasonCode::name));
    match &task.progress {
        Some(progress) => line.text(&progress.to_string()),
        None => line.end_cell(),
    }
    line.maybe(task.stopped_s.map(millis));
    // The last cell ends with the line.
    if let Some(last) = text.last_mut() {
        *last = b'\n';
    }
}

fn millis(seconds: f64) -> u64 {
    (seconds * 1000.0).round() as u64
}

/// A line that is being written, each cell with a tab behind it.
struct Line<'a>(&'a mut Vec<u8>);

impl Line<'_> {
    fn end_cell(&mut self) {
        self.0.push(b'\t');
    }

    fn word(&mut self, word: &str) {
        self.0.extend_from_slice(word.as_bytes());
        self.end_cell();
    }

    /// Nothing for zero.
    fn number(&mut self, number: u64) {
        self.maybe((number != 0).then_some(number));
    }

    fn maybe(&mut self, number: Option<u64>) {
        if let Some(number) = number {
            write_number(self.0, number);
        }
        self.end_cell();
    }

    /// Nothing for zero.
    fn signed(&mut self, number: i32) {
        if number < 0 {
            self.0.push(b'-');
        }
        self.number(number.unsigned_abs().into());
    }

    /// What would end a cell is written as programs do.
    fn text(&mut self, text: &str) {
        if !any_byte(text, |byte| matches!(byte, b'\t' | b'\n' | b'\\')) {
            return self.word(text);
        }
        for &byte in text.as_bytes() {
            match byte {
                b'\t' => self.0.extend_from_slice(b"\\t"),
                b'\n' => self.0.extend_from_slice(b"\\n"),
                b'\\' => self.0.extend_from_slice(b"\\\\"),
                other => self.0.push(other),
            }
        }
        self.end_cell();
    }
}

/// Whether a text has such a byte. All are looked at, many at once: most texts are short and have none.
fn any_byte(text: &str, such: impl Fn(u8) -> bool) -> bool {
    text.bytes().fold(false, |found, byte| found | such(byte))
}

/// Reads a line. Texts are borrowed from it where they can be.
pub fn read(line: &[u8]) -> Result<TaskView<Cow<'_, str>>, BadLine> {
    let line = std::str::from_utf8(line).map_err(|_| BadLine::NoText)?;
    // Asked once for all texts of the line: hardly any has one.
    let unescape = match memchr::memchr(b'\\', line.as_bytes()) {
        None => Cow::Borrowed,
        Some(_) => unescape,
    };
    let mut cells = Cells { line, at: Some(0), wrong: None };
    let id = cells.number("id");
    let state = cells.next("state");
    let known = TaskState::named(state);
    if known.is_none() {
        cells.is_bad("state", state);
    }
    let state = known.unwrap_or_default();
    let task = TaskView {
        id,
        state,
        array_id: cells.maybe("array_id"),
        array_index: cells.maybe("array_index"),
        submitted_s: cells.seconds("submitted_ms").unwrap_or(0.0),
        started_s: cells.seconds("started_ms"),
        ended_s: cells.seconds("ended_ms"),
        priority: cells.number("priority"),
        time_limit_s: cells.seconds("time_limit_ms"),
        gpus: cells.number("gpus"),
        gpu_mem_bytes: cells.maybe("gpu_mem_bytes"),
        estimate_bytes: cells.maybe("estimate_bytes"),
        peak_bytes: cells.number("peak_bytes"),
        attempts: cells.number("attempts"),
        ooms: cells.number("ooms"),
        preemptions: cells.number("preemptions"),
        exit_code: cells.maybe("exit_code"),
        gpu_ids: cells.numbers("gpu_ids"),
        name: unescape(cells.next("name")),
        user: unescape(cells.next("user")),
        reason: match cells.next("reason") {
            "" => (state == TaskState::Pending).then_some(WAITING.into()),
            reason => Some(unescape(reason)),
        },
        bound_bytes: cells.later("bound_bytes"),
        promised_bytes: cells.later("promised_bytes"),
        used_bytes: cells.later("used_bytes"),
        first_started_s: cells.later("first_started_ms").map(seconds),
        held_by: cells.later_text().map(unescape),
        position: cells.later("position"),
        reason_code: cells.later_text().and_then(ReasonCode::named),
        progress: cells.progress(&unescape),
        stopped_s: cells.later("stopped_ms").map(seconds),
    };
    match cells.wrong {
        None => Ok(task),
        Some(wrong) => Err(wrong),
    }
}

fn seconds(millis: u64) -> f64 {
    millis as f64 / 1000.0
}

/// The cells of a line, one after the other. One that cannot be read is nothing, and remembered: to ask after each would
/// take longer than to read it.
struct Cells<'a> {
    line: &'a str,
    /// Where the next begins.
    at: Option<usize>,
    /// The first of what was wrong.
    wrong: Option<BadLine>,
}

impl<'a> Cells<'a> {
    #[cold]
    fn is_bad(&mut self, column: &'static str, found: &str) {
        let found = || found.chars().take(80).collect();
        self.wrong.get_or_insert_with(|| BadLine::Cell { column, found: found() });
    }

    #[cold]
    fn is_short(&mut self, column: &'static str) {
        self.wrong.get_or_insert(BadLine::Short(column));
    }

    #[inline]
    fn next(&mut self, column: &'static str) -> &'a str {
        let Some(from) = self.at else {
            self.is_short(column);
            return "";
        };
        let length = self.line.as_bytes()[from..].iter().position(|&byte| byte == b'\t');
        self.at = length.map(|length| from + length + 1);
        &self.line[from..length.map_or(self.line.len(), |length| from + length)]
    }

    fn progress(&mut self, unescape: &dyn Fn(&'a str) -> Cow<'a, str>) -> Option<Progress> {
        let cell = self.later_text()?;
        let progress = Progress::read(&unescape(cell));
        if progress.is_none() {
            self.is_bad("progress", cell);
        }
        progress
    }

    #[inline]
    fn maybe<N: FromStr>(&mut self, column: &'static str) -> Option<N> {
        match self.next(column) {
            "" => None,
            cell => cell.parse().map_err(|_| self.is_bad(column, cell)).ok(),
        }
    }

    #[inline]
    fn number<N: FromStr + Default>(&mut self, column: &'static str) -> N {
        self.maybe(column).unwrap_or_default()
    }

    #[inline]
    fn seconds(&mut self, column: &'static str) -> Option<f64> {
        self.maybe(column).map(seconds)
    }

    /// A column that older daemons do not write.
    #[inline]
    fn later<N: FromStr>(&mut self, column: &'static str) -> Option<N> {
        self.at.is_some().then(|| self.maybe(column))?
    }

    #[inline]
    fn later_text(&mut self) -> Option<&'a str> {
        self.at.is_some().then(|| self.next("")).filter(|text| !text.is_empty())
    }

    #[inline]
    fn numbers(&mut self, column: &'static str) -> Vec<u32> {
        match self.next(column) {
            "" => Vec::new(),
            cell => {
                let numbers: Result<_, _> = cell.split(',').map(str::parse).collect();
                numbers.map_err(|_| self.is_bad(column, cell)).unwrap_or_default()
            }
        }
    }
}

fn unescape(cell: &str) -> Cow<'_, str> {
    let (mut text, mut chars) = (String::with_capacity(cell.len()), cell.chars());
    while let Some(char) = chars.next() {
        text.push(match char {
            '\\' => match chars.next() {
                Some('t') => '\t',
                Some('n') => '\n',
                other => other.unwrap_or('\\'),
            },
            other => other,
        });
    }
    Cow::Owned(text)
}

#[cfg(test)]
mod tests;
