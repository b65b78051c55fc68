//! `coloc estimate learn`: the constant of a software environment from measured runs.

mod rows;

pub(crate) use self::rows::LearnRunsError;

use super::ladder::from_journal;
use super::{EstimateError, LayersArgs, json};
use crate::config::environments::{self, Borrowed};
use crate::error::CliError;
use crate::estimating::LayersError;
use crate::output::table::table;
use clap::Args;
use coloc_daemon::past::{self, Measured};
use coloc_estimate::environment::{Environment, Lesson, Observation, learn};
use coloc_model::{Bytes, Loads};
use serde::Serialize;
use std::fmt::Write as _;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub(super) struct LearnArgs {
    /// The name of the environment: of a container's image, or of versions, such as torch-2.4-cu121
    #[arg(long, value_name = "NAME", value_parser = environments::name)]
    env: String,
    /// Measured runs: a CSV with the columns measured, one of summary, graph, hf_config and task, and if need be batch, seq, optimizer, precision, samples and summary_pass (true)
    #[arg(long, value_name = "FILE")]
    rows: Option<PathBuf>,
    /// Memory that one run held at its peak on one GPU, as nvidia-smi shows it, such as 5262M; its layers and how it was trained with the flags below
    #[arg(long, value_name = "MEMORY")]
    measured: Option<Bytes>,
    #[command(flatten)]
    layers: LayersArgs,
    /// Ended tasks of a daemon that were submitted with --model-summary or --hf-config
    #[arg(long)]
    from_history: bool,
    /// State directory of that daemon [default: that of your own]
    #[arg(long, value_name = "DIR", requires = "from_history")]
    state: Option<PathBuf>,
    /// For the whole machine, which is what root gets; otherwise for this user alone
    #[arg(long)]
    system: bool,
    /// Show what would be learned, and store nothing
    #[arg(long)]
    dry_run: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A measured run beside its replay.
#[derive(Clone, PartialEq, Debug, Serialize)]
struct Run {
    what: String,
    measured_mib: f64,
    replayed_mib: f64,
    difference_mib: f64,
    /// What it loads; nothing where it teaches nothing.
    loads: Option<Loads>,
    /// Why it does not count.
    left_out: Option<String>,
}

#[derive(Serialize)]
struct Learned {
    env: String,
    #[serde(flatten)]
    constants: Environment,
    rows: usize,
    borrowed: Option<Borrowed>,
    /// Where it was stored, unless it was not.
    file: Option<PathBuf>,
    runs: Vec<Run>,
}

pub(super) fn run(args: &LearnArgs) -> Result<String, CliError> {
    let file = environments::place(&args.env, args.system).map_err(EstimateError::from)?;
    let runs = gathered(args)?;
    let counting = runs.iter().filter_map(|run| {
        Some(Observation { loads: run.loads?, difference_mib: run.difference_mib })
    });
    let observations: Vec<Observation> = counting.collect();
    let lesson = learn(&observations, &known_but(&args.env))
        .map_err(|error| rows::nothing_learned(error, &runs))?;
    let Lesson { environment: constants, borrowed } = lesson;
    let borrowed = borrowed.map(|(from, parts)| Borrowed { from, parts });
    let rows = observations.len();
    if !args.dry_run {
        environments::write(&file, constants, rows, borrowed.clone())?;
    }
    let file = (!args.dry_run).then_some(file);
    let learned = Learned { env: args.env.clone(), constants, rows, borrowed, file, runs };
    match args.json {
        true => Ok(json::text(&learned)?),
        false => Ok(told(&learned)),
    }
}

/// Environments to borrow from: others.
fn known_but(name: &str) -> std::collections::BTreeMap<String, Environment> {
    let mut known = environments::constants();
    known.remove(name);
    known
}

/// All runs that were named, each beside its replay.
fn gathered(args: &LearnArgs) -> Result<Vec<Run>, EstimateError> {
    let mut runs = Vec::new();
    if let Some(file) = &args.rows {
        runs.extend(rows::read(file)?);
    }
    match (args.measured, args.layers.source()) {
        (Some(measured), Some(_)) => runs.push(rows::one(&args.layers, measured)?),
        (Some(_), None) => return Err(EstimateError::NoInput),
        (None, Some(_)) => return Err(LearnRunsError::NotMeasured.into()),
        (None, None) => {
            if let Some(flag) = args.layers.training.given().next() {
                let problem = format!("{flag} changes nothing here: it belongs to --measured");
                return Err(EstimateError::from(LayersError::Unused(problem)));
            }
        }
    }
    if args.from_history {
        runs.extend(from_journal(args.state.as_ref(), past::measured)?.iter().map(of_task));
    }
    match (runs.is_empty(), args.from_history) {
        (true, true) => Err(LearnRunsError::NoTasks.into()),
        (true, false) => Err(LearnRunsError::NothingGiven.into()),
        (false, _) => Ok(runs),
    }
}

/// A task of a daemon. One that was seen with less than its replay did not last until it held everything, or until the
/// monitor looked.
fn of_task(task: &Measured) -> Run {
    let (measured_mib, replayed_mib) = (task.peak.mib(), task.replayed.allocator.mib());
    let short = measured_mib <= replayed_mib;
    Run {
        what: format!("task {} {}", task.id.0, task.name),
        measured_mib,
        replayed_mib,
        difference_mib: measured_mib - replayed_mib,
        loads: (!short).then_some(task.replayed.loads),
        left_out: short.then(|| "less was seen than is replayed".to_owned()),
    }
}

fn told(learned: &Learned) -> String {
    let Environment { base_mib, convolution_mib, batch_norm_mib, spread_mib } = learned.constants;
    let rows = learned.runs.iter().map(|run| {
        let off = run.loads.map(|loads| run.difference_mib - learned.constants.total_mib(loads));
        let note = match (&run.left_out, off) {
            (Some(reason), _) => format!("left out: {reason}"),
            (None, Some(off)) => format!("{off:+.0}"),
            (None, None) => "-".to_owned(),
        };
        let figures = [run.measured_mib, run.replayed_mib, run.difference_mib];
        let cells = figures.map(|mib| format!("{mib:.0}"));
        [vec![run.what.clone()], cells.to_vec(), vec![note]].concat()
    });
    let mut text = table(&["RUN", "MEASURED", "REPLAYED", "DIFFERENCE", "OFF BY"], rows);
    let _ = write!(
        text,
        "\n\n{}: {base_mib:.0} MiB, {convolution_mib:+.0} with cuDNN, {batch_norm_mib:+.0} with batch normalisation, \
         from {} {}",
        learned.env,
        learned.rows,
        if learned.rows == 1 { "run" } else { "runs" }
    );
    if let Some(Borrowed { from, parts }) = &learned.borrowed {
        let parts: Vec<&str> = parts.iter().map(|part| part.part()).collect();
        let _ = write!(text, "\nno run tells the part of {}: as in {from}", parts.join(" and of "));
    }
    let off = learned
        .runs
        .iter()
        .filter_map(|run| Some(run.difference_mib - learned.constants.total_mib(run.loads?)));
    let below = off.fold(0.0, f64::min);
    if spread_mib - below >= 1.0 {
        let _ = write!(
            text,
            "\nruns disagree: {below:+.0} to {spread_mib:+.0} MiB; bounds allow for what is above"
        );
    }
    match &learned.file {
        Some(file) => {
            let _ =
                write!(text, "\nstored in {}; use it with --env {}", file.display(), learned.env);
        }
        None => text.push_str("\nnothing was stored"),
    }
    text
}
