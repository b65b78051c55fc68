//! `coloc config`: whether configuration files make sense, and what they say together.

use crate::config::{self, Config, Setting};
use crate::error::CliError;
use crate::output::{Answer, print_text};
use clap::{Args, Subcommand};
use serde::Serialize;
use std::path::PathBuf;

/// Check configuration files, or show what they say together
#[derive(Args, Debug)]
pub(crate) struct ConfigVerb {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Debug)]
enum What {
    /// Say whether files make sense; a mistake is told with its line and column
    Check {
        /// The files [default: those that are read]
        files: Vec<PathBuf>,
    },
    /// Show the settings that count
    Show {
        /// Say where each comes from
        #[arg(long)]
        origin: bool,
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
            What::Check { files } => check(files),
            What::Show { origin, json } => show(origin, json),
        }
    }
}

fn check(files: Vec<PathBuf>) -> Result<(), CliError> {
    let named = !files.is_empty();
    let files = if named { files } else { config::files() };
    for file in files {
        match config::read(&file) {
            Ok(settings) => {
                print_text(&format!("{}: {} settings, all right", file.display(), settings.len()))?;
            }
            Err(error) if !named && error.is_missing() => {
                print_text(&format!("{}: not there, which is all right", file.display()))?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn show(origin: bool, json: bool) -> Result<(), CliError> {
    let mut settings: Vec<Shown> = Config::load()?.settings.into_iter().map(shown).collect();
    settings.sort_by(|a, b| (a.section, &a.key).cmp(&(b.section, &b.key)));
    if json {
        #[derive(Serialize)]
        struct Body {
            settings: Vec<Shown>,
        }
        return Answer { body: &Body { settings }, wall_s: None }.print();
    }
    if settings.is_empty() {
        return print_text("# No file says anything: everything is as `coloc help` tells");
    }
    let mut lines = Vec::new();
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
