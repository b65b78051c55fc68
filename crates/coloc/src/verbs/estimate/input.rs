//! From files and flags to a graph and a way to train it.

use super::{EstimateArgs, EstimateError, known_tasks};
use coloc_estimate::environment::Environment;
use coloc_estimate::graph::{FlagKind, Graph, text};
use coloc_estimate::run::{Optimizer, Precision, RunConfig, Sharding};
use coloc_estimate::summary::{self, SummaryOptions};
use coloc_estimate::{catalogue, hf};
use coloc_model::Bytes;
use std::path::Path;

/// Tokens of a sample where nobody says.
pub(super) const DEFAULT_TOKENS: u32 = 512;
/// Samples per iteration that a config is taken to mean: it does not say.
const CONFIG_BATCH: u32 = 8;
/// Files larger than this are not read at all.
const LARGEST_FILE: u64 = 64 << 20;

pub(super) fn load(
    args: &EstimateArgs,
    environment: Environment,
) -> Result<(Graph, RunConfig), EstimateError> {
    let (mut graph, batch, optimizer) = read_input(args)?;
    let batch = args.batch.or(batch).ok_or(EstimateError::NoBatch)?;
    if args.precision == Precision::Mixed || args.zero > 0 {
        graph.flag(
            FlagKind::Unverified,
            "mixed precision and ZeRO were never compared with a measurement",
        );
    }
    let constant = Bytes::from_mib_f64(environment.constant_mib(&graph));
    let run = RunConfig {
        optimizer: args.optimizer.or(optimizer).unwrap_or(Optimizer::Adam),
        precision: args.precision,
        sharding: Sharding { stage: args.zero, gpus: args.gpus },
        limit: args.device_memory.map(|memory| memory.saturating_sub(constant)),
        ..RunConfig::new(batch)
    };
    Ok((graph, run))
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
    Ok((summary.graph, run))
}

/// A Hugging Face config alone, trained as most are.
pub(super) fn of_config(
    path: &Path,
    batch: Option<u32>,
    tokens: Option<u32>,
) -> Result<(Graph, RunConfig), EstimateError> {
    let options =
        hf::Options { tokens: tokens.unwrap_or(DEFAULT_TOKENS), ..hf::Options::default() };
    let graph = config(path, &options)?;
    let batch = batch.unwrap_or(CONFIG_BATCH);
    Ok((graph, RunConfig { optimizer: Optimizer::AdamW, ..RunConfig::new(batch) }))
}

fn config(path: &Path, options: &hf::Options) -> Result<Graph, EstimateError> {
    hf::parse(&read(path)?, options)
        .map_err(|source| EstimateError::Config { path: path.to_owned(), source })
}

type Input = (Graph, Option<u32>, Option<Optimizer>);

fn read_input(args: &EstimateArgs) -> Result<Input, EstimateError> {
    if let Some(path) = &args.summary {
        let options = SummaryOptions { tokens: args.seq };
        let summary = summary::parse(&read(path)?, &options)
            .map_err(|source| EstimateError::Summary { path: path.clone(), source })?;
        Ok((summary.graph, summary.batch, None))
    } else if let Some(path) = &args.graph {
        let graph = text::parse(&read(path)?)
            .map_err(|source| EstimateError::Graph { path: path.clone(), source })?;
        Ok((graph, Some(32), None))
    } else if let Some(path) = &args.hf_config {
        let options = hf::Options {
            tokens: args.seq,
            checkpointing: args.gradient_checkpointing,
            lora_rank: args.lora,
            ..hf::Options::default()
        };
        Ok((config(path, &options)?, Some(CONFIG_BATCH), Some(Optimizer::AdamW)))
    } else if let Some(name) = &args.task {
        let unknown = || {
            let name = name.clone();
            if catalogue::task_names().any(|known| known == name) {
                return EstimateError::NoGraph { name };
            }
            EstimateError::UnknownTask { name, known: known_tasks() }
        };
        let task = catalogue::task(name).ok_or_else(unknown)?;
        Ok((task.graph, Some(task.run.batch), Some(task.run.optimizer)))
    } else {
        Err(EstimateError::NoInput)
    }
}

fn read(path: &Path) -> Result<String, EstimateError> {
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
