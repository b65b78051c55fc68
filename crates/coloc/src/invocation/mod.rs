//! From the words that were typed to a verb: what configuration files say comes first, then what the head of a script
//! says, then what was typed; the last wins.

mod own_flags;

pub(crate) use own_flags::asks_for_json;

use crate::args::task::{SCRIPT_LINE_ENDS, TaskArgs};
use crate::config::{self, Config};
use crate::error::{CliError, UsageError};
use crate::submission::batch_script::{self, Directive, Script};
use crate::{Cli, Verb, slurm};
use clap::CommandFactory as _;
use clap::error::ErrorKind;
use std::ffi::OsString;
use std::path::Path;

/// Reads the command line. What clap has to say of it is said at once.
pub(crate) fn read(words: Vec<OsString>) -> Result<Cli, CliError> {
    let json = asks_for_json(&words);
    let mut spoken = Spoken::of(words)?;
    let read = |spoken: &Spoken| {
        let words = spoken.whole(&[]);
        Cli::read(&words).or_else(|error| leave(&error, &words, json))
    };
    let mut cli = read(&spoken)?;
    if let Some(Verb::Submit(submit)) = &cli.verb
        && submit.slurm
        && submit.task.lacks_a_command()
    {
        // `sbatch < script`.
        spoken.rest.push(batch_script::STDIN.into());
        cli = read(&spoken)?;
    }
    let Some(command) = task_of(&cli).map(TaskArgs::command) else { return Ok(cli) };
    let script = Script::of(command)?;
    if let Some(Verb::Submit(submit)) = &cli.verb
        && submit.slurm
        && submit.task.wrap.is_none()
        && script.is_none()
    {
        return Err(batch_script::no_batch_script(command));
    }
    match script {
        Some(script) => spoken.with_script(script.file(), command, &script.directives()?),
        None => Ok(cli),
    }
}

/// Help is printed as it is; what is wrong is told as every other error, with what to do.
fn leave(error: &clap::Error, words: &[OsString], json: bool) -> Result<Cli, CliError> {
    let is_help = matches!(error.kind(), ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand);
    if !error.use_stderr() || (is_help && !json) {
        error.exit()
    }
    let negative = negative_value(error, words);
    let mut told = vec![negative.clone().unwrap_or_else(|| problem(error))];
    if !json {
        told.extend(tip(error).filter(|_| negative.is_none()));
        told.push(format!("`{} --help` lists what there is", verb_of(words)));
    }
    Err(UsageError::Parser(told.join("; ")).into())
}

/// The verb whose help is of use: `coloc submit`.
fn verb_of(words: &[OsString]) -> String {
    let known = |name: &str| Cli::command().find_subcommand(name).is_some();
    let verb = words.get(1).and_then(|verb| verb.to_str()).filter(|verb| known(verb));
    verb.map_or("coloc".to_owned(), |verb| format!("coloc {verb}"))
}

/// `-G -1`: to clap that is another flag, and to its user a value.
fn negative_value(error: &clap::Error, words: &[OsString]) -> Option<String> {
    let is_negative = |word: &str| word.strip_prefix('-')?.parse::<f64>().ok().map(|_| ());
    let before = words.windows(2).filter_map(|pair| Some((pair[0].to_str()?, pair[1].to_str()?)));
    let mut pairs =
        before.filter(|(flag, value)| flag.starts_with('-') && is_negative(value).is_some());
    let is_unknown = matches!(error.kind(), ErrorKind::UnknownArgument | ErrorKind::InvalidValue);
    let (flag, value) = pairs.next().filter(|_| is_unknown)?;
    Some(format!("{flag}: expected a value that is not negative, not {value}"))
}

/// What clap guesses was meant.
fn tip(error: &clap::Error) -> Option<String> {
    let text = error.to_string();
    let tip = text.lines().find_map(|line| line.trim().strip_prefix("tip: "))?;
    Some(tip.to_owned())
}

/// The same for a caller that must go on whatever is wrong.
pub(crate) fn read_again(words: Vec<OsString>) -> Result<Cli, CliError> {
    let spoken = Spoken::of(words)?;
    Cli::read(&spoken.whole(&[]))
        .map_err(|error| UsageError::Parser(error.to_string().trim().to_owned()).into())
}

/// The first of these flags that was typed. One that a file or a variable has was not meant for this command alone.
pub(crate) fn typed_one<'a>(flags: &[&'a str]) -> Option<&'a str> {
    one_of(&typed(), flags)
}

/// What was typed after the verb.
pub(crate) fn typed() -> Vec<OsString> {
    std::env::args_os().skip(2).collect()
}

/// `--host` or `--host=somewhere`, before what is another program's.
fn one_of<'a>(words: &[OsString], flags: &[&'a str]) -> Option<&'a str> {
    let is = |word: &OsString, flag: &str| {
        let rest = word.to_str().and_then(|word| word.strip_prefix(flag));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
    };
    let own: Vec<&OsString> = words.iter().take_while(|word| *word != "--").collect();
    flags.iter().copied().find(|flag| own.iter().any(|word| is(word, flag)))
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
        // Without a verb the queue is listed, with the flags that there are.
        let is_flag = |word: &OsString| word.as_encoded_bytes().starts_with(b"-");
        let own = ["-h", "--help", "-V", "--version"];
        let is_verb = |word: &&OsString| !is_flag(word) || own.iter().any(|flag| *word == flag);
        let named = typed.get(1).filter(is_verb);
        let verb = named.cloned().unwrap_or_else(|| "queue".into());
        let name = verb.to_string_lossy();
        let listens = config::listens(&name);
        let configured = if listens { Config::load_for(&name)?.words(&name) } else { Vec::new() };
        let program = typed.first().cloned().unwrap_or_else(|| "coloc".into());
        let rest = typed.get(1 + usize::from(named.is_some())..).unwrap_or_default().to_vec();
        Ok(Spoken { program, verb, configured, rest })
    }

    /// All words, with the words of a script between what is configured and what was typed.
    fn whole(&self, directives: &[Directive]) -> Vec<OsString> {
        let end = OsString::from(format!("--{SCRIPT_LINE_ENDS}"));
        let said = directives.iter().flat_map(|one| one.words.iter().chain([&end]));
        let head = [&self.program, &self.verb].into_iter().chain(&self.configured);
        head.chain(said).chain(&self.rest).cloned().collect()
    }

    /// Reads everything, with a script's directives. They are options alone: what is run is what was typed.
    fn with_script(
        &self,
        file: &Path,
        command: &[OsString],
        directives: &[Directive],
    ) -> Result<Cli, CliError> {
        if let Some(one) = directives.iter().find(|one| one.words.iter().any(|word| word == "--")) {
            return Err(stray(file, one.line, "--"));
        }
        let words = self.whole(directives);
        let cli = Cli::read(&words).map_err(|error| self.blame(file, directives, &error))?;
        let runs = task_of(&cli).map(TaskArgs::command).unwrap_or_default();
        if runs == command {
            return Ok(cli);
        }
        // A command goes on to the end of all words: so many are before the one that strayed.
        let before = words.len() - runs.len().min(words.len());
        let mut end = 2 + self.configured.len();
        let line = directives.iter().find(|one| {
            end += one.words.len() + 1;
            end > before
        });
        let word = runs.first().map(|word| word.to_string_lossy()).unwrap_or_default();
        Err(stray(file, line.map_or(1, |one| one.line), &word))
    }

    /// The first line that makes no sense, with what is wrong there.
    fn blame(&self, file: &Path, directives: &[Directive], error: &clap::Error) -> CliError {
        let upto = |count: usize| Cli::read(&self.whole(&directives[..count])).err();
        let counts: Vec<usize> = (1..=directives.len()).collect();
        let first = |wrong: fn(&clap::Error) -> bool| {
            counts.partition_point(|&count| !upto(count).as_ref().is_some_and(wrong))
        };
        // What an option needs besides may stand on a later line: that is held against one only if all else is well.
        let plain = first(|error| error.kind() != ErrorKind::MissingRequiredArgument);
        let index = if plain < counts.len() { plain } else { first(|_| true) };
        let line = directives.get(index).map_or(1, |one| one.line);
        let found = counts.get(index).and_then(|&count| upto(count));
        batch_script::wrong_line(file, line, &problem(found.as_ref().unwrap_or(error)))
    }
}

/// A word in a directive that belongs to no option.
fn stray(file: &Path, line: usize, word: &str) -> CliError {
    let problem = format!(
        "{word:?} belongs to no option: expected options alone, such as `--gpus 2 -J \"a name\"`; \
         a value with spaces needs quotes, and a command goes below"
    );
    batch_script::wrong_line(file, line, &problem)
}

/// What clap says, without the usage of a command line, which a script is not.
fn problem(error: &clap::Error) -> String {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        return "help and version are for the command line".to_owned();
    }
    let text = error.to_string();
    let text = text.split("\n\n").next().unwrap_or_default();
    let lines = text.strip_prefix("error: ").unwrap_or(text).lines().map(str::trim);
    lines.collect::<Vec<_>>().join(" ")
}

/// The task that is to be run, if any.
fn task_of(cli: &Cli) -> Option<&TaskArgs> {
    match cli.verb.as_ref()? {
        Verb::Submit(verb) => Some(&verb.task),
        Verb::Run(verb) => Some(&verb.task),
        Verb::Shell(verb) => Some(&verb.task),
        Verb::Sweep(verb) => Some(&verb.task),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_known_by_their_names() {
        let words = ["--hostile", "--host=a", "--", "--socket"].map(OsString::from);
        assert_eq!(one_of(&words, &["--socket", "--host"]), Some("--host"));
        assert_eq!(one_of(&words, &["--socket"]), None);
        assert_eq!(one_of(&words[..1], &["--host"]), None);
    }
}
