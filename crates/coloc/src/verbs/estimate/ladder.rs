//! Estimators in order: what the command held before, its layers, a dry run.

use super::{EstimateArgs, EstimateError, estimator, input};
use crate::args::{batch, live};
use coloc_daemon::journal::Journal;
use coloc_daemon::past;
use coloc_daemon::spec::TaskSpec;
use coloc_estimate::Estimate;
use coloc_estimate::history::History;
use coloc_estimate::ladder::{self, Answer, Known, Step};
use std::ffi::OsString;

/// Asks the history alone.
pub(super) fn history(args: &EstimateArgs) -> Result<Estimate, EstimateError> {
    let (history, signature) = past_of(args)?.ok_or(EstimateError::NoCommand)?;
    history.estimate(&signature).ok_or(EstimateError::NeverRan)
}

/// Asks one after the other until one answers.
pub(super) fn all(args: &EstimateArgs) -> Result<(Estimate, Vec<Step>), EstimateError> {
    let replay = estimator(&args.env)?;
    let (past, problem) = match past_of(args) {
        // Nobody said that there is a daemon.
        Err(error @ EstimateError::History { .. }) if args.state.is_none() => {
            (None, Some(error.to_string()))
        }
        past => (past?, None),
    };
    let loaded = match input::load(args, replay.environment()) {
        Ok(loaded) => Some(loaded),
        Err(EstimateError::NoInput) if !args.script.is_empty() => None,
        Err(error) => return Err(error),
    };
    let known = Known {
        dry_run: args.dry_run.then_some((&args.script, args.steps)),
        graph: loaded.as_ref().map(|(graph, run)| (graph, run)),
        history: past.as_ref().map(|(history, signature)| (history, signature.as_str())),
    };
    let Answer { estimate, mut steps } = ladder::ask(known, &replay);
    if let (Some(history), Some(_)) = (steps.first_mut(), &problem) {
        history.declined = problem;
    }
    let estimate = estimate.ok_or_else(|| EstimateError::NobodyKnows(in_words(&steps)))?;
    Ok((estimate, steps))
}

/// Who was asked and why they did not answer.
fn in_words(steps: &[Step]) -> String {
    let declined = steps
        .iter()
        .filter_map(|step| Some(format!("{}: {}", step.estimator, step.declined.as_ref()?)));
    declined.collect::<Vec<_>>().join("; ")
}

/// What a daemon remembers, and what it would call the command that was given.
fn past_of(args: &EstimateArgs) -> Result<Option<(History, String)>, EstimateError> {
    if args.script.is_empty() {
        return Ok(None);
    }
    let file = args.state.clone().unwrap_or_else(live::own_state).join("journal.db");
    let history = Journal::open_reader(&file)
        .and_then(|journal| past::history(&journal))
        .map_err(|source| EstimateError::History { file, source })?;
    let here = std::env::current_dir()
        .map_err(|source| EstimateError::Read { path: ".".into(), source })?;
    let command: Vec<OsString> = args.script.iter().map(OsString::from).collect();
    let (command, script) = match batch::prepared(command.clone(), &here, false) {
        Ok(prepared) => (prepared.command, prepared.script),
        Err(_) => (batch::runnable(command, &here), None),
    };
    let command = command.into_iter().map(Into::into).collect();
    let spec = TaskSpec::new(String::new(), command, here.into_os_string().into());
    Ok(Some((history, TaskSpec { script, ..spec }.signature())))
}
