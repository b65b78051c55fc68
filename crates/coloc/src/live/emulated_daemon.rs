//! A daemon on emulated GPUs, in a directory of its own, that leaves nothing behind.

use crate::error::CliError;
use coloc_api::client::Client;
use coloc_api::request::Change;
use coloc_api::view::GpuView;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A daemon that does not answer by then never will.
const TIMEOUT: Duration = Duration::from_secs(20);

/// The name of its socket.
const SOCKET: &str = "socket";

/// A daemon that was started for a while.
pub(crate) struct EmulatedDaemon {
    pub(crate) name: &'static str,
    pub(crate) client: Client,
    daemon: Child,
    home: PathBuf,
}

impl EmulatedDaemon {
    /// Where it listens.
    pub(crate) fn socket(&self) -> PathBuf {
        self.home.join(SOCKET)
    }

    /// Starts a daemon below `place` and waits until it answers.
    pub(crate) fn open(
        place: &Path,
        name: &'static str,
        fleet: &str,
        time_scale: f64,
        policy: &[&str],
    ) -> Result<Self, CliError> {
        let home = place.join(name);
        let failed = |source| CliError::Write { file: home.clone(), source };
        std::fs::create_dir_all(&home).map_err(failed)?;
        let log = std::fs::File::create(home.join("daemon.log")).map_err(failed)?;
        let socket = home.join(SOCKET);
        let mut daemon = Command::new(std::env::current_exe().map_err(failed)?)
            .args(["daemon", "--emulate", fleet, "--grace", "1"])
            .args(["--time-scale", &time_scale.to_string()])
            .arg("--state")
            .arg(home.join("state"))
            .arg("--socket")
            .arg(&socket)
            .args(policy)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            // An interrupt from the keyboard is ours to deal with.
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        let began = Instant::now();
        loop {
            match Client::connect(&socket) {
                Ok(client) => return Ok(EmulatedDaemon { name, client, daemon, home }),
                Err(error) if began.elapsed() > TIMEOUT => return Err(error.into()),
                Err(_) => {}
            }
            if let Ok(Some(_)) = daemon.try_wait() {
                let said = std::fs::read_to_string(home.join("daemon.log")).unwrap_or_default();
                return Err(CliError::Refused(format!("a daemon did not start: {}", said.trim())));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub(crate) fn gpus(&mut self) -> Result<Vec<GpuView>, CliError> {
        Ok(self.client.gpus()?.gpus)
    }

    /// The joules that the emulated GPUs have used so far.
    pub(crate) fn energy(&self) -> Option<f64> {
        let fleet = self.home.join("state").join("emulated");
        let answer = Command::new(std::env::current_exe().ok()?)
            .args(["gpus", "--json"])
            .env("COLOC_EMU_DIR", &fleet)
            .env("LD_LIBRARY_PATH", fleet.join("lib"))
            .stderr(Stdio::null())
            .output();
        let answer: serde_json::Value = serde_json::from_slice(&answer.ok()?.stdout).ok()?;
        let gpus = answer.get("gpus")?.as_array()?;
        Some(gpus.iter().filter_map(|gpu| gpu.get("energy_j")?.as_f64()).sum())
    }

    /// Makes all tasks go away and stops the daemon.
    pub(crate) fn close(mut self) -> io::Result<()> {
        let began = Instant::now();
        while let Ok(listed) = self.client.list(false, 0.0)
            && !listed.tasks.is_empty()
            && began.elapsed() < TIMEOUT
        {
            let ids: Vec<u32> = listed.tasks.iter().map(|task| task.id).collect();
            let _ = self.client.change(&ids, Change::Cancel);
            std::thread::sleep(Duration::from_millis(50));
        }
        crate::signals::ask_to_end(self.daemon.id());
        self.daemon.wait().map(|_| ())
    }
}
