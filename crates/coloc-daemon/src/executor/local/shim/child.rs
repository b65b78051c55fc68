//! The process that becomes the task's program.
//!
//! It is born in its control group: to move there later takes the kernel 10 ms and more, since no process of the machine
//! may fork meanwhile. To be born there takes root's rights, where the daemon is root. So it is born as root, gives them
//! up before it becomes the program, and waits until the shim has seen that all is well.
//!
//! `unsafe` because a process is duplicated, by a call that the C library does not have.
#![allow(unsafe_code)]

use super::log::Source;
use super::terminal::{Printing, Terminal};
use super::{Streams, become_user};
use crate::executor::local::cgroup::GroupFiles;
use crate::executor::local::run::Order;
use coloc_api::text::RawText;
use nix::libc;
use nix::unistd::ForkResult;
use rustix::fs::Mode;
use rustix::process::{Pid, Signal, WaitOptions, getppid, set_parent_process_death_signal};
use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

/// The kernel's CLONE_INTO_CGROUP, which does not fit the type that the libc crate gives it.
const INTO_CGROUP: u64 = 1 << 33;

/// A program that has not begun. It never does once this is gone.
pub(super) struct Program {
    pid: Pid,
    /// A byte means that it may.
    go: PipeWriter,
    /// Why it could not; nothing once it has begun.
    failed: PipeReader,
}

impl Program {
    /// Makes the process, in its group if it has one, and in any case with what the order says.
    pub(super) fn bear(order: &Order, group: Option<&GroupFiles>) -> io::Result<(Self, Streams)> {
        let (mut command, streams, terminal) = command(order)?;
        let (may, go) = io::pipe()?;
        let (failed, mut tell) = io::pipe()?;
        let shim = rustix::process::getpid();
        let Some(pid) = fork_into(group)? else {
            // A process that holds the shim's end too would not notice the shim's death.
            drop((go, failed));
            let terminal = terminal.as_ref().map(|terminal| terminal.as_fd());
            let error = become_it(may, &mut command, terminal, order, shim);
            let code = error.raw_os_error().unwrap_or(libc::EIO);
            let _ = tell.write_all(&code.to_ne_bytes());
            // SAFETY: ends this process at once, as nothing of what the shim has is this one's to clean up.
            unsafe { libc::_exit(1) }
        };
        Ok((Program { pid, go, failed }, streams))
    }

    /// The process that becomes the program.
    pub(super) fn pid(&self) -> u32 {
        self.pid.as_raw_pid() as u32
    }

    /// Lets it begin, and waits until it has.
    pub(super) fn begin(mut self) -> io::Result<Pid> {
        // A child that died before that says so below.
        let _ = self.go.write_all(&[1]);
        let mut code = [0; size_of::<i32>()];
        match self.failed.read_exact(&mut code) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(self.pid),
            read => {
                let _ = rustix::process::waitpid(Some(self.pid), WaitOptions::empty());
                read?;
                Err(io::Error::from_raw_os_error(i32::from_ne_bytes(code)))
            }
        }
    }
}

/// What is to run, our ends of its streams, and the terminal that is to be its own.
fn command(order: &Order) -> io::Result<(Command, Streams, Option<OwnedFd>)> {
    let (program, arguments) =
        order.command.split_first().ok_or_else(|| io::Error::other("no command was given"))?;
    let mut command = Command::new(program.as_os_str());
    command
        .args(arguments.iter().map(RawText::as_os_str))
        .env_clear()
        .envs(order.environment.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str())))
        .current_dir(order.directory.as_path());
    let Some(size) = order.terminal else {
        let streams = piped(order, &mut command)?;
        return Ok((command, streams, None));
    };
    let (terminal, slave) = Terminal::open(size, order.user.as_ref().map(|user| user.uid))?;
    let its = || slave.try_clone();
    command.stdin(its()?).stdout(its()?).stderr(its()?);
    let output = Source::Terminal(Printing(terminal.clone()));
    let streams = Streams { output, errors: None, terminal: Some(terminal), input: None };
    Ok((command, streams, Some(slave)))
}

fn piped(order: &Order, command: &mut Command) -> io::Result<Streams> {
    let (output, out) = io::pipe()?;
    // One pipe for both keeps lines in the order in which they were written.
    let (errors, err) = match order.errors {
        None => (None, out.try_clone()?),
        Some(_) => io::pipe().map(|(errors, err)| (Some(errors), err))?,
    };
    let input = match order.input {
        false => {
            command.stdin(Stdio::null());
            None
        }
        true => {
            let (its, ours) = io::pipe()?;
            command.stdin(its);
            Some(ours)
        }
    };
    command.stdout(out).stderr(err).process_group(0);
    Ok(Streams { output: Source::Pipe(output), errors, terminal: None, input })
}

/// In the new process: waits for the word and becomes the program; comes back only with what was in the way.
fn become_it(
    mut may: PipeReader,
    command: &mut Command,
    terminal: Option<BorrowedFd<'_>>,
    order: &Order,
    shim: Pid,
) -> io::Error {
    let mut prepare = || -> io::Result<()> {
        may.read_exact(&mut [0])?;
        if let Some(terminal) = terminal {
            // A session of its own, in whose terminal what is typed becomes signals. Its group is in front by that.
            rustix::process::setsid()?;
            rustix::process::ioctl_tiocsctty(terminal)?;
        }
        if let Some(user) = &order.user {
            become_user(user)?;
        }
        if let Some(mask) = order.umask {
            rustix::process::umask(Mode::from_raw_mode(mask & 0o777));
        }
        // With the user's rights, so that no submission gives more than the daemon itself may have.
        order.limits.iter().for_each(|limit| limit.lower());
        // Killing the shim kills the task: nothing must run without a shim. The shim may have died before that.
        set_parent_process_death_signal(Some(Signal::KILL))?;
        if getppid() == Some(shim) { Ok(()) } else { Err(io::ErrorKind::NotFound.into()) }
    };
    match prepare() {
        Ok(()) => command.exec(),
        Err(error) => error,
    }
}

/// Duplicates this process, which has one thread only; `None` is the new one. Whether it is in the group is to be looked
/// at: kernels before 5.7 and some containers know no other way than to move there, and not all let it.
fn fork_into(group: Option<&GroupFiles>) -> io::Result<Option<Pid>> {
    if let Some(born) =
        group.and_then(|group_files| born_in(group_files.folder.as_fd().as_raw_fd()))
    {
        return Ok(Pid::from_raw(born));
    }
    // SAFETY: with one thread nothing is left half done in the new process.
    match unsafe { nix::unistd::fork() }? {
        ForkResult::Parent { child } => Ok(Pid::from_raw(child.as_raw())),
        ForkResult::Child => {
            if let Some(group_files) = group {
                let _ = rustix::io::write(&group_files.enter, b"0");
            }
            Ok(None)
        }
    }
}

/// Duplicates this process into the group of a folder: zero in the new one, `None` where that cannot be done.
fn born_in(folder: i32) -> Option<i32> {
    // SAFETY: all zero is what the kernel takes for nothing.
    let mut wish: libc::clone_args = unsafe { std::mem::zeroed() };
    wish.flags = INTO_CGROUP;
    wish.exit_signal = libc::SIGCHLD as u64;
    wish.cgroup = folder as u64;
    // SAFETY: the kernel reads as many bytes as it is told are there. Without shared memory and a stack of its own the new
    // process goes on here like one from fork.
    let born = unsafe { libc::syscall(libc::SYS_clone3, &raw const wish, size_of_val(&wish)) };
    i32::try_from(born).ok().filter(|&born| born >= 0)
}
