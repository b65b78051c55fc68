//! Making a daemon work: many connections, or many processes.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How long things took, each and all together.
pub(crate) struct Taken {
    pub(crate) wall: Duration,
    pub(crate) each: Vec<Duration>,
}

impl Taken {
    pub(crate) fn percentile(&self, share: f64) -> Duration {
        let mut sorted = self.each.clone();
        sorted.sort_unstable();
        sorted[((sorted.len() - 1) as f64 * share).round() as usize]
    }
}

/// A submission as the command line sends it, with thirty variables.
pub(crate) fn submission(held: bool, command: &[&str]) -> Vec<u8> {
    let environment: Vec<(String, String)> = (0..30)
        .map(|n| (format!("VARIABLE_{n}"), format!("/a/value/of/usual/length/{n:024}")))
        .collect();
    let spec = serde_json::json!({
        "name": "train.py", "command": command, "directory": "/tmp", "gpus": 1, "environment": environment,
    });
    let body = serde_json::json!({ "spec": spec, "held": held }).to_string();
    let length = body.len();
    let head = "POST /v1/tasks HTTP/1.1\r\nhost: coloc\r\ncontent-type: application/json\r\n";
    format!("{head}content-length: {length}\r\n\r\n{body}").into_bytes()
}

/// A connection that asks one thing at a time.
pub(crate) struct Connection {
    stream: BufReader<UnixStream>,
}

impl Connection {
    pub(crate) fn open(socket: &Path) -> Self {
        let stream = UnixStream::connect(socket).expect("the daemon answers");
        Connection { stream: BufReader::with_capacity(1 << 18, stream) }
    }

    /// Sends a request and reads the answer, whose length is returned.
    pub(crate) fn ask(&mut self, request: &[u8]) -> io::Result<usize> {
        self.stream.get_mut().write_all(request)?;
        let (mut line, mut length) = (String::new(), None);
        self.stream.read_line(&mut line)?;
        assert!(line.starts_with("HTTP/1.1 200"), "{line}");
        loop {
            line.clear();
            self.stream.read_line(&mut line)?;
            if line == "\r\n" {
                break;
            }
            if let Some(value) = line.strip_prefix("content-length: ") {
                length = value.trim().parse().ok();
            }
        }
        match length {
            Some(length) => self.skip(length).map(|()| length),
            None => self.skip_chunks(),
        }
    }

    fn skip(&mut self, length: usize) -> io::Result<()> {
        io::copy(&mut self.stream.by_ref().take(length as u64), &mut io::sink()).map(|_| ())
    }

    fn skip_chunks(&mut self) -> io::Result<usize> {
        let (mut line, mut all) = (String::new(), 0);
        loop {
            line.clear();
            self.stream.read_line(&mut line)?;
            let length = usize::from_str_radix(line.trim(), 16).map_err(io::Error::other)?;
            self.skip(length + 2)?;
            all += length;
            if length == 0 {
                return Ok(all);
            }
        }
    }
}

/// `count` submissions from `clients` connections.
pub(crate) fn submit(socket: &Path, clients: usize, count: usize) -> Taken {
    let (request, next) = (submission(true, &["true"]), AtomicUsize::new(0));
    let connections: Vec<Connection> = (0..clients).map(|_| Connection::open(socket)).collect();
    let began = Instant::now();
    let work = |mut connection: Connection| {
        let mut each = Vec::new();
        while next.fetch_add(1, Ordering::Relaxed) < count {
            let asked = Instant::now();
            connection.ask(&request).expect("an answer");
            each.push(asked.elapsed());
        }
        each
    };
    let each = std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = connections
            .into_iter()
            .map(|connection| scope.spawn(move || work(connection)))
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("it works")).collect()
    });
    Taken { wall: began.elapsed(), each }
}

/// Asks for something and reads all of it.
pub(crate) fn get(socket: &Path, path: &str) {
    let request = format!("GET {path} HTTP/1.1\r\nhost: coloc\r\n\r\n");
    Connection::open(socket).ask(request.as_bytes()).expect("an answer");
}

fn run(mut command: Command) {
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    assert!(status.is_ok_and(|status| status.success()), "{command:?}");
}

/// One process after the other, as a shell's loop has it; how many a second.
pub(crate) fn in_a_loop(count: usize, command: impl Fn() -> Command) -> f64 {
    let began = Instant::now();
    (0..count).for_each(|_| run(command()));
    count as f64 / began.elapsed().as_secs_f64()
}

/// Several processes at a time, as `xargs -P` has it; how many a second.
pub(crate) fn at_once(width: usize, count: usize, command: impl Fn() -> Command + Sync) -> f64 {
    let began = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..width {
            scope.spawn(|| (0..count / width).for_each(|_| run(command())));
        }
    });
    count as f64 / began.elapsed().as_secs_f64()
}

/// The median time of a command whose output is read.
pub(crate) fn time_of(rounds: usize, mut command: impl FnMut() -> io::Result<Output>) -> Duration {
    super::super::median(rounds, || {
        let output = command().expect("it runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    })
}
