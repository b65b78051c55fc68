//! From the words that were typed to a verb: what configuration files say comes first, then what the head of a script
//! says, then what was typed; the last wins.

use crate::args::script;
use crate::config::{self, Config};
use crate::error::CliError;
use crate::{Cli, Verb, slurm};
use std::ffi::OsString;
use std::path::Path;

/// Reads the command line. What clap has to say of it is said at once.
pub(crate) fn read(words: Vec<OsString>) -> Result<Cli, CliError> {
    let spoken = Spoken::of(words)?;
    let cli = Cli::read(&spoken.whole(&[])).unwrap_or_else(|error| error.exit());
    let Some((file, directives)) = script_of(&cli).and_then(|file| {
        let directives = script::directives(file)?;
        Some((file.to_owned(), directives))
    }) else {
        return Ok(cli);
    };
    Cli::read(&spoken.whole(&directives?)).map_err(|error| {
        CliError::Usage(format!("{}: {}", file.display(), error.to_string().trim()))
    })
}

/// The same for who must go on whatever is wrong.
pub(crate) fn read_again(words: Vec<OsString>) -> Result<Cli, CliError> {
    let spoken = Spoken::of(words)?;
    Cli::read(&spoken.whole(&[]))
        .map_err(|error| CliError::Usage(error.to_string().trim().to_owned()))
}

/// What was typed after the verb.
pub(crate) fn typed() -> Vec<OsString> {
    std::env::args_os().skip(2).collect()
}

/// A command line, with what configuration files say.
struct Spoken {
    program: OsString,
    verb: OsString,
    configured: Vec<OsString>,
    rest: Vec<OsString>,
}

impl Spoken {
    fn of(words: Vec<OsString>) -> Result<Self, CliError> {
        let name = words.first().map(Path::new).and_then(Path::file_name);
        let name = name.and_then(|name| name.to_str()).unwrap_or("coloc");
        let typed = slurm::translate(name, words.get(1..).unwrap_or_default()).unwrap_or(words);
        // Without a verb the queue is listed.
        let verb = typed.get(1).cloned().unwrap_or_else(|| "queue".into());
        let name = verb.to_string_lossy();
        let listens = config::listens(&name);
        let configured = if listens { Config::load()?.words(&name) } else { Vec::new() };
        let program = typed.first().cloned().unwrap_or_else(|| "coloc".into());
        let rest = typed.get(2..).unwrap_or_default().to_vec();
        Ok(Spoken { program, verb, configured, rest })
    }

    /// All words, with those of a script between what is configured and what was typed.
    fn whole(&self, directives: &[OsString]) -> Vec<OsString> {
        let head = [&self.program, &self.verb].into_iter().chain(&self.configured);
        head.chain(directives).chain(&self.rest).cloned().collect()
    }
}

/// The script that is to be run, if any.
fn script_of(cli: &Cli) -> Option<&Path> {
    match cli.verb.as_ref()? {
        Verb::Submit(verb) => verb.task.script(),
        Verb::Run(verb) => verb.task.script(),
        Verb::Sweep(verb) => verb.task.script(),
        _ => None,
    }
}
