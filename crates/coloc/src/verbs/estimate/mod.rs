//! `coloc estimate`: what a task will need, before it runs.

mod check;
mod draw;
mod envs;
mod error;
mod eval;
mod fit;
mod json;
mod ladder;
mod learn;
mod published;
mod train;

pub(crate) use self::error::EstimateError;

use self::fit::Fit;
use crate::args::training::TrainingArgs;
use crate::config::environments;
use crate::error::CliError;
use crate::estimating::{self, Layers, Source};
use crate::output::print_text;
use clap::{Args, Subcommand, ValueEnum};
use coloc_estimate::ladder::Step;
use coloc_estimate::{Estimate, ReplayEstimator, faketensor};
use coloc_model::Bytes;
use std::path::PathBuf;

/// Tell how much memory and how busy a GPU a training task will need, before it runs.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct EstimateArgs {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    layers: LayersArgs,
    /// Run the command after -- with tensors that have no memory, and measure
    #[arg(long, requires = "script")]
    dry_run: bool,
    /// Optimizer steps of a dry run [default: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    steps: Option<u32>,
    /// Memory of the device, such as 40G: says whether the task fits
    #[arg(long, value_name = "SIZE", value_parser = fit::device)]
    device_memory: Option<Bytes>,
    /// The software environment whose constant is added: carma, gpumemnet, or one that `estimate learn` stored (`estimate
    /// envs` lists all) [default: env in the configuration's [submit], or gpumemnet]
    #[arg(long, value_name = "NAME", value_parser = environments::name)]
    env: Option<String>,
    /// Who is asked: replay (the layers), history (what the command after -- held before), or ladder: history,
    /// then the layers, then a dry run if that was asked for. To compare: horus (a formula) and gpumemnet (classes)
    #[arg(long, value_enum, default_value_t)]
    estimator: Who,
    /// Read a summary with the digit fault of the published Horus scripts, and stop at their 40000 MiB
    #[arg(long)]
    horus_quirks: bool,
    /// State directory of the daemon whose history is asked [default: that of your own]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// The command of a dry run, or the one that the history is asked for
    #[arg(last = true, value_name = "COMMAND")]
    script: Vec<String>,
}

/// A task's layers and how it is trained.
#[derive(Args, Clone, Debug)]
struct LayersArgs {
    /// A layer summary: torchsummary table, printed module tree or torchinfo tree; - is standard input
    #[arg(long, value_name = "FILE", group = "input")]
    summary: Option<PathBuf>,
    /// A graph in coloc's own text format; - is standard input
    #[arg(long, value_name = "FILE", group = "input")]
    graph: Option<PathBuf>,
    /// A Hugging Face config.json (BERT, GPT-2, LLaMA, Mistral, Qwen2, T5 and ViT families); - is standard input
    #[arg(long, value_name = "FILE", group = "input")]
    hf_config: Option<PathBuf>,
    /// A task of the built-in catalogue, such as resnet or BERT_base
    #[arg(long, value_name = "NAME", group = "input")]
    task: Option<String>,
    #[command(flatten)]
    training: TrainingArgs,
    /// GPUs that ZeRO divides among [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    gpus: Option<u32>,
}

impl LayersArgs {
    /// What was named; `None` if nothing was.
    fn source(&self) -> Option<Source<'_>> {
        let LayersArgs { summary, graph, hf_config, task, .. } = self;
        let summary = summary.as_deref().map(Source::Summary);
        summary
            .or_else(|| graph.as_deref().map(Source::Graph))
            .or_else(|| hf_config.as_deref().map(Source::Config))
            .or_else(|| task.as_deref().map(Source::Task))
    }

    fn layers(&self) -> Result<Layers<'_>, EstimateError> {
        let source = self.source().ok_or(EstimateError::NoInput)?;
        Ok(Layers { source, training: &self.training, gpus: self.gpus.unwrap_or(1) })
    }
}

/// Which estimator is asked.
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
    /// Learn the constant of a software environment from measured runs, and store it.
    Learn(learn::LearnArgs),
    /// List the software environments that are known.
    Envs(envs::EnvsArgs),
    /// Learn margins, forests and nets from the published data sets.
    Train(train::TrainArgs),
}

impl EstimateArgs {
    pub(crate) fn run(self) -> Result<(), CliError> {
        let answer = match &self.command {
            Some(Command::Eval(args)) => eval::run(args)?,
            Some(Command::Learn(args)) => learn::run(args)?,
            Some(Command::Envs(args)) => envs::run(args)?,
            Some(Command::Train(args)) => train::run(args)?,
            None => estimate(&self)?,
        };
        print_text(answer.trim_end())
    }
}

fn estimate(args: &EstimateArgs) -> Result<String, EstimateError> {
    check::options(args)?;
    let (estimate, asked) = match args.estimator {
        Who::Replay if args.dry_run => (dry_run(args)?, Vec::new()),
        Who::Replay => {
            let environment = environments::chosen(args.env.as_deref())?;
            let (graph, run) = estimating::load(&args.layers.layers()?, &environment)?;
            let replay = ReplayEstimator::within(environment.constants);
            let (estimate, fit) = fit::on_device(&replay, &graph, &run, args.device_memory);
            return show(args, &estimate, fit, &[]);
        }
        Who::History => (ladder::history(args)?, Vec::new()),
        Who::Ladder => ladder::all(args)?,
        Who::Horus => (published::horus(args)?, Vec::new()),
        Who::Gpumemnet => (published::gpumemnet(args)?, Vec::new()),
    };
    let fit = args.device_memory.map(|device| Fit::of(&estimate, device));
    show(args, &estimate, fit, &asked)
}

/// Optimizer steps of a dry run by default: the second has all that stays, the third shows that nothing grows.
const STEPS: u32 = 3;

fn dry_run(args: &EstimateArgs) -> Result<Estimate, EstimateError> {
    let environment = environments::chosen(args.env.as_deref())?.constants;
    Ok(faketensor::dry_run(&args.script, args.steps.unwrap_or(STEPS), &environment)?)
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
