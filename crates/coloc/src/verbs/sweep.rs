//! `coloc sweep`: one command with many parameters.

use crate::args::live::{SocketArg, in_ranges};
use crate::args::task::TaskArgs;
use crate::error::{CliError, SweepError, UsageError};
use crate::live::reconnect::Reconnect;
use crate::output::visible::visible;
use crate::output::{Answer, print_text};
use crate::submission::presence;
use crate::tables;
use clap::Args;
use coloc_api::request::Submission;
use coloc_api::text::RawText;
use serde::Serialize;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The most tasks that one sweep may have.
const LARGEST: usize = 100_000;

/// Submit a command once for every combination of parameters: {lr} stands for the value of lr, {{lr}} for {lr} itself
#[derive(Args, Debug)]
#[command(args_override_self = true)]
pub(crate) struct Sweep {
    /// A parameter and its values; with several, all combinations are run
    #[arg(long, value_name = "NAME=VALUE,…", required_unless_present = "list")]
    grid: Vec<Grid>,
    /// A CSV file with a parameter a column and a task a row; combined with --grid, each row with each combination
    #[arg(long, value_name = "FILE")]
    list: Option<PathBuf>,
    /// Print what would be submitted
    #[arg(long)]
    dry_run: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    pub(crate) task: TaskArgs,
    #[command(flatten)]
    socket: SocketArg,
    #[command(flatten)]
    reconnect: Reconnect,
}

/// `NAME=VALUE,VALUE`.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Grid {
    name: String,
    values: Vec<String>,
}

impl FromStr for Grid {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let fail = || format!("{text:?}: expected NAME=VALUE,VALUE, such as lr=1e-3,1e-4");
        let (name, values) = text.split_once('=').ok_or_else(fail)?;
        let values: Vec<String> = values.split(',').map(str::to_owned).collect();
        let valid = is_name(name) && values.iter().all(|value| !value.is_empty());
        valid.then(|| Grid { name: name.to_owned(), values }).ok_or_else(fail)
    }
}

fn is_name(text: &str) -> bool {
    let known = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    !text.is_empty() && text.chars().all(known)
}

/// The value of every parameter of one task.
type Parameters = BTreeMap<String, String>;

#[derive(Serialize)]
struct Planned {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u32>,
    parameters: Parameters,
    command: Vec<RawText>,
}

fn sweep(error: SweepError) -> CliError {
    UsageError::Sweep(error).into()
}

impl Sweep {
    pub(crate) fn run(self) -> Result<(), CliError> {
        let rows = match &self.list {
            Some(file) => read_list(file)?,
            None => vec![Parameters::new()],
        };
        let all = combine(rows, &self.grid)?;
        let pattern = self.task.submission()?;
        if pattern.array.is_some() {
            return Err(sweep(SweepError::Array));
        }
        check_use(&all, &pattern)?;
        if self.socket.host().is_none() && !self.dry_run {
            presence::check(&pattern.spec)?;
        }
        let mut client = if self.dry_run { None } else { Some(self.socket.connect()?) };
        let (mut planned, of) = (Vec::new(), all.len());
        for (index, parameters) in all.into_iter().enumerate() {
            let mut submission = filled(&pattern, &parameters);
            // Each is a submission of its own.
            submission.key = submission.key.map(|key| format!("{key}/{index}"));
            let id = match &mut client {
                Some(client) => match self.reconnect.submit(client, &submission) {
                    Ok(submitted) => submitted.ids.first().copied(),
                    Err(error) => return say_part(&planned, of, error, self.json),
                },
                None => None,
            };
            planned.push(Planned { id, parameters, command: submission.spec.command });
        }
        say(&planned, self.json)
    }
}

fn say(planned: &[Planned], json: bool) -> Result<(), CliError> {
    if json {
        #[derive(Serialize)]
        struct Body<'a> {
            tasks: &'a [Planned],
        }
        return Answer { body: &Body { tasks: planned }, wall_s: None }.print();
    }
    print_text(&render(planned))
}

/// Says which tasks were submitted before one was refused: they run, and need not be submitted again.
fn say_part(planned: &[Planned], of: usize, error: CliError, json: bool) -> Result<(), CliError> {
    let ids: Vec<u32> = planned.iter().filter_map(|task| task.id).collect();
    if ids.is_empty() {
        return Err(error);
    }
    say(planned, json)?;
    let (submitted, ids) = (ids.len(), in_ranges(&ids).replace(", ", ","));
    Err(CliError::PartOfSweep { submitted, of, ids, error: Box::new(error) })
}

/// Every row with every combination of the grid, the last parameter changing fastest.
fn combine(rows: Vec<Parameters>, grids: &[Grid]) -> Result<Vec<Parameters>, CliError> {
    let mut all = rows;
    for Grid { name, values } in grids {
        if all.first().is_some_and(|row| row.contains_key(name)) {
            return Err(sweep(SweepError::Twice(name.clone())));
        }
        if all.len().saturating_mul(values.len()) > LARGEST {
            return Err(sweep(SweepError::TooMany { most: LARGEST }));
        }
        let with = |row: &Parameters, value: &String| {
            let mut row = row.clone();
            row.insert(name.clone(), value.clone());
            row
        };
        all = all.iter().flat_map(|row| values.iter().map(|value| with(row, value))).collect();
    }
    match all.is_empty() {
        true => Err(sweep(SweepError::Empty)),
        false => Ok(all),
    }
}

fn read_list(file: &Path) -> Result<Vec<Parameters>, CliError> {
    let rows: Vec<(u64, Parameters)> = tables::read(file)?;
    let mut names = rows.first().into_iter().flat_map(|(_, row)| row.keys());
    if let Some(wrong) = names.find(|name| !is_name(name)) {
        return Err(tables::fault(file, 1, format!("{wrong:?} is no name for a parameter")));
    }
    if rows.len() > LARGEST {
        return Err(sweep(SweepError::TooMany { most: LARGEST }));
    }
    Ok(rows.into_iter().map(|(_, row)| row).collect())
}

/// A parameter that changes nothing is a slip of the pen, and so is a place that no parameter fills.
fn check_use(all: &[Parameters], pattern: &Submission) -> Result<(), CliError> {
    let spec = &pattern.spec;
    let names: Vec<&String> = all.first().into_iter().flat_map(BTreeMap::keys).collect();
    for name in &names {
        let used = |word: &RawText| pieces(word.as_bytes()).any(|piece| piece.names(name));
        if !spec.command.iter().any(used) {
            return Err(sweep(SweepError::Unused((*name).clone())));
        }
    }
    let words = spec.command.iter().chain(&spec.output).chain(&spec.errors);
    for piece in words.flat_map(|word| pieces(word.as_bytes())) {
        if let Piece::Place { name, shell: false } = piece
            && !names.iter().any(|known| *known == name)
        {
            let names: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
            let (name, known) = (name.to_owned(), names.join(", "));
            return Err(sweep(SweepError::NoParameter { name, known }));
        }
    }
    Ok(())
}

/// A part of a word of the command.
enum Piece<'a> {
    /// `{name}`; after a `$` it may be a shell's variable.
    Place { name: &'a str, shell: bool },
    /// `{{name}}`, which stands for `{name}`.
    Literal(&'a str),
    /// Anything else.
    Byte(u8),
}

impl Piece<'_> {
    fn names(&self, parameter: &str) -> bool {
        matches!(self, Piece::Place { name, .. } if *name == parameter)
    }
}

/// The name at the beginning of a text, between these.
fn enclosed<'a>(text: &'a [u8], open: &[u8], close: &[u8]) -> Option<(&'a str, &'a [u8])> {
    let inside = text.strip_prefix(open)?;
    let end = inside.iter().position(|&byte| byte == b'}')?;
    let name = std::str::from_utf8(&inside[..end]).ok().filter(|name| is_name(name))?;
    Some((name, inside[end..].strip_prefix(close)?))
}

fn pieces(word: &[u8]) -> impl Iterator<Item = Piece<'_>> {
    let (mut rest, mut before) = (word, 0);
    std::iter::from_fn(move || {
        let (&byte, after) = rest.split_first()?;
        let shell = std::mem::replace(&mut before, byte) == b'$';
        let piece;
        (piece, rest) = if let Some((name, after)) = enclosed(rest, b"{{", b"}}") {
            (Piece::Literal(name), after)
        } else if let Some((name, after)) = enclosed(rest, b"{", b"}") {
            (Piece::Place { name, shell }, after)
        } else {
            (Piece::Byte(byte), after)
        };
        Some(piece)
    })
}

fn filled(pattern: &Submission, parameters: &Parameters) -> Submission {
    let mut submission = pattern.clone();
    let spec = &mut submission.spec;
    spec.command = spec.command.iter().map(|word| fill(word, parameters)).collect();
    spec.output = spec.output.as_ref().map(|path| fill(path, parameters));
    spec.errors = spec.errors.as_ref().map(|path| fill(path, parameters));
    spec.name = format!("{} {}", spec.name, said(parameters));
    submission
}

fn said(parameters: &Parameters) -> String {
    let pairs: Vec<String> =
        parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
    pairs.join(" ")
}

/// Puts values in place of `{name}`, once: what a value says is not looked at again. Other braces stay as they are.
fn fill(word: &RawText, parameters: &Parameters) -> RawText {
    let mut filled = Vec::new();
    for piece in pieces(word.as_bytes()) {
        match piece {
            Piece::Byte(byte) => filled.push(byte),
            Piece::Literal(name) => filled.extend(format!("{{{name}}}").bytes()),
            Piece::Place { name, .. } => match parameters.get(name) {
                Some(value) => filled.extend(value.bytes()),
                None => filled.extend(format!("{{{name}}}").bytes()),
            },
        }
    }
    OsString::from_vec(filled).into()
}

fn render(planned: &[Planned]) -> String {
    let line = |task: &Planned| {
        let words: Vec<_> = task.command.iter().map(RawText::to_string_lossy).collect();
        match task.id {
            Some(id) => format!("{id}  {}", visible(&said(&task.parameters))),
            None => visible(&words.join(" ")).into_owned(),
        }
    };
    let mut lines: Vec<String> = planned.iter().map(line).collect();
    lines.push(match planned.iter().any(|task| task.id.is_some()) {
        true => format!("Submitted {} tasks", planned.len()),
        false => format!("{} tasks would be submitted", planned.len()),
    });
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grids_multiply_and_the_last_changes_fastest() {
        let grids = ["lr=1,2", "seed=7,8"].map(|text| text.parse().unwrap());
        let all = combine(vec![Parameters::new()], &grids).unwrap();
        let all: Vec<String> = all.iter().map(said).collect();
        assert_eq!(all, ["lr=1 seed=7", "lr=1 seed=8", "lr=2 seed=7", "lr=2 seed=8"]);
        let twice = ["a=1", "a=2"].map(|text| text.parse().unwrap());
        assert!(combine(vec![Parameters::new()], &twice).is_err());
        let many: Vec<Grid> = (0..9).map(|n| format!("p{n}=1,2,3,4").parse().unwrap()).collect();
        assert!(combine(vec![Parameters::new()], &many).is_err(), "262144 tasks");
        for wrong in ["", "lr", "=1", "lr=", "lr=1,", "l r=1", "{=1"] {
            assert!(wrong.parse::<Grid>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn values_are_put_in_once_and_other_braces_stay() {
        let parameters = Parameters::from([("a".into(), "{b}".into()), ("b".into(), "2".into())]);
        let fill = |word: &str| fill(&word.into(), &parameters).to_string_lossy().into_owned();
        assert_eq!(fill("--x={a}/{b}"), "--x={b}/2");
        assert_eq!(fill(r#"{"k": {b}}"#), r#"{"k": 2}"#);
        assert_eq!(fill("{} { {b ${HOME} ${b}"), "{} { {b ${HOME} $2");
        assert_eq!(fill("{{b}} {{ b }} {{c}} {{b} {a,b}"), "{b} {{ b }} {c} {2 {a,b}");
    }
}
