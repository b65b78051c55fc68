//! Which processes of a task want to hear a warning.
//!
//! A shell that has not set a trap would die of it, and the training that it waits for would hear nothing: so the
//! processes nearest to the program that handle the signal are told. `srun` handles it, and passes it on to its copies.

use super::tree::children_of_all;
use std::fs;

/// The programs that run scripts, by the name that the kernel has of them.
const SHELLS: [&str; 6] = ["sh", "bash", "dash", "zsh", "ksh", "ash"];

/// The processes to tell: the program itself, or what it has started, or none, if a shell alone would die of it.
pub(super) fn hearers(program: u32, signal: i32) -> Vec<u32> {
    if handles(program, signal) {
        return vec![program];
    }
    let children = children_of_all();
    let (mut found, mut next, mut seen) = (Vec::new(), vec![program], 0);
    while let Some(parent) = next.pop() {
        seen += 1;
        // A tree that was read while it changed may seem to have no end.
        if seen > children.len() + 1 {
            break;
        }
        for &child in children.get(&parent).into_iter().flatten() {
            match handles(child, signal) {
                true => found.push(child),
                false => next.push(child),
            }
        }
    }
    if found.is_empty() && !is_shell(program) {
        found.push(program);
    }
    found
}

/// Whether a process runs one of these programs.
pub(super) fn is_shell(pid: u32) -> bool {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    SHELLS.contains(&name.trim())
}

fn handles(pid: u32, signal: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    catches(&status, signal).unwrap_or(false)
}

/// Whether `/proc/PID/status` has a signal among those that are caught.
fn catches(status: &str, signal: i32) -> Option<bool> {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"))?;
    let mask = u64::from_str_radix(mask.trim(), 16).ok()?;
    let bit = u32::try_from(signal.checked_sub(1)?).ok()?;
    Some(mask.checked_shr(bit)? & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_mask_is_read() {
        let status = "Name:\tx\nSigCgt:\t0000000000000200\n";
        assert_eq!(catches(status, 10), Some(true));
        assert_eq!(catches(status, 12), Some(false));
        for odd in ["", "SigCgt:\tx\n", "SigCgt:\t-1\n"] {
            assert_eq!(catches(odd, 10), None);
        }
        assert_eq!((catches(status, 0), catches(status, 99)), (None, None));
    }

    #[test]
    fn a_shell_without_a_trap_is_not_told_but_what_it_runs_is() {
        let wait = |script: &str| {
            let mut shell = std::process::Command::new("bash");
            let shell = shell.args(["-c", script]).stdout(std::process::Stdio::piped()).spawn();
            let mut shell = shell.expect("it starts");
            let mut line = String::new();
            let out = shell.stdout.take().expect("a pipe");
            std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut line)
                .expect("read");
            let heard = hearers(shell.id(), 10);
            let inner = line.trim().parse().unwrap_or(0);
            for pid in crate::executor::local::shim::tree::descendants(shell.id()) {
                let pid = nix::unistd::Pid::from_raw(pid as i32);
                let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL);
            }
            shell.kill().expect("it is ours");
            shell.wait().expect("it ends");
            (shell.id(), inner, heard)
        };
        let inner = "bash -c 'trap : USR1; echo $$; while :; do sleep 0.02; done'; true";
        let (_, child, heard) = wait(inner);
        assert_eq!(heard, [child]);
        let (shell, _, heard) = wait("trap : USR1; echo 1; while :; do sleep 0.02; done");
        assert_eq!(heard, [shell]);
        let (_, _, heard) = wait("echo 1; sleep 60; true");
        assert!(heard.is_empty(), "{heard:?}");
    }
}
