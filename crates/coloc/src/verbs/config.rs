//! `coloc config`: whether configuration files make sense, and what they say together.

use crate::args::live::SocketArg;
use crate::config::{self, Config, ConfigError, Setting};
use crate::error::CliError;
use crate::output::{Answer, print_text};
use crate::{Cli, Verb};
use clap::{Args, Parser as _, Subcommand};
use coloc_api::answer::ConfigInForce;
use coloc_api::view::ChosenSetting;
use serde::Serialize;
use std::path::PathBuf;

/// Check configuration files, or show what they say together
#[derive(Args, Debug)]
pub(crate) struct ConfigVerb {
    #[command(subcommand)]
    what: What,
    #[command(flatten)]
    socket: SocketArg,
}

#[derive(Subcommand, Debug)]
enum What {
    /// Say whether files make sense; a mistake is told with its line and column
    Check {
        /// The files [default: those that are read]
        files: Vec<PathBuf>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show the settings that count
    Show {
        /// Say where each comes from
        #[arg(long)]
        origin: bool,
        /// Ask the daemon for what is in force there, instead of reading files
        #[arg(long)]
        live: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Have the daemon read its configuration again; a wrong one is refused and the old one stays
    Reload {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// A setting that counts.
#[derive(Serialize)]
struct Shown {
    section: &'static str,
    key: String,
    values: Vec<String>,
    origin: String,
}

impl ConfigVerb {
    pub(crate) fn run(self) -> Result<(), CliError> {
        match self.what {
            What::Check { files, json } => check(files, json),
            What::Show { origin, json, live: false } => {
                let settings = Config::load()?.settings.into_iter().map(shown).collect();
                show(settings, None, origin, json)
            }
            What::Show { origin, json, live: true } => {
                let live = self.socket.connect()?.config()?;
                let ConfigInForce { settings, policy, grace_s, .. } = live;
                let ConfigInForce { keep_logs_s, keep_logs_bytes, .. } = live;
                let force = InForce { policy, grace_s, keep_logs_s, keep_logs_bytes };
                show(in_force(settings), Some(force), origin, json)
            }
            What::Reload { json } => {
                let reloaded = self.socket.connect()?.reload()?;
                if json {
                    let text = serde_json::to_string_pretty(&reloaded);
                    return print_text(&text.map_err(|e| CliError::Refused(e.to_string()))?);
                }
                print_text(&format!("Done: {}", reloaded.told()))
            }
        }
    }
}

/// A file that is all right.
#[derive(Serialize)]
struct Checked {
    file: PathBuf,
    /// None for a file that is not there and need not be.
    settings: Option<usize>,
}

fn check(files: Vec<PathBuf>, json: bool) -> Result<(), CliError> {
    let named = !files.is_empty();
    let files = if named { files } else { config::files() };
    let (mut checked, mut of_daemon) = (Vec::new(), Vec::new());
    for file in files {
        let settings = match config::read(&file) {
            Ok(settings) => {
                check_daemon(&settings)?;
                let count = settings.len();
                of_daemon.push(settings);
                Some(count)
            }
            Err(error) if !named && error.is_missing() => None,
            Err(error) => return Err(error.into()),
        };
        match settings {
            _ if json => {}
            Some(count) => {
                print_text(&format!("{}: {count} settings, all right", file.display()))?;
            }
            None => print_text(&format!("{}: not there, which is all right", file.display()))?,
        }
        checked.push(Checked { file, settings });
    }
    if !named && of_daemon.len() > 1 {
        // Each may be all right, and what they say together is not.
        check_daemon(&Config::load_for_daemon()?.settings)?;
    }
    if !json {
        return Ok(());
    }
    #[derive(Serialize)]
    struct Body {
        files: Vec<Checked>,
    }
    Answer { body: &Body { files: checked }, wall_s: None }.print()
}

/// Whether a daemon would take what files say: users, groups, pools and programs are looked up as a reload does.
fn check_daemon(settings: &[Setting]) -> Result<(), CliError> {
    let theirs = |setting: &&Setting| matches!(setting.section, "daemon" | "api" | "notify");
    let Some(first) = settings.iter().find(theirs) else { return Ok(()) };
    for setting in settings.iter().filter(theirs) {
        config::check_owner(&setting.file)?;
    }
    let words = settings.iter().filter(theirs).flat_map(Setting::words);
    let words = ["coloc".into(), "daemon".into()].into_iter().chain(words);
    let wrong = match Cli::try_parse_from(words).map(|cli| cli.verb) {
        Ok(Some(Verb::Daemon(daemon))) => match daemon.check() {
            Ok(()) => return Ok(()),
            Err(error) => error.to_string(),
        },
        Ok(_) => return Ok(()),
        Err(error) => {
            let said = error.to_string();
            said.split("\n\n").next().unwrap_or(&said).trim_start_matches("error: ").to_owned()
        }
    };
    // The first key that the problem names is where to look.
    let is_named = |setting: &&&Setting| wrong.contains(&format!("--{}", setting.key));
    let named = settings.iter().filter(theirs).find(|setting| is_named(&setting));
    let (file, line) = named.map_or((&first.file, 1), |setting| (&setting.file, setting.line));
    Err(ConfigError::Wrong { file: file.clone(), line, column: 1, problem: wrong }.into())
}

/// What a daemon says of itself.
fn in_force(chosen: Vec<ChosenSetting>) -> Vec<Shown> {
    let shown =
        |ChosenSetting { key, values, origin }| Shown { section: "daemon", key, values, origin };
    chosen.into_iter().map(shown).collect()
}

/// What a daemon does, however it was chosen.
#[derive(Serialize)]
struct InForce {
    policy: serde_json::Value,
    grace_s: f64,
    keep_logs_s: Option<f64>,
    keep_logs_bytes: Option<u64>,
}

impl InForce {
    /// A line for each part, as comments: they are no keys of a file.
    fn lines(&self) -> Vec<String> {
        let parts = self.policy.as_object().into_iter().flatten();
        let word = |value: &serde_json::Value| match value {
            serde_json::Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let parts = parts.map(|(name, value)| format!("#   {name}: {}", word(value)));
        let grace = format!("#   grace_s: {}", self.grace_s);
        let age = self.keep_logs_s.map_or("for ever".to_owned(), |seconds| seconds.to_string());
        let size = self.keep_logs_bytes.map(|bytes| format!("#   keep_logs_bytes: {bytes}"));
        ["# In force, spans in milliseconds:".to_owned()]
            .into_iter()
            .chain(parts)
            .chain([grace, format!("#   keep_logs_s: {age}")])
            .chain(size)
            .collect()
    }
}

fn show(
    mut settings: Vec<Shown>,
    in_force: Option<InForce>,
    origin: bool,
    json: bool,
) -> Result<(), CliError> {
    settings.sort_by(|a, b| (a.section, &a.key).cmp(&(b.section, &b.key)));
    if json {
        #[derive(Serialize)]
        struct Body {
            settings: Vec<Shown>,
            #[serde(flatten)]
            in_force: Option<InForce>,
        }
        return Answer { body: &Body { settings, in_force }, wall_s: None }.print();
    }
    let mut lines = Vec::new();
    if settings.is_empty() {
        lines.push(
            "# Nothing is set: everything has the default that `coloc help` tells".to_owned(),
        );
    }
    let mut section = "";
    for setting in settings {
        if setting.section != section {
            section = setting.section;
            lines.push(format!("[{section}]"));
        }
        let value = match setting.values.as_slice() {
            [] => "false".to_owned(),
            [value] => format!("{value:?}"),
            many => format!("{many:?}"),
        };
        let from = if origin { format!("  # {}", setting.origin) } else { String::new() };
        lines.push(format!("{} = {value}{from}", setting.key));
    }
    lines.extend(in_force.iter().flat_map(InForce::lines));
    print_text(&lines.join("\n"))
}

/// A variable wins over a file.
fn shown(setting: Setting) -> Shown {
    let Setting { section, key, values, variable, file, line, .. } = setting;
    let set = variable.and_then(|name| Some((std::env::var_os(&name)?, name)));
    match set {
        Some((value, name)) => Shown {
            section,
            key,
            values: vec![value.to_string_lossy().into_owned()],
            origin: format!("environment, {}", name.to_string_lossy()),
        },
        None => Shown { section, key, values, origin: format!("{}, line {line}", file.display()) },
    }
}
