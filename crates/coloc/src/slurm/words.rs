//! The words of srun and salloc: options by their names and letters, until the command.

use super::options::{SBATCH, Value};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

/// What becomes of an option that srun has and sbatch has not, or has otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// About the copies.
    Step,
    /// Nothing.
    Idle,
    /// It would change the result.
    Refused(&'static str),
}

type OwnOption = (&'static str, char, Value, Role);

/// What srun has beside the options of sbatch.
#[rustfmt::skip]
pub(crate) const SRUN: &[OwnOption] = &[
    ("accel-bind", ' ', Value::Needed, Role::Idle),
    ("bcast", ' ', Value::Optional, Role::Refused("the program is here already: leave it out")),
    ("chdir", 'D', Value::Needed, Role::Step),
    ("compress", ' ', Value::Optional, Role::Idle),
    ("cpu-bind", ' ', Value::Needed, Role::Idle),
    ("disable-status", 'X', Value::None, Role::Idle),
    ("epilog", ' ', Value::Needed, Role::Refused("run it after srun, in the script")),
    ("error", 'e', Value::Needed, Role::Step),
    ("exact", ' ', Value::None, Role::Idle),
    ("export", ' ', Value::Needed, Role::Step),
    ("external-launcher", ' ', Value::Optional, Role::Idle),
    ("gpu-bind", ' ', Value::Needed, Role::Step),
    ("het-group", ' ', Value::Needed, Role::Refused("there is one server, and a task has one part")),
    ("immediate", 'I', Value::Optional, Role::Idle),
    ("input", 'i', Value::Needed, Role::Step),
    ("interactive", ' ', Value::None, Role::Step),
    ("jobid", ' ', Value::Needed, Role::Step),
    ("kill-on-bad-exit", 'K', Value::Optional, Role::Step),
    ("label", 'l', Value::None, Role::Step),
    ("mpi", ' ', Value::Needed, Role::Step),
    ("msg-timeout", ' ', Value::Needed, Role::Idle),
    ("multi-prog", ' ', Value::None, Role::Refused("start several srun in the background, and wait for them")),
    ("no-allocate", 'Z', Value::None, Role::Refused("every task waits for its turn")),
    ("open-mode", ' ', Value::Needed, Role::Step),
    ("output", 'o', Value::Needed, Role::Step),
    ("overlap", ' ', Value::None, Role::Step),
    ("preserve-env", 'E', Value::None, Role::Idle),
    ("prolog", ' ', Value::Needed, Role::Refused("run it before srun, in the script")),
    ("pty", ' ', Value::Optional, Role::Step),
    ("quit-on-interrupt", ' ', Value::None, Role::Idle),
    ("relative", 'r', Value::Needed, Role::Idle),
    ("send-libs", ' ', Value::Optional, Role::Idle),
    ("slurmd-debug", ' ', Value::Needed, Role::Idle),
    ("task-epilog", ' ', Value::Needed, Role::Refused("run it in the command itself")),
    ("task-prolog", ' ', Value::Needed, Role::Refused("run it in the command itself")),
    ("threads", 'T', Value::Needed, Role::Idle),
    ("unbuffered", 'u', Value::None, Role::Idle),
    ("wait", 'W', Value::Needed, Role::Step),
];

/// Flags of `coloc run` that Slurm has not: outside of a task, srun is that.
#[rustfmt::skip]
pub(crate) const OURS: &[(&str, Value)] = &[
    ("attention", Value::Needed), ("batch", Value::Needed), ("env", Value::Needed), ("force", Value::None),
    ("framework", Value::Needed), ("gpu-kind", Value::Needed), ("gpu-mem", Value::Needed), ("gpu-mem-borrow", Value::None),
    ("gpu-mem-reclaim", Value::None), ("gradient-checkpointing", Value::None), ("hf-config", Value::Needed),
    ("idle-timeout", Value::Needed), ("lora", Value::Needed), ("model-summary", Value::Needed), ("notify", Value::Needed),
    ("on-oom", Value::Needed), ("optimizer", Value::Needed), ("pool", Value::Needed), ("precision", Value::Needed),
    ("retry", Value::Needed), ("samples", Value::Needed), ("seq", Value::Needed), ("sm-percent", Value::Needed),
    ("summary-pass", Value::None), ("user-env", Value::None), ("zero", Value::Needed),
];

/// Words of srun, understood.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Words {
    /// Options by their long names.
    pub(crate) options: Vec<(&'static str, Option<OsString>)>,
    pub(crate) command: Vec<OsString>,
}

/// An option by its long name, or the beginning of it that no other has.
fn by_name(name: &str) -> Result<(&'static str, Value), String> {
    let own = SRUN.iter().map(|&(long, _, value, _)| (long, value));
    let shared = SBATCH.iter().map(|option| (option.long, option.value));
    let is_own = |long: &str| SRUN.iter().any(|(own, ..)| *own == long);
    let all = || own.clone().chain(shared.clone().filter(|(long, _)| !is_own(long)));
    if let Some(ours) = OURS.iter().find(|(long, _)| *long == name) {
        return Ok(*ours);
    }
    if let Some(exact) = all().find(|(long, _)| *long == name) {
        return Ok(exact);
    }
    let mut begin = all().filter(|(long, _)| long.starts_with(name));
    match (begin.next(), begin.next()) {
        (Some(only), None) if !name.is_empty() => Ok(only),
        (Some(_), Some(_)) if !name.is_empty() => Err(format!("--{name} may be one of several")),
        _ => Err(format!("--{name} is not known")),
    }
}

fn by_letter(letter: char) -> Result<(&'static str, Value), String> {
    let own = SRUN.iter().find(|(_, short, ..)| *short == letter && letter != ' ');
    let own = own.map(|&(long, _, value, _)| (long, value));
    let taken = |long: &str| SRUN.iter().any(|(own, ..)| *own == long);
    let shared = SBATCH.iter().find(|option| option.short == Some(letter) && !taken(option.long));
    let shared = shared.map(|option| (option.long, option.value));
    own.or(shared).ok_or_else(|| format!("-{letter} is not known"))
}

impl Words {
    /// Reads options until the command.
    pub(crate) fn read(words: &[OsString]) -> Result<Self, String> {
        let mut read = Words::default();
        let mut rest = words.iter();
        while let Some(word) = rest.next() {
            let bytes = word.as_bytes();
            if bytes == b"--" {
                read.command = rest.cloned().collect();
                break;
            }
            if let Some(long) = bytes.strip_prefix(b"--") {
                let (name, value) = match long.iter().position(|&byte| byte == b'=') {
                    Some(at) => (&long[..at], Some(OsString::from_vec(long[at + 1..].to_vec()))),
                    None => (long, None),
                };
                let (name, kind) = by_name(&String::from_utf8_lossy(name))?;
                read.take(name, kind, value, &mut rest)?;
            } else if bytes.starts_with(b"-") && bytes.len() > 1 {
                read.letters(&String::from_utf8_lossy(&bytes[1..]), &mut rest)?;
            } else {
                read.command = [word].into_iter().chain(rest).cloned().collect();
                break;
            }
        }
        Ok(read)
    }

    /// `-l`, `-n4`, `-n 4`, `-ln4`.
    fn letters<'a>(
        &mut self,
        letters: &str,
        rest: &mut impl Iterator<Item = &'a OsString>,
    ) -> Result<(), String> {
        for (at, letter) in letters.char_indices() {
            let (name, kind) = by_letter(letter)?;
            let after = &letters[at + letter.len_utf8()..];
            if kind == Value::None || after.is_empty() {
                self.take(name, kind, None, rest)?;
                continue;
            }
            let value = after.strip_prefix('=').unwrap_or(after);
            return self.take(name, kind, Some(value.into()), rest);
        }
        Ok(())
    }

    fn take<'a>(
        &mut self,
        name: &'static str,
        kind: Value,
        value: Option<OsString>,
        rest: &mut impl Iterator<Item = &'a OsString>,
    ) -> Result<(), String> {
        let value = match (kind, value) {
            (Value::None, Some(_)) => return Err(format!("--{name} takes no value")),
            (Value::Needed, None) => {
                let next = rest.next().ok_or_else(|| format!("--{name} needs a value"))?;
                Some(next.clone())
            }
            (_, value) => value,
        };
        let refused = SRUN.iter().find(|(own, ..)| *own == name);
        if let Some((_, _, _, Role::Refused(why))) = refused {
            return Err(format!("--{name}: {why}"));
        }
        self.options.push((name, value));
        Ok(())
    }

    /// What an option was given last.
    pub(crate) fn value(&self, name: &str) -> Option<&OsStr> {
        let last = self.options.iter().rev().find(|(known, _)| *known == name)?;
        last.1.as_deref()
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.options.iter().any(|(known, _)| *known == name)
    }

    /// A flag that is about a new task alone.
    pub(crate) fn for_a_new_task(&self) -> Option<&'static str> {
        let mut names = self.options.iter().map(|(name, _)| *name);
        names.find(|name| OURS.iter().any(|(ours, _)| ours == name))
    }

    /// The options that are about the allocation, as words for `coloc run`.
    pub(crate) fn of_allocation(&self) -> Vec<OsString> {
        self.chosen(|name| !SRUN.iter().any(|(own, ..)| *own == name))
    }

    /// The options that are about the copies. Some are about both.
    pub(crate) fn of_copies(&self) -> Vec<OsString> {
        let both = ["ntasks", "ntasks-per-node", "cpus-per-task", "gpus-per-task"];
        self.chosen(|name| SRUN.iter().any(|(own, ..)| *own == name) || both.contains(&name))
    }

    fn chosen(&self, is_wanted: impl Fn(&str) -> bool) -> Vec<OsString> {
        let wanted = self.options.iter().filter(|(name, _)| is_wanted(name));
        let word = |(name, value): &(&str, Option<OsString>)| {
            let mut word = OsString::from(format!("--{name}"));
            if let Some(value) = value {
                word.push("=");
                word.push(value);
            }
            word
        };
        wanted.map(word).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Words, String> {
        let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        Words::read(&words)
    }

    #[test]
    fn options_end_at_the_command() {
        let words = read("-ln4 --gpus-per-task 1 --cpu-bind=cores -K python -l x").unwrap();
        assert_eq!(words.command, ["python", "-l", "x"]);
        assert_eq!(words.value("ntasks"), Some(OsStr::new("4")));
        assert!(words.has("label") && words.has("kill-on-bad-exit"));
        assert_eq!(words.of_allocation(), ["--ntasks=4", "--gpus-per-task=1"]);
        assert_eq!(read("--pty -- bash -i").unwrap().command, ["bash", "-i"]);
        assert_eq!(read("--gpus-per-t=2 x").unwrap().value("gpus-per-task"), Some(OsStr::new("2")));
    }

    #[test]
    fn what_cannot_be_is_refused_with_the_reason() {
        for (line, why) in [
            ("--nope x", "--nope is not known"),
            ("-y x", "-y is not known"),
            ("--gpu x", "may be one of several"),
            ("-n", "needs a value"),
            ("--label=1 x", "takes no value"),
            ("--multi-prog conf", "in the background"),
            ("--het-group=1 x", "one server"),
        ] {
            let told = read(line).unwrap_err();
            assert!(told.contains(why), "{line}: {told}");
        }
    }
}
