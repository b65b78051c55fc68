//! From files and flags to a graph and a way to train it.

use super::{EstimateArgs, EstimateError, known_tasks};
use coloc_estimate::graph::{FlagKind, Graph, MOST_NUMBERS, Op, text};
use coloc_estimate::run::{Optimizer, Precision, RunConfig, Sharding};
use coloc_estimate::summary::{self, SummaryOptions};
use coloc_estimate::{catalogue, hf};
use std::path::Path;

/// Tokens of a sample where nobody says.
pub(super) const DEFAULT_TOKENS: u32 = 512;
/// Samples per iteration that a config is taken to mean: it does not say.
const CONFIG_BATCH: u32 = 8;
/// The same for a graph.
const GRAPH_BATCH: u32 = 32;
/// Files larger than this are not read at all.
const LARGEST_FILE: u64 = 64 << 20;

/// Where nothing is short of memory.
pub(super) fn load(args: &EstimateArgs) -> Result<(Graph, RunConfig), EstimateError> {
    let (mut graph, batch, optimizer) = read_input(args)?;
    check_use(args, Some(&graph))?;
    let batch = match (args.batch, batch) {
        (Some(batch), _) | (None, Some(Batch::Said(batch))) => batch,
        (None, Some(Batch::Usual(batch))) => assume_batch(&mut graph, batch),
        (None, None) => return Err(EstimateError::NoBatch),
    };
    for (used, what) in [
        (args.precision == Precision::Half, "training in 16 bits"),
        (args.precision == Precision::Mixed, "mixed precision"),
        (args.zero > 0, "ZeRO"),
        (args.lora.is_some(), "LoRA"),
        (args.gradient_checkpointing, "gradient checkpointing"),
    ] {
        if used {
            let detail = format!("{what} was never compared with a measurement");
            graph.flag(FlagKind::Unverified, detail);
        }
    }
    let run = RunConfig {
        optimizer: args.optimizer.or(optimizer).unwrap_or(Optimizer::Adam),
        precision: args.precision,
        sharding: Sharding { stage: args.zero, gpus: args.gpus },
        ..RunConfig::new(batch)
    };
    countable(graph, run)
}

/// Options that would change nothing are refused: whoever gives them expects that they do.
pub(super) fn check_use(args: &EstimateArgs, graph: Option<&Graph>) -> Result<(), EstimateError> {
    let tokens = graph.is_some_and(|graph| graph.nodes()[0].op == Op::Tokens);
    let fixed = args.graph.is_some() || args.task.is_some();
    for (useless, message) in [
        (args.lora.is_some() && args.hf_config.is_none(), "--lora works with --hf-config alone"),
        (
            args.gradient_checkpointing && args.hf_config.is_none(),
            "--gradient-checkpointing works with --hf-config alone",
        ),
        (args.gpus > 1 && args.zero == 0, "--gpus divides nothing without --zero"),
        (args.zero > 0 && args.gpus == 1, "--zero divides among GPUs: give --gpus, at least 2"),
        (
            args.seq.is_some() && (fixed || !tokens),
            "--seq works with --hf-config and with summaries of models that read tokens",
        ),
    ] {
        if useless {
            return Err(EstimateError::Unused(message));
        }
    }
    Ok(())
}

/// What runs, or ran, says itself how it is trained.
pub(super) fn check_layers_unused(
    args: &EstimateArgs,
    message: &'static str,
) -> Result<(), EstimateError> {
    let EstimateArgs { batch, seq, optimizer, precision, lora, zero, gpus, .. } = args;
    let trains =
        batch.or(*seq).or(*lora).is_some() || optimizer.is_some() || *zero > 0 || *gpus > 1;
    match trains || *precision != Precision::Fp32 || args.gradient_checkpointing {
        true => Err(EstimateError::Unused(message)),
        false => Ok(()),
    }
}

fn assume_batch(graph: &mut Graph, batch: u32) -> u32 {
    let detail = format!("the batch is taken to be {batch}, since nobody said; give --batch");
    graph.flag(FlagKind::Assumption, detail);
    batch
}

/// Refuses what cannot be added up.
fn countable(graph: Graph, run: RunConfig) -> Result<(Graph, RunConfig), EstimateError> {
    match graph.size(run.batch) {
        numbers if numbers > MOST_NUMBERS => Err(EstimateError::TooLarge(numbers)),
        _ => Ok((graph, run)),
    }
}

/// A summary alone, trained as most are.
pub(super) fn of_summary(
    path: &Path,
    batch: Option<u32>,
) -> Result<(Graph, RunConfig), EstimateError> {
    let summary = summary::parse(&read(path)?, &SummaryOptions { tokens: DEFAULT_TOKENS })
        .map_err(|source| EstimateError::Summary { path: path.to_owned(), source })?;
    let batch = batch.or(summary.batch).ok_or(EstimateError::NoBatch)?;
    let run = RunConfig { optimizer: Optimizer::Adam, ..RunConfig::new(batch) };
    countable(summary.graph, run)
}

/// A Hugging Face config alone, trained as most are.
pub(super) fn of_config(
    path: &Path,
    batch: Option<u32>,
    tokens: Option<u32>,
) -> Result<(Graph, RunConfig), EstimateError> {
    let options =
        hf::Options { tokens: tokens.unwrap_or(DEFAULT_TOKENS), ..hf::Options::default() };
    let mut graph = config(path, &options)?;
    let batch = batch.unwrap_or_else(|| assume_batch(&mut graph, CONFIG_BATCH));
    countable(graph, RunConfig { optimizer: Optimizer::AdamW, ..RunConfig::new(batch) })
}

fn config(path: &Path, options: &hf::Options) -> Result<Graph, EstimateError> {
    hf::parse(&read(path)?, options)
        .map_err(|source| EstimateError::Config { path: path.to_owned(), source })
}

/// Samples per iteration where no option says.
enum Batch {
    /// The input says.
    Said(u32),
    /// Nobody does.
    Usual(u32),
}

type Input = (Graph, Option<Batch>, Option<Optimizer>);

fn read_input(args: &EstimateArgs) -> Result<Input, EstimateError> {
    let tokens = args.seq.unwrap_or(DEFAULT_TOKENS);
    if let Some(path) = &args.summary {
        let options = SummaryOptions { tokens };
        let summary = summary::parse(&read(path)?, &options)
            .map_err(|source| EstimateError::Summary { path: path.clone(), source })?;
        Ok((summary.graph, summary.batch.map(Batch::Said), None))
    } else if let Some(path) = &args.graph {
        let graph = text::parse(&read(path)?)
            .map_err(|source| EstimateError::Graph { path: path.clone(), source })?;
        Ok((graph, Some(Batch::Usual(GRAPH_BATCH)), None))
    } else if let Some(path) = &args.hf_config {
        let options = hf::Options {
            tokens,
            checkpointing: args.gradient_checkpointing,
            lora_rank: args.lora,
            ..hf::Options::default()
        };
        let batch = Some(Batch::Usual(CONFIG_BATCH));
        Ok((config(path, &options)?, batch, Some(Optimizer::AdamW)))
    } else if let Some(name) = &args.task {
        let unknown = || {
            let name = name.clone();
            if catalogue::task_names().any(|known| known == name) {
                return EstimateError::NoGraph { name };
            }
            EstimateError::UnknownTask { name, known: known_tasks() }
        };
        let task = catalogue::task(name).ok_or_else(unknown)?;
        Ok((task.graph, Some(Batch::Said(task.run.batch)), Some(task.run.optimizer)))
    } else {
        Err(EstimateError::NoInput)
    }
}

pub(super) fn read(path: &Path) -> Result<String, EstimateError> {
    let failed = |source| EstimateError::Read { path: path.to_owned(), source };
    let size = std::fs::metadata(path).map_err(failed)?.len();
    if size > LARGEST_FILE {
        let problem =
            format!("it has {} MiB; no summary, graph or config is that large", size >> 20);
        return Err(failed(std::io::Error::other(problem)));
    }
    let bytes = std::fs::read(path).map_err(failed)?;
    String::from_utf8(bytes).map_err(|_| EstimateError::NotText { path: path.to_owned() })
}
