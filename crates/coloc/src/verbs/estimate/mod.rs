//! `coloc estimate`: what a task will need, before it runs.

mod draw;
mod eval;
mod fit;
mod input;
mod json;
mod ladder;
mod published;
mod train;

use self::fit::Fit;
use crate::error::CliError;
use crate::output::print_text;
use clap::{Args, Subcommand, ValueEnum};
use coloc_estimate::catalogue;
use coloc_estimate::dataset::DatasetError;
use coloc_estimate::faketensor::FakeTensorError;
use coloc_estimate::graph::text::TextError;
use coloc_estimate::hf::ConfigError;
use coloc_estimate::ladder::Step;
use coloc_estimate::run::{Optimizer, Precision};
use coloc_estimate::summary::SummaryError;
use coloc_estimate::{Estimate, Estimator, ReplayEstimator, faketensor, learned};
use coloc_model::Bytes;
use std::path::PathBuf;

/// Tell how much memory and how busy a GPU a training task will need, before it runs.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct EstimateArgs {
    #[command(subcommand)]
    command: Option<Command>,
    /// A layer summary: torchsummary table, printed module tree or torchinfo tree.
    #[arg(long, value_name = "FILE", group = "input")]
    summary: Option<PathBuf>,
    /// A graph in coloc's own text format.
    #[arg(long, value_name = "FILE", group = "input")]
    graph: Option<PathBuf>,
    /// A Hugging Face config.json (BERT, GPT-2, LLaMA and T5 families).
    #[arg(long, value_name = "FILE", group = "input")]
    hf_config: Option<PathBuf>,
    /// A task of the built-in catalogue, such as resnet or BERT_base.
    #[arg(long, value_name = "NAME", group = "input")]
    task: Option<String>,
    /// Run the command after -- with tensors that have no memory, and measure.
    #[arg(long, group = "input", requires = "script")]
    dry_run: bool,
    /// Optimizer steps of a dry run.
    #[arg(long, default_value_t = 3)]
    steps: u32,
    /// Samples per iteration on one GPU.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    batch: Option<u32>,
    /// Tokens of a sample.
    /// [default: 512]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    seq: Option<u32>,
    /// adam, adamw, sgd, sgdm, sgdm-decay, adagrad, rmsprop or lion.
    #[arg(long)]
    optimizer: Option<Optimizer>,
    /// fp32, fp16, bf16 or mixed.
    #[arg(long, default_value = "fp32")]
    precision: Precision,
    /// Compute each layer's activations again in the backward pass.
    #[arg(long)]
    gradient_checkpointing: bool,
    /// Rank of LoRA adapters; everything else is frozen.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=4096))]
    lora: Option<u32>,
    /// What ZeRO divides among the GPUs: 1 optimizer, 2 gradients too, 3 parameters too.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=3))]
    zero: u8,
    /// GPUs that ZeRO divides among.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    gpus: u32,
    /// Memory of the device, such as 40G: says whether the task fits.
    #[arg(long, value_name = "SIZE", value_parser = fit::device)]
    device_memory: Option<Bytes>,
    /// The software environment whose constant is added.
    #[arg(long, default_value = learned::DEFAULT_ENVIRONMENT)]
    env: String,
    /// Who is asked: replay (the layers), history (what the command after -- held before), or ladder: history,
    /// then the layers, then a dry run if that was asked for. To compare: horus (a formula) and gpumemnet (classes).
    #[arg(long, value_enum, default_value_t)]
    estimator: Who,
    /// Read a summary with the digit fault of the published Horus scripts.
    #[arg(long)]
    horus_quirks: bool,
    /// State directory of the daemon whose history is asked [default: that of your own].
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// The command of a dry run, or the one that the history is asked for.
    #[arg(last = true, value_name = "COMMAND")]
    script: Vec<String>,
}

/// Who is asked.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Who {
    #[default]
    Replay,
    History,
    Ladder,
    Horus,
    Gpumemnet,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Compare an estimator with measured rows.
    Eval(eval::EvalArgs),
    /// Learn constants, margins, forests and nets from measured rows.
    Train(train::TrainArgs),
}

/// An estimate could not be given.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EstimateError {
    #[error("nothing to estimate: give --summary, --graph, --hf-config, --task or --dry-run")]
    NoInput,
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{} is not text; a summary, graph or config is", path.display())]
    NotText { path: PathBuf },
    #[error("{}: {source}", path.display())]
    Summary { path: PathBuf, source: SummaryError },
    #[error("{}: {source}", path.display())]
    Graph { path: PathBuf, source: TextError },
    #[error("{}: {source}", path.display())]
    Config { path: PathBuf, source: ConfigError },
    #[error("unknown task {name:?}; known are {known}")]
    UnknownTask { name: String, known: String },
    #[error("nobody has written down the graph of {name:?}; give its layers with --summary")]
    NoGraph { name: String },
    #[error("unknown environment {name:?}; known are {known}")]
    UnknownEnvironment { name: String, known: String },
    #[error("{0}")]
    Unused(&'static str),
    #[error("a batch of this net has {0:.1e} numbers; no device holds them, so check its sizes")]
    TooLarge(f64),
    #[error(
        "no gpumemnet for transformers is shipped: too few were measured; known are nets for gpumemnet-mlp and gpumemnet-cnn"
    )]
    NoNet,
    #[error("the batch is not in the summary; give --batch")]
    NoBatch,
    #[error(transparent)]
    DryRun(#[from] FakeTensorError),
    #[error(transparent)]
    Dataset(#[from] DatasetError),
    #[error("the history knows commands: give one after --, such as -- python train.py")]
    NoCommand,
    #[error("no history can be read from {}: {source}; name a daemon's state directory with --state", file.display())]
    History { file: PathBuf, source: coloc_daemon::journal::JournalError },
    #[error(
        "this command never ran to its end in this directory; --estimator ladder asks the layers then"
    )]
    NeverRan,
    #[error("nobody can tell ({0})")]
    NobodyKnows(String),
    #[error("unknown estimator {0:?}; known are replay, horus and gpumemnet")]
    UnknownEstimator(String),
    #[error("{0}")]
    Train(String),
    #[error("cannot write JSON: {0}")]
    Json(#[from] serde_json::Error),
}

impl EstimateArgs {
    pub(crate) fn run(self) -> Result<(), CliError> {
        let answer = match &self.command {
            Some(Command::Eval(args)) => eval::run(args),
            Some(Command::Train(args)) => train::run(args),
            None => estimate(&self),
        };
        print_text(answer?.trim_end())
    }
}

fn estimate(args: &EstimateArgs) -> Result<String, EstimateError> {
    published::check(args)?;
    let (estimate, asked) = match args.estimator {
        Who::Replay => {
            let (estimate, fit) = asked_for(args)?;
            return show(args, &estimate, fit, &[]);
        }
        Who::History => {
            let message = "the history knows the command after -- as it ran: leave out --batch, --optimizer and the like";
            input::check_layers_unused(args, message)?;
            (ladder::history(args)?, Vec::new())
        }
        Who::Ladder => ladder::all(args)?,
        Who::Horus => (published::horus(args)?, Vec::new()),
        Who::Gpumemnet => (published::gpumemnet(args)?, Vec::new()),
    };
    let fit = args.device_memory.map(|device| Fit::of(&estimate, device));
    show(args, &estimate, fit, &asked)
}

/// The layers, or a dry run.
fn asked_for(args: &EstimateArgs) -> Result<(Estimate, Option<Fit>), EstimateError> {
    if args.dry_run {
        let message =
            "a dry run is trained as its script says: leave out --batch, --optimizer and the like";
        input::check_layers_unused(args, message)?;
        let estimate = faketensor::dry_run(&args.script, args.steps)?;
        let fit = args.device_memory.map(|device| Fit::of(&estimate, device));
        return Ok((estimate, fit));
    }
    let estimator = estimator(&args.env)?;
    let (graph, run) = input::load(args)?;
    Ok(fit::on_device(&estimator, &graph, &run, args.device_memory))
}

fn show(
    args: &EstimateArgs,
    estimate: &Estimate,
    fit: Option<Fit>,
    asked: &[Step],
) -> Result<String, EstimateError> {
    if args.json {
        return json::text(&json::estimate(estimate, fit, asked));
    }
    let mut text = draw::estimate(estimate, args.device_memory.zip(fit));
    for Step { estimator, declined } in asked {
        if let Some(declined) = declined {
            text.push_str(&format!("asked  {estimator}: {declined}\n"));
        }
    }
    Ok(text)
}

/// What a task with this layer summary is expected to need, for who submits it.
pub(crate) fn of_summary(
    file: &std::path::Path,
    batch: Option<u32>,
) -> Result<Estimate, EstimateError> {
    let (graph, run) = input::of_summary(file, batch)?;
    Ok(estimator(learned::DEFAULT_ENVIRONMENT)?.estimate(&graph, &run))
}

/// The same from a Hugging Face config.
pub(crate) fn of_config(
    file: &std::path::Path,
    batch: Option<u32>,
    tokens: Option<u32>,
) -> Result<Estimate, EstimateError> {
    let (graph, run) = input::of_config(file, batch, tokens)?;
    Ok(estimator(learned::DEFAULT_ENVIRONMENT)?.estimate(&graph, &run))
}

/// The replay in an environment that is known.
fn estimator(name: &str) -> Result<ReplayEstimator<'static>, EstimateError> {
    ReplayEstimator::shipped(name).ok_or_else(|| EstimateError::UnknownEnvironment {
        name: name.to_owned(),
        known: learned::calibration().environments.keys().cloned().collect::<Vec<_>>().join(", "),
    })
}

fn known_tasks() -> String {
    let known = catalogue::task_names().filter(|name| catalogue::task(name).is_some());
    known.collect::<Vec<_>>().join(", ")
}
