//! What can be wrong with a task's layers and how it is said to be trained.

use crate::config::environments::EnvironmentError;
use coloc_estimate::graph::text::TextError;
use coloc_estimate::hf::ConfigError;
use coloc_estimate::summary::SummaryError;
use std::path::PathBuf;

/// The memory of a task cannot be told from its layers.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LayersError {
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
    #[error("the catalogue has no graph of {name:?}; give its layers with --summary")]
    NoGraph { name: String },
    #[error(transparent)]
    Environment(#[from] EnvironmentError),
    #[error("{0}")]
    Unused(String),
    #[error("a batch of this net has {0:.1e} numbers; no device holds them, so check its sizes")]
    TooLarge(f64),
    #[error("the batch is not in the summary; give --batch")]
    NoBatch,
    #[error("cannot write JSON: {0}")]
    Json(#[from] serde_json::Error),
}
