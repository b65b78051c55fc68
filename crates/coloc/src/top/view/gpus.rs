//! The GPUs: a line each, or two where there is room.

use super::Form;
use super::bar::bar;
use crate::top::app::{App, LOOK_BACK_S};
use crate::top::numbers::{UNKNOWN, gib, level, of, percent};
use crate::top::paint::{Line, Palette, People, left, right};
use coloc_api::view::{GpuView, VerdictWord};
use ratatui_core::style::Style;

/// Cells of a narrow line beside the bar, and of a wide one.
const NARROW: usize = 40;
const WIDE: usize = 60;
/// Columns of the little charts.
const NARROW_CHART: usize = 7;
const WIDE_CHART: usize = 12;

pub(super) fn lines(
    app: &App,
    palette: Palette,
    form: Form,
    width: usize,
    most: usize,
) -> Vec<Line> {
    let gpus = &app.shown().gpus;
    let each = if form == Form::Wide { 2 } else { 1 };
    let mut lines = vec![head(palette, form, width)];
    if gpus.is_empty() {
        lines.push(Line::styled(left(" no GPUs", width), palette.muted()));
        return lines;
    }
    let room = (most.saturating_sub(1) / each).max(1);
    let all_fit = gpus.len() <= room;
    let shown = if all_fit { gpus.len() } else { room.saturating_sub(1).max(1) };
    let first = app.first_gpu.min(gpus.len() - shown);
    let people = palette.people(app.shown());
    for gpu in &gpus[first..first + shown] {
        match form {
            Form::Wide => lines.extend(wide(app, gpu, palette, &people, width)),
            _ => lines.push(narrow(app, gpu, palette, &people, width)),
        }
    }
    if !all_fit {
        lines.push(others(gpus, first, shown, palette, width));
    }
    lines
}

fn head(palette: Palette, form: Form, width: usize) -> Line {
    if form == Form::Wide {
        let key = "█▓ used  ░ promised  ╱ not ours  · free  │ instance  ╳ out of reach";
        return Line::rule("GPUs", key, width, palette.heading());
    }
    let bar = left("█▓ used ░ promised ╱ not ours · free", width.saturating_sub(NARROW));
    Line::styled(
        left(&format!(" GPU   {bar} USED/PROM  SM% 30 min    W °C"), width),
        palette.muted(),
    )
}

/// GPUs for which there is no room.
fn others(gpus: &[GpuView], first: usize, shown: usize, palette: Palette, width: usize) -> Line {
    let hidden = || gpus[..first].iter().chain(&gpus[first + shown..]);
    let sum = |of: fn(&GpuView) -> u64| hidden().map(of).sum::<u64>();
    let busy = hidden().map(|gpu| gpu.smact).sum::<f64>() / hidden().count().max(1) as f64;
    let text = format!(
        " … {} more GPUs: {} of {} GiB used, {} promised, SM {}; [ and ] go there",
        hidden().count(),
        gib(sum(|gpu| gpu.memory_used_bytes)),
        gib(sum(|gpu| gpu.memory_total_bytes)),
        gib(sum(|gpu| gpu.memory_promised_bytes)),
        percent(busy)
    );
    Line::styled(left(&text, width), palette.muted())
}

/// How it is shared, in three letters.
fn mode(gpu: &GpuView) -> &str {
    match gpu.sharing.as_str() {
        _ if gpu.lost => "!!!",
        _ if gpu.mig => "mig",
        "exclusive" => "one",
        "streams" => "str",
        "mps" => "mps",
        "mig" => "mig",
        _ => UNKNOWN,
    }
}

/// SM activity of the last half hour; blank where nothing was seen.
fn chart(app: &App, gpu: &GpuView, columns: usize) -> String {
    let seen = app.shown().activity.get(&gpu.index);
    let step = LOOK_BACK_S / columns as f64;
    let column = |at: usize| {
        let to = app.now_s - (columns - 1 - at) as f64 * step;
        let within = |when: f64| when > to - step && (when <= to || at + 1 == columns);
        let seen = seen.into_iter().flatten().filter(|(when, _)| within(*when));
        let values: Vec<f64> = seen.map(|(_, share)| *share).collect();
        let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
        if values.is_empty() { ' ' } else { level(mean) }
    };
    (0..columns).map(column).collect()
}

fn is_hot(gpu: &GpuView) -> bool {
    gpu.verdict.word == VerdictWord::Hot
}

fn number(value: Option<f64>) -> String {
    value.map_or_else(|| UNKNOWN.to_owned(), |value| format!("{value:.0}"))
}

/// What a line begins with: the number and how it is shared.
fn begin(gpu: &GpuView, palette: Palette, people: &People, cells: usize) -> Line {
    let style = match gpu.lost || gpu.drained {
        true => palette.red(),
        false => Style::default(),
    };
    let mut line = Line::styled(format!("{:>2} {:<3} ", gpu.index, mode(gpu)), style);
    line.0.extend(bar(gpu, people, palette.muted(), cells));
    line
}

fn narrow(app: &App, gpu: &GpuView, palette: Palette, people: &People, width: usize) -> Line {
    let cells = width.saturating_sub(NARROW);
    let mut line = begin(gpu, palette, people, cells);
    let amount = of(Some(gpu.memory_used_bytes), Some(gpu.memory_promised_bytes));
    line.push(format!(" {}", left(&amount, 9)), Style::default());
    let busy = format!("{}{}", if is_hot(gpu) { "!" } else { "" }, percent(gpu.smact));
    let style = if is_hot(gpu) { palette.amber() } else { Style::default() };
    line.push(right(&busy, 5), style);
    line.push(format!(" {}", chart(app, gpu, NARROW_CHART)), palette.muted());
    let (watts, heat) = (number(gpu.power_w), number(gpu.temperature_c));
    line.push(format!(" {} {}", right(&watts, 3), right(&heat, 2)), Style::default());
    line.push("   ", Style::default());
    line
}

fn wide(app: &App, gpu: &GpuView, palette: Palette, people: &People, width: usize) -> [Line; 2] {
    let cells = width.saturating_sub(WIDE);
    let mut first = begin(gpu, palette, people, cells);
    let amount = of(Some(gpu.memory_used_bytes), Some(gpu.memory_promised_bytes));
    first.push(format!(" {} GiB", left(&amount, 9)), Style::default());
    let style = if is_hot(gpu) { palette.amber() } else { Style::default() };
    let mark = if is_hot(gpu) { "!" } else { " " };
    first.push(format!("  SM {}{mark}", right(&percent(gpu.smact), 3)), style);
    first.push(format!(" {}", chart(app, gpu, WIDE_CHART)), palette.muted());
    let (watts, heat) = (number(gpu.power_w), number(gpu.temperature_c));
    first.push(format!(" {} W {} °C", right(&watts, 3), right(&heat, 2)), Style::default());
    let mut second = Line::of(left("", 7));
    residents(gpu, people, palette, cells, &mut second);
    second.push(" ", Style::default());
    let words = verdict(gpu);
    let style = match gpu.verdict.word {
        VerdictWord::Open => Style::default(),
        VerdictWord::Lost | VerdictWord::Drained => palette.red(),
        _ => palette.amber(),
    };
    second.push(left(&words, width.saturating_sub(cells + 26)), style);
    let part = |share: Option<f64>| right(&share.map_or_else(|| UNKNOWN.to_owned(), percent), 3);
    second.push(format!(" occ {} dram {} ", part(gpu.smocc), part(gpu.drama)), palette.muted());
    [first, second]
}

/// The verdict in words: whether it would take a task, with the amount.
fn verdict(gpu: &GpuView) -> String {
    if gpu.lost {
        return "lost".to_owned();
    }
    if let (true, Some(reason)) = (gpu.drained, &gpu.drain_reason) {
        return format!("drained: {reason}");
    }
    if !gpu.verdict.text.is_empty() {
        return shortly(gpu);
    }
    let left = gpu.memory_total_bytes.saturating_sub(gpu.memory_promised_bytes);
    format!("{} GiB are not promised", gib(left))
}

/// The daemon's sentence with its word first, and shorter where a line is short.
fn shortly(gpu: &GpuView) -> String {
    let word = match gpu.verdict.word {
        VerdictWord::Open => "open",
        VerdictWord::Hot => "hot",
        VerdictWord::Full => "full",
        VerdictWord::Taken => "taken",
        VerdictWord::Drained => "drained",
        VerdictWord::Lost => "lost",
    };
    let text = gpu.verdict.text.trim_start_matches("takes tasks: ");
    let text =
        text.replace("expected SM demand", "SM demand").replace(" with a limit of ", " over ");
    let told = [word, "closed"].iter().any(|word| text.starts_with(word));
    if told { text } else { format!("{word}: {text}") }
}

/// Who is on it, in the order of the bar.
fn residents(gpu: &GpuView, people: &People, palette: Palette, cells: usize, line: &mut Line) {
    let begin = line.width();
    let mut room = cells;
    let mut push = |text: String, style: Style| {
        let text = crate::top::paint::cut(&text, room);
        room = room.saturating_sub(crate::top::paint::width(&text) + 2);
        line.push(text, style);
        line.push(if room > 0 { "  " } else { "" }, Style::default());
    };
    for resident in &gpu.residents {
        push(format!("{} {}", resident.id, resident.name), people.style(&resident.user));
    }
    for process in &gpu.foreign {
        let name = process.name.as_deref().unwrap_or("a process");
        let user = process.user.as_deref().unwrap_or("?");
        let held = process.bytes.map_or_else(String::new, |bytes| format!(" {}", gib(bytes)));
        push(format!("pid {} {name} ({user}){held}", process.pid), palette.muted());
    }
    let taken = line.width() - begin;
    line.push(" ".repeat(cells.saturating_sub(taken)), Style::default());
}
