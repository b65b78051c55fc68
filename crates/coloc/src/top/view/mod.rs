//! Drawing: what is known, as lines of cells.

mod bar;
mod full;
mod gpus;
mod head;
mod panes;
mod tasks;

use super::app::{App, Connection, Page};
use super::paint::{Line, Palette};
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::Modifier;

/// The least size with panes, and the least with anything but a sentence.
const PANES: (u16, u16) = (80, 24);
const LEAST: (u16, u16) = (60, 15);
/// From this width on there is room for bullets, bounds and two panes.
const WIDE: u16 = 140;
const WIDE_HEIGHT: u16 = 40;

/// How much there is room for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    /// As at 140 x 45.
    Wide,
    /// As at 80 x 24.
    Narrow,
    /// GPUs, then tasks, no panes.
    Small,
    /// One sentence.
    Sentence,
}

fn form(area: Rect) -> Form {
    let at_least = |(width, height): (u16, u16)| area.width >= width && area.height >= height;
    if at_least((WIDE, WIDE_HEIGHT)) {
        Form::Wide
    } else if at_least(PANES) {
        Form::Narrow
    } else if at_least(LEAST) {
        Form::Small
    } else {
        Form::Sentence
    }
}

/// Draws everything.
pub(super) fn draw(app: &App, palette: Palette, buffer: &mut Buffer) {
    let area = buffer.area;
    let lines = match (form(area), app.page) {
        (Form::Sentence, _) => sentence(app, area),
        (_, Page::Main) => main(app, palette, area),
        (_, page) => full::page(app, palette, area, page),
    };
    for (y, line) in (area.top()..area.bottom()).zip(lines) {
        put(buffer, y, &line);
    }
    if matches!(app.connection, Connection::Stale { .. }) && palette != Palette::PLAIN {
        let below = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
        buffer.set_style(below, Modifier::DIM);
    }
}

fn put(buffer: &mut Buffer, y: u16, line: &Line) {
    let (mut x, end) = (buffer.area.left(), buffer.area.right());
    for (text, style) in &line.0 {
        if x >= end {
            return;
        }
        (x, _) = buffer.set_stringn(x, y, text, usize::from(end - x), *style);
    }
}

fn sentence(app: &App, area: Rect) -> Vec<Line> {
    let text = head::sentence(app);
    super::paint::wrapped(&text, usize::from(area.width)).into_iter().map(Line::of).collect()
}

/// The GPUs, the tasks, and a pane or two.
fn main(app: &App, palette: Palette, area: Rect) -> Vec<Line> {
    let (form, width, height) = (form(area), usize::from(area.width), usize::from(area.height));
    let mut lines = head::lines(app, palette, form, width);
    let panes = panes::lines(app, palette, form, width, height);
    let last = head::last_line(app, palette, form, width);
    let rest = height.saturating_sub(lines.len() + panes.len() + 1);
    // Tasks keep a third of what is left at least, and three rows.
    let for_gpus = rest.saturating_sub((rest / 3).max(5));
    lines.extend(gpus::lines(app, palette, form, width, for_gpus));
    let for_tasks = height.saturating_sub(lines.len() + panes.len() + 1);
    let mut tasks = tasks::lines(app, palette, form, width, for_tasks);
    tasks.resize(for_tasks, Line::default());
    lines.extend(tasks);
    lines.extend(panes);
    lines.push(last);
    lines
}
