//! Clients that the daemon passes on to a running task's shim.

use super::{OwnDir, RunDir};
use coloc_api::request::ExecRequest;
use coloc_api::spec::TerminalSize;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::PathBuf;

/// The socket of an attempt.
const VISITS: &str = "visits";

/// What a client comes for. The daemon has looked whether it may.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Visit {
    /// To see the terminal, and to type.
    Attach(Attaching),
    /// To have a command run beside the program.
    Exec(ExecRequest),
    /// To send the program's input.
    Input,
}

/// How a client is at a terminal.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Attaching {
    /// It only looks.
    pub(crate) read_only: bool,
    /// The size of its window.
    pub(crate) size: Option<TerminalSize>,
    /// It has seen what was printed before this byte.
    pub(crate) from: Option<u64>,
}

/// Where the socket of an attempt is, by a name that is short however long that of the state directory is.
#[derive(Debug)]
pub(crate) struct VisitsPlace {
    path: PathBuf,
    /// The name is good as long as this is open.
    _dir: OwnDir,
}

impl VisitsPlace {
    pub(crate) fn path(&self) -> &std::path::Path {
        &self.path
    }
}

impl RunDir {
    /// Where its socket is, in the directory that must be the daemon's.
    pub(crate) fn visits(&self) -> io::Result<VisitsPlace> {
        let dir = self.open()?;
        Ok(VisitsPlace { path: dir.path_of(VISITS), _dir: dir })
    }
}
