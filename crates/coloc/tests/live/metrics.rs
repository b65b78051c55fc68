//! `/metrics`: what a scraper reads, what promtool says of it, and a real Prometheus.

use super::home::{Home, skipped, text};
use super::http::{Reply, ask, ask_host, ask_over};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::Write;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A daemon with metrics at a free port, and that address.
fn daemon(arguments: &[&str]) -> (Home, String) {
    let fixed = ["--emulate", "2xA100-40GB", "--time-scale", "50", "--metrics", "0"];
    let home = Home::new(&[&fixed[..], arguments].concat());
    let log = std::fs::read_to_string(home.path().join("daemon.log")).expect("a log");
    let address = log.split("metrics at http://").nth(1).and_then(|rest| rest.split('/').next());
    let address = address.unwrap_or_else(|| panic!("no address: {log}")).to_owned();
    (home, address)
}

fn get(address: &str, path: &str, headers: &str) -> Reply {
    let stream = TcpStream::connect(address).expect("it listens");
    ask_host(address, stream, &format!("GET {path}"), headers, b"")
}

#[test]
fn a_page_of_another_site_reads_no_metrics_by_a_name_of_its_own() {
    let (_home, address) = daemon(&[]);
    let port = address.rsplit(':').next().expect("a port");
    let status = |host: &str| {
        let stream = TcpStream::connect(&address).expect("it listens");
        ask_host(host, stream, "GET /metrics", "", b"").status
    };
    assert_eq!(status(&format!("localhost:{port}")), 200);
    for foreign in ["evil.example", &format!("evil.example:{port}"), "127.0.0.1.evil.example"] {
        assert_eq!(status(foreign), 421, "{foreign}");
    }
}

fn page(address: &str) -> String {
    let reply = get(address, "/metrics", "");
    assert_eq!(reply.status, 200, "{}", reply.head);
    text(&reply.body)
}

/// The value of a series whose line begins so.
fn value(page: &str, start: &str) -> Option<f64> {
    let line = page.lines().find(|line| line.starts_with(start))?;
    line.rsplit(' ').next()?.parse().ok()
}

fn deployed(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(file);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn has(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

/// Whether promtool is content with a page, and what it says.
fn promtool_says(page: &str) -> String {
    let mut promtool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool runs");
    promtool.stdin.take().expect("a pipe").write_all(page.as_bytes()).expect("it reads");
    let output = promtool.wait_with_output().expect("it ends");
    text(&output.stdout) + &text(&output.stderr)
}

#[test]
fn a_scraper_reads_what_there_is() {
    let (home, address) = daemon(&[]);
    let evil = "a\"} 1\ncoloc_evil 9";
    let train =
        [env!("CARGO_BIN_EXE_coloc"), "emu", "train", "--memory", "4G", "--seconds", "90000"];
    let words = [&["-J", evil, "--gpu-mem", "6G", "--"][..], &train].concat();
    let (id, held) = (home.submit(&words), home.submit(&["--hold", "--", "true"]));
    home.wait_for_state(id, "running");
    let failed = home.submit(&["--gpu-mem", "1G", "--", "false"]);
    home.wait_for_state(failed, "failed");
    let used =
        format!("coloc_task_memory_used_bytes{{task=\"{id}\",name=\"a\\\"}} 1\\ncoloc_evil 9\"");
    home.wait_for("its memory", |_| value(&page(&address), &used) > Some(3e9));
    let page = page(&address);
    assert_eq!(value(&page, "coloc_task_memory_promised_bytes{"), Some((6u64 << 30) as f64));
    assert_eq!(value(&page, "coloc_tasks{state=\"pending\""), Some(1.0), "{page}");
    assert_eq!(value(&page, "coloc_tasks_held{"), Some(1.0), "task {held}");
    assert_eq!(value(&page, "coloc_tasks_ended_total{state=\"failed\""), Some(1.0), "{page}");
    assert_eq!(value(&page, "coloc_task_wait_seconds_count{"), Some(2.0), "{page}");
    assert_eq!((value(&page, "coloc_emulated"), value(&page, "coloc_evil")), (Some(1.0), None));
    assert!(value(&page, "DCGM_FI_DEV_FB_USED{gpu=\"0\",UUID=\"GPU-") > Some(3000.0), "{page}");
    assert!(value(&page, "coloc_journal_write_seconds_count") > Some(1.0), "{page}");
    assert!(value(&page, "coloc_api_requests_total{class=\"2xx\"}") > Some(1.0), "{page}");

    // The same over the socket, where the kernel names the caller; nothing else is told at the open port.
    assert!(text(&ask(&home, "GET /metrics", "", b"").body).contains("coloc_tasks{"));
    for path in ["/v1/tasks", "/", "/openapi.json"] {
        assert_eq!(get(&address, path, "").status, 404, "{path}");
    }
    let open = get(&address, "/metrics", "accept: application/openmetrics-text;version=1.0.0\r\n");
    assert!(open.head.contains("application/openmetrics-text"), "{}", open.head);
    assert!(text(&open.body).ends_with("# EOF\n"));

    if !has("promtool") {
        return skipped("no promtool, so what it says of the metrics is not known");
    }
    // The names of dcgm-exporter are not to promtool's taste, and are what boards ask for: only their labels are odd.
    let said = promtool_says(&page);
    let ours = |line: &&str| !line.starts_with("DCGM_FI_") || !line.contains("label names");
    assert_eq!(said.lines().filter(ours).collect::<Vec<_>>(), Vec::<&str>::new());
    assert!(promtool_says("# TYPE a counter\na 1\n").contains("_total"), "it can complain");
}

/// Names of series in a query: words of the form that ours have.
fn named(query: &str, names: &mut BTreeSet<String>) {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let words = query.split(|c: char| !is_part(c));
    let starts = ["coloc_", "DCGM_", "process_", "coloc:"];
    names.extend(
        words.filter(|word| starts.iter().any(|start| word.starts_with(start))).map(str::to_owned),
    );
}

fn queries(value: &Value, names: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                match value {
                    Value::String(query) if ["expr", "definition"].contains(&key.as_str()) => {
                        named(query, names);
                    }
                    other => queries(other, names),
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| queries(value, names)),
        _ => {}
    }
}

#[test]
fn every_series_of_the_board_and_the_rules_is_served() {
    let board: Value = serde_json::from_str(&deployed("grafana/coloc.json")).expect("JSON");
    let rules = deployed("prometheus/coloc.rules.yml");
    let (mut wanted, mut recorded) = (BTreeSet::new(), BTreeSet::new());
    queries(&board, &mut wanted);
    for line in rules.lines() {
        let is_text =
            ["summary:", "description:", "#"].iter().any(|key| line.trim().starts_with(key));
        match line.trim().strip_prefix("- record: ") {
            Some(name) => drop(recorded.insert(name.to_owned())),
            None if !is_text => named(line, &mut wanted),
            None => {}
        }
    }
    assert!(wanted.len() > 25, "{wanted:?}");
    let (_home, address) = daemon(&[]);
    let page = page(&address);
    let mut served: BTreeSet<String> = recorded;
    for line in page.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let (name, kind) = line.split_once(' ').expect("a kind");
        let parts = if kind == "histogram" { &["_bucket", "_sum", "_count"][..] } else { &[""] };
        served.extend(parts.iter().map(|part| format!("{name}{part}")));
    }
    let missing: Vec<&String> = wanted.difference(&served).collect();
    assert!(missing.is_empty(), "{missing:?} in {page}");
}

/// A Prometheus that ends with the test.
struct Prometheus(Child, String);

impl Prometheus {
    fn start(home: &Home, daemon: &str) -> Self {
        let port = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = port.local_addr().expect("an address").to_string();
        drop(port);
        let rules = home.path().join("coloc.rules.yml");
        std::fs::write(&rules, deployed("prometheus/coloc.rules.yml")).expect("written");
        let config = deployed("prometheus/prometheus.yml").replace("15s", "1s");
        let config = config.replace("127.0.0.1:9451", daemon);
        assert!(config.contains(daemon), "{config}");
        let file = home.path().join("prometheus.yml");
        std::fs::write(&file, config).expect("written");
        let log = std::fs::File::create(home.path().join("prometheus.log")).expect("a log");
        let child = Command::new("prometheus")
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.tsdb.path={}", home.path().join("tsdb").display()))
            .arg(format!("--web.listen-address={address}"))
            .stdout(Stdio::null())
            .stderr(log)
            .spawn();
        Prometheus(child.expect("prometheus starts"), address)
    }

    /// The first value that a query gives.
    fn value(&self, query: &str) -> Option<f64> {
        let stream = TcpStream::connect(&self.1).ok()?;
        let reply = ask_over(stream, &format!("GET /api/v1/query?query={query}"), "", b"");
        let answer: Value = serde_json::from_slice(&reply.body).ok()?;
        answer.pointer("/data/result/0/value/1")?.as_str()?.parse().ok()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_real_prometheus_scrapes_a_live_daemon() {
    if !has("prometheus") {
        return skipped("no prometheus, so nothing scrapes");
    }
    let (home, address) = daemon(&[]);
    let prometheus = Prometheus::start(&home, &address);
    home.wait_for("a scrape", |_| prometheus.value("up") == Some(1.0));
    assert_eq!(prometheus.value("coloc_emulated"), Some(1.0));
    let id = home.submit(&["--gpu-mem", "2G", "--", "sleep", "600"]);
    home.wait_for_state(id, "running");
    let running = "sum(coloc_tasks%7Bstate=%22running%22%7D)";
    home.wait_for("the task in Prometheus", |_| prometheus.value(running) == Some(1.0));
    let promised = "coloc:memory_promised:ratio";
    home.wait_for("a recorded rule", |_| prometheus.value(promised) == Some(2.0 / 80.0));
    home.run(&["cancel", &id.to_string()]);
    // An ended task leaves nothing behind but what is counted.
    let task = "count(coloc_task_memory_promised_bytes)";
    home.wait_for("no series of it", |_| prometheus.value(task).is_none());
    let ended = "sum(coloc_tasks_ended_total%7Bstate=%22cancelled%22%7D)";
    home.wait_for("its end", |_| prometheus.value(ended) == Some(1.0));
}
