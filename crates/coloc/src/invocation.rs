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
    let name = words.first().map(Path::new).and_then(Path::file_name);
    let name = name.and_then(|name| name.to_str()).unwrap_or("coloc");
    let typed = slurm::translate(name, words.get(1..).unwrap_or_default()).unwrap_or(words);
    // Without a verb the queue is listed.
    let verb = typed.get(1).cloned().unwrap_or_else(|| "queue".into());
    let name = verb.to_string_lossy();
    let before = if config::listens(&name) { Config::load()?.words(&name) } else { Vec::new() };
    let rest = typed.get(2..).unwrap_or_default();
    let whole = |before: &[OsString]| -> Vec<OsString> {
        let head = [typed.first().cloned().unwrap_or_else(|| "coloc".into()), verb.clone()];
        head.into_iter().chain(before.iter().cloned()).chain(rest.iter().cloned()).collect()
    };
    let cli = Cli::read(&whole(&before)).unwrap_or_else(|error| error.exit());
    let Some((file, directives)) = script_of(&cli).and_then(|file| {
        let directives = script::directives(file)?;
        Some((file.to_owned(), directives))
    }) else {
        return Ok(cli);
    };
    let all: Vec<OsString> = before.into_iter().chain(directives?).collect();
    Cli::read(&whole(&all)).map_err(|error| {
        CliError::Usage(format!("{}: {}", file.display(), error.to_string().trim()))
    })
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
