//! Software environments whose constants were learned: one small file each, beside the configuration files. A user's
//! file wins over the system's; environments that ship with coloc cannot be replaced.

use super::{SYSTEM_FILE, VARIABLE, files, user_file};
use crate::error::CliError;
use crate::output;
use coloc_estimate::environment::{Environment, loads_of};
use coloc_estimate::graph::{FlagKind, Graph};
use coloc_estimate::learned::{self, DEFAULT_ENVIRONMENT};
use coloc_model::Loads;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// Files larger than this are none of ours.
const LARGEST: u64 = 64 << 10;
/// More than any driver and its libraries take, in MiB.
const MOST_MIB: f64 = 1_048_576.0;
/// The folder beside a configuration file.
const FOLDER: &str = "environments";

/// An environment that cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EnvironmentError {
    #[error(
        "unknown environment {name:?}; known are {known}; `coloc estimate learn` makes new ones"
    )]
    Unknown { name: String, known: String },
    #[error("cannot read {}: {source}", file.display())]
    Read { file: PathBuf, source: io::Error },
    #[error("{}, line {line}: {problem}", file.display())]
    Wrong { file: PathBuf, line: usize, problem: String },
    #[error("there is no home directory to keep an environment in; set HOME or XDG_CONFIG_HOME")]
    NoHome,
    #[error("environment {0:?} ships with coloc; choose another name")]
    Shipped(String),
    #[error(transparent)]
    Config(#[from] super::ConfigError),
}

/// Where an environment's constants are from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Origin {
    Shipped,
    File(PathBuf),
}

/// An environment that a user can name.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Named {
    pub(crate) name: String,
    pub(crate) constants: Environment,
    pub(crate) origin: Origin,
    /// Measured runs behind it, where that is written down.
    pub(crate) rows: Option<usize>,
    /// Parts that were not measured, and the environment that they come from.
    pub(crate) borrowed: Option<Borrowed>,
}

/// Parts of a constant that were not measured.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Borrowed {
    pub(crate) from: String,
    pub(crate) parts: Vec<Loads>,
}

/// A file, as it is written.
#[derive(PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    base_mib: f64,
    convolution_mib: f64,
    batch_norm_mib: f64,
    #[serde(default)]
    spread_mib: f64,
    rows: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    borrowed: Option<Borrowed>,
}

impl Named {
    /// Says so where no net was measured that loads what this graph does.
    pub(crate) fn doubt(&self, graph: &mut Graph) {
        let loads = loads_of(graph);
        for (_, detail) in self.doubts().into_iter().filter(|(part, _)| *part == loads) {
            graph.flag(FlagKind::Assumption, detail);
        }
    }

    /// What nets load whose part of the constant was not measured, and what is said of it.
    pub(crate) fn doubts(&self) -> Vec<(Loads, String)> {
        let Some(Borrowed { from, parts }) = &self.borrowed else { return Vec::new() };
        let name = &self.name;
        let told = |loads: &Loads| {
            let part = loads.part();
            let detail = format!(
                "in environment {name} the memory of {part} was not measured; it is taken from {from}"
            );
            (*loads, detail)
        };
        parts.iter().map(told).collect()
    }
}

/// A name that a file can have.
pub(crate) fn name(text: &str) -> Result<String, String> {
    let known = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let valid = text.starts_with(|c: char| c.is_ascii_alphanumeric()) && text.len() <= 64;
    match valid && text.chars().all(known) {
        true => Ok(text.to_owned()),
        false => Err(format!(
            "{text:?} is no name of a software environment: letters, digits, '-', '_' and '.', such as torch-2.4 \
             (a task's variables are passed with --export)"
        )),
    }
}

/// The environment that was named, or that the configuration names for tasks that are submitted, or the usual one.
pub(crate) fn chosen(named: Option<&str>) -> Result<Named, EnvironmentError> {
    if let Some(named) = named {
        return find(named);
    }
    let config = super::Config::load_for("submit")?;
    let of_tasks =
        |setting: &&super::Setting| (setting.section, setting.key.as_str()) == ("submit", "env");
    let setting = config.settings.iter().find(of_tasks);
    let named = setting.and_then(|setting| setting.values.first());
    find(named.map_or(DEFAULT_ENVIRONMENT, String::as_str))
}

/// An environment by its name.
pub(crate) fn find(name: &str) -> Result<Named, EnvironmentError> {
    if let Some(shipped) = shipped(name) {
        return Ok(shipped);
    }
    for folder in folders().into_iter().rev() {
        let file = folder.join(format!("{name}.toml"));
        match read(name, &file) {
            Err(EnvironmentError::Read { source, .. })
                if source.kind() == io::ErrorKind::NotFound => {}
            found => return found,
        }
    }
    Err(EnvironmentError::Unknown { name: name.to_owned(), known: names().join(", ") })
}

/// All of them, by name; files that cannot be used in their place.
pub(crate) fn all() -> Vec<Result<Named, EnvironmentError>> {
    names().iter().map(|name| find(name)).collect()
}

fn shipped(name: &str) -> Option<Named> {
    let constants = *learned::calibration().environments.get(name)?;
    Some(Named {
        name: name.to_owned(),
        constants,
        origin: Origin::Shipped,
        rows: None,
        borrowed: None,
    })
}

fn names() -> Vec<String> {
    let mut names: Vec<String> = learned::calibration().environments.keys().cloned().collect();
    for folder in folders() {
        let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let named = files.filter_map(|file| {
            let file = file.file_name();
            name(file.to_str()?.strip_suffix(".toml")?).ok()
        });
        names.extend(named);
    }
    names.sort_unstable();
    names.dedup();
    names
}

/// The folders that count, the weakest first.
fn folders() -> Vec<PathBuf> {
    files().iter().filter_map(|file| Some(file.parent()?.join(FOLDER))).collect()
}

fn read(name: &str, file: &Path) -> Result<Named, EnvironmentError> {
    let fail = |source| EnvironmentError::Read { file: file.to_owned(), source };
    let mut text = String::new();
    // A pipe is not waited for.
    if !std::fs::metadata(file).map_err(fail)?.is_file() {
        return Err(fail(io::Error::other("it is no file")));
    }
    let opened = std::fs::File::open(file).map_err(fail)?;
    opened.take(LARGEST + 1).read_to_string(&mut text).map_err(fail)?;
    if text.len() as u64 > LARGEST {
        return Err(fail(io::Error::other("it is larger than 64 KiB: no environment is")));
    }
    let stored = parse(&text).map_err(|(line, problem)| EnvironmentError::Wrong {
        file: file.to_owned(),
        line,
        problem,
    })?;
    Ok(Named {
        name: name.to_owned(),
        constants: Environment {
            base_mib: stored.base_mib,
            convolution_mib: stored.convolution_mib,
            batch_norm_mib: stored.batch_norm_mib,
            spread_mib: stored.spread_mib,
        },
        origin: Origin::File(file.to_owned()),
        rows: Some(stored.rows),
        borrowed: stored.borrowed,
    })
}

/// What a file says, or the line of the first mistake and what is wrong.
fn parse(text: &str) -> Result<Stored, (usize, String)> {
    let line_at = |at: usize| text.get(..at).unwrap_or(text).matches('\n').count() + 1;
    let broken = |error: toml::de::Error| {
        (line_at(error.span().unwrap_or(0..0).start), error.message().to_owned())
    };
    let stored: Stored = toml::from_str(text).map_err(broken)?;
    let line_of = |key: &str| {
        1 + text.lines().position(|line| line.trim_start().starts_with(key)).unwrap_or(0)
    };
    let base = stored.base_mib;
    let with_convolutions = base + stored.convolution_mib;
    for (key, total) in [
        ("base_mib", base),
        ("convolution_mib", with_convolutions),
        ("batch_norm_mib", with_convolutions + stored.batch_norm_mib),
        ("spread_mib", stored.spread_mib),
    ] {
        if !(0.0..=MOST_MIB).contains(&total) {
            let problem = format!("{key} makes {total} MiB in all: expected 0 to {MOST_MIB}");
            return Err((line_of(key), problem));
        }
    }
    Ok(stored)
}

/// Where an environment of this name is kept: for the whole machine, which is what root gets, or for this user; beside the
/// configuration file that a variable names, if one does.
pub(crate) fn place(name: &str, system: bool) -> Result<PathBuf, EnvironmentError> {
    if learned::calibration().environments.contains_key(name) {
        return Err(EnvironmentError::Shipped(name.to_owned()));
    }
    let named = std::env::var_os(VARIABLE).filter(|file| !file.is_empty()).map(PathBuf::from);
    let beside = match named {
        Some(file) if !system => file,
        _ if system || crate::args::live::is_root() => PathBuf::from(SYSTEM_FILE),
        _ => user_file().ok_or(EnvironmentError::NoHome)?,
    };
    let folder = beside.parent().unwrap_or(Path::new("")).join(FOLDER);
    Ok(folder.join(format!("{name}.toml")))
}

/// Writes an environment down, whole or not at all.
pub(crate) fn write(
    file: &Path,
    constants: Environment,
    rows: usize,
    borrowed: Option<Borrowed>,
) -> Result<(), CliError> {
    let Environment { base_mib, convolution_mib, batch_norm_mib, spread_mib } = constants;
    let stored = Stored { base_mib, convolution_mib, batch_norm_mib, spread_mib, rows, borrowed };
    let fail = |source| CliError::Write { file: file.to_owned(), source };
    let text = toml::to_string(&stored).map_err(|error| fail(io::Error::other(error)))?;
    let folder = file.parent().unwrap_or(Path::new(""));
    std::fs::create_dir_all(folder).map_err(fail)?;
    output::files::write(file, |out| {
        writeln!(
            out,
            "# What a task of this software environment holds beside PyTorch's allocator."
        )?;
        writeln!(out, "# Measured minus replayed memory; written by `coloc estimate learn`.")?;
        out.write_all(text.as_bytes())
    })
}

/// The constants of all that can be used, by name.
pub(crate) fn constants() -> BTreeMap<String, Environment> {
    let usable = all().into_iter().filter_map(Result::ok);
    usable.map(|named| (named.name, named.constants)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GOOD: &str = "base_mib = 700.0\nconvolution_mib = 100\nbatch_norm_mib = -3.5\nrows = 4\n";

    #[test]
    fn mistakes_have_a_line() {
        assert!(parse(GOOD).is_ok());
        for (from, to, line, said) in [
            ("rows = 4", "rows = four", 4, "expected"),
            ("rows = 4", "rows = 4\nhome = 1", 5, "unknown field `home`"),
            ("700.0", "nan", 1, "expected 0 to"),
            ("100", "-800.0", 2, "expected 0 to"),
            ("-3.5", "1e300", 3, "expected 0 to"),
            ("700.0", "'much'", 1, "expected f64"),
        ] {
            let text = GOOD.replace(from, to);
            let (at, problem) = parse(&text).unwrap_err();
            assert!(at == line && problem.contains(said), "{text}: line {at}: {problem}");
        }
    }

    #[test]
    fn names_stay_in_their_folder() {
        for wrong in ["", "../x", "a/b", ".hidden", "-x", "A=1", "ä", &"x".repeat(65)] {
            assert!(name(wrong).is_err(), "{wrong}");
        }
        assert_eq!(name("torch-2.4_cu121").unwrap(), "torch-2.4_cu121");
    }

    #[test]
    fn only_what_nobody_measured_is_doubted() {
        let borrowed =
            Borrowed { from: "carma".to_owned(), parts: vec![Loads::Plain, Loads::BatchNorm] };
        let named = Named { borrowed: Some(borrowed), ..shipped("carma").unwrap() };
        let doubts = |graph: &str| {
            let mut graph = coloc_estimate::graph::text::parse(graph).unwrap();
            named.doubt(&mut graph);
            graph.flags.len()
        };
        assert_eq!(doubts("input 8\nlinear 4\n"), 1);
        assert_eq!(doubts("input 3x8x8\nconv 4 k3\n"), 0, "with its context, as a whole");
        assert_eq!(doubts("input 3x8x8\nconv 4 k3\nbn\n"), 1);
    }

    #[test]
    fn what_is_written_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("deep/er/mine.toml");
        let constants = Environment {
            base_mib: 700.0,
            convolution_mib: 100.0,
            batch_norm_mib: 0.5,
            spread_mib: 2.0,
        };
        let borrowed = Some(Borrowed { from: "carma".to_owned(), parts: vec![Loads::BatchNorm] });
        write(&file, constants, 3, borrowed.clone()).unwrap();
        let named = read("mine", &file).unwrap();
        assert_eq!((named.constants, named.rows, named.borrowed), (constants, Some(3), borrowed));
    }

    proptest! {
        #[test]
        fn no_file_confuses_it(text in "(base_mib|rows|borrowed)?[a-z_= \"'\\[\\]{}0-9\n.-]{0,60}") {
            let _ = parse(&text);
        }
    }
}
