//! Reads a `config.json`.

mod families;
mod fields;

use super::options::KNOWN_ATTENTION;
use super::{Options, check_positions};
use crate::graph::Graph;
use fields::Fields;
use serde_json::Value;

/// Families that are read.
const KNOWN: &str = "bert, camembert, deit, distilbert, electra, gpt2, llama, mistral, mt5, qwen2, roberta, t5, vit \
    and xlm-roberta";

/// The file does not describe a model of a known family.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("line {line}, column {column}: {fault}")]
pub struct ConfigError {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What is wrong there.
    pub fault: ConfigFault,
}

/// What is wrong with a `config.json`.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ConfigFault {
    /// Nothing in it.
    #[error("the file is empty; expected a config.json")]
    Empty,
    /// Not JSON.
    #[error("not JSON: {0}")]
    Json(String),
    /// Not an object.
    #[error("a config.json is an object in braces")]
    NotAnObject,
    /// No family.
    #[error("field \"model_type\" is missing; known are {KNOWN}")]
    NoFamily,
    /// Another family.
    #[error("model_type {0:?} is not known; known are {KNOWN}")]
    Family(String),
    /// A family whose layers are one and the same.
    #[error(
        "model_type {0:?} shares one layer's weights among all, which is not modelled; known are {KNOWN}"
    )]
    SharedLayers(String),
    /// A field is missing or makes no sense.
    #[error("field {field:?} {problem}")]
    Field {
        /// Which.
        field: &'static str,
        /// What is wrong.
        problem: FieldProblem,
    },
}

/// What is wrong with a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FieldProblem {
    /// Not there.
    #[error("is missing")]
    Missing,
    /// Not a size.
    #[error("is not a number from 1 to {}", fields::WIDEST)]
    Size,
    /// Not a truth value.
    #[error("is neither true nor false")]
    Truth,
    /// Not a word.
    #[error("is not a word in quotes")]
    Word,
    /// Not the names of classes.
    #[error("is not a list of words in quotes")]
    Words,
    /// Too deep.
    #[error("says more layers than any model has ({})", fields::DEEPEST)]
    Layers,
    /// Heads of no whole width.
    #[error("does not divide the model's width")]
    Heads,
    /// Key heads of no whole number of query heads.
    #[error("does not divide num_attention_heads: each is shared by as many query heads")]
    KeyHeads,
    /// Heads too wide.
    #[error("makes the heads together wider than any layer ({})", fields::WIDEST)]
    TooWide,
    /// Not a share.
    #[error("is not a number from 0 to 1")]
    Share,
    /// Patches that no image holds.
    #[error("is larger than image_size: an image has no whole patch")]
    Patch,
    /// Unknown way to compute attention.
    #[error("is none of {KNOWN_ATTENTION}")]
    Attention,
}

/// The graph of a model.
pub fn parse(text: &str, options: &Options) -> Result<Graph, ConfigError> {
    // Editors of some systems begin a text with a mark of its byte order.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let start = |fault| ConfigError { line: 1, column: 1, fault };
    if text.trim().is_empty() {
        return Err(start(ConfigFault::Empty));
    }
    let value: Value = serde_json::from_str(text).map_err(|error| {
        let told = error.to_string();
        // The parser says the place itself, behind what is wrong.
        let problem = told.rsplit_once(" at line ").map_or(&*told, |(problem, _)| problem);
        let (line, column) = (error.line().max(1), error.column().max(1));
        ConfigError { line, column, fault: ConfigFault::Json(problem.to_owned()) }
    })?;
    let object = value.as_object().ok_or_else(|| start(ConfigFault::NotAnObject))?;
    let fields = Fields::new(object, text);
    let family = fields.word("model_type")?.ok_or_else(|| start(ConfigFault::NoFamily))?;
    let (mut graph, positions) = families::graph(family, &fields, options)?;
    if let Some(positions) = positions {
        check_positions(&mut graph, positions, options.tokens);
    }
    Ok(graph)
}

#[cfg(test)]
mod tests;
