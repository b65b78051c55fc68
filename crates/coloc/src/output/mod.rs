//! How answers reach people and programs.

pub(crate) mod comparison;
pub(crate) mod files;
pub(crate) mod mlflow;
pub(crate) mod progress;
pub(crate) mod sanitize;
pub(crate) mod summary;
pub(crate) mod table;
pub(crate) mod terminal;
pub(crate) mod visible;

use crate::args::live::Selection;
use crate::error::CliError;
use coloc_api::SCHEMA;
use serde::Serialize;
use std::io::Write;
use std::path::PathBuf;

/// A JSON answer.
#[derive(Serialize)]
pub(crate) struct Answer<'a, T> {
    #[serde(flatten)]
    pub(crate) body: &'a T,
    /// How long it took to compute, where that is of interest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) wall_s: Option<f64>,
}

impl<T: Serialize> Answer<'_, T> {
    /// Prints the answer with its schema version.
    pub(crate) fn print(&self) -> Result<(), CliError> {
        print_text(&versioned(self).map_err(|error| to_stdout(error.into()))?)
    }
}

/// One document, whatever is asked for: a task, or a list of them where any number is asked for.
pub(crate) fn print_tasks<T: Serialize>(wish: &Selection, tasks: &[T]) -> Result<(), CliError> {
    #[derive(Serialize)]
    struct Body<'a, T> {
        tasks: &'a [T],
    }
    match tasks {
        [task] if wish.is_one() => Answer { body: task, wall_s: None }.print(),
        tasks => Answer { body: &Body { tasks }, wall_s: None }.print(),
    }
}

/// An answer as JSON text, with the version of its schema.
pub(crate) fn versioned(answer: &impl Serialize) -> Result<String, serde_json::Error> {
    #[derive(Serialize)]
    struct Versioned<'a, T> {
        schema: u32,
        #[serde(flatten)]
        answer: &'a T,
    }
    serde_json::to_string_pretty(&Versioned { schema: SCHEMA, answer })
}

/// Standard output cannot be written.
pub(crate) fn to_stdout(source: std::io::Error) -> CliError {
    CliError::Write { file: PathBuf::from("standard output"), source }
}

/// Prints text and a line end.
pub(crate) fn print_text(text: &str) -> Result<(), CliError> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}").and_then(|()| out.flush()).map_err(to_stdout)
}
