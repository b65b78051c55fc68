//! What was asked for makes no sense: nothing was done.

use std::path::{Path, PathBuf};

/// What is wrong with a command line, a script or a file that it names.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UsageError {
    /// A flag does not take this value.
    #[error("{flag}: expected {expected}, not {given}")]
    Value { flag: String, expected: String, given: String },
    /// A flag makes no sense here: without another, beside another, or for what is there.
    #[error("{flag}: {why}")]
    Flag { flag: String, why: String },
    /// A flag that would change nothing.
    #[error("{flag} changes nothing here: {why}")]
    NoEffect { flag: &'static str, why: &'static str },
    /// A file cannot be used.
    #[error("{}: {problem}", file.display())]
    File { file: PathBuf, problem: String },
    /// A line of a script cannot be read.
    #[error("{}, line {line}: {problem}", file.display())]
    Line { file: PathBuf, line: usize, problem: String },
    /// A name that is not known.
    #[error("there is no {what} {name:?}; {instead}")]
    Unknown { what: &'static str, name: String, instead: String },
    /// There is nothing to run.
    #[error(
        "no command was given: expected `-- COMMAND`, a script, or - for a script on standard input"
    )]
    NoCommand,
    /// What is to be run is not there.
    #[error("{what}; {instead}")]
    NotThere { what: String, instead: &'static str },
    /// There is no such task.
    #[error("there is no task {0}")]
    NoTask(String),
    /// The user has none.
    #[error("there is no task of yours yet")]
    NoTaskYet,
    /// A sweep cannot be made.
    #[error("sweep: {0}")]
    Sweep(SweepError),
    /// What the parser of the command line says.
    #[error("{0}")]
    Parser(String),
    /// A checkpoint of the emulated trainer.
    #[error("{0}")]
    Checkpoint(#[from] coloc_emu_tools::train::CheckpointError),
    /// What a daemon keeps.
    #[error("{0}")]
    State(coloc_daemon::state_dir::StateError),
    /// Weights and quotas.
    #[error("{0}")]
    Quotas(#[from] coloc_daemon::quotas::UnknownAccount),
    /// The emulated driver.
    #[error("{0}")]
    Emulated(String),
}

/// What is wrong with a sweep.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SweepError {
    #[error("it has tasks of its own: leave --array out")]
    Array,
    #[error("parameter {0} is given twice")]
    Twice(String),
    #[error("at most {most} tasks")]
    TooMany { most: usize },
    #[error("the list has no rows")]
    Empty,
    #[error("{{{0}}} does not occur in the command")]
    Unused(String),
    #[error(
        "{{{name}}} is no parameter of this sweep, which has {known}; write {{{{{name}}}}} for {{{name}}} itself"
    )]
    NoParameter { name: String, known: String },
}

impl UsageError {
    /// A flag does not take this value.
    pub(crate) fn value(
        flag: impl Into<String>,
        expected: impl Into<String>,
        given: impl ToString,
    ) -> Self {
        let (flag, expected, given) = (flag.into(), expected.into(), given.to_string());
        UsageError::Value { flag, expected, given }
    }

    /// A flag makes no sense here.
    pub(crate) fn flag(flag: impl Into<String>, why: impl Into<String>) -> Self {
        UsageError::Flag { flag: flag.into(), why: why.into() }
    }

    /// A file cannot be used.
    pub(crate) fn file(file: impl AsRef<Path>, problem: impl ToString) -> Self {
        UsageError::File { file: file.as_ref().to_owned(), problem: problem.to_string() }
    }
}
