//! `coloc man`: manual pages.

use crate::Cli;
use crate::error::{CliError, UsageError};
use crate::output::{files, print_text};
use clap::{Args, Command, CommandFactory as _};
use std::path::PathBuf;

/// Print a manual page, or write all of them: coloc man submit | man -l -
#[derive(Args, Debug)]
pub(crate) struct Man {
    /// The verb [default: the page of coloc itself]
    verb: Option<String>,
    /// Write every page to this directory
    #[arg(short = 'o', long, value_name = "DIR", conflicts_with = "verb")]
    output: Option<PathBuf>,
}

impl Man {
    pub(crate) fn run(self) -> Result<(), CliError> {
        let mut program = crate::help::arranged(Cli::command());
        program.build();
        let Some(directory) = self.output else {
            let command = match &self.verb {
                None => &program,
                Some(verb) => program.find_subcommand(verb).ok_or_else(|| UsageError::Unknown {
                    what: "verb",
                    name: verb.clone(),
                    instead: "`coloc help` lists them".to_owned(),
                })?,
            };
            return print_text(String::from_utf8_lossy(&page(command)?).trim_end());
        };
        let fail = |source| CliError::Write { file: directory.clone(), source };
        std::fs::create_dir_all(&directory).map_err(fail)?;
        let verbs = program.get_subcommands().filter(|verb| !verb.is_hide_set());
        for command in std::iter::once(&program).chain(verbs) {
            let file = directory.join(format!("{}.1", name(command)));
            let page = page(command)?;
            files::write(&file, |output| output.write_all(&page))?;
        }
        Ok(())
    }
}

/// `coloc-submit`.
fn name(command: &Command) -> String {
    command.get_bin_name().unwrap_or(command.get_name()).replace(' ', "-")
}

fn page(command: &Command) -> Result<Vec<u8>, CliError> {
    let mut page = Vec::new();
    let command = command.clone().display_name(name(command));
    clap_mangen::Man::new(command)
        .render(&mut page)
        .map_err(|source| CliError::Write { file: PathBuf::from("manual page"), source })?;
    Ok(page)
}
