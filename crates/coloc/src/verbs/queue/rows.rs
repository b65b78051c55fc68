//! The table of a queue. A list may be long: rows are kept as they come, all cells in one text, and measured meanwhile.

use super::clock;
use super::fold::Folded;
use crate::args::live::in_ranges;
use crate::output::terminal::{columns, cut, end_within, fit};
use crate::output::visible::visible;
use crate::parse::states::letters;
use coloc_api::lines::write_number;
use coloc_api::moment::Moment;
use coloc_api::view::{Progress, TaskView};
use coloc_model::TaskState;
use std::borrow::Cow;
use std::io::{self, Write};

const HEADER: [&str; 10] =
    ["ID", "NAME", "USER", "ST", "TIME", "LIMIT", "GPUS", "GPU-MEM", "DONE", "GPU(REASON)"];
/// How far tasks are. It is left out where no log tells.
const DONE: usize = 8;
/// On a narrow terminal: the limit, the memory, the user, how many GPUs, the time, how far it is, the name.
const SPARE: [usize; 7] = [5, 7, 2, 6, 4, 8, 1];
/// The longest name on a terminal.
const LONGEST_NAME: usize = 32;
/// Between columns.
const GAP: usize = 2;
const BLANK: &[u8] = &[b' '; 64];
/// Written at once.
const PIECE: usize = 64 << 10;

/// Rows as they come: a hundred thousand are no million small texts.
pub(super) struct Rows {
    /// Columns of the terminal.
    terminal: Option<usize>,
    cells: Cells,
    widths: [usize; HEADER.len()],
    /// Some log tells how far its task is.
    has_progress: bool,
}

impl Rows {
    pub(super) fn new(terminal: Option<usize>, header: bool) -> Self {
        let (cells, widths) = (Cells::default(), [0; HEADER.len()]);
        let mut rows = Rows { terminal, cells, widths, has_progress: false };
        if header {
            let mut row = rows.row();
            HEADER.into_iter().for_each(|title| row.text(title));
        }
        rows
    }

    fn row(&mut self) -> RowWriter<'_> {
        RowWriter { cells: &mut self.cells, widths: self.widths.iter_mut() }
    }

    pub(super) fn push<T: AsRef<str>>(&mut self, task: &TaskView<T>, now: Moment) {
        let name = self.name(task.name.as_ref());
        self.has_progress |= task.progress.is_some();
        let mut row = self.row();
        row.ascii(|text| write_id(text, task));
        row.text(&name);
        row.text(task.user.as_ref());
        row.ascii(|text| text.extend_from_slice(letters(task.state).as_bytes()));
        row.time(task.ran_s(now.secs()));
        row.time(task.time_limit_s);
        row.ascii(|text| write_number(text, task.gpus.into()));
        row.ascii(|text| write_memory(text, task));
        row.ascii(|text| write_progress(text, task.progress.as_ref()));
        row.cell(|text| write_place(text, task), chars_of);
    }

    /// Tasks of an array in one line.
    pub(super) fn push_folded(&mut self, folded: &Folded, now: Moment) {
        let Folded { first, gpus, .. } = folded;
        let (id, name) = (folded.id(), self.name(&first.name).into_owned());
        let id = self.terminal.map_or(id.as_str().into(), |_| cut(&id, LONGEST_NAME));
        let progress = folded.progress();
        self.has_progress |= progress.is_some();
        let mut row = self.row();
        row.text(&id);
        row.text(&name);
        row.text(&first.user);
        row.text(&folded.states());
        row.time(folded.began.map(|began| now.secs() - began));
        row.time(first.time_limit_s);
        row.ascii(|text| write_number(text, first.gpus.into()));
        let peak_bytes = folded.peak_bytes;
        row.ascii(|text| write_memory(text, &TaskView { peak_bytes, ..first.clone() }));
        row.ascii(|text| write_progress(text, progress.as_ref()));
        let gpus = in_ranges(gpus).replace(", ", ",");
        let why = folded.reason().map_or(String::new(), |why| format!("({why})"));
        row.text(format!("{gpus} {why}").trim());
    }

    /// A name, cut where it would fill a terminal.
    fn name<'a>(&self, name: &'a str) -> Cow<'a, str> {
        match self.terminal {
            Some(_) => cut(name, LONGEST_NAME),
            None => name.into(),
        }
    }

    pub(super) fn print(&self, out: &mut impl Write) -> io::Result<()> {
        let mut widths = fit(&self.widths, self.terminal, &SPARE);
        if !self.has_progress {
            // What no row has takes no room from others.
            let others = [&self.widths[..DONE], &self.widths[DONE + 1..]].concat();
            let spare: Vec<usize> = SPARE.into_iter().filter(|&column| column != DONE).collect();
            widths = fit(&others, self.terminal, &spare);
            widths.insert(DONE, None);
        }
        let (mut text, mut cells) = (Vec::with_capacity(2 * PIECE), self.cells.iter().peekable());
        while cells.peek().is_some() {
            let line = text.len();
            for (width, (cell, chars)) in widths.iter().zip(&mut cells) {
                let Some(width) = *width else { continue };
                let mut taken = chars;
                if chars <= width {
                    text.extend_from_slice(cell);
                } else {
                    let begin = String::from_utf8_lossy(cell);
                    let (end, fits) = end_within(&begin, width.saturating_sub(1));
                    text.extend_from_slice(&begin.as_bytes()[..end]);
                    text.extend_from_slice("…".as_bytes());
                    taken = fits + 1;
                }
                let gap = width.saturating_sub(taken) + GAP;
                match BLANK.get(..gap) {
                    Some(blank) => text.extend_from_slice(blank),
                    None => text.resize(text.len() + gap, b' '),
                }
            }
            text.truncate(line + text[line..].trim_ascii_end().len());
            text.push(b'\n');
            if text.len() > PIECE {
                out.write_all(&text)?;
                text.clear();
            }
        }
        out.write_all(&text)?;
        out.flush()
    }
}

/// Texts one after the other, each with its length and its width before it: in a byte each, or in four if they are long.
#[derive(Default)]
struct Cells(Vec<u8>);

/// In place of a short length.
const LONG: u8 = u8::MAX;

impl Cells {
    /// Writes a cell, and measures it.
    fn add(
        &mut self,
        write: impl FnOnce(&mut Vec<u8>),
        measure: impl FnOnce(&[u8]) -> usize,
    ) -> usize {
        let before = self.0.len();
        self.0.extend_from_slice(&[0, 0]);
        write(&mut self.0);
        let written = &self.0[before + 2..];
        let (length, width) = (written.len(), measure(written));
        if length < LONG.into() {
            // No text is wider than it is long.
            self.0[before..before + 2].copy_from_slice(&[length as u8, width as u8]);
        } else {
            let sizes = [(length as u32).to_le_bytes(), (width as u32).to_le_bytes()];
            let prefix = [&[LONG][..], sizes.as_flattened()].concat();
            self.0.splice(before..before + 2, prefix);
        }
        width
    }

    /// The texts with their widths.
    fn iter(&self) -> impl Iterator<Item = (&[u8], usize)> {
        let mut rest = &*self.0;
        std::iter::from_fn(move || {
            let (length, width, after) = match rest {
                [LONG, sizes @ ..] => {
                    let (length, sizes) = sizes.split_first_chunk()?;
                    let (width, after) = sizes.split_first_chunk()?;
                    let size = |bytes: &[u8; 4]| u32::from_le_bytes(*bytes) as usize;
                    (size(length), size(width), after)
                }
                [length, width, after @ ..] => ((*length).into(), (*width).into(), after),
                _ => return None,
            };
            let cell;
            (cell, rest) = after.split_at_checked(length)?;
            Some((cell, width))
        })
    }
}

/// A row that is being written.
struct RowWriter<'a> {
    cells: &'a mut Cells,
    widths: std::slice::IterMut<'a, usize>,
}

impl RowWriter<'_> {
    fn cell(&mut self, write: impl FnOnce(&mut Vec<u8>), measure: impl FnOnce(&[u8]) -> usize) {
        let width = self.cells.add(write, measure);
        if let Some(widest) = self.widths.next() {
            *widest = width.max(*widest);
        }
    }

    fn ascii(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.cell(write, <[u8]>::len);
    }

    fn text(&mut self, text: &str) {
        self.cell(|cell| cell.extend_from_slice(visible(text).as_bytes()), chars_of);
    }

    fn time(&mut self, seconds: Option<f64>) {
        match seconds {
            Some(seconds) => self.text(&clock(seconds)),
            None => self.ascii(|cell| cell.push(b'-')),
        }
    }
}

/// What a text takes on a terminal.
fn chars_of(text: &[u8]) -> usize {
    if text.is_ascii() {
        return text.len();
    }
    columns(&String::from_utf8_lossy(text))
}

/// A task's id, with its place in an array.
fn write_id<T>(text: &mut Vec<u8>, task: &TaskView<T>) {
    write_number(text, task.id.into());
    if let (Some(array), Some(index)) = (task.array_id, task.array_index) {
        text.extend_from_slice(b" (");
        write_number(text, array.into());
        text.push(b'_');
        write_number(text, index.into());
        text.push(b')');
    }
}

/// GiB with one digit, without the detour through a fraction.
fn write_gib(text: &mut Vec<u8>, bytes: u64) {
    let tenths = ((u128::from(bytes) * 10 + (1 << 29)) >> 30) as u64;
    write_number(text, tenths / 10);
    text.push(b'.');
    write_number(text, tenths % 10);
    text.push(b'G');
}

fn write_memory<T>(text: &mut Vec<u8>, task: &TaskView<T>) {
    match task.gpu_mem_bytes.or(task.estimate_bytes) {
        Some(bytes) => write_gib(text, bytes),
        None => text.push(b'-'),
    }
    text.push(b'/');
    write_gib(text, task.peak_bytes);
}

/// `45% 12:03`, with the time that is left; `450 iter` where the log does not say of how many.
fn write_progress(text: &mut Vec<u8>, progress: Option<&Progress>) {
    let Some(progress) = progress else { return text.push(b'-') };
    match progress.part() {
        Some(part) => write_number(text, (part * 100.0) as u64),
        None => write_number(text, progress.done),
    }
    match (progress.part(), progress.eta_s) {
        (Some(_), None) => text.push(b'%'),
        (Some(_), Some(eta)) => text.extend_from_slice(format!("% {}", clock(eta)).as_bytes()),
        (None, _) => text.extend_from_slice(format!(" {}", progress.unit).as_bytes()),
    }
}

fn write_place<T: AsRef<str>>(text: &mut Vec<u8>, task: &TaskView<T>) {
    let without_gpu = task.gpu_ids.is_empty() || task.state.is_over();
    match (task.reason.as_ref().map_or("", AsRef::as_ref), without_gpu) {
        ("", false) => {
            for (index, &gpu) in task.gpu_ids.iter().enumerate() {
                text.extend_from_slice(if index > 0 { b"," } else { b"" });
                write_number(text, gpu.into());
            }
        }
        ("", true) if task.state == TaskState::Pending => {
            text.extend_from_slice(b"(waiting for a GPU)");
        }
        ("", true) => {}
        (reason, _) => {
            text.push(b'(');
            text.extend_from_slice(visible(reason).as_bytes());
            text.push(b')');
        }
    }
}

#[cfg(test)]
mod tests;
