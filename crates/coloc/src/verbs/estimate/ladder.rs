//! Estimators in order: what the command held before, its layers, a dry run.

use super::{EstimateArgs, EstimateError, STEPS};
use crate::args::live;
use crate::config::environments;
use crate::estimating::{self, LayersError};
use crate::submission::batch_script;
use coloc_api::spec::TaskSpec;
use coloc_daemon::journal::{Journal, JournalError};
use coloc_daemon::past;
use coloc_estimate::graph::{Flag, FlagKind};
use coloc_estimate::history::History;
use coloc_estimate::ladder::{self, Answer, Known, Step};
use coloc_estimate::{Estimate, ReplayEstimator};
use std::ffi::OsString;
use std::path::PathBuf;

/// Asks the history alone.
pub(super) fn history(args: &EstimateArgs) -> Result<Estimate, EstimateError> {
    let (history, signature) = past_of(args)?.ok_or(EstimateError::NoCommand)?;
    history.estimate(&signature).ok_or(EstimateError::NeverRan)
}

/// Asks one after the other until one answers.
pub(super) fn all(args: &EstimateArgs) -> Result<(Estimate, Vec<Step>), EstimateError> {
    let environment = environments::chosen(args.env.as_deref())?;
    let replay = ReplayEstimator::within(environment.constants);
    let (past, problem) = match past_of(args) {
        // The user did not say that there is a daemon.
        Err(error @ EstimateError::History { .. }) if args.state.is_none() => {
            (None, Some(error.to_string()))
        }
        past => (past?, None),
    };
    let loaded = match args.layers.source() {
        None if !args.script.is_empty() => None,
        _ => Some(estimating::load(&args.layers.layers()?, &environment)?),
    };
    let known = Known {
        dry_run: args.dry_run.then_some((&args.script, args.steps.unwrap_or(STEPS))),
        graph: loaded.as_ref().map(|(graph, run)| (graph, run)),
        history: past.as_ref().map(|(history, signature)| (history, signature.as_str())),
    };
    let Answer { estimate, mut steps } = ladder::ask(known, &replay);
    if let (Some(history), Some(_)) = (steps.first_mut(), &problem) {
        history.declined = problem;
    }
    let mut estimate = estimate.ok_or_else(|| EstimateError::NobodyKnows(in_words(&steps)))?;
    if estimate.estimator == "history" && args.layers.source().is_some() {
        let detail = "it is taken to train as it did before; the layers and how they are trained were not looked at";
        estimate.flags.push(Flag { kind: FlagKind::Assumption, detail: detail.to_owned() });
    }
    Ok((estimate, steps))
}

/// Which estimators were asked and why they did not answer.
fn in_words(steps: &[Step]) -> String {
    let declined = steps
        .iter()
        .filter_map(|step| Some(format!("{}: {}", step.estimator, step.declined.as_ref()?)));
    declined.collect::<Vec<_>>().join("; ")
}

/// Reads something from the journal of a daemon: the one that is named, or one's own.
pub(super) fn from_journal<T>(
    state: Option<&PathBuf>,
    read: fn(&Journal) -> Result<T, JournalError>,
) -> Result<T, EstimateError> {
    let file = state.cloned().unwrap_or_else(live::own_state).join("journal.db");
    let read = Journal::open_reader(&file).and_then(|journal| read(&journal));
    read.map_err(|source| EstimateError::History { file, source })
}

/// What a daemon remembers, and what it would call the command that was given.
fn past_of(args: &EstimateArgs) -> Result<Option<(History, String)>, EstimateError> {
    if args.script.is_empty() {
        return Ok(None);
    }
    let history = from_journal(args.state.as_ref(), past::history)?;
    let here =
        std::env::current_dir().map_err(|source| LayersError::Read { path: ".".into(), source })?;
    let command: Vec<OsString> = args.script.iter().map(OsString::from).collect();
    let (command, script) = match batch_script::prepared(command.clone(), &here, false) {
        Ok(prepared) => (prepared.command, prepared.script),
        Err(_) => (batch_script::runnable(command, &here), None),
    };
    let command = command.into_iter().map(Into::into).collect();
    let spec = TaskSpec::new(String::new(), command, here.into_os_string().into());
    Ok(Some((history, TaskSpec { script, ..spec }.signature())))
}
