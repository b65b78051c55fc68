//! The live system under load: what a daemon on emulated GPUs takes, answers and starts in which time, and the same of
//! other queues where they are installed (`COLOC_BENCH_PEERS` names a directory with their programs).
//!
//! `COLOC_BENCH_ROUNDS` repeats everything; the table has the median of the rounds, and their range.

mod live {
    pub(super) mod crowd;
    pub(super) mod daemon;
    pub(super) mod load;
    pub(super) mod peers;
    pub(super) mod starts;
    pub(super) mod table;
}

use live::daemon::Daemon;
use live::table::{Figure, Table};
use live::{crowd, load, peers, starts};
use std::time::{Duration, Instant};

const CLIENTS: usize = 64;
const SUBMITS: usize = 10_000;
const LONG_QUEUE: usize = 100_000;
const IN_A_LOOP: usize = 200;
const STARTS: usize = 100;

fn main() {
    // `cargo test --benches` only wants to know that it builds and begins.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let rounds = std::env::var("COLOC_BENCH_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(3);
    let mut table = Table::default();
    for round in 1..=rounds {
        eprintln!("round {round} of {rounds}");
        coloc(&mut table);
        peers::measure(&mut table, IN_A_LOOP, STARTS / 10);
    }
    print!("{table}");
}

fn coloc(table: &mut Table) {
    let daemon = Daemon::start();
    submits(table, &daemon);
    table.add("coloc", Figure::memory("daemon with 10,000 pending", daemon.resident()));
    drop(daemon);

    let daemon = Daemon::start();
    table.add("coloc", Figure::memory("daemon with nothing to do", daemon.resident()));
    command_line(table, &daemon);
    daemon.run(&["cancel", "all"]);
    starts_of_tasks(table, &daemon);
    long_queue(table, &daemon);
    drop(daemon);
    crowd::measure(table);
}

/// Held tasks, each a submission of its own, from clients that keep their connection.
fn submits(table: &mut Table, daemon: &Daemon) {
    let taken = load::submit(&daemon.socket(), CLIENTS, SUBMITS);
    let rate = SUBMITS as f64 / taken.wall.as_secs_f64();
    table.add("coloc", Figure::rate("durable submits, 64 clients", rate));
    table.add("coloc", Figure::time("  one of them, median", taken.percentile(0.5)));
    table.add("coloc", Figure::time("  one of them, p95", taken.percentile(0.95)));
}

fn command_line(table: &mut Table, daemon: &Daemon) {
    let submit = || {
        let mut submit = daemon.command();
        submit.args(["submit", "--hold", "--", "true"]);
        submit
    };
    table.add("coloc", Figure::rate(peers::LOOP, load::in_a_loop(IN_A_LOOP, submit)));
    table.add("coloc", Figure::rate(peers::FOUR, load::at_once(4, IN_A_LOOP, submit)));
    let queue = load::time_of(5, || daemon.command().arg("queue").output());
    table.add("coloc", Figure::time(peers::LIST, queue));
}

fn starts_of_tasks(table: &mut Table, daemon: &Daemon) {
    let (by_socket, by_command) = (
        starts::by_socket(daemon, STARTS),
        starts::of(STARTS / 2, |fifo| {
            let mut submit = daemon.command();
            submit.args(["submit", "--", "sh", "-c"]).arg(starts::hello(fifo));
            submit
        }),
    );
    table.add(
        "coloc",
        Figure::time("socket submit to first line, median", by_socket.percentile(0.5)),
    );
    table
        .add("coloc", Figure::time("socket submit to first line, p95", by_socket.percentile(0.95)));
    table.add("coloc", Figure::time(peers::START, by_command.percentile(0.5)));
    table.add("coloc", Figure::time(peers::START95, by_command.percentile(0.95)));
}

fn long_queue(table: &mut Table, daemon: &Daemon) {
    let indices = format!("1-{LONG_QUEUE}");
    daemon.run(&["submit", "--hold", "--array", &indices, "--", "true"]);
    let answer = median(5, || load::get(&daemon.socket(), "/v1/tasks"));
    table.add("coloc", Figure::time("100,000 tasks: GET /v1/tasks", answer));
    let queue = load::time_of(5, || daemon.command().arg("queue").output());
    table.add("coloc", Figure::time("100,000 tasks: coloc queue", queue));
    let json = load::time_of(5, || daemon.command().args(["queue", "--json"]).output());
    table.add("coloc", Figure::time("100,000 tasks: coloc queue --json", json));
    table.add("coloc", Figure::memory("daemon after that", daemon.resident()));
}

fn median(rounds: usize, mut work: impl FnMut()) -> Duration {
    let mut times: Vec<Duration> = (0..rounds)
        .map(|_| {
            let began = Instant::now();
            work();
            began.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[rounds / 2]
}
