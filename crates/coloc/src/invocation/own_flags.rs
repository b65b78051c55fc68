//! Which of the words that were typed are coloc's: from where a task's command begins they are that program's.

use crate::slurm;
use crate::verbs::{exec::Exec, shell::Shell, submit::Submit, sweep::Sweep, wait::Run};
use clap::{Arg, Args as _, Command};
use std::ffi::OsString;
use std::path::Path;

/// Whether JSON is asked for, as far as can be said before the words are understood: errors are then JSON too.
pub(crate) fn asks_for_json(words: &[OsString]) -> bool {
    let is_json = |word: &OsString| word == "--json";
    if !words.iter().skip(1).take_while(|word| *word != "--").any(is_json) {
        return false;
    }
    let name = words.first().map(Path::new).and_then(Path::file_name);
    let name = name.and_then(|name| name.to_str()).unwrap_or_default();
    let translated = slurm::translate(name, words.get(1..).unwrap_or_default());
    let words = translated.as_deref().unwrap_or(words);
    let verb = words.get(1).and_then(|verb| verb.to_str()).unwrap_or_default();
    let rest = words.get(2..).unwrap_or_default();
    // To describe a verb takes a moment, and is done only for verbs whose words can end before the last.
    let own = match verb {
        "submit" => own_flags(&Submit::augment_args(Command::new("submit")), rest),
        "run" => own_flags(&Run::augment_args(Command::new("run")), rest),
        "shell" => own_flags(&Shell::augment_args(Command::new("shell")), rest),
        "exec" => own_flags(&Exec::augment_args(Command::new("exec")), rest),
        "sweep" => own_flags(&Sweep::augment_args(Command::new("sweep")), rest),
        // A verb whose own words have no such flag.
        "emu" if rest.first().is_some_and(|verb| verb == "run") => &[],
        _ => words,
    };
    own.iter().take_while(|word| *word != "--").any(is_json)
}

/// The words before the first that is neither an option nor an option's value.
fn own_flags<'a>(verb: &Command, words: &'a [OsString]) -> &'a [OsString] {
    let mut is_value = false;
    let begins = words.iter().position(|word| {
        if std::mem::take(&mut is_value) {
            return false;
        }
        let word = word.to_string_lossy();
        is_value = wants_the_next(verb, &word);
        !word.starts_with('-') || word == "-"
    });
    &words[..begins.unwrap_or(words.len())]
}

/// Whether the word after this one is its value: `--name`, `-J`, `-HJ`, but neither `--name=x` nor `-Jx`.
fn wants_the_next(verb: &Command, word: &str) -> bool {
    let takes = |arg: &Arg| arg.get_action().takes_values();
    if let Some(long) = word.strip_prefix("--") {
        let is_it = |arg: &&Arg| {
            let aliases = arg.get_all_aliases().unwrap_or_default();
            arg.get_long() == Some(long) || aliases.contains(&long)
        };
        return verb.get_arguments().find(is_it).is_some_and(takes);
    }
    let Some(letters) = word.strip_prefix('-') else { return false };
    let by_letter = |letter| verb.get_arguments().find(|arg| arg.get_short() == Some(letter));
    let first = letters.char_indices().find(|&(_, letter)| by_letter(letter).is_some_and(takes));
    first.is_some_and(|(at, letter)| at + letter.len_utf8() == letters.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_a_command_is_the_commands() {
        let asks = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            asks_for_json(&words)
        };
        for ours in [
            "coloc queue --json",
            "coloc --json",
            "coloc show 7 --json",
            "coloc submit --json -- train",
            "coloc submit -J name --json train --json",
            "coloc submit --job-name name --json train",
            "coloc submit --dependency=3 -HJ name -G2 --json train",
            "coloc run --reconnect 0 --json train",
            "/bin/sbatch --parsable -J x --json job.sh",
            "coloc submit --no-such-flag --json",
            "coloc sweep --grid a=1 --json train",
        ] {
            assert!(asks(ours), "{ours}");
        }
        for theirs in [
            "coloc submit train --json",
            "coloc submit - --json",
            "coloc submit -- train --json",
            "coloc run -Hx -G 2 python train.py --json",
            "/bin/sbatch -J x job.sh --json",
            "coloc sweep --grid a=1 train {a} --json",
            "coloc emu run --fleet 1xT4-16GB tool --json",
            "coloc",
        ] {
            assert!(!asks(theirs), "{theirs}");
        }
    }
}
