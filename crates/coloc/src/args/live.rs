//! Where the daemon is, and which tasks are meant.

use crate::error::CliError;
use clap::Args;
use coloc_daemon::client::Client;
use std::path::PathBuf;

/// Where a system's daemon listens.
const SYSTEM_SOCKET: &str = "/run/coloc/coloc.sock";
/// Where a system's daemon keeps its state.
const SYSTEM_STATE: &str = "/var/lib/coloc";

/// The daemon to talk to.
#[derive(Args, Clone, Default, Debug)]
pub(crate) struct SocketArg {
    /// The daemon's socket [default: the user's own, else the system's]
    #[arg(long, value_name = "PATH", env = "COLOC_SOCKET", global = true)]
    pub(crate) socket: Option<PathBuf>,
}

impl SocketArg {
    pub(crate) fn connect(&self) -> Result<Client, CliError> {
        let socket = self.socket.clone().unwrap_or_else(|| {
            let (own, system) = (own_socket(), PathBuf::from(SYSTEM_SOCKET));
            if !own.exists() && system.exists() { system } else { own }
        });
        Ok(Client::connect(&socket)?)
    }
}

/// Where a daemon listens that this user starts.
pub(crate) fn own_socket() -> PathBuf {
    if is_root() {
        return PathBuf::from(SYSTEM_SOCKET);
    }
    match std::env::var_os("XDG_RUNTIME_DIR") {
        Some(runtime) => PathBuf::from(runtime).join("coloc.sock"),
        None => own_state().join("coloc.sock"),
    }
}

/// Where a daemon keeps its state that this user starts.
pub(crate) fn own_state() -> PathBuf {
    if is_root() {
        return PathBuf::from(SYSTEM_STATE);
    }
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/state"));
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).or_else(home);
    state.unwrap_or_else(std::env::temp_dir).join("coloc")
}

fn is_root() -> bool {
    coloc_daemon::users::is_root()
}

/// Tasks: `7`, `3-9`, `1,4-6`, `12_3` of an array, `last`, `all`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Selection {
    /// These.
    Ids(Vec<u32>),
    /// One of an array: 12_3.
    Element {
        /// The array's id.
        array: u32,
        /// Its number there.
        index: u32,
    },
    /// The newest.
    Last,
    /// Every one that has not ended.
    All,
}

/// The longest range of ids.
const LONGEST: u32 = 1_000_000;

impl std::str::FromStr for Selection {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "last" | "@" => return Ok(Selection::Last),
            "all" => return Ok(Selection::All),
            _ => {}
        }
        let fail = || format!("{text:?} is no task: expected 7, 3-9, 1,4-6, last or all");
        let number = |text: &str| text.trim().parse::<u32>().map_err(|_| fail());
        if let Some((array, index)) = text.split_once('_') {
            return Ok(Selection::Element { array: number(array)?, index: number(index)? });
        }
        let mut ids = Vec::new();
        for part in text.split(',') {
            match part.split_once('-') {
                None => ids.push(number(part)?),
                Some((first, last)) => {
                    let (first, last) = (number(first)?, number(last)?);
                    if last < first || last - first > LONGEST {
                        return Err(fail());
                    }
                    ids.extend(first..=last);
                }
            }
        }
        Ok(Selection::Ids(ids))
    }
}

/// The ids that are meant.
pub(crate) fn resolve(client: &mut Client, selections: &[Selection]) -> Result<Vec<u32>, CliError> {
    let mut ids = Vec::new();
    for selection in selections {
        match selection {
            Selection::Ids(these) => ids.extend(these),
            Selection::Element { array, index } => {
                let tasks = client.list(true, 0.0)?.tasks;
                let place = (Some(*array), Some(*index));
                let found = tasks.iter().find(|task| (task.array_id, task.array_index) == place);
                let missing = || CliError::Usage(format!("there is no task {array}_{index}"));
                ids.push(found.ok_or_else(missing)?.id);
            }
            Selection::Last => {
                let newest = client.list(true, 0.0)?.tasks.iter().map(|task| task.id).max();
                ids.push(newest.ok_or_else(|| CliError::Usage("there is no task yet".into()))?);
            }
            Selection::All => ids.extend(client.list(false, 0.0)?.tasks.iter().map(|t| t.id)),
        }
    }
    Ok(ids)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_lists_and_ranges() {
        let ids = |text: &str| text.parse::<Selection>();
        assert_eq!(ids("7"), Ok(Selection::Ids(vec![7])));
        assert_eq!(ids("1,4-6"), Ok(Selection::Ids(vec![1, 4, 5, 6])));
        assert_eq!(ids("last"), Ok(Selection::Last));
        assert_eq!(ids("12_3"), Ok(Selection::Element { array: 12, index: 3 }));
        for wrong in
            ["_", "1_", "1_2_3", "", "x", "5-2", "1-", "-3", "1-4000000000", "1,,2", "99999999999"]
        {
            assert!(ids(wrong).is_err(), "{wrong}");
        }
    }
}
