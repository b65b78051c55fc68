//! The list of tasks.

use super::Form;
use crate::top::app::{App, Data, Filter};
use crate::top::numbers::{UNKNOWN, clock_or, gib, gib_or, of, span};
use crate::top::paint::{Line, Palette, left, right};
use crate::top::rows::{Row, count, rows, waits};
use crate::top::update::is_held;
use coloc_api::view::{GpuView, ReasonCode, ResidentView, TaskView, VerdictWord, WAITING};
use coloc_model::TaskState;
use ratatui_core::style::{Modifier, Style};

/// Cells of a bullet, and those of them for all of a GPU's memory.
const BULLET: usize = 24;
const SCALE: usize = 22;

pub(super) fn lines(
    app: &App,
    palette: Palette,
    form: Form,
    width: usize,
    room: usize,
) -> Vec<Line> {
    let rows = rows(app);
    let fits = room.saturating_sub(2);
    let at = rows.iter().position(|row| app.selected.is_some_and(|id| row.ids.contains(&id)));
    // The marker is kept in the middle, where the list is longer than the screen.
    let first = at.unwrap_or(0).saturating_sub(fits / 2).min(rows.len().saturating_sub(fits));
    let shown = &rows[first..rows.len().min(first + fits)];
    let mut lines = vec![title(app, palette, form, width, first, shown.len(), rows.len())];
    lines.push(Line::styled(left(&head(app, form, width), width), palette.muted()));
    let people = palette.people(app.shown());
    for row in shown {
        let marked = app.selected.is_some_and(|id| row.ids.contains(&id));
        let mut line = match form {
            Form::Wide => wide(app, row, palette, width),
            _ => narrow(app, row, width),
        };
        let style = people.style(&row.task.user);
        // The user's name has the person's colour; with the marker, the line stands out.
        for (at, (_, own)) in line.0.iter_mut().enumerate() {
            if at == 1 {
                *own = style;
            }
            if marked && palette != Palette::PLAIN {
                *own = own.add_modifier(Modifier::REVERSED);
            }
        }
        if marked && let Some((text, _)) = line.0.first_mut() {
            text.replace_range(0..1, "▌");
        }
        lines.push(line);
    }
    if rows.is_empty() {
        lines.push(Line::styled(left(&format!("   {}", nothing(app)), width), palette.muted()));
    }
    lines
}

fn nothing(app: &App) -> &'static str {
    match app.filter {
        _ if !app.find.is_empty() => "no task has that in it; Esc shows all",
        Filter::All => "no tasks; coloc submit -- python train.py submits one",
        Filter::Yours => "no task of yours; f shows others",
        Filter::Running => "no task runs; f shows others",
        Filter::Waiting => "no task waits; f shows others",
        Filter::Ended => "no task ended within a day; f shows others",
    }
}

fn title(
    app: &App,
    palette: Palette,
    form: Form,
    width: usize,
    first: usize,
    shown: usize,
    all: usize,
) -> Line {
    let filters = Filter::ALL
        .iter()
        .filter(|&&one| form == Form::Wide || one != Filter::Ended || app.filter == Filter::Ended);
    let mut heading = "Tasks ".to_owned();
    for &filter in filters {
        let mark = if filter == app.filter { " ▸" } else { " " };
        let number = match form {
            Form::Wide if filter != Filter::Ended || !app.shown().ended.is_empty() => {
                format!(" {}", count(app, filter))
            }
            _ => String::new(),
        };
        heading.push_str(&format!(" {}{number}{mark}", filter.name()));
    }
    let sort = format!("sort: {}", app.sort.name());
    let range = match (first, shown) {
        (_, 0) => String::new(),
        (0, shown) if shown == all => format!("{all}"),
        _ => {
            let more = if first + shown < all { " ▼" } else { "" };
            format!("{}–{} of {all}{more}", first + 1, first + shown)
        }
    };
    let end = match form {
        Form::Wide if !range.is_empty() => format!("{range}  {sort}"),
        Form::Wide => sort,
        _ => range,
    };
    Line::rule(heading.trim_end(), &end, width, palette.heading())
}

fn head(app: &App, form: Form, width: usize) -> String {
    match form {
        Form::Wide => {
            let full = full_scale(app.shown());
            let tick = |part: f64| format!("{:.0}", full * part);
            let scale =
                format!("0{:>6}{:>6}{:>6}{:>5}", tick(0.25), tick(0.5), tick(0.75), tick(1.0));
            let extra = " ".repeat(width.saturating_sub(140) / 2);
            format!(
                "    ID NAME               {extra}USER  GPU   USED/PROM   EST BOUND  {scale}  SLOW    FOR  START   END  NOTE, OR WHY IT WAITS"
            )
        }
        _ => {
            let extra = " ".repeat(width.saturating_sub(80) / 2);
            format!(
                "   ID NAME             {extra}USER GPU  USED/PROM  EST  FOR  ENDS  SLOWED, WHY"
            )
        }
    }
}

/// GiB of the largest GPU.
fn full_scale(data: &Data) -> f64 {
    let largest = data.gpus.iter().map(|gpu| gpu.memory_total_bytes).max().unwrap_or(0);
    (largest as f64 / (1u64 << 30) as f64).max(1.0)
}

/// Where a task is on GPUs, with what each says of it.
fn places<'a>(data: &'a Data, task: &TaskView) -> Vec<(&'a GpuView, &'a ResidentView)> {
    let id = task.id;
    let on = |gpu: &'a GpuView| Some((gpu, gpu.residents.iter().find(|one| one.id == id)?));
    data.gpus.iter().filter_map(on).collect()
}

/// `1,2`, `3:1g`, `1×` for what waits, `held`.
fn gpu(data: &Data, task: &TaskView) -> String {
    if waits(task) {
        return if is_held(task) { "held".to_owned() } else { format!("{}×", task.gpus) };
    }
    let instance = places(data, task).into_iter().find_map(|(gpu, resident)| {
        let size = resident.instance.as_deref()?.split('.').next()?;
        Some(format!("{}:{size}", gpu.index))
    });
    let ids: Vec<String> = task.gpu_ids.iter().map(u32::to_string).collect();
    let all = instance.unwrap_or_else(|| ids.join(","));
    match ids.len() {
        0 => UNKNOWN.to_owned(),
        several if all.len() > 4 && several > 1 => format!("{several}×"),
        _ => all,
    }
}

fn promised(task: &TaskView) -> Option<u64> {
    let expected = task.gpu_mem_bytes.or(task.bound_bytes).or(task.estimate_bytes);
    task.promised_bytes.or(expected)
}

fn slowdown(data: &Data, task: &TaskView) -> Option<f64> {
    let all = places(data, task).into_iter().filter_map(|(_, resident)| resident.slowdown);
    all.max_by(f64::total_cmp)
}

/// How long it has run, or waited.
fn lasted(app: &App, task: &TaskView) -> String {
    let from =
        if waits(task) { task.submitted_s } else { task.started_s.unwrap_or(task.submitted_s) };
    span(task.ended_s.unwrap_or(app.now_s) - from)
}

fn ordinal(n: u32) -> String {
    match n {
        2 => "2nd".to_owned(),
        3 => "3rd".to_owned(),
        n => format!("{n}th"),
    }
}

/// What a task waits for: its reason, and where that says no more than that there is no GPU, what keeps it from those there are.
fn awaited(task: &TaskView) -> String {
    let reason = task.reason.clone().unwrap_or_default();
    let memory = task.gpu_mem_bytes.or(task.promised_bytes).or(task.bound_bytes);
    match task.reason_code.filter(|_| reason == WAITING) {
        Some(ReasonCode::Memory) => match memory {
            Some(bytes) => format!("no GPU has {} GiB to promise", gib(bytes)),
            None => "no GPU has room for it".to_owned(),
        },
        Some(ReasonCode::Gpus) => format!("wants {} GPUs at once", task.gpus),
        Some(ReasonCode::Hot) => "GPUs with room for it are hot".to_owned(),
        Some(ReasonCode::Sm) => "its SM demand is too much for GPUs".to_owned(),
        Some(ReasonCode::Exclusive) => "wants an empty GPU; all have tasks".to_owned(),
        Some(ReasonCode::Taken) => "other tasks have GPUs to themselves".to_owned(),
        Some(ReasonCode::Settling) => "waits until neighbours have settled".to_owned(),
        Some(ReasonCode::Order) => "others are asked before it".to_owned(),
        Some(ReasonCode::Drained) => "its GPUs take nothing new".to_owned(),
        Some(ReasonCode::LostGpu) => "its GPUs are lost".to_owned(),
        _ => reason,
    }
}

/// What is to be known of a task, or why it waits.
fn note(data: &Data, row: &Row<'_>) -> String {
    let task = row.task;
    if waits(task) {
        let why = awaited(task);
        return match (task.state, row.ids.len()) {
            (TaskState::Recovering, _) => format!("▲ out of memory, comes again: {why}"),
            (_, 1) => why,
            (_, several) => format!("{several} tasks of an array: {why}"),
        };
    }
    if task.state.is_over() {
        return task.reason.clone().unwrap_or_else(|| task.state.name().replace('_', " "));
    }
    let places = places(data, task);
    let mut notes = Vec::new();
    if task.state != TaskState::Running {
        notes.push(task.reason.clone().unwrap_or_else(|| task.state.name().to_owned()));
    }
    if task.ooms > 0 {
        notes.push(format!("▲ out of memory, {} try", ordinal(task.attempts.max(2))));
    }
    if let Some(instance) = places.iter().find_map(|(_, resident)| resident.instance.as_deref()) {
        notes.push(format!("instance {instance}"));
    }
    if task.gpu_ids.len() > 1 {
        notes.push(format!("gang of {}", task.gpu_ids.len()));
    }
    if places.iter().any(|(gpu, _)| gpu.verdict.word == VerdictWord::Hot) {
        notes.push("on a hot GPU".to_owned());
    }
    if let Some(share) = task.progress.as_ref().and_then(|progress| {
        progress.total.filter(|&total| total > 0).map(|total| progress.done as f64 / total as f64)
    }) {
        notes.push(format!("{:.0} % done", share * 100.0));
    }
    notes.join(", ")
}

/// `461…` for tasks of an array.
fn id(row: &Row<'_>) -> String {
    if row.ids.len() > 1 { format!("{}…", row.task.id) } else { row.task.id.to_string() }
}

fn name(row: &Row<'_>) -> String {
    match row.ids.len() {
        1 => row.task.name.clone(),
        several => format!("{}  ×{several}", row.task.name),
    }
}

fn narrow(app: &App, row: &Row<'_>, width: usize) -> Line {
    let (data, task) = (app.shown(), row.task);
    let extra = width.saturating_sub(80) / 2;
    let mut line = Line::of(format!("{} {} ", right(&id(row), 5), left(&name(row), 16 + extra)));
    line.push(left(&task.user, 4), Style::default());
    let expected = data.expected.get(&task.id);
    let start = expected.and_then(|expected| expected.expected_start_s).filter(|_| waits(task));
    let end = expected.and_then(|expected| expected.expected_end_s);
    let when = if waits(task) { start } else { task.ended_s.or(end) };
    let estimate = task.estimate_bytes.or(task.gpu_mem_bytes);
    let slowed = slowdown(data, task).map_or_else(String::new, |by| format!("×{by:.2}"));
    let note = note(data, row);
    let joint = if slowed.is_empty() || note.is_empty() { "" } else { ", " };
    let text = format!(
        " {} {} {} {}{}{}  {slowed}{joint}{note}",
        left(&gpu(data, task), 4),
        left(&of(task.used_bytes, promised(task)), 9),
        right(&gib_or(estimate), 4),
        right(&lasted(app, task), 4),
        if start.is_some() { "→" } else { " " },
        right(&clock_or(when, app.now_s, app.clock), 5),
    );
    line.push(left(&text, width.saturating_sub(line.width())), Style::default());
    line
}

fn wide(app: &App, row: &Row<'_>, palette: Palette, width: usize) -> Line {
    let (data, task) = (app.shown(), row.task);
    let extra = width.saturating_sub(140) / 2;
    let mut line = Line::of(format!("{} {} ", right(&id(row), 6), left(&name(row), 18 + extra)));
    line.push(left(&task.user, 5), Style::default());
    line.push(
        format!(
            " {} {}{}{}  ",
            left(&gpu(data, task), 5),
            left(&of(task.used_bytes, promised(task)), 9),
            right(&gib_or(task.estimate_bytes.or(task.gpu_mem_bytes)), 6),
            right(&gib_or(task.bound_bytes.or(task.gpu_mem_bytes)), 6),
        ),
        Style::default(),
    );
    bullet(data, task, palette, &mut line);
    let expected = data.expected.get(&task.id);
    let predicted = expected.and_then(|expected| expected.expected_start_s);
    let start = if waits(task) { predicted } else { task.started_s };
    let end = task.ended_s.or(expected.and_then(|expected| expected.expected_end_s));
    let slowed = slowdown(data, task).map_or_else(|| UNKNOWN.to_owned(), |by| format!("×{by:.2}"));
    let text = format!(
        " {}{} {}{} {}  {}",
        right(&slowed, 5),
        right(&lasted(app, task), 7),
        if waits(task) && start.is_some() { "→" } else { " " },
        right(&clock_or(start, app.now_s, app.clock), 5),
        right(&clock_or(end, app.now_s, app.clock), 5),
        note(data, row),
    );
    line.push(left(&text, width.saturating_sub(line.width())), Style::default());
    line
}

/// What a task holds, is promised, was expected to hold `|` and to stay below `]`, all on one scale. What it holds
/// beyond the bound is amber.
fn bullet(data: &Data, task: &TaskView, palette: Palette, line: &mut Line) {
    let full = full_scale(data) * (1u64 << 30) as f64;
    let place = |bytes: u64| ((bytes as f64 / full * SCALE as f64) as usize).min(BULLET - 1);
    let mut cells = [(' ', Style::default()); BULLET];
    let on_gpus = task.state.is_on_gpus();
    let bound = task.bound_bytes.or(task.gpu_mem_bytes);
    if let Some(promised) = promised(task).filter(|_| on_gpus) {
        cells[..=place(promised)].fill(('░', Style::default()));
    }
    if let Some(used) = task.used_bytes.filter(|_| on_gpus) {
        let (to, most) = (place(used), bound.map_or(BULLET, place));
        cells[..to].fill(('█', Style::default()));
        if to > most {
            cells[most..to].fill(('█', palette.amber()));
        }
    }
    if let Some(bound) = bound {
        let at = place(bound).max(1);
        cells[at] = (']', Style::default());
        if let Some(estimate) = task.estimate_bytes {
            cells[place(estimate).min(at - 1)] = ('|', Style::default());
        }
    }
    for (character, style) in cells {
        line.push(character.to_string(), style);
    }
}
