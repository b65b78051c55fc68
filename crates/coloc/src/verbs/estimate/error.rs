//! What can be wrong with an estimate.

use super::learn::LearnRunsError;
use crate::config::environments::EnvironmentError;
use crate::estimating::LayersError;
use coloc_estimate::dataset::DatasetError;
use coloc_estimate::faketensor::FakeTensorError;
use std::path::PathBuf;

/// An estimate could not be given.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EstimateError {
    #[error("nothing to estimate: give --summary, --graph, --hf-config, --task or --dry-run")]
    NoInput,
    #[error(
        "no gpumemnet for transformers is shipped: too few were measured; known are nets for gpumemnet-mlp and gpumemnet-cnn"
    )]
    NoNet,
    #[error(transparent)]
    Environment(#[from] EnvironmentError),
    #[error(transparent)]
    Layers(#[from] LayersError),
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
    #[error("it cannot be told ({0})")]
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
