//! `nvidia-cuda-mps-control` and the server that it starts.
//!
//! What the real programs say over a pipe goes through the fleet's state. The daemon and the server are
//! processes of their own, so that they have ids, can be killed, and take their clients with them.

mod commands;
mod processes;

pub(crate) use processes::serve;

use crate::tool::{Answer, ToolError, print};
use coloc_emu::Emulator;
use coloc_emu::client::pipe_directory;
use std::io::BufRead;

const HELP: &str = "usage: nvidia-cuda-mps-control [-d | -f | -h], emulated by coloc

  -d   start the control daemon in the background
  -f   start it in the foreground
  Without arguments, commands are read from standard input:
  start_server -uid UID, get_server_list, get_server_status PID, get_client_list PID,
  get_device_client_list [PID], ps [-p PID], shutdown_server PID [-f], terminate_client SERVER CLIENT,
  quit [-t SECONDS], [gs]et_default_active_thread_percentage [P], [gs]et_active_thread_percentage PID [P],
  [gs]et_default_device_pinned_mem_limit DEV [SIZE], [gs]et_device_pinned_mem_limit PID DEV [SIZE],
  [gs]et_default_client_priority [N]";

pub(crate) fn control(arguments: &[String]) -> Answer {
    match arguments.first().map(String::as_str) {
        None => talk(),
        Some("-d") => processes::start_in_background(),
        Some("-f") => processes::run_daemon(),
        Some("-h" | "--help") => print(HELP),
        Some(other) => Err(ToolError::new(1, format!("Unrecognized option {other:?}.\n{HELP}"))),
    }
}

/// Carries out commands, a line each, until there are no more or one of them is `quit`.
fn talk() -> Answer {
    let emulator = Emulator::from_environment()?;
    let pipe = pipe_directory();
    let absent = || ToolError::new(1, "Cannot find MPS control daemon process");
    emulator.lock()?.daemon(&pipe).ok_or_else(absent)?;
    let mut failed = None;
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.is_empty() {
            continue;
        }
        let daemon = emulator.lock()?.daemon(&pipe).ok_or_else(absent)?;
        match commands::carry_out(&emulator, &daemon, &words) {
            Ok(text) if text.is_empty() => {}
            Ok(text) => print(&text)?,
            Err(error) => {
                print(error.text())?;
                failed = Some(error);
            }
        }
        if words[0] == "quit" {
            break;
        }
    }
    failed.map_or(Ok(()), |error| Err(error.silent()))
}
