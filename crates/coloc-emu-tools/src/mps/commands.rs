//! The control daemon's commands.

use super::processes::wait_for;
use crate::tool::ToolError;
use coloc_emu::fleet::{DaemonView, Limits, State};
use coloc_emu::{Emulator, Identity, Place, ProcessSlot};
use coloc_model::Bytes;
use std::time::Duration;

/// How long a server or the end of a daemon is waited for.
const TIMEOUT: Duration = Duration::from_secs(10);

fn wrong(text: impl Into<String>) -> ToolError {
    ToolError::new(1, text)
}

fn number<T: std::str::FromStr>(word: &str) -> Result<T, ToolError> {
    word.parse().map_err(|_| wrong(format!("Invalid argument {word:?}")))
}

/// Refuses ids of servers that are not this daemon's.
fn check_server(daemon: &DaemonView, word: &str) -> Result<(), ToolError> {
    let pid: i32 = number(word)?;
    match daemon.server {
        Some(server) if server.pid == pid => Ok(()),
        _ => Err(wrong(format!("Server {pid} is not found"))),
    }
}

/// Carries out one command and returns what it says.
pub(super) fn carry_out(
    emulator: &Emulator,
    daemon: &DaemonView,
    words: &[&str],
) -> Result<String, ToolError> {
    let mut state = emulator.lock()?;
    match words {
        ["start_server", "-uid", uid] => {
            let uid = number(uid)?;
            if daemon.server.is_none() {
                state.want_server(daemon.id, uid)?;
            }
            drop(state);
            let up = |state: &State| state.daemon(&daemon.pipe).is_some_and(|d| d.server.is_some());
            match wait_for(emulator, TIMEOUT, up)? {
                true => Ok(String::new()),
                false => Err(wrong("The server did not start")),
            }
        }
        ["get_server_list"] => {
            Ok(daemon.server.map_or(String::new(), |server| server.pid.to_string()))
        }
        ["get_server_status", server] => {
            check_server(daemon, server)?;
            Ok("ACTIVE".to_owned())
        }
        ["get_client_list", server] => {
            check_server(daemon, server)?;
            Ok(lines(clients(&state, daemon).into_iter().map(|(_, pid)| pid.to_string())))
        }
        ["get_device_client_list"] | ["get_device_client_list", _] => {
            Ok(lines(device_clients(&state, daemon)))
        }
        ["ps"] | ["ps", "-p", _] => Ok(processes(&state, daemon)),
        ["shutdown_server", server] | ["shutdown_server", server, "-f"] => {
            check_server(daemon, server)?;
            state.stop_server(daemon.id, words.len() == 3)?;
            Ok(String::new())
        }
        ["terminate_client", server, client] => {
            check_server(daemon, server)?;
            let client: i32 = number(client)?;
            let found = clients(&state, daemon).into_iter().find(|(_, pid)| *pid == client);
            let (slot, _) = found.ok_or_else(|| wrong(format!("Client {client} is not found")))?;
            state.terminate_client(slot);
            Ok(String::new())
        }
        ["quit"] => {
            drop(state);
            quit(emulator, daemon, None)
        }
        ["quit", "-t", seconds] => {
            drop(state);
            quit(emulator, daemon, Some(Duration::from_secs(number(seconds)?)))
        }
        _ => settings(&mut state, daemon, words),
    }
}

fn settings(state: &mut State, daemon: &DaemonView, words: &[&str]) -> Result<String, ToolError> {
    let percentage = |value: f64| format!("{value:?}");
    match words {
        ["get_default_active_thread_percentage"] => Ok(percentage(daemon.default_percentage)),
        ["set_default_active_thread_percentage", value] => {
            let value: f64 = number(value)?;
            state.set_percentage(daemon.id, Limits::Default, value)?;
            Ok(percentage(value))
        }
        ["get_active_thread_percentage", server] => {
            check_server(daemon, server)?;
            Ok(percentage(daemon.server_percentage))
        }
        ["set_active_thread_percentage", server, value] => {
            check_server(daemon, server)?;
            let value: f64 = number(value)?;
            state.set_percentage(daemon.id, Limits::Server, value)?;
            Ok(percentage(value))
        }
        ["get_default_client_priority"] => Ok(daemon.default_priority.to_string()),
        ["set_default_client_priority", value] => {
            state.set_default_priority(daemon.id, number(value)?)?;
            Ok(String::new())
        }
        ["get_default_device_pinned_mem_limit", device] => {
            Ok(limit(state.pinned(daemon.id, Limits::Default, gpu(state, device)?)?))
        }
        ["set_default_device_pinned_mem_limit", device, value] => {
            let gpu = gpu(state, device)?;
            state.set_pinned_limit(daemon.id, Limits::Default, gpu, number(value)?)?;
            Ok(String::new())
        }
        ["get_device_pinned_mem_limit", server, device] => {
            check_server(daemon, server)?;
            Ok(limit(state.pinned(daemon.id, Limits::Server, gpu(state, device)?)?))
        }
        ["set_device_pinned_mem_limit", server, device, value] => {
            check_server(daemon, server)?;
            let gpu = gpu(state, device)?;
            state.set_pinned_limit(daemon.id, Limits::Server, gpu, number(value)?)?;
            Ok(String::new())
        }
        _ => Err(wrong(format!("Unrecognized command: {}", words.join(" ")))),
    }
}

/// A device by ordinal or UUID.
fn gpu(state: &State, name: &str) -> Result<u32, ToolError> {
    let found = state.find_device(name).map(|place| place.gpu);
    found.ok_or_else(|| wrong(format!("Device {name:?} is not found")))
}

/// A limit in the largest unit that is exact; none is `0G`.
fn limit(bytes: Bytes) -> String {
    match bytes.0 {
        bytes if bytes % (1 << 30) == 0 => format!("{}G", bytes >> 30),
        bytes => format!("{}M", bytes >> 20),
    }
}

fn lines(all: impl IntoIterator<Item = String>) -> String {
    all.into_iter().collect::<Vec<_>>().join("\n")
}

fn clients(state: &State, daemon: &DaemonView) -> Vec<(ProcessSlot, i32)> {
    let slots = state.mps_clients(daemon.id).into_iter();
    slots.filter_map(|slot| Some((slot, state.view(slot).ok()?.identity.pid))).collect()
}

fn device_clients(state: &State, daemon: &DaemonView) -> Vec<String> {
    let own = clients(state, daemon);
    let mut lines = Vec::new();
    for (index, gpu) in (0u32..).zip(state.gpus()) {
        let here = state.residents(Place::whole(index)).into_iter();
        let here = here.filter(|resident| own.iter().any(|(slot, _)| *slot == resident.process));
        let pids: Vec<String> = here.map(|resident| resident.pid.to_string()).collect();
        if !pids.is_empty() {
            lines.push(format!("{} {}", gpu.uuid(), pids.join(" ")));
        }
    }
    lines
}

fn processes(state: &State, daemon: &DaemonView) -> String {
    let Some(server) = daemon.server else { return String::new() };
    let own = clients(state, daemon);
    let mut lines =
        vec!["PID       ID    SERVER    DEVICE             NAMESPACE  COMMAND".to_owned()];
    for (index, gpu) in (0u32..).zip(state.gpus()) {
        for resident in state.residents(Place::whole(index)) {
            let Some(at) = own.iter().position(|(slot, _)| *slot == resident.process) else {
                continue;
            };
            let name = Identity::of(resident.pid).map_or_else(String::new, Identity::name);
            let device: String = gpu.uuid().chars().take(17).collect();
            lines.push(format!(
                "{:<9} {:<5} {:<9} {device:<18} {:<10} {name}",
                resident.pid,
                at + 1,
                server.pid,
                0
            ));
        }
    }
    lines.join("\n")
}

/// No new clients from now on; the daemon ends when the last one has left, or when the time is over.
fn quit(
    emulator: &Emulator,
    daemon: &DaemonView,
    timeout: Option<Duration>,
) -> Result<String, ToolError> {
    emulator.lock()?.quit_daemon(daemon.id)?;
    let gone = |state: &State| state.daemon(&daemon.pipe).is_none();
    let idle = |state: &State| gone(state) || state.mps_clients(daemon.id).is_empty();
    if let Some(timeout) = timeout
        && !wait_for(emulator, timeout, idle)?
    {
        // Clients that are still there lose their contexts; the server may be gone already.
        let _ = emulator.lock()?.stop_server(daemon.id, true);
    }
    wait_for(emulator, TIMEOUT, |state| gone(state) || !state.mps_clients(daemon.id).is_empty())?;
    Ok(String::new())
}
