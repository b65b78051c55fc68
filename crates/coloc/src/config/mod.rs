//! Configuration files: what a verb's flags are when they are not typed.
//!
//! A section is a verb and a key is one of its flags, so whatever can be typed can be written down, by the same name, and
//! is checked by the same rules. A flag wins over the environment, the environment over the user's file, and that over
//! the system's.

mod chosen;
pub(crate) mod environments;
mod file;
mod pools;

pub(crate) use chosen::chosen_settings;
pub(crate) use file::{ConfigError, Setting, is_key, read};

use crate::args::live::directory_in;
use coloc_daemon::administration::trusted_path::changeable_part;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The system's file.
pub(crate) const SYSTEM_FILE: &str = "/etc/coloc/coloc.toml";
/// Names a file that is read instead of all others.
pub(crate) const VARIABLE: &str = "COLOC_CONFIG";

/// Sections, and the verbs that listen to each.
const SECTIONS: [(&str, &[&str]); 5] = [
    ("daemon", &["daemon"]),
    ("notify", &["daemon"]),
    ("api", &["daemon"]),
    ("submit", &["submit", "run", "shell", "sweep"]),
    (
        "client",
        &[
            "submit", "run", "shell", "attach", "exec", "sweep", "queue", "history", "report",
            "show", "why", "logs", "wait", "cancel", "hold", "release", "requeue", "update",
            "drain", "resume", "reserve", "return", "replay", "token", "gpus", "slurm",
        ],
    ),
];

/// Whether files have anything to say to a verb. A wrong file must not keep the others from their work.
pub(crate) fn listens(verb: &str) -> bool {
    SECTIONS.iter().any(|(_, verbs)| verbs.contains(&verb))
}

/// The files that count, the weakest first.
pub(crate) fn files() -> Vec<PathBuf> {
    if let Some(file) = std::env::var_os(VARIABLE).filter(|file| !file.is_empty()) {
        return vec![PathBuf::from(file)];
    }
    [Some(PathBuf::from(SYSTEM_FILE)), user_file()].into_iter().flatten().collect()
}

/// The user's file.
pub(crate) fn user_file() -> Option<PathBuf> {
    let home = || Some(directory_in("HOME")?.join(".config"));
    let base = directory_in("XDG_CONFIG_HOME").or_else(home)?;
    Some(base.join("coloc/config.toml"))
}

/// Whether no user but root and this one can change what a file says.
pub(crate) fn check_owner(file: &Path) -> Result<(), ConfigError> {
    let fail = |source| ConfigError::Read { file: file.to_owned(), source };
    let whole = std::path::absolute(file).map_err(fail)?;
    match changeable_part(&whole).map_err(fail)? {
        Some(part) => Err(ConfigError::Unsafe { file: file.to_owned(), part }),
        None => Ok(()),
    }
}

/// Whether a daemon of this user's obeys a file: the system's is for the system's daemon, which is root's.
fn is_for_daemon(file: &Path) -> bool {
    crate::args::live::is_root() || file != Path::new(SYSTEM_FILE)
}

fn is_of_daemon(setting: &Setting) -> bool {
    matches!(setting.section, "daemon" | "api" | "notify")
}

/// What the files say together.
#[derive(Default, Debug)]
pub(crate) struct Config {
    /// In the order of sections and keys; what a stronger file says is all there is.
    pub(crate) settings: Vec<Setting>,
}

impl Config {
    /// Reads the files that are there.
    pub(crate) fn load() -> Result<Self, ConfigError> {
        Config::load_with(read, |_| true)
    }

    /// Reads the files that are there for a daemon: no user but root and its own may have written them.
    pub(crate) fn load_for_daemon() -> Result<Self, ConfigError> {
        let config = Config::load_with(read, is_for_daemon)?;
        let theirs = |setting: &&Setting| is_of_daemon(setting);
        for file in config.settings.iter().filter(theirs).map(|setting| &setting.file) {
            check_owner(file)?;
        }
        Ok(config)
    }

    /// Reads what they say to a verb.
    pub(crate) fn load_for(verb: &str) -> Result<Self, ConfigError> {
        let counts = |file: &Path| verb != "daemon" || is_for_daemon(file);
        Config::load_with(|file| file::read_for(verb, file), counts)
    }

    fn load_with(
        read: impl Fn(&Path) -> Result<Vec<Setting>, ConfigError>,
        counts: impl Fn(&Path) -> bool,
    ) -> Result<Self, ConfigError> {
        let mut config = Config::default();
        for file in files().into_iter().filter(|file| counts(file)) {
            let optional = std::env::var_os(VARIABLE).is_none_or(|file| file.is_empty());
            match read(&file) {
                Ok(settings) => {
                    let meant = |s: &Setting| !is_of_daemon(s) || is_for_daemon(&file);
                    settings.into_iter().filter(meant).for_each(|setting| config.set(setting));
                }
                Err(error) if optional && error.is_missing() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(config)
    }

    fn set(&mut self, setting: Setting) {
        let same = |known: &Setting| (known.section, &known.key) == (setting.section, &setting.key);
        self.settings.retain(|known| !same(known));
        self.settings.push(setting);
    }

    /// The flags that a verb gets before the typed ones.
    pub(crate) fn words(&self, verb: &str) -> Vec<OsString> {
        let listens = |section: &str| {
            SECTIONS.iter().any(|(name, verbs)| *name == section && verbs.contains(&verb))
        };
        let counts = |setting: &&Setting| {
            let by_environment = setting.variable.as_ref();
            let set = by_environment.and_then(std::env::var_os);
            listens(setting.section) && set.is_none_or(|value| value.is_empty())
        };
        self.settings.iter().filter(counts).flat_map(Setting::words).collect()
    }
}
