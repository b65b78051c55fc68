//! Where the daemon is, and which tasks are meant.

use crate::error::{CliError, UsageError};
use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser};
use coloc_api::client::{Address, Client, ClientError, Host, Secret, Wanted, Whose};
use coloc_api::fingerprint::Fingerprint;
use coloc_api::tls::Trust;
use std::io;
use std::ops::RangeInclusive;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Where a system's daemon listens.
pub(crate) const SYSTEM_SOCKET: &str = "/run/coloc/coloc.sock";
/// Where a system's daemon keeps its state.
const SYSTEM_STATE: &str = "/var/lib/coloc";

/// The daemon to talk to.
#[derive(Args, Clone, Default, Debug)]
#[command(next_help_heading = "Connection")]
pub(crate) struct SocketArg {
    /// The daemon's socket [default: the user's own, else the system's]
    #[arg(long, value_name = "PATH", env = "COLOC_SOCKET", global = true, value_parser = path())]
    pub(crate) socket: Option<PathBuf>,
    /// A daemon elsewhere, such as gpu1:7450; wins over a socket
    #[arg(long, value_name = "HOST:PORT", env = "COLOC_HOST", global = true)]
    host: Option<Maybe<Host>>,
    /// What the certificate of the daemon elsewhere is known by
    #[arg(long, value_name = "SHA256", env = "COLOC_FINGERPRINT", global = true)]
    fingerprint: Option<Maybe<Fingerprint>>,
    /// Certificates, in PEM, of those who may vouch for the daemon elsewhere
    #[arg(long, value_name = "FILE", env = "COLOC_CA", global = true, value_parser = path())]
    pub(crate) ca: Option<PathBuf>,
    /// A file with the token for the daemon elsewhere, unless COLOC_TOKEN has it [default: coloc/token in the user's configuration]
    #[arg(long, value_name = "FILE", env = "COLOC_TOKEN_FILE", global = true, value_parser = path())]
    pub(crate) token_file: Option<PathBuf>,
}

/// The flags of [`SocketArg`].
pub(crate) const FLAGS: [&str; 5] = ["socket", "host", "fingerprint", "ca", "token-file"];

impl SocketArg {
    pub(crate) fn connect(&self) -> Result<Client, CliError> {
        if let Some(host) = self.host().cloned() {
            let fingerprint = self.fingerprint.as_ref().and_then(Maybe::get);
            let trust = match (fingerprint, said(self.ca.as_ref())) {
                (Some(fingerprint), _) => Trust::Pinned(*fingerprint),
                (None, Some(file)) => Trust::Authorities(file.clone()),
                (None, None) => Trust::None,
            };
            let token = token(said(self.token_file.as_ref()).map(PathBuf::as_path))?;
            return Ok(Client::reach(Address::Remote { host, token, trust })?);
        }
        if let Some(socket) = said(self.socket.as_ref()) {
            return Ok(Client::connect(socket)?);
        }
        let (own, system) = (own_socket(), PathBuf::from(SYSTEM_SOCKET));
        match Client::connect(&own) {
            // The system's daemon is there for users who have none of their own, or whose own has ended.
            Err(ClientError::Unreachable { socket, source, .. }) if own != system => {
                let unreachable =
                    ClientError::Unreachable { socket, source, also: Some(system.clone()) };
                Client::connect(&system).map_err(|_| unreachable.into())
            }
            connected => Ok(connected?),
        }
    }
}

impl SocketArg {
    /// The host of a daemon elsewhere.
    pub(crate) fn host(&self) -> Option<&Host> {
        self.host.as_ref().and_then(Maybe::get)
    }
}

/// Something, or nothing: a variable that is set to nothing is as one that is not set.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Maybe<T>(Option<T>);

impl<T> Maybe<T> {
    pub(crate) fn get(&self) -> Option<&T> {
        self.0.as_ref()
    }
}

impl<T: std::str::FromStr> std::str::FromStr for Maybe<T> {
    type Err = T::Err;

    fn from_str(text: &str) -> Result<Self, T::Err> {
        if text.trim().is_empty() {
            Ok(Maybe(None))
        } else {
            text.parse().map(|it| Maybe(Some(it)))
        }
    }
}

/// Reads a path. A variable that is set to nothing is there all the same, and must not be an error.
pub(crate) fn path() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(PathBuf::from)
}

/// A path, unless it is nothing.
pub(crate) fn said(path: Option<&PathBuf>) -> Option<&PathBuf> {
    path.filter(|path| !path.as_os_str().is_empty())
}

/// The token: a variable has it, or a file that no other user can read.
fn token(named: Option<&Path>) -> Result<Option<Secret>, CliError> {
    if let Some(token) = std::env::var("COLOC_TOKEN").ok().filter(|token| !token.is_empty()) {
        return Ok(Some(Secret(token)));
    }
    let usual = || Some(crate::config::user_file()?.with_file_name("token"));
    let Some(file) = named.map(Path::to_owned).or_else(usual) else { return Ok(None) };
    let wrong = |problem: String| UsageError::file(&file, problem);
    let metadata = match std::fs::metadata(&file) {
        Err(error) if named.is_none() && error.kind() == io::ErrorKind::NotFound => {
            return Ok(None);
        }
        other => other.map_err(|error| wrong(error.to_string()))?,
    };
    let mode = metadata.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        let problem = format!("others can read this token (mode {mode:o}): chmod 600 it");
        return Err(wrong(problem).into());
    }
    let text = std::fs::read_to_string(&file).map_err(|error| wrong(error.to_string()))?;
    // What earlier versions said below it is not a part of it.
    let token = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    if token.is_empty() {
        return Err(wrong("it is empty: `coloc token create > FILE` writes one".to_owned()).into());
    }
    Ok(Some(Secret(token.to_owned())))
}

/// Two daemons on one machine's GPUs promise the same memory twice; and a user who tries one out on emulated GPUs should know
/// where submissions go from now on.
pub(crate) fn warn_of_system_daemon(emulated: bool) {
    let system = Path::new(SYSTEM_SOCKET);
    if own_socket() == system || std::os::unix::net::UnixStream::connect(system).is_err() {
        return;
    }
    let why = match emulated {
        true => "tasks of this one run on emulated GPUs",
        false => "neither knows of the other's tasks, and both may promise the same memory",
    };
    eprintln!(
        "coloc: a system daemon answers at {SYSTEM_SOCKET}: {why}; `coloc submit --socket {SYSTEM_SOCKET}` uses that one"
    );
}

/// Where a daemon listens that this user starts.
pub(crate) fn own_socket() -> PathBuf {
    if is_root() {
        return PathBuf::from(SYSTEM_SOCKET);
    }
    directory_in("XDG_RUNTIME_DIR").unwrap_or_else(own_state).join("coloc.sock")
}

/// Where a daemon keeps its state that this user starts.
pub(crate) fn own_state() -> PathBuf {
    if is_root() {
        return PathBuf::from(SYSTEM_STATE);
    }
    let home = || Some(directory_in("HOME")?.join(".local/state"));
    let state = directory_in("XDG_STATE_HOME").or_else(home);
    state.unwrap_or_else(std::env::temp_dir).join("coloc")
}

/// The directory that a variable names. What is empty or not absolute is as if it were not there: so the XDG
/// specification has it.
pub(crate) fn directory_in(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// Whether this process may do everything.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Tasks: `7`, `3-9`, `1,4-6`, `12_3` of an array, `last`, `all`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Selection {
    /// These: `7` is a range of one.
    Ids(Vec<RangeInclusive<u32>>),
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

impl Selection {
    /// Whether it names this task, rather than all or a range with it: then it is expected to be there.
    pub(crate) fn names(&self, id: u32) -> bool {
        match self {
            Selection::Ids(these) => these.contains(&(id..=id)),
            Selection::Element { .. } | Selection::Last => true,
            Selection::All => false,
        }
    }

    /// Whether it is for one task, not for any number.
    pub(crate) fn is_one(&self) -> bool {
        match self {
            Selection::Ids(these) => matches!(&these[..], [one] if one.start() == one.end()),
            Selection::Element { .. } | Selection::Last => true,
            Selection::All => false,
        }
    }
}

/// Ids as people write them: `3, 7-9`.
pub(crate) fn in_ranges(ids: &[u32]) -> String {
    let mut ids = ids.to_vec();
    ids.sort_unstable();
    ids.dedup();
    let runs = ids.chunk_by(|a, b| b - a == 1);
    let run = |run: &[u32]| match run {
        [] => String::new(),
        [one] => one.to_string(),
        [first, .., last] => format!("{first}-{last}"),
    };
    runs.map(run).collect::<Vec<_>>().join(", ")
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
                None => {
                    let id = number(part)?;
                    ids.push(id..=id);
                }
                Some((first, last)) => {
                    let (first, last) = (number(first)?, number(last)?);
                    if last < first || last - first > LONGEST {
                        return Err(fail());
                    }
                    ids.push(first..=last);
                }
            }
        }
        Ok(Selection::Ids(ids))
    }
}

/// The ids that are meant; `last` and `all` are among the caller's own.
pub(crate) fn resolve(client: &mut Client, selections: &[Selection]) -> Result<Vec<u32>, CliError> {
    resolve_of(client, selections, Whose::Mine)
}

/// The one task that is meant.
pub(crate) fn resolve_one(client: &mut Client, selection: &Selection) -> Result<u32, CliError> {
    match resolve(client, std::slice::from_ref(selection))?.as_slice() {
        [id] => Ok(*id),
        ids => Err(UsageError::OneTask(ids.len()).into()),
    }
}

/// The ids that are meant; `last` and `all` are among the tasks of these users.
pub(crate) fn resolve_of(
    client: &mut Client,
    selections: &[Selection],
    whose: Whose<'_>,
) -> Result<Vec<u32>, CliError> {
    let list = |client: &mut Client, all| client.list_of(&Wanted { all, since_s: 0.0, whose });
    let mut ids = Vec::new();
    for selection in selections {
        match selection {
            Selection::Ids(these) => ids.extend(these.iter().cloned().flatten()),
            Selection::Element { array, index } => {
                let tasks = client.list(true, 0.0)?.tasks;
                let place = (Some(*array), Some(*index));
                let found = tasks.iter().find(|task| (task.array_id, task.array_index) == place);
                let missing = || UsageError::NoTask(format!("{array}_{index}"));
                ids.push(found.ok_or_else(missing)?.id);
            }
            Selection::Last => {
                let newest = list(client, true)?.iter().map(|task| task.id).max();
                let none = || UsageError::NoTaskYet;
                ids.push(newest.ok_or_else(none)?);
            }
            Selection::All => ids.extend(list(client, false)?.iter().map(|task| task.id)),
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
        assert_eq!(ids("7"), Ok(Selection::Ids(vec![7..=7])));
        assert_eq!(ids("1,4-6"), Ok(Selection::Ids(vec![1..=1, 4..=6])));
        assert_eq!(ids("last"), Ok(Selection::Last));
        assert_eq!(ids("12_3"), Ok(Selection::Element { array: 12, index: 3 }));
        for wrong in
            ["_", "1_", "1_2_3", "", "x", "5-2", "1-", "-3", "1-4000000000", "1,,2", "99999999999"]
        {
            assert!(ids(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_range_names_nobody() {
        let wish = |text: &str| text.parse::<Selection>().unwrap();
        assert!(wish("1,4-6").names(1) && !wish("1,4-6").names(5) && !wish("all").names(5));
        assert!(wish("7").is_one() && wish("last").is_one() && wish("12_3").is_one());
        assert!(!wish("1-2").is_one() && !wish("1,2").is_one() && !wish("all").is_one());
    }

    #[test]
    fn ids_are_told_in_ranges() {
        assert_eq!(in_ranges(&[9, 3, 7, 8, 8]), "3, 7-9");
        assert_eq!(in_ranges(&[0, 1, u32::MAX]), "0-1, 4294967295");
        assert_eq!(in_ranges(&[]), "");
    }
}
