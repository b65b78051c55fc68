//! Starting a shim.

use super::LocalExecutor;
use super::run::{Order, RunDir};
use crate::record::Record;
use coloc_api::spec::TaskSpec;
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde::Serialize;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::process::{Child, Command, Stdio};

/// What a shim needs of the daemon's environment, to find MPS's control program. The rest is not its business.
const PASSED_ON: [&str; 2] = ["PATH", "LD_LIBRARY_PATH"];

impl LocalExecutor {
    /// Starts the shim of an attempt and watches it. If that fails nothing of the attempt runs, or ever will.
    pub(super) fn start_shim(
        &mut self,
        record: &Record,
        spec: &TaskSpec,
        dir: &RunDir,
        order: &Order,
    ) -> io::Result<()> {
        let mut shim = self.spawn_shim(dir, order).inspect_err(|_| dir.discard())?;
        let watched = pidfd_open(Pid::from_child(&shim), PidfdFlags::empty())
            .map_err(io::Error::from)
            .and_then(|pidfd| self.watch(record, spec, shim.id(), pidfd));
        if let Err(error) = watched {
            give_up(dir, &mut shim);
            return Err(error);
        }
        Ok(())
    }

    fn spawn_shim(&self, dir: &RunDir, order: &Order) -> io::Result<Child> {
        let variables = PASSED_ON.iter().filter_map(|&name| Some((name, std::env::var_os(name)?)));
        let emulated = self.variables.iter().map(|(name, value)| (name.as_str(), value.clone()));
        Command::new(&self.program)
            .arg("shim")
            .arg(dir.path())
            .env_clear()
            .envs(variables.chain(emulated).collect::<Vec<(&str, OsString)>>())
            .stdin(Stdio::from(descriptor_of(order)?))
            .stdout(Stdio::null())
            .current_dir("/")
            .spawn()
    }
}

/// The order in memory that no other process can reach, to be inherited.
pub(super) fn descriptor_of(order: &impl Serialize) -> io::Result<File> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let mut file = File::from(rustix::fs::memfd_create("order", flags)?);
    file.write_all(&serde_json::to_vec(order)?)?;
    file.rewind()?;
    rustix::fs::fcntl_add_seals(&file, SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK)?;
    Ok(file)
}

/// A shim that cannot be watched goes. Its directory is used again only if its program never began.
fn give_up(dir: &RunDir, shim: &mut Child) {
    let never = dir.revoke().unwrap_or(false);
    // It is our child, and has not been waited for.
    let _ = shim.kill();
    let _ = shim.wait();
    if never {
        dir.discard();
    }
}
