//! Which settings of the daemon were chosen, and where: the command line, a variable, or a line of a file.

use super::Config;
use crate::Cli;
use clap::CommandFactory as _;
use clap::parser::ValueSource;
use coloc_api::view::ChosenSetting;
use std::ffi::OsString;

/// The daemon's settings, going by the files and by what was typed after the verb.
pub(crate) fn chosen_settings(config: &Config, typed: &[OsString]) -> Vec<ChosenSetting> {
    let mut all = from_command_line(typed);
    for setting in
        config.settings.iter().filter(|s| ["daemon", "api", "notify"].contains(&s.section))
    {
        if all.iter().all(|said| said.key != setting.key) {
            let origin = format!("{}, line {}", setting.file.display(), setting.line);
            all.push(ChosenSetting {
                key: setting.key.clone(),
                values: setting.values.clone(),
                origin,
            });
        }
    }
    all.sort_by(|a, b| a.key.cmp(&b.key));
    all
}

/// What was typed, and what variables say.
fn from_command_line(typed: &[OsString]) -> Vec<ChosenSetting> {
    let mut program = Cli::command();
    program.build();
    let Some(command) = program.find_subcommand("daemon").cloned() else { return Vec::new() };
    let words = [OsString::from("daemon")].into_iter().chain(typed.iter().cloned());
    // What a flag needs may stand in a file; whether all is well is for others to say.
    let matches = command.clone().ignore_errors(true).try_get_matches_from(words);
    let Ok(matches) = matches else { return Vec::new() };
    let mut all = Vec::new();
    for flag in command.get_arguments() {
        let id = flag.get_id().as_str();
        let Some(key) = flag.get_long().filter(|_| matches.try_contains_id(id).is_ok()) else {
            continue;
        };
        let origin = match matches.value_source(id) {
            Some(ValueSource::CommandLine) => "command line".to_owned(),
            Some(ValueSource::EnvVariable) => {
                let variable = flag.get_env().unwrap_or_default();
                format!("environment, {}", variable.to_string_lossy())
            }
            _ => continue,
        };
        let raw = matches.get_raw(id).into_iter().flatten();
        let values = raw.map(|value| value.to_string_lossy().into_owned()).collect();
        all.push(ChosenSetting { key: key.to_owned(), values, origin });
    }
    all
}
