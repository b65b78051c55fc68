//! From files and flags to a graph and a way to train it.

use super::{LayersError, known_tasks};
use crate::args::training::TrainingArgs;
use crate::config::environments::Named;
use coloc_estimate::graph::{FlagKind, Graph, MOST_NUMBERS, Op, text};
use coloc_estimate::run::{Optimizer, Precision, RunConfig, Sharding};
use coloc_estimate::summary::{self, SummaryOptions};
use coloc_estimate::{catalogue, hf};
use std::io::{self, Read as _};
use std::path::Path;

/// Tokens of a sample where no number is given.
const DEFAULT_TOKENS: u32 = 512;
/// Samples per iteration that a config is taken to mean: it does not say.
const CONFIG_BATCH: u32 = 8;
/// The same for a graph.
const GRAPH_BATCH: u32 = 32;
/// Files larger than this are not read.
const LARGEST_FILE: u64 = 64 << 20;

/// Where a task's layers are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Source<'a> {
    /// In a printed summary.
    Summary(&'a Path),
    /// In a graph of our own format.
    Graph(&'a Path),
    /// In a Hugging Face config.
    Config(&'a Path),
    /// In the catalogue.
    Task(&'a str),
}

/// A task's layers and how it is trained.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layers<'a> {
    pub(crate) source: Source<'a>,
    pub(crate) training: &'a TrainingArgs,
    /// GPUs that ZeRO divides among.
    pub(crate) gpus: u32,
}

/// The graph, with every doubt that the options and the environment add, and how it is trained where nothing is short.
pub(crate) fn load(
    layers: &Layers<'_>,
    environment: &Named,
) -> Result<(Graph, RunConfig), LayersError> {
    let training = layers.training;
    let Input { mut graph, batch, optimizer } = read_input(layers, environment)?;
    check_use(layers, &graph)?;
    let batch = match (training.batch, batch) {
        (Some(batch), _) | (None, Batch::Given(batch)) => batch,
        (None, Batch::Usual(batch)) => assume_batch(&mut graph, batch),
        (None, Batch::Unknown) => return Err(LayersError::NoBatch),
    };
    let (precision, zero) = (training.precision.unwrap_or_default(), training.zero.unwrap_or(0));
    for (used, what) in [
        (precision == Precision::Half, "training in 16 bits"),
        (precision == Precision::Mixed, "mixed precision"),
        (zero > 0, "ZeRO"),
        (training.lora.is_some(), "LoRA"),
        (training.gradient_checkpointing, "gradient checkpointing"),
    ] {
        if used {
            let detail = format!("{what} was never compared with a measurement");
            graph.flag(FlagKind::Unverified, detail);
        }
    }
    environment.doubt(&mut graph);
    let run = RunConfig {
        optimizer: training.optimizer.unwrap_or(optimizer),
        precision,
        sharding: Sharding { stage: zero, gpus: layers.gpus },
        ..training.batches(batch)
    };
    countable(graph, run)
}

/// Options that would change nothing are refused: a user who gives them expects that they do.
fn check_use(layers: &Layers<'_>, graph: &Graph) -> Result<(), LayersError> {
    let Layers { source, training, gpus } = layers;
    let reads_tokens = graph.nodes()[0].op == Op::Tokens;
    let (config, fixed) = match source {
        Source::Config(_) => (true, false),
        Source::Summary(_) => (false, false),
        Source::Graph(_) | Source::Task(_) => (false, true),
    };
    let zero = training.zero.unwrap_or(0) > 0;
    for (useless, message) in [
        (training.lora.is_some() && !config, "--lora works with --hf-config alone"),
        (training.attention.is_some() && !config, "--attention works with --hf-config alone"),
        (
            training.gradient_checkpointing && !config,
            "--gradient-checkpointing works with --hf-config alone",
        ),
        (zero && *gpus == 1, "--zero divides among GPUs: give --gpus, at least 2"),
        (
            training.seq.is_some() && (fixed || !reads_tokens),
            "--seq works with configs and summaries of models that read tokens",
        ),
    ] {
        if useless {
            return Err(LayersError::Unused(message.to_owned()));
        }
    }
    Ok(())
}

fn assume_batch(graph: &mut Graph, batch: u32) -> u32 {
    let detail = format!("the batch is taken to be {batch}; --batch says otherwise");
    graph.flag(FlagKind::Assumption, detail);
    batch
}

/// Refuses what cannot be added up.
fn countable(graph: Graph, run: RunConfig) -> Result<(Graph, RunConfig), LayersError> {
    match graph.size(run.batch) {
        numbers if numbers > MOST_NUMBERS => Err(LayersError::TooLarge(numbers)),
        _ => Ok((graph, run)),
    }
}

/// Samples per iteration where no option says.
enum Batch {
    /// The input says.
    Given(u32),
    /// It never does: this is taken.
    Usual(u32),
    /// It could have said.
    Unknown,
}

/// What a file or the catalogue says, and the optimizer that goes with it.
struct Input {
    graph: Graph,
    batch: Batch,
    optimizer: Optimizer,
}

fn read_input(layers: &Layers<'_>, environment: &Named) -> Result<Input, LayersError> {
    let training = layers.training;
    let tokens = training.seq.unwrap_or(DEFAULT_TOKENS);
    match layers.source {
        Source::Summary(path) => {
            let summary = summary::parse(&read(path)?, &SummaryOptions { tokens })
                .map_err(|source| LayersError::Summary { path: path.to_owned(), source })?;
            let batch = summary.batch.map_or(Batch::Unknown, Batch::Given);
            Ok(Input { graph: summary.graph, batch, optimizer: Optimizer::Adam })
        }
        Source::Graph(path) => {
            let graph = text::parse(&read(path)?)
                .map_err(|source| LayersError::Graph { path: path.to_owned(), source })?;
            Ok(Input { graph, batch: Batch::Usual(GRAPH_BATCH), optimizer: Optimizer::Adam })
        }
        Source::Config(path) => {
            let options = hf::Options {
                tokens,
                checkpointing: training.gradient_checkpointing,
                lora_rank: training.lora,
                attention: training.attention.unwrap_or_default(),
            };
            let graph = hf::parse(&read(path)?, &options)
                .map_err(|source| LayersError::Config { path: path.to_owned(), source })?;
            Ok(Input { graph, batch: Batch::Usual(CONFIG_BATCH), optimizer: Optimizer::AdamW })
        }
        Source::Task(name) => {
            let task = catalogue::task(name).ok_or_else(|| unknown_task(name))?;
            let task = task.within(&environment.name);
            let batch = Batch::Given(task.run.batch);
            Ok(Input { graph: task.graph, batch, optimizer: task.run.optimizer })
        }
    }
}

fn unknown_task(name: &str) -> LayersError {
    let name = name.to_owned();
    match catalogue::task_names().any(|known| known == name) {
        true => LayersError::NoGraph { name },
        false => LayersError::UnknownTask { name, known: known_tasks() },
    }
}

/// Text of a file, or of standard input. Not more than any input has is read, whatever a file's size claims to be.
pub(crate) fn read(path: &Path) -> Result<String, LayersError> {
    let failed = |source| LayersError::Read { path: path.to_owned(), source };
    let mut bytes = Vec::new();
    let read = match path.as_os_str() == "-" {
        true => io::stdin().lock().take(LARGEST_FILE + 1).read_to_end(&mut bytes),
        false => std::fs::File::open(path)
            .and_then(|file| file.take(LARGEST_FILE + 1).read_to_end(&mut bytes)),
    };
    if read.map_err(failed)? as u64 > LARGEST_FILE {
        let most = LARGEST_FILE >> 20;
        let problem = format!("it has more than {most} MiB; no summary, graph or config does");
        return Err(failed(io::Error::other(problem)));
    }
    String::from_utf8(bytes).map_err(|_| LayersError::NotText { path: path.to_owned() })
}
