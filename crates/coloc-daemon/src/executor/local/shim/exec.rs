//! A command that runs beside a task's program: as the same user, with the same environment, in the same control group. It goes when
//! its client does, and with the task at the latest.

use super::beside::{Beside, Ends};
use super::terminal::{Printing, write_while};
use super::visit::{Host, Line, Sender, thread};
use coloc_api::frame::Frame;
use coloc_api::request::ExecRequest;
use coloc_api::signals;
use coloc_api::text::RawText;
use nix::sys::signal::{Signal, kill};
use rustix::process::{Pid, WaitId, WaitIdOptions, WaitOptions, waitid, waitpid};
use std::io::{self, Read};
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A command whose client has gone has this long to go by itself.
const GRACE: Duration = Duration::from_secs(5);
/// Output that is on its way when the command has ended has this long to come. What it left running may hold its output open.
const LAST_WORDS: Duration = Duration::from_millis(300);
const PAUSE: Duration = Duration::from_millis(20);
/// The most bytes that are read at once.
const PIECE: usize = 16 << 10;

/// The command while it runs. It leads a session, so that its number is that of its group too.
struct Running {
    /// Until it has been waited for: afterwards its number may be another process's.
    pid: Mutex<Option<Pid>>,
}

impl Running {
    /// A signal for its whole group.
    fn signal(&self, signal: Signal) {
        if let Some(pid) = *self.pid() {
            let _ = kill(nix::unistd::Pid::from_raw(-pid.as_raw_pid()), signal);
        }
    }

    fn pid(&self) -> MutexGuard<'_, Option<Pid>> {
        self.pid.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for its end; says with which code.
    fn wait(&self, pid: Pid) -> i32 {
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while matches!(waitid(WaitId::Pid(pid), look), Err(rustix::io::Errno::INTR)) {}
        // From here on nothing signals it.
        let mut held = self.pid();
        *held = None;
        let status = waitpid(Some(pid), WaitOptions::NOHANG).ok().flatten();
        let Some((_, status)) = status else { return 128 + Signal::SIGKILL as i32 };
        let killed = || 128 + status.terminating_signal().unwrap_or(Signal::SIGKILL as i32);
        status.exit_status().unwrap_or_else(killed)
    }
}

/// Runs a command for a client.
pub(super) fn serve(host: &Host, line: Line, wish: &ExecRequest) {
    let group = host.group.as_ref().map(|group| &group.group_files);
    let Beside { pid, ends } = match Beside::start(&host.order, group, wish) {
        Ok(started) => started,
        Err(error) => {
            let program = wish.command.first().map_or("".into(), RawText::to_string_lossy);
            return line.refuse("not_started", &format!("cannot start {program}: {error}"));
        }
    };
    let running = Arc::new(Running { pid: Mutex::new(Some(pid)) });
    line.send(&Frame::Accepted);
    let sender = line.sender();
    let copies = converse(ends, line, &sender, &running);
    let code = running.wait(pid);
    if let Ok(copies) = copies {
        copies.end();
    }
    sender.send(&Frame::Exit(code));
    sender.hang_up();
}

/// The threads that copy what a command prints.
struct Copies {
    threads: Vec<JoinHandle<()>>,
    terminal: Option<Arc<super::terminal::Terminal>>,
}

impl Copies {
    /// The command has ended: what is left is copied, for a moment.
    fn end(self) {
        if let Some(terminal) = &self.terminal {
            terminal.program_ended();
        }
        let end = Instant::now() + LAST_WORDS;
        while self.threads.iter().any(|copy| !copy.is_finished()) && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

fn converse(ends: Ends, line: Line, sender: &Sender, running: &Arc<Running>) -> io::Result<Copies> {
    let mut threads = Vec::new();
    let mut terminal = None;
    let input = match ends {
        Ends::Terminal(ours) => {
            threads.push(copy(Printing(ours.clone()), sender, Frame::Output)?);
            terminal = Some(ours.clone());
            To::Terminal(ours)
        }
        Ends::Pipes { input, output, errors } => {
            threads.push(copy(output, sender, Frame::Output)?);
            threads.push(copy(errors, sender, Frame::Errors)?);
            rustix::io::ioctl_fionbio(&input, true)?;
            To::Pipe(Some(input.into()))
        }
    };
    let running = running.clone();
    thread("listen", move || listen(line, input, &running))?;
    Ok(Copies { threads, terminal })
}

/// Where what the client sends goes.
enum To {
    Terminal(Arc<super::terminal::Terminal>),
    Pipe(Option<OwnedFd>),
}

/// Does what the client says. One that leaves has its command end.
fn listen(mut line: Line, mut input: To, running: &Running) {
    while let Some(frame) = line.receive() {
        match (frame, &mut input) {
            (Frame::Input(bytes), To::Terminal(terminal)) => {
                let _ = write_while(&line.stream, terminal.input(), &bytes);
            }
            (Frame::Input(bytes), To::Pipe(pipe)) => {
                let write = |to: &OwnedFd| write_while(&line.stream, to.as_fd(), &bytes);
                if pipe.as_ref().is_some_and(|pipe| write(pipe).is_err()) {
                    // The command reads no more.
                    *pipe = None;
                    line.send(&Frame::Eof);
                }
            }
            (Frame::Eof, To::Pipe(pipe)) => *pipe = None,
            (Frame::Resize(size), To::Terminal(terminal)) => terminal.resize(size),
            (Frame::Signal(number), _) if signals::is_known(number) => {
                if let Ok(signal) = Signal::try_from(number) {
                    running.signal(signal);
                }
            }
            (Frame::Gone, _) => break,
            _ => {}
        }
    }
    drop(input);
    running.signal(Signal::SIGHUP);
    running.signal(Signal::SIGCONT);
    let end = Instant::now() + GRACE;
    while running.pid().is_some() && Instant::now() < end {
        std::thread::sleep(PAUSE);
    }
    running.signal(Signal::SIGKILL);
}

/// Copies what a command prints on a thread of its own. A client that does not read holds the command up.
fn copy(
    mut from: impl Read + Send + 'static,
    sender: &Sender,
    frame: fn(Vec<u8>) -> Frame,
) -> io::Result<JoinHandle<()>> {
    let sender = sender.clone();
    thread("copy", move || {
        let mut piece = [0; PIECE];
        loop {
            match from.read(&mut piece) {
                Ok(0) => return,
                Ok(length) => {
                    // A client that has gone hears nothing; the command is ended by the thread that listens.
                    sender.send(&frame(piece[..length].to_vec()));
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    })
}
