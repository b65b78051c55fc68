//! From the request to the first line of the program: a shell that writes into a pipe, at which the benchmark waits.

use super::daemon::Daemon;
use super::load::{Connection, Taken, submission};
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The first starts set up what all later ones use.
const WARM: usize = 3;
/// A program that has not started by then never will.
const PATIENCE: Duration = Duration::from_secs(30);
/// A GPU is idle again after this long.
const PAUSE: Duration = Duration::from_millis(60);

/// What the program does.
pub(crate) fn hello(fifo: &Path) -> String {
    format!("echo > {}", fifo.display())
}

/// Starts by a connection that is open.
pub(crate) fn by_socket(daemon: &Daemon, count: usize) -> Taken {
    let mut connection = Connection::open(&daemon.socket());
    measure(daemon.path(), count, |fifo| {
        let request = submission(false, &["/bin/sh", "-c", &hello(fifo)]);
        connection.ask(&request).expect("an answer");
    })
}

/// Starts by a command, the start of that command included.
pub(crate) fn of(count: usize, command: impl Fn(&Path) -> Command) -> Taken {
    let place = tempfile::tempdir().expect("a temporary directory");
    measure(place.path(), count, |fifo| {
        let mut command = command(fifo);
        let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
        assert!(status.is_ok_and(|status| status.success()), "{command:?}");
    })
}

fn measure(place: &Path, count: usize, mut submit: impl FnMut(&Path)) -> Taken {
    let fifo = place.join("hello");
    let made = Command::new("mkfifo").arg(&fifo).status();
    assert!(made.is_ok_and(|made| made.success()), "mkfifo");
    let mut each = Vec::new();
    let all = Instant::now();
    for _ in 0..count + WARM {
        let (tell, told) = std::sync::mpsc::channel();
        let pipe = fifo.clone();
        std::thread::spawn(move || {
            let mut pipe = std::fs::File::open(&pipe).expect("a pipe");
            pipe.read_exact(&mut [0]).expect("a line");
            let _ = tell.send(Instant::now());
        });
        let asked = Instant::now();
        submit(&fifo);
        let first_line = told.recv_timeout(PATIENCE).expect("the program starts");
        each.push(first_line.duration_since(asked));
        std::thread::sleep(PAUSE);
    }
    each.drain(..WARM);
    let _ = std::fs::remove_file(&fifo);
    Taken { wall: all.elapsed(), each }
}
