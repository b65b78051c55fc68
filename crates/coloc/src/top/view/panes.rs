//! What is below the tasks: why the marked one waits, and its output.

use super::Form;
use crate::top::app::{App, Pane};
use crate::top::numbers::{clock, gib};
use crate::top::paint::{Line, Palette, cut, left, right, width as cells, wrapped};
use crate::top::rows::waits;
use coloc_api::view::{GpuWhy, TaskView, WhyView};
use ratatui_core::style::Style;

/// Lines of the two panes of a wide screen, their heading included.
const WIDE_LINES: usize = 8;

pub(super) fn lines(
    app: &App,
    palette: Palette,
    form: Form,
    width: usize,
    height: usize,
) -> Vec<Line> {
    match (form, app.pane) {
        (Form::Wide, _) => wide(app, palette, width),
        (Form::Narrow, Pane::Why) => {
            let room = 2 + (height - 24) / 4;
            let mut lines = vec![Line::rule(&heading(app), "w closes", width, palette.heading())];
            let mut pane = why_narrow(app, width, room);
            pane.resize(room, left("", width));
            lines.extend(pane.into_iter().map(Line::of));
            lines
        }
        (Form::Narrow, Pane::Log) => {
            let room = (height / 4).max(3);
            let mut lines =
                vec![Line::rule(&log_heading(app), "l closes", width, palette.heading())];
            let mut pane = log_lines(app, width, room);
            pane.resize(room, left("", width));
            lines.extend(pane.into_iter().map(Line::of));
            lines
        }
        _ => Vec::new(),
    }
}

fn heading(app: &App) -> String {
    match app.task() {
        Some(task) if waits(task) => format!("Why {} {} waits", task.id, task.name),
        Some(task) if task.state.is_over() => format!("{} {} {}", task.id, task.name, over(task)),
        Some(task) => format!("{} {} runs", task.id, task.name),
        None => "No task".to_owned(),
    }
}

fn over(task: &TaskView) -> String {
    format!("ended: {}", task.state.name().replace('_', " "))
}

fn log_heading(app: &App) -> String {
    match (&app.log, app.task()) {
        (Some(log), Some(task)) => {
            format!("Output {} {}, attempt {}", task.id, task.name, log.attempt.max(1))
        }
        (_, Some(task)) => format!("Output {} {}", task.id, task.name),
        _ => "Output".to_owned(),
    }
}

/// What one GPU says, shortly: `15.8 GiB short`.
fn shortly(why: &GpuWhy) -> String {
    if why.refusals.is_empty() {
        return "would take it".to_owned();
    }
    let short = |rule: &coloc_api::view::RuleView| match (rule.rule.as_str(), rule.short) {
        ("memory", Some(bytes)) => format!("{} GiB short", gib(bytes as u64)),
        _ => rule.text.clone(),
    };
    let rules: Vec<String> = why.rules.iter().map(short).collect();
    if rules.is_empty() { why.refusals.join(", ") } else { rules.join(", ") }
}

/// What one GPU says, at length.
fn at_length(why: &GpuWhy) -> String {
    let short = |rule: &coloc_api::view::RuleView| match (rule.rule.as_str(), rule.have, rule.short)
    {
        ("memory", Some(have), Some(short)) => {
            format!("{} GiB can be promised, {} short", gib(have as u64), gib(short as u64))
        }
        _ => rule.text.clone(),
    };
    let rules: Vec<String> = why.rules.iter().map(short).collect();
    match why.refusals.is_empty() {
        true => "would take it".to_owned(),
        false if rules.is_empty() => why.refusals.join(", "),
        false => rules.join(", "),
    }
}

/// Two GPUs a line.
fn why_narrow(app: &App, width: usize, room: usize) -> Vec<String> {
    let Some(task) = app.task() else { return vec![left(" there is no task to explain", width)] };
    if !waits(task) {
        return about(app, task, width).into_iter().take(room).collect();
    }
    let Some(why) = &app.why else { return vec![left(" asking …", width)] };
    if why.gpus.is_empty() {
        let text = wrapped(&why.summary, width.saturating_sub(2));
        return text.into_iter().take(room).map(|line| left(&format!(" {line}"), width)).collect();
    }
    let half = width / 2;
    let said = |gpu: &GpuWhy, cells: usize| left(&format!(" {}: {}", gpu.gpu, shortly(gpu)), cells);
    let mut lines: Vec<String> = why
        .gpus
        .chunks(2)
        .map(|pair| match pair {
            [one, two] => said(one, half - 1) + " " + &said(two, width - half),
            [one] => said(one, width),
            _ => String::new(),
        })
        .collect();
    if lines.len() > room {
        lines.truncate(room.saturating_sub(1));
        let hidden = why.gpus.len() - 2 * lines.len();
        let text = format!(" … {hidden} more GPUs; {}", why.summary);
        lines.push(left(&text, width));
    }
    lines
}

/// Where a task runs and what it holds, or how it ended.
fn about(app: &App, task: &TaskView, width: usize) -> Vec<String> {
    let mut texts = Vec::new();
    if task.state.is_over() {
        texts.push(task.reason.clone().unwrap_or_else(|| over(task)));
    }
    let gpus: Vec<String> = task.gpu_ids.iter().map(u32::to_string).collect();
    if !gpus.is_empty() {
        texts.push(format!("on GPU {}, attempt {}", gpus.join(", "), task.attempts));
    }
    if let Some(progress) = &task.progress {
        let total = progress.total.map_or_else(String::new, |total| format!(" of {total}"));
        let rate = progress.rate.map_or_else(String::new, |rate| format!(", {rate:.2} a second"));
        texts.push(format!("{}{total} {}{rate}", progress.done, progress.unit));
    }
    if let Some(why) = app.why.as_ref().filter(|why| why.task.id == task.id) {
        texts.extend(why.memory.memory_rule.clone().map(|rule| format!("memory {rule}")));
    }
    if task.peak_bytes > 0 {
        texts.push(format!("held {} GiB at most", gib(task.peak_bytes)));
    }
    let lines = wrapped(&texts.join("; "), width.saturating_sub(2));
    lines.into_iter().map(|line| left(&format!(" {line}"), width)).collect()
}

/// The last lines of the output.
fn log_lines(app: &App, width: usize, room: usize) -> Vec<String> {
    let Some(task) = app.task() else { return vec![left("", width)] };
    let Some(log) = &app.log else {
        let text = if task.attempts == 0 { " it has not run yet" } else { " asking …" };
        return vec![left(text, width)];
    };
    if log.lines.is_empty() {
        return vec![left(" it has written nothing yet", width)];
    }
    let from = log.lines.len().saturating_sub(room);
    log.lines[from..].iter().map(|line| left(&format!(" {line}"), width)).collect()
}

/// Why at the left, the output at the right.
fn wide(app: &App, palette: Palette, width: usize) -> Vec<Line> {
    let at = (width - 1) / 2;
    let (why, log) = (why_wide(app, at), log_wide(app, width - at - 1));
    let rule = format!("{}┬{}", "─".repeat(at), "─".repeat(width - at - 1));
    let mut lines = vec![Line::styled(rule, palette.heading())];
    for number in 0..WIDE_LINES {
        let style = if number == 0 { palette.heading() } else { Style::default() };
        let mut line =
            Line::styled(why.get(number).cloned().unwrap_or_else(|| left("", at)), style);
        line.push("│", palette.heading());
        let other = log.get(number).cloned();
        line.push(other.unwrap_or_else(|| left("", width - at - 1)), style);
        lines.push(line);
    }
    lines
}

fn between(text: &str, end: &str, width: usize) -> String {
    let end = cut(end, width);
    left(text, width.saturating_sub(cells(&end))) + &end
}

fn why_wide(app: &App, width: usize) -> Vec<String> {
    let Some(task) = app.task() else { return vec![left(" No task", width)] };
    let expected = app.shown().expected.get(&task.id);
    let start = expected.and_then(|expected| expected.expected_start_s).filter(|_| waits(task));
    let end = start.map(|at| format!("→starts {}", clock(at, app.now_s, app.clock)));
    let mut lines = vec![between(&format!(" {}", heading(app)), &end.unwrap_or_default(), width)];
    if !waits(task) {
        lines.extend(about(app, task, width));
        return lines;
    }
    let Some(why) = &app.why else {
        lines.push(left(" asking …", width));
        return lines;
    };
    let mut said = sentences(app, why, task, width);
    // What GPUs say goes first; one sentence is kept at least.
    let room = WIDE_LINES - 3;
    let all_fit = why.gpus.len() <= room;
    let shown = if all_fit { why.gpus.len() } else { room - 1 };
    for gpu in &why.gpus[..shown] {
        lines.push(left(&format!(" GPU {:<3} {}", gpu.gpu, at_length(gpu)), width));
    }
    if !all_fit {
        let text = format!(" … {} more GPUs: ↵ shows all", why.gpus.len() - shown);
        lines.push(left(&text, width));
    }
    said.truncate(WIDE_LINES.saturating_sub(lines.len() + 1).max(1));
    lines.push(left("", width));
    lines.extend(said);
    lines.truncate(WIDE_LINES);
    lines
}

/// What is expected of its memory, and the sentence of `coloc why`.
fn sentences(app: &App, why: &WhyView, task: &TaskView, width: usize) -> Vec<String> {
    let mut texts = Vec::new();
    texts.extend(why.memory.memory_rule.as_ref().map(|rule| format!("Memory {rule}")));
    let ahead = match why.ahead {
        0 => String::new(),
        ahead => format!("; {ahead} are asked before it"),
    };
    texts.push(format!("{}{ahead}", why.summary));
    let basis = app.shown().expected.get(&task.id).map(|expected| &expected.expected_basis);
    texts.extend(basis.filter(|basis| !basis.is_empty()).map(|basis| format!("→ {basis}")));
    texts.into_iter().map(|text| left(&format!(" {text}"), width)).collect()
}

fn log_wide(app: &App, width: usize) -> Vec<String> {
    let follows = match app.task() {
        Some(task) if task.state.is_on_gpus() => right("follows ", 13),
        _ => String::new(),
    };
    let mut lines = vec![between(&format!(" {}", log_heading(app)), &follows, width)];
    lines.extend(log_lines(app, width, WIDE_LINES - 1));
    lines
}
