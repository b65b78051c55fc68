//! What can be wrong with an estimate.

use super::learn::LearnRunsError;
use crate::config::environments::EnvironmentError;
use coloc_estimate::dataset::DatasetError;
use coloc_estimate::faketensor::FakeTensorError;
use coloc_estimate::graph::text::TextError;
use coloc_estimate::hf::ConfigError;
use coloc_estimate::summary::SummaryError;
use std::path::PathBuf;

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
    #[error(transparent)]
    Environment(#[from] EnvironmentError),
    #[error("{0}")]
    Unused(String),
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
    #[error(transparent)]
    Learn(#[from] LearnRunsError),
    #[error("{0}")]
    Train(String),
    #[error("cannot write JSON: {0}")]
    Json(#[from] serde_json::Error),
}
