//! Files that commands write. A file appears whole or not at all.

use crate::error::{CliError, UsageError};
use coloc_model::{TaskId, Time};
use coloc_sim::{TaskResult, Trace};
use serde::Serialize;
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Writes a file by way of a temporary one beside it, so that a reader never sees half of it.
pub(crate) fn write(
    file: &Path,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), CliError> {
    let fail = |source| CliError::Write { file: file.to_owned(), source };
    // Devices and pipes are written to as they are.
    let special = std::fs::metadata(file).is_ok_and(|meta| !meta.is_file());
    if special {
        let mut output = BufWriter::new(File::create(file).map_err(fail)?);
        return fill(&mut output).and_then(|()| output.flush()).map_err(fail);
    }
    let mut part = file.as_os_str().to_owned();
    part.push(format!(".{}.part", std::process::id()));
    let part = Path::new(&part);
    let written = File::create(part).and_then(|output| {
        let mut output = BufWriter::new(output);
        fill(&mut output)?;
        output.flush()?;
        std::fs::rename(part, file)
    });
    written.map_err(|source| {
        // Best effort: the error that matters is the one that is reported.
        let _ = std::fs::remove_file(part);
        fail(source)
    })
}

/// Says no where what is to be written would take the place of what is read.
pub(crate) fn refuse_to_replace(input: &Path, output: &Path) -> Result<(), CliError> {
    let same = |input, output| std::fs::canonicalize(input).ok() == Some(output);
    match std::fs::canonicalize(output) {
        Ok(output) if output.is_file() && same(input, output.clone()) => {
            Err(UsageError::file(output, "it is what is read; write to another file").into())
        }
        _ => Ok(()),
    }
}

/// Writes a value as JSON.
pub(crate) fn write_json(file: &Path, value: &impl Serialize) -> Result<(), CliError> {
    write(file, |output| serde_json::to_writer(output, value).map_err(io::Error::from))
}

/// Writes one line a task, on request with what the trace calls it.
pub(crate) fn write_jobs(
    file: &Path,
    trace: &Trace,
    results: &[TaskResult],
    trace_ids: bool,
) -> Result<(), CliError> {
    let secs =
        |time: Option<Time>| time.map_or(String::new(), |time| format!("{:.3}", time.secs()));
    write(file, |output| {
        let own_id = if trace_ids { ",trace_id" } else { "" };
        writeln!(output, "id,submit_s,start_s,end_s,gpus,preemptions,ooms{own_id}")?;
        for (id, (task, result)) in trace.tasks().iter().zip(results).enumerate() {
            let TaskResult { start, end, preemptions, ooms, .. } = *result;
            let (submit, gpus) = (task.submit.secs(), task.gpus);
            let (start, end) = (secs(start), secs(end));
            write!(output, "{id},{submit:.3},{start},{end},{gpus},{preemptions},{ooms}")?;
            if trace_ids {
                let own_id = trace.own_id(TaskId::from(id)).unwrap_or_default();
                write!(output, ",{}", csv_cell(own_id))?;
            }
            writeln!(output)?;
        }
        Ok(())
    })
}

/// Text as a table has it: in quotes where it would be taken for something else.
fn csv_cell(text: &str) -> Cow<'_, str> {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")).into(),
        false => text.into(),
    }
}
