//! Pages that take the whole screen: a task, the timeline, help.

use crate::top::app::{App, Page};
use crate::top::keys::HELP;
use crate::top::numbers::{UNKNOWN, clock, gib, gib_or, span};
use crate::top::paint::{Line, Palette, left, wrapped};
use crate::top::rows::waits;
use coloc_api::view::{TaskDetail, TimelineAnswer};
use ratatui_core::layout::Rect;
use ratatui_core::style::Style;
use std::collections::BTreeSet;

pub(super) fn page(app: &App, palette: Palette, area: Rect, page: Page) -> Vec<Line> {
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    let (heading, closes, body) = match page {
        Page::Task => (task_heading(app), "↵ closes", task(app, width)),
        Page::Timeline => ("Timeline".to_owned(), "t closes", timeline(app, palette, width)),
        _ => ("Keys and signs".to_owned(), "? closes", help(width)),
    };
    let mut lines = vec![Line::rule(&heading, closes, width, palette.heading())];
    let room = height.saturating_sub(2);
    let first = app.scrolled.min(body.len().saturating_sub(room));
    let more = body.len().saturating_sub(first + room);
    lines.extend(body.into_iter().skip(first).take(room));
    lines.resize(height.saturating_sub(1), Line::of(left("", width)));
    lines.push(match (&app.asked, more) {
        (Some(_), _) => super::head::last_line(app, palette, super::Form::Narrow, width),
        (None, 0) => Line::styled(left(" Esc goes back   q too", width), palette.muted()),
        (None, more) => {
            let text = format!(" ↓ {more} more lines   Esc goes back");
            Line::styled(left(&text, width), palette.muted())
        }
    });
    lines
}

fn help(width: usize) -> Vec<Line> {
    let line =
        |(key, does): (&str, &str)| Line::of(left(&format!("  {}  {does}", left(key, 9)), width));
    HELP.into_iter().map(line).collect()
}

fn task_heading(app: &App) -> String {
    match &app.detail {
        Some(detail) => format!("{} {}", detail.task.id, detail.task.name),
        None => "Task".to_owned(),
    }
}

/// A line with a name, and others with what follows of it.
fn fact(name: &str, text: &str, width: usize) -> Vec<Line> {
    let mut lines = wrapped(text, width.saturating_sub(16));
    if lines.is_empty() {
        lines.push(UNKNOWN.to_owned());
    }
    let named = |(at, line): (usize, String)| {
        let name = if at == 0 { name } else { "" };
        Line::of(left(&format!("  {} {line}", left(name, 12)), width))
    };
    lines.into_iter().enumerate().map(named).collect()
}

fn task(app: &App, width: usize) -> Vec<Line> {
    let Some(detail) = &app.detail else { return vec![Line::of(left("  asking …", width))] };
    let mut lines = facts(app, detail, width);
    let waits = waits(&detail.task);
    if let Some(why) = app.why.as_ref().filter(|why| waits && why.task.id == detail.task.id) {
        lines.extend(fact("Waits", &why.summary, width));
        for gpu in why.gpus.iter().filter(|gpu| !gpu.refusals.is_empty()) {
            lines.extend(fact(&format!("  GPU {}", gpu.gpu), &gpu.refusals.join(", "), width));
        }
    }
    lines.push(Line::of(left("", width)));
    for line in &detail.story {
        let at = clock(line.at.secs(), app.now_s, app.clock);
        lines.extend(fact(&at, &line.what, width));
    }
    lines
}

fn facts(app: &App, detail: &TaskDetail, width: usize) -> Vec<Line> {
    let task = &detail.task;
    let command: Vec<String> =
        detail.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let at = |seconds: Option<f64>| {
        seconds.map_or(UNKNOWN.to_owned(), |seconds| clock(seconds, app.now_s, app.clock))
    };
    let gpus: Vec<String> = task.gpu_ids.iter().map(u32::to_string).collect();
    let place = if gpus.is_empty() { format!("wants {}", task.gpus) } else { gpus.join(", ") };
    let memory = format!(
        "{} GiB in use, {} promised, {} expected, {} at most; {} seen so far",
        gib_or(task.used_bytes),
        gib_or(detail.memory.memory_basis.as_ref().and(task.promised_bytes).or(task.gpu_mem_bytes)),
        gib_or(task.estimate_bytes),
        gib_or(task.bound_bytes),
        gib(task.peak_bytes)
    );
    let state = match &task.reason {
        Some(reason) => format!("{}: {reason}", task.state),
        None => task.state.to_string(),
    };
    let times = format!(
        "submitted {}, started {}, ended {}; attempts {}, out of memory {}, preempted {}",
        at(Some(task.submitted_s)),
        at(task.started_s),
        at(task.ended_s),
        task.attempts,
        task.ooms,
        task.preemptions
    );
    let mut lines = fact("User", &task.user, width);
    lines.extend(fact("State", &state, width));
    lines.extend(fact("Command", &command.join(" "), width));
    lines.extend(fact("Directory", &detail.directory.to_string_lossy(), width));
    lines.extend(fact("GPUs", &place, width));
    lines.extend(fact("Memory", &memory, width));
    if let Some(rule) = &detail.memory.memory_rule {
        lines.extend(fact("", rule, width));
    }
    if let Some(energy) = detail.energy_j {
        let kind = detail.energy_kind.as_deref().unwrap_or("modelled");
        lines.extend(fact("Energy", &format!("{:.2} kWh, {kind}", energy / 3.6e6), width));
    }
    lines.extend(fact("Times", &times, width));
    if let Some(expected) = app.shown().expected.get(&task.id) {
        let text = format!(
            "→start {}, →end {}: {}",
            at(expected.expected_start_s),
            at(expected.expected_end_s),
            expected.expected_basis
        );
        lines.extend(fact("Expected", &text, width));
    }
    lines.extend(fact("Output", &detail.log, width));
    lines
}

/// One row of the timeline.
struct Bar<'a> {
    gpu: Option<u32>,
    task: u32,
    name: &'a str,
    user: &'a str,
    from_s: f64,
    to_s: f64,
    /// From then on it is expected.
    predicted_from_s: f64,
    mark: char,
}

fn bars(timeline: &TimelineAnswer) -> Vec<Bar<'_>> {
    let mut all = Vec::new();
    for attempt in &timeline.attempts {
        let to_s = attempt.ended_s.or(attempt.predicted_end_s).unwrap_or(timeline.now_s);
        let mark = match attempt.outcome.as_deref() {
            _ if attempt.ooms > 0 => '▲',
            Some("completed") | None => ' ',
            Some("preempted" | "requeued") => '‖',
            Some(_) => '✕',
        };
        all.extend(attempt.gpus.iter().map(|&gpu| Bar {
            gpu: Some(gpu),
            task: attempt.task,
            name: &attempt.name,
            user: &attempt.user,
            from_s: attempt.started_s,
            to_s,
            predicted_from_s: attempt.ended_s.unwrap_or(timeline.now_s),
            mark,
        }));
    }
    for waiting in &timeline.waiting {
        let Some(from_s) = waiting.expected_start_s else { continue };
        let gpus: Vec<Option<u32>> = match waiting.gpus.is_empty() {
            true => vec![None],
            false => waiting.gpus.iter().copied().map(Some).collect(),
        };
        let to_s = waiting.expected_end_s.unwrap_or(from_s);
        all.extend(gpus.into_iter().map(|gpu| Bar {
            gpu,
            task: waiting.task,
            name: &waiting.name,
            user: &waiting.user,
            from_s,
            to_s,
            predicted_from_s: f64::NEG_INFINITY,
            mark: ' ',
        }));
    }
    all
}

/// A block a GPU: solid until now, dashed after.
fn timeline(app: &App, palette: Palette, width: usize) -> Vec<Line> {
    let Some(timeline) = &app.timeline else { return vec![Line::of(left("  asking …", width))] };
    let bars = bars(timeline);
    let (from_s, to_s) = (timeline.from_s, timeline.to_s.max(timeline.from_s + 60.0));
    let cells = width.saturating_sub(30);
    let place = |at: f64| {
        let share = ((at - from_s) / (to_s - from_s)).clamp(0.0, 1.0);
        (share * cells as f64).round() as usize
    };
    let people = palette.people(app.shown());
    let mut lines = vec![axis(app, timeline, cells, &place, width)];
    let gpus: BTreeSet<Option<u32>> = bars.iter().map(|bar| bar.gpu).collect();
    let named =
        gpus.iter().filter(|gpu| gpu.is_some()).chain(gpus.iter().filter(|gpu| gpu.is_none()));
    for &gpu in named {
        let title = gpu.map_or("waiting for a GPU".to_owned(), |gpu| format!("GPU {gpu}"));
        lines.push(Line::styled(left(&format!(" {title}"), width), palette.heading()));
        for bar in bars.iter().filter(|bar| bar.gpu == gpu) {
            let (begin, now, end) =
                (place(bar.from_s), place(bar.predicted_from_s), place(bar.to_s));
            let mut line =
                Line::of(format!("  {} {} ", left(&bar.task.to_string(), 5), left(bar.name, 18)));
            let mark = if begin == end { "▏" } else { "" };
            let solid = "█".repeat(now.min(end).saturating_sub(begin));
            let dashed = "╌".repeat(end.saturating_sub(begin.max(now)));
            let drawn = format!("{}{solid}{dashed}{mark}{}", " ".repeat(begin), bar.mark);
            line.push(left(&drawn, width.saturating_sub(line.width())), people.style(bar.user));
            lines.push(line);
        }
    }
    if bars.is_empty() {
        lines.push(Line::of(left("  nothing ran, and nothing is expected", width)));
    }
    lines
}

fn axis(
    app: &App,
    timeline: &TimelineAnswer,
    cells: usize,
    place: &impl Fn(f64) -> usize,
    width: usize,
) -> Line {
    let mut marks = vec![' '; cells + 12];
    let span_s = timeline.to_s - timeline.from_s;
    for part in 0..4 {
        let at = timeline.from_s + span_s * f64::from(part) / 4.0;
        let text = clock(at, app.now_s, app.clock);
        // Now has a mark of its own.
        if place(at).abs_diff(place(timeline.now_s)) < 6 {
            continue;
        }
        for (offset, character) in text.chars().enumerate() {
            marks[place(at) + offset] = character;
        }
    }
    let now = place(timeline.now_s);
    for (offset, character) in "│now".chars().enumerate() {
        marks[now + offset] = character;
    }
    let text: String = marks.into_iter().take(width.saturating_sub(27)).collect();
    let spanned = format!("{} in all", span(span_s));
    let mut line = Line::styled(format!(" {} ", left(&spanned, 25)), Style::default());
    line.push(left(&text, width.saturating_sub(line.width())), Style::default());
    line
}
