//! Writing traces in our own format.

use super::Trace;
use super::described::COLUMNS;
use std::io::{self, Write};

/// Writes a trace that [`super::read`] reads back unchanged.
pub fn write(trace: &Trace, output: impl Write) -> io::Result<()> {
    let mut csv = csv::Writer::from_writer(output);
    // Most traces know of no priorities, and need no column for them.
    let prioritized = trace.tasks().iter().any(|task| task.priority != 0);
    let columns = COLUMNS.len() - usize::from(!prioritized);
    csv.write_record(&COLUMNS[..columns]).map_err(io::Error::other)?;
    for task in trace.tasks() {
        let activity = task.profile.activity;
        let row = [
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
        ];
        csv.write_record(&row[..columns]).map_err(io::Error::other)?;
    }
    csv.flush()
}
