//! Every option of sbatch, with what becomes of it here. The parser takes from this table what is known and has no effect
//! and what is refused; `docs/from-slurm.md` shows all of it.

use clap::builder::{ArgAction, ValueParser};
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};

/// What becomes of an option.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Effect {
    /// It does this.
    Works(&'static str),
    /// Nothing, for this reason; the user is told.
    Nothing(&'static str),
    /// It would change the result, and cannot be had.
    Refused(&'static str),
}

/// Whether a value follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Value {
    None,
    Needed,
    /// Only after `=`.
    Optional,
}

/// An option of sbatch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SlurmOption {
    pub(crate) long: &'static str,
    pub(crate) short: Option<char>,
    pub(crate) value: Value,
    pub(crate) effect: Effect,
}

pub(super) const fn option(
    long: &'static str,
    short: char,
    value: Value,
    effect: Effect,
) -> SlurmOption {
    let short = if short == ' ' { None } else { Some(short) };
    SlurmOption { long, short, value, effect }
}

use Effect::{Nothing, Refused, Works};
use Value::{Needed, Optional};

pub(crate) use super::sbatch::SBATCH;

/// Options that were given although they do nothing here, or cannot be had.
#[derive(Clone, Default, Debug)]
pub(crate) struct WithoutEffect {
    given: Vec<&'static SlurmOption>,
}

impl WithoutEffect {
    /// Those that do nothing.
    pub(crate) fn idle(&self) -> impl Iterator<Item = String> + '_ {
        let idle = self.given.iter().filter(|option| matches!(option.effect, Nothing(_)));
        idle.map(|option| format!("--{}", option.long))
    }

    /// The first that cannot be had, with the reason.
    pub(crate) fn refused(&self) -> Option<(String, &'static str)> {
        self.given.iter().find_map(|option| match option.effect {
            Refused(why) => Some((format!("--{}", option.long), why)),
            Works(_) | Nothing(_) => None,
        })
    }
}

fn parsed_here() -> impl Iterator<Item = &'static SlurmOption> {
    SBATCH.iter().filter(|option| !matches!(option.effect, Works(_)))
}

fn arg(option: &'static SlurmOption) -> Arg {
    let arg = Arg::new(option.long).long(option.long).hide(true);
    let arg = option.short.into_iter().fold(arg, Arg::short);
    let any = || ValueParser::os_string();
    match option.value {
        Value::None => arg.action(ArgAction::Count),
        Needed => arg.action(ArgAction::Append).num_args(1).value_parser(any()),
        Optional => {
            arg.action(ArgAction::Append).num_args(0..=1).require_equals(true).value_parser(any())
        }
    }
}

impl Args for WithoutEffect {
    fn augment_args(command: Command) -> Command {
        command.args(parsed_here().map(arg))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for WithoutEffect {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let typed = |option: &&SlurmOption| {
            let source = matches.value_source(option.long);
            source.is_some_and(|source| source != clap::parser::ValueSource::DefaultValue)
        };
        Ok(WithoutEffect { given: parsed_here().filter(typed).collect() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The table for `docs/from-slurm.md`.
#[cfg(test)]
pub(crate) fn table() -> String {
    let mut text = "| option | here |\n|---|---|\n".to_owned();
    for SlurmOption { long, short, effect, .. } in SBATCH {
        let short = short.map_or(String::new(), |short| format!("`-{short}`, "));
        let told = match effect {
            Works(what) => (*what).to_owned(),
            Nothing(why) => format!("*no effect*: {why}"),
            Refused(why) => format!("**refused**: {why}"),
        };
        text.push_str(&format!("| {short}`--{long}` | {told} |\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verbs::submit::Submit;

    /// The flags of `coloc submit`, by their long names.
    fn known() -> Vec<(String, Option<char>)> {
        let submit = Submit::augment_args(Command::new("submit"));
        let mut known = Vec::new();
        for arg in submit.get_arguments() {
            let aliases = arg.get_all_aliases().unwrap_or_default();
            let names = arg.get_long().into_iter().chain(aliases);
            known.extend(names.map(|name| (name.to_owned(), arg.get_short())));
        }
        known
    }

    #[test]
    fn every_option_of_sbatch_is_taken_by_the_parser_with_its_letter() {
        // Translated before the parser, or the parser's own.
        let elsewhere = ["help", "usage", "version"];
        let known = known();
        for option in SBATCH.iter().filter(|option| !elsewhere.contains(&option.long)) {
            let found = known.iter().find(|(name, _)| name == option.long);
            let (_, short) = found.unwrap_or_else(|| panic!("--{} is not parsed", option.long));
            assert!(option.short.is_none() || *short == option.short, "--{}", option.long);
        }
    }

    #[test]
    fn no_flag_is_another_one_too() {
        use crate::verbs::{sweep::Sweep, wait::Run};
        Submit::augment_args(Command::new("submit")).debug_assert();
        Run::augment_args(Command::new("run")).debug_assert();
        Sweep::augment_args(Command::new("sweep")).debug_assert();
    }

    #[test]
    fn the_page_from_slurm_has_this_table() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/from-slurm.md");
        let page = std::fs::read_to_string(file).expect("the page is there");
        let table = table();
        assert!(page.contains(&table), "{file} must have this table:\n{table}");
    }

    #[test]
    fn no_option_is_named_twice_and_all_are_in_order() {
        assert!(SBATCH.windows(2).all(|two| two[0].long < two[1].long));
        let mut letters: Vec<char> = SBATCH.iter().filter_map(|option| option.short).collect();
        letters.sort_unstable();
        assert!(letters.windows(2).all(|two| two[0] != two[1]));
    }
}
