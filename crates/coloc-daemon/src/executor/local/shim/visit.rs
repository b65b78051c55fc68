//! Clients that come to a running task by way of the daemon: to its terminal, with a command to run beside it, or with its input.
//!
//! They come over a socket in the attempt's directory, which is the daemon's user's, and the kernel says that the other end is. So
//! the daemon decides which users may; a shim goes on when the daemon is gone, and the next daemon finds it again.

use super::input::Input;
use super::terminal::Terminal;
use super::{Group, attach, exec};
use crate::executor::local::run::{Order, RunDir, Visit};
use coloc_api::frame::{Frame, PING};
use rustix::net::sockopt::socket_peercred;
use std::io::{self, Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Clients at a terminal at once.
const MOST_ATTACHED: usize = 8;
/// Commands at once.
const MOST_EXECS: usize = 16;
/// Connections of any kind at once; the daemon says at once what one is for.
const MOST_VISITS: usize = 32;
/// The daemon has this long to say what a client wants.
const GREETING: Duration = Duration::from_secs(10);
/// A client that reads nothing for this long is hung up on.
const UNREAD: Duration = Duration::from_secs(60);
/// What a visit is for is said in fewer bytes.
const LARGEST_VISIT: usize = 1 << 20;
/// Clients that are told the end have this long to hear it.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// A thread that copies needs little.
const STACK: usize = 256 << 10;

/// Where clients come.
pub(super) struct Visits {
    listener: UnixListener,
    host: Arc<Host>,
}

/// What there is to visit.
pub(super) struct Host {
    pub(super) order: Arc<Order>,
    pub(super) group: Option<Arc<Group>>,
    pub(super) terminal: Option<Arc<Terminal>>,
    pub(super) input: Option<Arc<Input>>,
    /// The program has ended: nothing new begins.
    pub(super) is_over: AtomicBool,
    attached: AtomicUsize,
    execs: AtomicUsize,
    visits: AtomicUsize,
}

impl Host {
    pub(super) fn new(
        order: Arc<Order>,
        group: Option<Arc<Group>>,
        terminal: Option<Arc<Terminal>>,
        input: Option<Arc<Input>>,
    ) -> Self {
        let is_over = AtomicBool::new(false);
        let [attached, execs, visits] = [(); 3].map(|()| AtomicUsize::new(0));
        Host { order, group, terminal, input, is_over, attached, execs, visits }
    }
}

/// A place among few, until it is dropped.
struct Place<'a>(&'a AtomicUsize);

impl<'a> Place<'a> {
    fn take(of: &'a AtomicUsize, most: usize) -> Option<Self> {
        let more = |taken| (taken < most).then_some(taken + 1);
        of.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).ok().map(|_| Place(of))
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Visits {
    /// Listens for clients of an attempt.
    pub(super) fn listen(listener: UnixListener, host: Host) -> Self {
        Visits { listener, host: Arc::new(host) }
    }

    /// To wait for.
    pub(super) fn listener(&self) -> &UnixListener {
        &self.listener
    }

    /// Lets in a client that has come, on a thread of its own.
    pub(super) fn admit(&self) {
        let Ok((stream, _)) = self.listener.accept() else { return };
        let own = rustix::process::geteuid();
        // Whatever else comes here has not asked the daemon.
        if !socket_peercred(&stream).is_ok_and(|peer| peer.uid == own || peer.uid.is_root()) {
            return;
        }
        let host = self.host.clone();
        let _ = thread("visit", move || {
            if let Some(_place) = Place::take(&host.visits, MOST_VISITS) {
                host.serve(stream);
            }
        });
    }

    /// The program has ended: nothing new begins.
    pub(super) fn program_ended(&self) {
        self.host.is_over.store(true, Ordering::Release);
        if let Some(terminal) = &self.host.terminal {
            terminal.program_ended();
        }
    }

    /// Nothing of the task is left: clients are told so, and have a moment to hear it.
    pub(super) fn end(&self) {
        if let Some(terminal) = &self.host.terminal {
            terminal.close();
        }
        let end = Instant::now() + LAST_WORDS;
        while self.host.visits.load(Ordering::Acquire) > 0 && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Host {
    fn serve(&self, stream: UnixStream) {
        let Ok(mut line) = Line::new(stream) else { return };
        let Ok(visit) = line.greeting() else { return };
        let full = |what: &str, most: usize| format!("it has {most} {what} already: close some");
        match visit {
            _ if self.is_over.load(Ordering::Acquire) => line.refuse("ended", "it is ending"),
            Visit::Attach(wish) => {
                match (&self.terminal, Place::take(&self.attached, MOST_ATTACHED)) {
                    (None, _) => line.refuse("no_terminal", "it has no terminal"),
                    (_, None) => {
                        line.refuse("over_limit", &full("clients at its terminal", MOST_ATTACHED))
                    }
                    (Some(terminal), Some(_place)) => attach::serve(terminal, line, &wish),
                }
            }
            Visit::Exec(wish) => match Place::take(&self.execs, MOST_EXECS) {
                None => line.refuse("over_limit", &full("commands beside its program", MOST_EXECS)),
                Some(_place) => exec::serve(self, line, &wish),
            },
            Visit::Input => match &self.input {
                None => line.refuse("no_input", "it was submitted without standard input"),
                Some(input) => input.serve(line),
            },
        }
    }
}

/// Makes the socket of an attempt's directory, which only its user may connect to.
pub(super) fn listener_in(dir: &RunDir) -> io::Result<UnixListener> {
    let before = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o177));
    let bound = dir.visits().and_then(|place| UnixListener::bind(place.path()));
    rustix::process::umask(before);
    let listener = bound?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Starts a thread that copies.
pub(super) fn thread(
    name: &str,
    work: impl FnOnce() + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name(name.to_owned()).stack_size(STACK).spawn(work)
}

/// The connection to a client, by way of the daemon.
pub(super) struct Line {
    pub(super) stream: UnixStream,
    come: Vec<u8>,
    sender: Sender,
}

/// Says something to a client: one frame at a time, whichever thread it comes from.
#[derive(Clone)]
pub(super) struct Sender(Arc<Mutex<UnixStream>>);

impl Sender {
    /// False once the client has gone.
    pub(super) fn send(&self, frame: &Frame) -> bool {
        let mut stream = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        stream.write_all(&frame.bytes()).is_ok()
    }

    /// Ends the connection. What was said is still heard.
    pub(super) fn hang_up(&self) {
        let stream = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = stream.shutdown(Shutdown::Both);
    }
}

impl Line {
    fn new(stream: UnixStream) -> io::Result<Self> {
        // What an accepted connection inherits from its listener depends on the system.
        stream.set_nonblocking(false)?;
        stream.set_write_timeout(Some(UNREAD))?;
        let sender = Sender(Arc::new(Mutex::new(stream.try_clone()?)));
        Ok(Line { stream, come: Vec::new(), sender })
    }

    /// What the visit is for: four bytes for its length, and JSON.
    fn greeting(&mut self) -> io::Result<Visit> {
        self.stream.set_read_timeout(Some(GREETING))?;
        let mut length = [0; 4];
        self.stream.read_exact(&mut length)?;
        let length = u32::from_be_bytes(length) as usize;
        if length > LARGEST_VISIT {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        // The daemon passes on that its client is there.
        self.stream.set_read_timeout(Some(6 * PING))?;
        Ok(serde_json::from_slice(&body)?)
    }

    pub(super) fn sender(&self) -> Sender {
        self.sender.clone()
    }

    pub(super) fn send(&self, frame: &Frame) -> bool {
        self.sender.send(frame)
    }

    pub(super) fn hang_up(&self) {
        self.sender.hang_up();
    }

    pub(super) fn refuse(&self, code: &str, why: &str) {
        self.send(&Frame::Refused(code.to_owned(), why.to_owned()));
        self.hang_up();
    }

    /// What the client says next; nothing once it has gone, or says what is no frame.
    pub(super) fn receive(&mut self) -> Option<Frame> {
        loop {
            match Frame::take(&mut self.come) {
                Ok(Some(frame)) => return Some(frame),
                Ok(None) => {}
                Err(_) => return None,
            }
            let mut piece = [0; 16 << 10];
            match self.stream.read(&mut piece) {
                Ok(0) => return None,
                Ok(length) => self.come.extend_from_slice(&piece[..length]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
    }

    /// The connection has ended: whether because the client left, and not the daemon.
    pub(super) fn is_left_by_its_client(&mut self) -> bool {
        while let Some(frame) = self.receive() {
            if frame == Frame::Gone {
                return true;
            }
        }
        false
    }
}
