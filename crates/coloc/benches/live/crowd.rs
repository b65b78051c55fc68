//! As many tasks as one user may have, and what another user notices while they come.

use super::daemon::Daemon;
use super::load::{Connection, submission};
use super::table::{Figure, Table};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// What one user may have.
const TASKS: usize = 100_000;
const CLIENTS: usize = 32;

/// A way to submit them all.
struct Way {
    submit: fn(&Path),
    /// What the figures are called: until all are submitted, another user's wait, memory, a restart.
    figures: [&'static str; 4],
}

const WAYS: [Way; 3] = [
    Way {
        submit: |socket| arrays(socket, 1),
        figures: [
            "100,000 tasks as one array",
            "  another user's list, p99",
            "  daemon with one array",
            "  restart with one array",
        ],
    },
    Way {
        submit: |socket| arrays(socket, 100),
        figures: [
            "100,000 tasks as 100 arrays",
            "  another user's list meanwhile, p99",
            "  daemon with 100 arrays",
            "  restart with 100 arrays",
        ],
    },
    Way {
        submit: one_by_one,
        figures: [
            "100,000 tasks one by one, 32 clients",
            "  another user's list beside them, p99",
            "  daemon with single tasks",
            "  restart with single tasks",
        ],
    },
];

pub(crate) fn measure(table: &mut Table) {
    for Way { submit, figures: [all, wait, memory, restart] } in WAYS {
        let mut daemon = Daemon::start();
        let (wall, mut waits) = while_another_asks(&daemon.socket(), submit);
        waits.sort_unstable();
        let p99 = waits[(waits.len() - 1) * 99 / 100];
        table.add("coloc", Figure::time(all, wall));
        table.add("coloc", Figure::time(wait, p99));
        table.add("coloc", Figure::memory(memory, daemon.resident()));
        table.add("coloc", Figure::time(restart, daemon.start_again()));
    }
}

/// Submits, and how long another user's lists took meanwhile.
fn while_another_asks(socket: &Path, submit: fn(&Path)) -> (Duration, Vec<Duration>) {
    let over = AtomicBool::new(false);
    let list = b"GET /v1/tasks?user=daemon HTTP/1.1\r\nhost: coloc\r\n\r\n";
    std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            let (mut waits, mut connection) = (Vec::new(), Connection::open(socket));
            while !over.load(Ordering::Relaxed) {
                let asked = Instant::now();
                connection.ask(list).expect("an answer");
                waits.push(asked.elapsed());
                std::thread::sleep(Duration::from_millis(2));
            }
            waits
        });
        let began = Instant::now();
        submit(socket);
        let wall = began.elapsed();
        over.store(true, Ordering::Relaxed);
        (wall, other.join().expect("it asks"))
    })
}

fn arrays(socket: &Path, count: usize) {
    let indices: Vec<usize> = (0..TASKS / count).collect();
    let spec = serde_json::json!({
        "name": "train.py", "command": ["python", "train.py"], "directory": "/tmp", "gpus": 1,
    });
    let body = serde_json::json!({ "spec": spec, "held": true, "array": { "indices": indices } });
    let body = body.to_string();
    let length = body.len();
    let head = "POST /v1/tasks HTTP/1.1\r\nhost: coloc\r\ncontent-type: application/json\r\n";
    let request = format!("{head}content-length: {length}\r\n\r\n{body}");
    let mut connection = Connection::open(socket);
    for _ in 0..count {
        connection.ask(request.as_bytes()).expect("an answer");
    }
}

fn one_by_one(socket: &Path) {
    let (request, next) = (submission(true, &["true"]), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                let mut connection = Connection::open(socket);
                while next.fetch_add(1, Ordering::Relaxed) < TASKS {
                    connection.ask(&request).expect("an answer");
                }
            });
        }
    });
}
