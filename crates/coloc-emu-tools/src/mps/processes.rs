//! The control daemon and its server as processes.

use crate::tool::{Answer, ToolError};
use coloc_emu::client::pipe_directory;
use coloc_emu::fleet::State;
use coloc_emu::{Emulator, Identity, wait_for_change};
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

const SERVER: &str = "nvidia-cuda-mps-server";
const PID_FILE: &str = "nvidia-cuda-mps-control.pid";
/// How often a process looks around when nothing wakes it.
const ROUND: Duration = Duration::from_secs(1);

/// No command waits longer, whatever number is typed.
const LONGEST: Duration = Duration::from_secs(7 * 86_400);

/// Waits until the state is as wanted; false when the time is over.
pub(super) fn wait_for(
    emulator: &Emulator,
    timeout: Duration,
    wish: impl Fn(&State) -> bool,
) -> Result<bool, ToolError> {
    let end = Instant::now() + timeout.min(LONGEST);
    loop {
        let seen = emulator.changes().load(Ordering::Acquire);
        if wish(&*emulator.lock()?) {
            return Ok(true);
        }
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(false);
        }
        wait_for_change(emulator.changes(), seen, left.min(Duration::from_millis(50)));
    }
}

/// This binary under another name, cut off from our terminal and pipes.
fn myself(name: &str) -> Result<Command, ToolError> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg0(name).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // Out of our process group: what interrupts us does not interrupt it.
    command.process_group(0);
    Ok(command)
}

fn already_running() -> ToolError {
    ToolError::new(1, "An instance of this daemon is already running")
}

/// `-d`: returns when the daemon answers.
pub(super) fn start_in_background() -> Answer {
    let emulator = Emulator::from_environment()?;
    prepare_folders()?;
    let pipe = pipe_directory();
    if emulator.lock()?.daemon(&pipe).is_some() {
        return Err(already_running());
    }
    let mut child = myself("nvidia-cuda-mps-control")?.arg("-f").spawn()?;
    let pid_file = Path::new(&pipe).join(PID_FILE);
    let ready = |state: &State| state.daemon(&pipe).is_some() && pid_file.exists();
    let up = wait_for(&emulator, Duration::from_secs(10), ready)?;
    match child.try_wait()? {
        None if up => Ok(()),
        _ => Err(ToolError::new(1, "The MPS control daemon did not start")),
    }
}

/// The pipe and log directories exist, as far as we may make them.
fn prepare_folders() -> Answer {
    fs::create_dir_all(pipe_directory())?;
    if let Some(log) = std::env::var_os("CUDA_MPS_LOG_DIRECTORY") {
        fs::create_dir_all(log)?;
    }
    Ok(())
}

fn write_log(file: &str, text: &str) {
    // A log that cannot be written is no reason to fail.
    let Some(folder) = std::env::var_os("CUDA_MPS_LOG_DIRECTORY") else { return };
    let path = Path::new(&folder).join(file);
    let Ok(mut log) = fs::OpenOptions::new().create(true).append(true).open(path) else { return };
    let _ = std::io::Write::write_all(&mut log, format!("{text}\n").as_bytes());
}

/// `-f`: the daemon itself. Starts a server when one is wanted, and ends when it is told to.
pub(super) fn run_daemon() -> Answer {
    let emulator = Emulator::from_environment()?;
    prepare_folders()?;
    let pipe = pipe_directory();
    let id =
        emulator.lock()?.start_daemon(&pipe, Identity::of_self()).map_err(|_| already_running())?;
    let pid_file = Path::new(&pipe).join(PID_FILE);
    fs::write(&pid_file, std::process::id().to_string())?;
    emulator.nudge();
    write_log("control.log", "start (emulated)");
    let mut server: Option<Child> = None;
    loop {
        let seen = emulator.changes().load(Ordering::Acquire);
        let mut state = emulator.lock()?;
        let Some(own) = state.daemon(&pipe).filter(|daemon| daemon.id == id) else { break };
        if own.quitting && state.mps_clients(id).is_empty() {
            state.remove_daemon(id);
            break;
        }
        if own.server_wanted && own.server.is_none() && !own.quitting {
            drop(state);
            server = start_server(&emulator, id, own.server_uid)?;
            continue;
        }
        drop(state);
        if let Some(child) = &mut server
            && child.try_wait()?.is_some()
        {
            server = None;
        }
        wait_for_change(emulator.changes(), seen, ROUND);
    }
    if let Some(mut child) = server {
        // It may have ended by itself; either way it is collected.
        let _ = child.kill();
        let _ = child.wait();
    }
    let _ = fs::remove_file(pid_file);
    write_log("control.log", "quit");
    Ok(())
}

fn start_server(emulator: &Emulator, id: u32, user: u32) -> Result<Option<Child>, ToolError> {
    let child = myself(SERVER)?.spawn()?;
    if let Some(identity) = Identity::of(child.id() as i32) {
        emulator.lock()?.server_started(id, identity)?;
        write_log("server.log", &format!("server {} for user {user} (emulated)", child.id()));
    }
    Ok(Some(child))
}

/// The server: there to be seen, listed and killed. It ends when its daemon no longer knows it.
pub(crate) fn serve() -> Answer {
    let emulator = Emulator::from_environment()?;
    let own = std::process::id() as i32;
    let known = |state: &State| {
        state.daemons().iter().any(|d| d.server.is_some_and(|server| server.pid == own))
    };
    if !wait_for(&emulator, Duration::from_secs(10), known)? {
        return Err(ToolError::new(1, "no MPS control daemon knows this server"));
    }
    loop {
        let seen = emulator.changes().load(Ordering::Acquire);
        if !known(&*emulator.lock()?) {
            return Ok(());
        }
        wait_for_change(emulator.changes(), seen, ROUND);
    }
}
