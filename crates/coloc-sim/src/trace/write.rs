//! Writing traces in our own format.

use super::described::COLUMNS;
use super::{Checkpoint, Trace, TraceTask};
use coloc_model::{Bytes, Millis};
use std::io::{self, Write};

/// Columns that every trace has; the others are there if a task needs them.
const ALWAYS: usize = 12;

/// Writes a trace that [`super::read`] reads back unchanged.
pub fn write(trace: &Trace, output: impl Write) -> io::Result<()> {
    let mut csv = csv::Writer::from_writer(output);
    let is_used = |column: usize| trace.tasks().iter().any(|task| is_special(task, column));
    let used: Vec<bool> = (0..COLUMNS.len()).map(is_used).collect();
    let some = |(column, value)| (column < ALWAYS || used[column]).then_some(value);
    let header = COLUMNS.into_iter().enumerate().filter_map(some);
    csv.write_record(header).map_err(io::Error::other)?;
    let some =
        |(column, value): (usize, String)| (column < ALWAYS || used[column]).then_some(value);
    for task in trace.tasks() {
        let row = row(trace, task).into_iter().enumerate().filter_map(some);
        csv.write_record(row).map_err(io::Error::other)?;
    }
    csv.flush()
}

/// A column says something of a task that most traces know nothing of.
fn is_special(task: &TraceTask, column: usize) -> bool {
    match COLUMNS[column] {
        "priority" => task.priority != 0,
        "load_s" | "load_mib" => task.phases.load.is_some(),
        "eval_every_s" | "eval_s" | "eval_mib" => task.phases.evaluate.is_some(),
        "grow_after_s" | "grow_mib" => task.phases.late.is_some(),
        "declared_mib" => task.declared.is_some(),
        "estimate_mib" | "bound_mib" => task.recorded.is_some(),
        "checkpoint_s" => task.checkpoint.is_some(),
        _ => false,
    }
}

fn row(trace: &Trace, task: &TraceTask) -> [String; COLUMNS.len()] {
    let activity = task.profile.activity;
    let seconds = |span: Option<Millis>| span.map_or(String::new(), |s| format!("{:.3}", s.secs()));
    let mib = |held: Option<Bytes>| held.map_or(String::new(), |held| held.mib().to_string());
    let (load, evaluate, late) = (task.phases.load, task.phases.evaluate, task.phases.late);
    [
        format!("{:.3}", task.submit.secs()),
        trace.name(task).to_owned(),
        trace.user(task).to_owned(),
        trace.group(task).unwrap_or_default().to_owned(),
        task.gpus.to_string(),
        format!("{:.3}", task.duration.secs()),
        task.profile.memory.mib().to_string(),
        activity.gpu.get().to_string(),
        activity.sm.get().to_string(),
        activity.occupancy.get().to_string(),
        activity.dram.get().to_string(),
        u8::from(task.exclusive).to_string(),
        task.priority.to_string(),
        seconds(load.map(|load| load.span)),
        mib(load.map(|load| load.held)),
        seconds(evaluate.map(|evaluate| evaluate.every)),
        seconds(evaluate.map(|evaluate| evaluate.span)),
        mib(evaluate.map(|evaluate| evaluate.held)),
        seconds(late.map(|late| late.after)),
        mib(late.map(|late| late.held)),
        mib(task.declared),
        mib(task.recorded.map(|recorded| recorded.peak)),
        mib(task.recorded.map(|recorded| recorded.bound)),
        match task.checkpoint {
            Some(Checkpoint::Never) => "none".to_owned(),
            Some(Checkpoint::Every(every)) => seconds(Some(every)),
            None => String::new(),
        },
    ]
}
