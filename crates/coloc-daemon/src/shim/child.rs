//! What happens in the new process between fork and exec.
//!
//! `unsafe` because hardly anything is allowed there: only system calls are made, and nothing is allocated.
#![allow(unsafe_code)]

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// Whoever kills the shim kills the task: nothing must run that nobody watches. And it enters its group before it
/// could start anybody who is not in it.
pub(super) fn prepare(command: &mut Command, enter: Option<std::fs::File>) {
    let shim = rustix::process::getpid();
    // SAFETY: between fork and exec only system calls are made, and nothing is allocated.
    unsafe {
        command.pre_exec(move || {
            use rustix::process::{Signal, getppid, set_parent_process_death_signal};
            set_parent_process_death_signal(Some(Signal::KILL))?;
            if let Some(enter) = &enter {
                // Whether it worked is looked at afterwards: kernels before 5.16 ask for rights that are given up.
                let _ = rustix::io::write(enter, b"0");
            }
            // The shim may have died before that.
            if getppid() == Some(shim) { Ok(()) } else { Err(io::ErrorKind::NotFound.into()) }
        });
    }
}
