//! The first lines, which say how everything is, and the last one, which says what can be done.

use super::Form;
use crate::top::app::{App, Connection, Data};
use crate::top::numbers::{gib, percent, power};
use crate::top::paint::{Line, Palette, cut, left, width as cells};
use coloc_model::TaskState;
use std::collections::BTreeMap;

/// `4×A100-40GB`, or each kind with its number.
fn fleet(data: &Data) -> String {
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for gpu in &data.gpus {
        *kinds.entry(gpu.model.as_str()).or_default() += 1;
    }
    let kinds: Vec<String> = kinds.into_iter().map(|(kind, n)| format!("{n}×{kind}")).collect();
    if kinds.is_empty() { "no GPUs".to_owned() } else { kinds.join(" ") }
}

/// Tasks on GPUs, and tasks that wait.
fn counts(data: &Data) -> (usize, usize) {
    let on_gpus = data.tasks.values().filter(|task| task.state.is_on_gpus()).count();
    (on_gpus, data.tasks.len() - on_gpus)
}

fn total_power(data: &Data) -> Option<f64> {
    let told: Vec<f64> = data.gpus.iter().filter_map(|gpu| gpu.power_w).collect();
    (!told.is_empty()).then(|| told.iter().sum())
}

fn mean_activity(data: &Data) -> Option<f64> {
    let there: Vec<f64> = data.gpus.iter().filter(|gpu| !gpu.lost).map(|gpu| gpu.smact).collect();
    (!there.is_empty()).then(|| there.iter().sum::<f64>() / there.len() as f64)
}

/// Whether what is shown is so now, with the time.
fn connection(app: &App, seconds: bool) -> String {
    let time = |at_s: f64| {
        let (hour, minute, second) = (app.clock)(at_s);
        match seconds {
            true => format!("{hour:02}:{minute:02}:{second:02}"),
            false => format!("{hour:02}:{minute:02}"),
        }
    };
    match &app.connection {
        Connection::Connecting => "connecting".to_owned(),
        Connection::Stale { since_s, .. } => format!("STALE since {}", time(*since_s)),
        Connection::Live if app.paused.is_some() => format!("PAUSED {}", time(app.now_s)),
        Connection::Live => format!("live {}", time(app.now_s)),
    }
}

pub(super) fn lines(app: &App, palette: Palette, form: Form, width: usize) -> Vec<Line> {
    let data = app.shown();
    let mut lines = match form {
        Form::Wide => wide(app, data, width),
        _ => vec![narrow(app, data, width)],
    };
    if let Some(first) = lines.first_mut() {
        let style = match app.connection {
            Connection::Stale { .. } => palette.red(),
            _ => palette.heading(),
        };
        first.0.iter_mut().for_each(|(_, own)| *own = style);
    }
    lines
}

fn narrow(app: &App, data: &Data, width: usize) -> Line {
    let (running, waiting) = counts(data);
    let mut right = vec![format!("{running} run"), format!("{waiting} wait")];
    right.extend(total_power(data).map(power));
    right.extend(mean_activity(data).map(|mean| format!("{} SM", percent(mean))));
    right.push(connection(app, false));
    let host = cut(&data.status.host, 20);
    let mut left = format!(" coloc  {host}  {}", fleet(data));
    let right = format!("  {} ", right.join("  "));
    let word = "  emulated";
    if data.status.emulated && cells(&left) + cells(word) + cells(&right) <= width {
        left.push_str(word);
    }
    Line::ends(&cut(&left, width.saturating_sub(cells(&right))), &right, width)
}

fn wide(app: &App, data: &Data, width: usize) -> Vec<Line> {
    let policy = &data.status.policy;
    let words = [policy.queue.as_str(), &policy.place, &policy.share];
    let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
    let host = cut(&data.status.host, 30);
    let left = format!(" coloc  {host}  {}  {}", fleet(data), words.join(" / "));
    let kind = if data.status.emulated { "  emulated: nothing here was measured" } else { "" };
    let first = Line::ends(&left, &format!("  {}{kind} ", connection(app, true)), width);
    let (running, waiting) = counts(data);
    let sum = |of: fn(&coloc_api::view::GpuView) -> u64| data.gpus.iter().map(of).sum::<u64>();
    let mut parts = vec![format!("{running} running"), format!("{waiting} waiting")];
    parts.push(format!(
        "{} of {} GiB used, {} promised",
        gib(sum(|gpu| gpu.memory_used_bytes)),
        gib(sum(|gpu| gpu.memory_total_bytes)),
        gib(sum(|gpu| gpu.memory_promised_bytes))
    ));
    parts.extend(mean_activity(data).map(|mean| format!("SM activity {:.0} %", mean * 100.0)));
    if let Some(watts) = total_power(data) {
        let limits: Option<f64> = data.gpus.iter().map(|gpu| gpu.power_limit_w).sum();
        parts.push(match limits {
            Some(limit) => format!("{:.2} of {:.2} kW", watts / 1000.0, limit / 1000.0),
            None => power(watts),
        });
    }
    let status = &data.status;
    parts.push(format!("OOM today {}, recovered {}", status.ooms_today, status.recovered_today));
    vec![first, Line::of(self::left(&format!(" {}", parts.join("   ")), width))]
}

/// What is wrong, or what can be done.
pub(super) fn last_line(app: &App, palette: Palette, form: Form, width: usize) -> Line {
    let said = |text: &str, style| Line::styled(left(&format!(" {text}"), width), style);
    if let Some(asked) = &app.asked {
        return said(&asked.question, palette.amber());
    }
    if app.finding {
        return said(
            &format!("find: {}▏  ↵ keeps it, Esc forgets it", app.find),
            palette.heading(),
        );
    }
    if let Some(message) = &app.message {
        return said(message, palette.amber());
    }
    if let Connection::Stale { why, .. } = &app.connection {
        return said(&format!("{why}; tried again every second"), palette.red());
    }
    if let Some(trouble) = trouble(app.shown()) {
        return said(&trouble, palette.red());
    }
    if !app.find.is_empty() {
        return said(
            &format!("only what has {:?} in it; Esc shows all", app.find),
            palette.amber(),
        );
    }
    let keys = match form {
        Form::Wide => {
            "? help   / find   s sort   f filter   ↵ task   w why   l log   c cancel   h hold   r requeue   p pause   t timeline   q quit"
        }
        _ => "?help  /find  s sort  f filter  ↵ task  w why  l log  c cancel  h hold  q quit",
    };
    said(keys, palette.muted())
}

fn trouble(data: &Data) -> Option<String> {
    let fault = data.status.faults.first().map(|fault| fault.text.clone());
    let draining = || data.status.draining.then(|| "draining: nothing new is started".to_owned());
    fault.or_else(|| data.status.trouble.clone()).or_else(draining)
}

/// Everything in a sentence, where there is no room for more.
pub(super) fn sentence(app: &App) -> String {
    let data = app.shown();
    let (running, waiting) = counts(data);
    let recovering = data.tasks.values().filter(|task| task.state == TaskState::Recovering).count();
    let busy = mean_activity(data).map_or(String::new(), |m| format!(", SM {}", percent(m)));
    let back = match recovering {
        0 => String::new(),
        n => format!(", {n} of them after an out-of-memory"),
    };
    format!(
        "coloc: {running} running, {waiting} waiting{back}{busy}; {}. At 60x15 there is more to see.",
        connection(app, false)
    )
}
