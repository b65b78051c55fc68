//! One configuration file: settings, each with its place.

use super::SECTIONS;
use super::pools::POOL;
use crate::Cli;
use crate::args::notify::NOTIFY_FLAGS;
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, CommandFactory as _};
use std::ffi::OsString;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Files larger than this are not read.
const LARGEST: u64 = 1 << 20;

/// A file that cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    /// It cannot be read.
    #[error("cannot read {}: {source}", file.display())]
    Read { file: PathBuf, source: io::Error },
    /// Another user could change what the daemon does with its rights.
    #[error(
        "{}: another user could change it, and the daemon would do what it says: {} must belong to root or to the daemon's user, and be writable by no other (chmod go-w)",
        file.display(),
        part.display()
    )]
    Unsafe { file: PathBuf, part: PathBuf },
    /// Something in it makes no sense.
    #[error("{}, line {line}, column {column}: {problem}", file.display())]
    Wrong { file: PathBuf, line: usize, column: usize, problem: String },
}

impl ConfigError {
    /// There is no file, and none is needed; nor one in the home of another user, whom we only stand in for.
    pub(crate) fn is_missing(&self) -> bool {
        let ConfigError::Read { file, source } = self else { return false };
        match source.kind() {
            io::ErrorKind::NotFound => true,
            io::ErrorKind::PermissionDenied => *file != Path::new(super::SYSTEM_FILE),
            _ => false,
        }
    }
}

/// What a file says of one flag.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Setting {
    pub(crate) section: &'static str,
    /// The flag's name.
    pub(crate) key: String,
    /// As the flag would be typed, each time it would be; none for a flag that is off.
    pub(crate) values: Vec<String>,
    /// It is a flag without a value.
    pub(super) is_switch: bool,
    /// A variable that wins over it.
    pub(crate) variable: Option<OsString>,
    pub(crate) file: PathBuf,
    pub(crate) line: usize,
}

impl Setting {
    /// The flag, as it would be typed.
    pub(crate) fn words(&self) -> impl Iterator<Item = OsString> + '_ {
        self.values.iter().map(|value| match self.is_switch {
            true => format!("--{}", self.key).into(),
            // In one word, so that a value may begin with a dash.
            false => format!("--{}={value}", self.key).into(),
        })
    }
}

/// Reads and checks a file.
pub(crate) fn read(file: &Path) -> Result<Vec<Setting>, ConfigError> {
    parse(file, &text_of(file)?)
}

/// Reads what a file says to a verb. What it says to others is not looked at; what is no TOML at all is told, and the
/// rest of the file counts.
pub(crate) fn read_for(verb: &str, file: &Path) -> Result<Vec<Setting>, ConfigError> {
    let text = text_of(file)?;
    let reader = Reader { file, text: &text };
    let (table, errors) = DeTable::parse_recoverable(&text);
    let listens =
        |name: &str| SECTIONS.iter().any(|(s, verbs)| *s == name && verbs.contains(&verb));
    let concerns_others = |error: &&toml::de::Error| {
        let section = reader.section_at(error.span().unwrap_or(0..0).start);
        section.is_some_and(|section| !listens(section))
    };
    if let Some(ours) = errors.iter().find(|error| !concerns_others(error)) {
        return Err(reader.broken(ours));
    }
    if let Some(others) = errors.first() {
        eprintln!("coloc: {}; the rest of the file counts", reader.broken(others));
    }
    reader.settings(&table, listens)
}

fn text_of(file: &Path) -> Result<String, ConfigError> {
    let fail = |source| ConfigError::Read { file: file.to_owned(), source };
    if std::fs::metadata(file).map_err(fail)?.len() > LARGEST {
        return Err(fail(io::Error::other("it is larger than 1 MiB")));
    }
    std::fs::read_to_string(file).map_err(fail)
}

fn parse(file: &Path, text: &str) -> Result<Vec<Setting>, ConfigError> {
    let reader = Reader { file, text };
    let table = DeTable::parse(text).map_err(|error| reader.broken(&error))?;
    reader.settings(&table, |_| true)
}

pub(super) struct Reader<'a> {
    pub(super) file: &'a Path,
    text: &'a str,
}

impl Reader<'_> {
    fn broken(&self, error: &toml::de::Error) -> ConfigError {
        self.wrong(&error.span().unwrap_or(0..0), error.message().to_owned())
    }

    /// The settings of the sections that are wanted.
    fn settings(
        &self,
        table: &Spanned<DeTable<'_>>,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<Vec<Setting>, ConfigError> {
        let reader = self;
        let mut settings = Vec::new();
        for (name, section) in table.get_ref().iter().filter(|(name, _)| {
            let section = if *name.get_ref() == POOL { "daemon" } else { name.get_ref() };
            wanted(section)
        }) {
            if *name.get_ref() == POOL {
                settings.push(reader.pools(section)?);
                continue;
            }
            let known = SECTIONS.iter().find(|(known, _)| *known == name.get_ref());
            let Some((known, verbs)) = known else {
                let names: Vec<&str> =
                    SECTIONS.iter().map(|(name, _)| *name).chain(["[pool]"]).collect();
                let problem = format!(
                    "unknown section {:?}; there are [{}]",
                    name.get_ref(),
                    names.join("], [")
                );
                return Err(reader.wrong(&name.span(), problem));
            };
            let DeValue::Table(keys) = section.get_ref() else {
                let problem = format!("{known} is a section: write [{known}] and its keys below");
                return Err(reader.wrong(&name.span(), problem));
            };
            for (key, value) in keys {
                let flag = key.get_ref().replace('_', "-");
                settings.push(reader.setting(known, verbs[0], (&flag, key.span()), value)?);
            }
        }
        Ok(settings)
    }

    /// The section that a place is in, by the last line before its end that looks like the head of one.
    fn section_at(&self, at: usize) -> Option<&str> {
        let end = self
            .text
            .get(at..)
            .and_then(|rest| rest.find('\n'))
            .map_or(self.text.len(), |n| at + n);
        let heads = self.text.get(..end)?.lines().rev().map(str::trim);
        let head = heads.filter_map(|line| line.strip_prefix('[')).next()?;
        Some(head.split(']').next().unwrap_or(head).trim())
    }

    pub(super) fn place(&self, at: usize) -> (usize, usize) {
        let before = self.text.get(..at).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        (line, column)
    }

    pub(super) fn wrong(&self, span: &Range<usize>, problem: String) -> ConfigError {
        let (line, column) = self.place(span.start);
        ConfigError::Wrong { file: self.file.to_owned(), line, column, problem }
    }

    fn setting(
        &self,
        section: &'static str,
        verb: &str,
        (key, span): (&str, Range<usize>),
        value: &Spanned<DeValue<'_>>,
    ) -> Result<Setting, ConfigError> {
        let mut program = Cli::command();
        program.build();
        let Some(command) = program.find_subcommand(verb) else {
            return Err(self.wrong(&span, format!("there is no verb {verb}")));
        };
        let flags = || command.get_arguments().filter(|flag| is_settable(section, flag));
        let is_called = |flag: &&Arg| {
            let earlier = flag.get_all_aliases().unwrap_or_default();
            flag.get_long() == Some(key) || earlier.contains(&key)
        };
        let Some(flag) = flags().find(is_called) else {
            let known: Vec<&str> = flags().filter_map(Arg::get_long).collect();
            let problem =
                format!("unknown key {key:?} in [{section}]; there are {}", known.join(", "));
            return Err(self.wrong(&span, problem));
        };
        let is_switch = matches!(flag.get_action(), ArgAction::SetTrue);
        let texts = texts(value.get_ref()).ok_or_else(|| {
            let problem =
                format!("{key}: expected a text, a number, true, false or a list of these");
            self.wrong(&value.span(), problem)
        })?;
        let values = match (is_switch, value.get_ref(), flag.get_action()) {
            (true, DeValue::Boolean(true), _) => vec!["true".to_owned()],
            (true, DeValue::Boolean(false), _) => Vec::new(),
            (true, ..) => {
                return Err(self.wrong(&value.span(), format!("{key}: expected true or false")));
            }
            (false, _, ArgAction::Append) => texts,
            // The network is off, whatever a weaker file says.
            (false, DeValue::String(text), _) if section == "api" && text.is_empty() => Vec::new(),
            (false, ..) => vec![texts.join(",")],
        };
        let (line, _) = self.place(span.start);
        let variable = flag.get_env().map(OsString::from);
        let key = flag.get_long().unwrap_or(key);
        let (key, file) = (key.to_owned(), self.file.to_owned());
        let setting = Setting { section, key, values, is_switch, variable, file, line };
        check(command.clone(), &setting).map_err(|problem| self.wrong(&value.span(), problem))?;
        Ok(setting)
    }
}

/// Flags that make sense in a file: what is asked for once is typed.
fn is_settable(section: &str, flag: &Arg) -> bool {
    flag.get_long().is_some_and(|key| is_key(section, key))
}

/// Flags of the daemon that are about the network.
const API_FLAGS: [&str; 6] = ["listen", "tls-cert", "tls-key", "metrics", "web", "web-anonymous"];

/// Whether a flag may be a key of a section.
pub(crate) fn is_key(section: &str, key: &str) -> bool {
    let typed = ["help", "json", "dry-run", "parsable", "wrap", "slurm"];
    let connection = crate::args::live::FLAGS;
    match section {
        "client" => connection.contains(&key),
        "submit" => !typed.contains(&key) && !connection.contains(&key),
        "api" => API_FLAGS.contains(&key),
        "notify" => NOTIFY_FLAGS.contains(&key),
        "daemon" => [&typed[..], &API_FLAGS, &NOTIFY_FLAGS].iter().all(|no| !no.contains(&key)),
        _ => !typed.contains(&key),
    }
}

/// The texts of a value; `None` if it is nothing that a flag can take.
pub(super) fn texts(value: &DeValue<'_>) -> Option<Vec<String>> {
    Some(match value {
        DeValue::String(text) => vec![text.to_string()],
        DeValue::Integer(number) => vec![number.to_string()],
        DeValue::Float(number) => vec![number.to_string()],
        DeValue::Boolean(yes) => vec![yes.to_string()],
        DeValue::Array(list) => {
            let mut all = Vec::new();
            for value in list.iter().map(Spanned::get_ref) {
                let DeValue::Array(_) = value else {
                    all.extend(texts(value)?);
                    continue;
                };
                return None;
            }
            all
        }
        DeValue::Datetime(_) | DeValue::Table(_) => return None,
    })
}

/// Has the flag itself judge its value. That others are missing is no matter here.
fn check(command: clap::Command, setting: &Setting) -> Result<(), String> {
    let words = [OsString::from("coloc")].into_iter().chain(setting.words());
    match command.no_binary_name(false).try_get_matches_from(words) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::MissingRequiredArgument => Ok(()),
        Err(error) => {
            let said = error.to_string();
            let said = said.split("\n\nFor more").next().unwrap_or(&said);
            Err(said.trim_start_matches("error: ").trim().to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words(text: &str) -> Result<Vec<String>, String> {
        let settings = parse(Path::new("f.toml"), text).map_err(|error| error.to_string())?;
        let words = settings.iter().flat_map(Setting::words);
        Ok(words.map(|word| word.to_string_lossy().into_owned()).collect())
    }

    #[test]
    fn keys_are_flags() {
        let text = "[daemon]\nqueue = \"best-effort\"\nsame_user = true\nlearn-speeds = false\n\
                    max-tasks = 3\nweight = [\"a=2\", \"b=3\"]\nthresholds = [3250, 7200]\n\
                    [submit]\npriority = -2\ngpu-mem = \"12G\"\n[client]\nsocket = \"/run/x\"\n";
        let expected = [
            "--queue=best-effort",
            "--same-user",
            "--max-tasks=3",
            "--weight=a=2",
            "--weight=b=3",
            "--thresholds=3250,7200",
            "--priority=-2",
            "--gpu-mem=12G",
            "--socket=/run/x",
        ];
        let mut words = words(text).unwrap();
        words.sort_unstable();
        let mut expected = expected.map(str::to_owned);
        expected.sort_unstable();
        assert_eq!(words, expected);
    }

    #[test]
    fn pools_are_flags_of_the_daemon_in_their_order() {
        let text = "[[pool]]\nname = 'b'\ngpus = [0, 1]\ndefault = true\n[[pool]]\nname = 'a'\n";
        let mut said = words(text).unwrap();
        assert_eq!(said.pop().as_deref(), Some("--pool=name=a"));
        assert!(said[0].starts_with("--pool=") && said[0].contains("gpus=0,1"), "{said:?}");
    }

    #[test]
    fn a_mistake_in_one_section_does_not_concern_the_verbs_of_others() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("config.toml");
        let client = "[client]\nsocket = '/run/x'\n";
        let read = |verb: &str, rest: &str| {
            std::fs::write(&file, format!("{client}{rest}")).unwrap();
            read_for(verb, &file).map(|settings| settings.len())
        };
        for wrong in ["[daemon]\nqueue = 'lifo'\n", "[demon]\nx = 1\n", "[daemon]\nqueue = \n"] {
            assert_eq!(read("queue", wrong).unwrap(), 1, "{wrong}");
        }
        assert!(read("daemon", "[daemon]\nqueue = 'lifo'\n").is_err());
        let both = "[daemon]\nqueue = \n[submit]\nname = \n";
        assert!(read("queue", both).is_ok());
        let told = read("submit", both).unwrap_err().to_string();
        assert!(told.contains("line 6"), "its own mistake, though not the first: {told}");
        assert!(read("queue", "host = \n").is_err(), "that is this verb's");
        assert!(read("queue", "[daemon\n").is_ok() && read("queue", "\u{1}").is_err());
        assert!(read("queue", "[daemon]\nqueue = 'lifo'\n[client]\n").is_err(), "said twice");
    }

    #[test]
    fn mistakes_have_a_place() {
        for (text, said) in [
            ("[daemon]\nqueue = 'lifo'", "f.toml, line 2, column 9: invalid value 'lifo'"),
            ("[daemon]\n\n  quue = 'fifo'", "f.toml, line 3, column 3: unknown key \"quue\""),
            ("[demon]", "f.toml, line 1, column 2: unknown section \"demon\""),
            ("daemon = 3", "f.toml, line 1, column 1: daemon is a section"),
            ("[daemon]\nqueue = ", "f.toml, line 2, column 9"),
            ("[daemon]\nsame-user = 'yes'", "line 2, column 13: same-user: expected true or false"),
            ("[daemon]\nperiod = 1979-05-27", "line 2, column 10: period: expected a text"),
            ("[daemon]\nweight = [['a=1']]", "line 2, column 10: weight: expected a text"),
            ("[daemon]\nmargin = 'lots'", "line 2, column 10"),
            ("[client]\njson = true", "line 2, column 1: unknown key \"json\""),
            ("[[pool]]\nname = 'a'\nshare = 'fast'", "line 3, column 9: share \"fast\""),
            ("[[pool]]\nname = 'a'\ncolour = 1", "line 3, column 1: unknown key \"colour\""),
            ("[[pool]]\ngpus = [0]", "a pool needs a name"),
            ("[pool]\nname = 'a'", "written as [[pool]]"),
        ] {
            let error = words(text).unwrap_err();
            assert!(error.contains(said), "{text:?}: {error}");
        }
    }

    proptest! {
        #[test]
        fn no_file_confuses_it(text in "(\\[daemon\\]\n)?[a-z= \"'\\[\\]{}0-9\n.-]{0,60}") {
            let _ = words(&text);
        }
    }
}
