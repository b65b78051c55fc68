//! The process that becomes a command beside a task's program.
//!
//! The shim has threads by now, so that the new process may do nothing between its birth and its program but call the kernel:
//! whatever has to be looked up or allocated is there before.
//!
//! `unsafe` because a program is told what to do in between.
#![allow(unsafe_code)]

use super::terminal::Terminal;
use crate::executor::local::cgroup::GroupFiles;
use crate::executor::local::run::{Order, RunAs};
use coloc_api::request::ExecRequest;
use coloc_api::resource_limits::ResourceLimit;
use coloc_api::text::RawText;
use rustix::fs::Mode;
use rustix::process::{Gid, Pid, Signal, Uid, getppid, set_parent_process_death_signal};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
use std::ffi::CString;
use std::fs::File;
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::BorrowedFd;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::sync::Arc;

/// A command that has begun.
pub(super) struct Beside {
    pub(super) pid: Pid,
    pub(super) ends: Ends,
}

/// Our ends of its streams.
pub(super) enum Ends {
    Terminal(Arc<Terminal>),
    Pipes { input: PipeWriter, output: PipeReader, errors: PipeReader },
}

impl Beside {
    /// Starts a command as the order's user, with the order's environment and limits, in the group of its program.
    pub(super) fn start(
        order: &Order,
        group: Option<&GroupFiles>,
        wish: &ExecRequest,
    ) -> io::Result<Self> {
        let (program, arguments) =
            wish.command.split_first().ok_or_else(|| io::Error::other("no command was given"))?;
        let variables =
            order.environment.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()));
        let mut command = Command::new(program.as_os_str());
        command.args(arguments.iter().map(RawText::as_os_str)).env_clear().envs(variables);
        if let (Some(_), Some(term)) = (wish.terminal, &wish.term) {
            command.env("TERM", term);
        }
        let (ends, streams) = match wish.terminal {
            Some(size) => {
                let user = order.user.as_ref().map(|user| user.uid);
                let (terminal, slave) = Terminal::open(size, user)?;
                let streams = [slave.try_clone()?.into(), slave.try_clone()?.into(), slave.into()];
                (Ends::Terminal(terminal), streams)
            }
            None => {
                let ((its, input), (output, out), (errors, err)) =
                    (io::pipe()?, io::pipe()?, io::pipe()?);
                (Ends::Pipes { input, output, errors }, [its.into(), out.into(), err.into()])
            }
        };
        let [input, output, errors]: [Stdio; 3] = streams;
        command.stdin(input).stdout(output).stderr(errors);
        let last_steps = LastSteps::of(order, group, wish.terminal.is_some())?;
        // SAFETY: nothing but calls of the kernel, on what was made before.
        unsafe { command.pre_exec(move || last_steps.take()) };
        let child = command.spawn()?;
        Ok(Beside { pid: Pid::from_child(&child), ends })
    }
}

/// What a new process does before it becomes its program.
struct LastSteps {
    shim: Pid,
    enter: Option<File>,
    has_terminal: bool,
    user: Option<(Uid, Gid, Vec<Gid>)>,
    mask: Option<Mode>,
    limits: Arc<[ResourceLimit]>,
    directory: CString,
}

impl LastSteps {
    fn of(order: &Order, group: Option<&GroupFiles>, has_terminal: bool) -> io::Result<Self> {
        Ok(LastSteps {
            shim: rustix::process::getpid(),
            enter: group.map(|group| group.enter.try_clone()).transpose()?,
            has_terminal,
            user: order.user.as_ref().map(identity_of).transpose()?,
            mask: order.umask.map(|mask| Mode::from_raw_mode(mask & 0o777)),
            limits: order.limits.clone(),
            directory: CString::new(order.directory.as_bytes())?,
        })
    }

    fn take(&self) -> io::Result<()> {
        // As root, where the shim is: a user may not.
        if let Some(enter) = &self.enter {
            rustix::io::write(enter, b"0")?;
        }
        rustix::process::setsid()?;
        if self.has_terminal {
            // SAFETY: standard input is the terminal by now, and stays open.
            let terminal = unsafe { BorrowedFd::borrow_raw(0) };
            rustix::process::ioctl_tiocsctty(terminal)?;
        }
        if let Some((uid, gid, groups)) = &self.user {
            set_thread_groups(groups)?;
            set_thread_res_gid(*gid, *gid, *gid)?;
            set_thread_res_uid(*uid, *uid, *uid)?;
        }
        if let Some(mask) = self.mask {
            rustix::process::umask(mask);
        }
        self.limits.iter().for_each(|limit| limit.lower());
        // With the user's rights, as everything from here on.
        rustix::process::chdir(self.directory.as_c_str())?;
        // It ends with the thread that waits for it, and so with the shim.
        set_parent_process_death_signal(Some(Signal::KILL))?;
        if getppid() == Some(self.shim) { Ok(()) } else { Err(io::ErrorKind::NotFound.into()) }
    }
}

/// A user and all their groups, as the kernel is told.
fn identity_of(user: &RunAs) -> io::Result<(Uid, Gid, Vec<Gid>)> {
    let name = CString::new(user.name.as_str())?;
    let groups = nix::unistd::getgrouplist(&name, user.gid.into())?;
    let groups = groups.into_iter().map(|group| Gid::from_raw(group.as_raw())).collect();
    Ok((Uid::from_raw(user.uid), Gid::from_raw(user.gid), groups))
}
