//! Whether a submission makes sense by itself, wherever it would run.

use crate::bounds;
use crate::owner::commands::invalid::Invalid;
use coloc_api::request::ArrayRequest;
use coloc_api::script;
use coloc_api::spec::{TaskLayout, TaskSpec};

/// Two of them are the same.
fn has_equal(indices: &[u32]) -> bool {
    let mut sorted = indices.to_vec();
    sorted.sort_unstable();
    sorted.windows(2).any(|two| two[0] == two[1])
}

/// What can be said of a submission by itself.
pub(in crate::owner) fn check_form(
    spec: &TaskSpec,
    array: Option<&ArrayRequest>,
) -> Result<(), Invalid> {
    if spec.command.is_empty() {
        return Err(Invalid::NoCommand);
    }
    if spec.script.as_ref().is_some_and(|script| script.as_bytes().len() > script::LARGEST) {
        return Err(Invalid::LongScript);
    }
    if spec.script.as_ref().is_some_and(|body| script::interpreter(body.as_bytes()).is_none()) {
        return Err(Invalid::NoInterpreter);
    }
    let zero = |text: &coloc_api::text::RawText| text.as_bytes().contains(&0);
    let variables = spec.environment.iter().flat_map(|(name, value)| [name, value]);
    if spec.command.iter().chain(variables).chain([&spec.directory]).any(zero) {
        return Err(Invalid::ZeroByte);
    }
    if spec.limits.len() > 16 || spec.umask.is_some_and(|mask| mask > 0o777) {
        return Err(Invalid::Limits);
    }
    if spec.terminal.is_some() && (spec.errors.is_some() || spec.input || array.is_some()) {
        return Err(Invalid::Terminal);
    }
    if spec.input && array.is_some() {
        return Err(Invalid::InputOfArray);
    }
    if spec.sm_percent.is_some_and(|percent| !(1..=100).contains(&percent)) {
        return Err(Invalid::SmPercent);
    }
    check_layout(&spec.layout)?;
    if !spec.directory.as_path().is_absolute() {
        return Err(Invalid::RelativeDirectory);
    }
    if let Some(array) = array {
        match array.indices.len() {
            0 => return Err(Invalid::EmptyArray),
            many if many > bounds::ARRAY => {
                return Err(Invalid::LargeArray);
            }
            _ if has_equal(&array.indices) => {
                return Err(Invalid::EqualIndices);
            }
            _ if array.at_once == Some(0) => return Err(Invalid::NoneAtOnce),
            _ => {}
        }
    }
    if let (Some(limit), Some(warning)) = (spec.time_limit, spec.warning)
        && warning.before >= limit
    {
        return Err(Invalid::EarlyWarning { before: warning.before, limit });
    }
    Ok(())
}

/// What can be said of copies and CPUs by themselves.
fn check_layout(layout: &TaskLayout) -> Result<(), Invalid> {
    let TaskLayout { ntasks, cpus_per_task, gpus_per_task, submit_directory, array: _ } = layout;
    let mut counts = [ntasks, cpus_per_task, gpus_per_task].into_iter().flatten();
    if counts.any(|count| !(1..=bounds::COPIES).contains(count)) {
        return Err(Invalid::Copies);
    }
    let Some(directory) = submit_directory else { return Ok(()) };
    match directory.as_bytes() {
        long if long.len() > bounds::PATH => Err(Invalid::LongSubmitDirectory),
        text if text.contains(&0) => Err(Invalid::ZeroByte),
        _ => Ok(()),
    }
}
