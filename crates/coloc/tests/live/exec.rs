//! `coloc exec`, and standard input for `coloc run`.

use super::home::{Home, coloc, text};
use super::screen::Screen;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

fn piped(home: &Home, arguments: &[&str]) -> Command {
    let mut command = coloc();
    command.args(arguments).env("COLOC_SOCKET", home.socket());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn given(home: &Home, arguments: &[&str], input: &[u8]) -> Output {
    let mut child: Child = piped(home, arguments).spawn().expect("it runs");
    let mut stdin = child.stdin.take().expect("a pipe");
    let input = input.to_vec();
    let writes = std::thread::spawn(move || {
        // A program that wants no more closes its end.
        let _ = stdin.write_all(&input);
    });
    let output = child.wait_with_output().expect("it ends");
    writes.join().expect("it was written");
    output
}

fn running(home: &Home, arguments: &[&str]) -> String {
    let id = home.submit(arguments);
    home.wait_for_state(id, "running");
    id.to_string()
}

#[test]
fn a_command_runs_where_its_task_does() {
    let home = Home::new(&["--emulate", "2xA100-40GB"]);
    let place = home.path().join("work");
    std::fs::create_dir(&place).expect("a directory");
    let place = place.to_str().expect("text");
    let id = running(&home, &["-D", place, "--export", "PATH,MINE=yes", "--", "sleep", "1000"]);
    let script = "echo $COLOC_TASK_ID $MINE $CUDA_VISIBLE_DEVICES; pwd; cat /proc/self/cgroup";
    let said = home.run(&["exec", &id, "--", "sh", "-c", script]);
    let mut lines = said.lines();
    let gpu = home.json(&["gpus"])["gpus"][0]["uuid"].as_str().expect("a UUID").to_owned();
    assert_eq!(lines.next(), Some(format!("{id} yes {gpu}").as_str()), "{said}");
    assert_eq!(lines.next(), Some(place));
    let main = std::process::Command::new("pgrep").args(["-nfx", "sleep 1000"]).output();
    let main = text(&main.expect("pgrep runs").stdout);
    let groups = std::fs::read_to_string(format!("/proc/{}/cgroup", main.trim()));
    assert_eq!(lines.collect::<Vec<_>>(), groups.expect("groups").lines().collect::<Vec<_>>());
    let smi = home.run(&["exec", &id, "--", "nvidia-smi", "-L"]);
    assert!(smi.contains("A100"), "the emulated driver is there too: {smi}");

    let both = home.try_run(&["exec", &id, "--", "sh", "-c", "echo out; echo err >&2; exit 9"]);
    assert_eq!(both.status.code(), Some(9));
    assert_eq!((text(&both.stdout).as_str(), text(&both.stderr).as_str()), ("out\n", "err\n"));
    let killed = home.try_run(&["exec", &id, "--", "sh", "-c", "kill -9 $$"]);
    assert_eq!(killed.status.code(), Some(137), "{}", text(&killed.stderr));
    let none = home.try_run(&["exec", &id, "--", "/no/such/program"]);
    assert_eq!(none.status.code(), Some(127));
    assert!(text(&none.stderr).contains("No such file"), "{}", text(&none.stderr));
    let much: Vec<u8> = (0..3_000_000_u32).map(|n| (n % 251) as u8).collect();
    let echoed = given(&home, &["exec", &id, "--", "cat"], &much);
    assert!(echoed.stdout == much, "{} bytes came back", echoed.stdout.len());
    let enough = given(&home, &["exec", &id, "--", "head", "-c", "5"], &much);
    assert_eq!((enough.status.code(), enough.stdout.len()), (Some(0), 5));
    assert!(home.story(1).contains("a command runs beside it: nvidia-smi -L"));

    let mut shell = Screen::of(&home, &["exec", "--pty", &id, "--", "bash", "--norc"]);
    shell.types("stty size; echo $MINE $TERM\r");
    shell.wait_for("24 80");
    shell.wait_for("yes xterm");
    shell.types("exit 4\r");
    assert_eq!(shell.code(), Some(4));
    assert!(shell.is_usual());
}

#[test]
fn commands_end_with_their_client_and_with_their_task_and_are_few() {
    let home = Home::new(&["--emulate", "1xA100-40GB", "--grace", "0.2"]);
    let id = running(&home, &["--", "sleep", "1000"]);
    let pids = home.path().join("pids");
    let script = format!("echo $$ >> {}; trap '' HUP; sleep 2000; sleep 2000", pids.display());
    let begun = |count: usize| {
        let count_of = || std::fs::read_to_string(&pids).unwrap_or_default().lines().count();
        home.wait_for("commands", |_| count_of() >= count);
        std::fs::read_to_string(&pids).expect("numbers")
    };
    let is_there = |pid: &str| std::path::Path::new("/proc").join(pid).exists();
    let exec = || piped(&home, &["exec", &id, "--", "sh", "-c", &script]).spawn().expect("it runs");
    let mut first = exec();
    let pid = begun(1).trim().to_owned();
    first.kill().expect("it is ours");
    first.wait().expect("it ends");
    home.wait_for("the end of a command without a client", |_| !is_there(&pid));

    let mut all: Vec<Child> = (0..16).map(|_| exec()).collect();
    begun(17);
    let refused = home.try_run(&["exec", &id, "--", "true"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("16 commands"), "{}", text(&refused.stderr));
    home.run(&["cancel", &id]);
    for child in &mut all {
        assert_eq!(child.wait().expect("it ends").code(), Some(137), "it went with its task");
    }
    home.wait_for_state(1, "cancelled");
    let left: Vec<String> =
        begun(17).lines().filter(|pid| is_there(pid)).map(str::to_owned).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_pipe_is_a_tasks_standard_input() {
    let mut home = Home::new(&["--emulate", "1xA100-40GB"]);
    let sum = |output: &Output| text(&output.stdout).split(' ').next().map(str::to_owned);
    let much: Vec<u8> = (0..2_000_000_u32).map(|n| (n % 241) as u8).collect();
    std::fs::write(home.path().join("much"), &much).expect("a file");
    let real = Command::new("md5sum").arg(home.path().join("much")).output().expect("md5sum runs");
    let fed = given(&home, &["run", "--", "md5sum"], &much);
    assert_eq!(sum(&fed), sum(&real), "{}", text(&fed.stderr));
    let enough = given(&home, &["run", "--", "head", "-c", "3"], &much);
    assert_eq!(
        (enough.status.code(), enough.stdout.len()),
        (Some(0), 3),
        "{}",
        text(&enough.stderr)
    );
    let alone = given(&home, &["run", "--no-stdin", "--", "wc", "-c"], &much);
    assert_eq!(text(&alone.stdout).trim(), "0");
    assert_eq!(home.run(&["run", "--", "wc", "-c"]).trim(), "0", "without a pipe it is empty");

    // A client that dies has the input end.
    let mut child =
        piped(&home, &["run", "--", "sh", "-c", "cat; echo the end"]).spawn().expect("it runs");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(b"half a li").expect("it reads");
    home.wait_for("the first half", |home| home.try_run(&["logs", "5"]).stdout == b"half a li");
    child.kill().expect("it is ours");
    child.wait().expect("it ends");
    home.wait_for_state(5, "completed");
    assert_eq!(home.run(&["logs", "5"]), "half a lithe end\n");

    // A daemon that dies does not: nothing is lost, and nothing comes twice.
    let mut child =
        piped(&home, &["run", "--", "sh", "-c", "sleep 0.5; md5sum"]).spawn().expect("it runs");
    let mut stdin = child.stdin.take().expect("a pipe");
    let (one, two) = much.split_at(1_000_000);
    stdin.write_all(one).expect("it reads");
    home.kill();
    home.boot();
    stdin.write_all(two).expect("it reads on");
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(sum(&output), sum(&real), "{}", text(&output.stderr));
}

/// A connection that was upgraded by hand.
fn upgraded(home: &Home, path: &str) -> (UnixStream, String) {
    let mut stream = UnixStream::connect(home.socket()).expect("a place");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    let head = format!(
        "GET {path} HTTP/1.1\r\nhost: coloc\r\nconnection: upgrade\r\nupgrade: coloc-frames\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).expect("it listens");
    let mut said = Vec::new();
    while !said.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        match stream.read(&mut byte) {
            Ok(1) => said.push(byte[0]),
            _ => break,
        }
    }
    (stream, text(&said))
}

#[test]
fn what_is_no_frame_ends_a_visit_and_nothing_else() {
    let home = Home::new(&["--emulate", "1xA100-40GB"]);
    let mut screen = Screen::of(&home, &["run", "--pty", "--", "bash", "--norc"]);
    screen.wait_for("$ ");
    let plain = super::http::ask(&home, "GET /v1/tasks/1/attach", "", b"");
    assert_eq!((plain.status, plain.json()["code"].clone()), (426, "no_upgrade".into()));
    let path = "/v1/tasks/1/attach?read_only=true";
    for nonsense in [
        &[0, 0xff, 0xff, 0xff, 0xff, 1, 2, 3][..],
        &[99, 0, 0, 0, 0],
        &[21, 0, 0, 0, 0],
        &[5, 0, 0, 0, 0],
        b"GET / HTTP/1.1\r\n\r\n",
    ] {
        let (mut stream, head) = upgraded(&home, path);
        assert!(head.starts_with("HTTP/1.1 101"), "{head}");
        stream.write_all(nonsense).expect("it listens");
        let mut rest = Vec::new();
        let ended = stream.read_to_end(&mut rest);
        assert!(ended.is_ok(), "it is hung up on {nonsense:?}: {ended:?}");
    }
    // One that says nothing has a place at the terminal, and there are few.
    let silent: Vec<_> = (0..7).map(|_| upgraded(&home, path)).collect();
    assert!(silent.iter().all(|(_, head)| head.starts_with("HTTP/1.1 101")));
    let (_, head) = upgraded(&home, path);
    assert!(head.starts_with("HTTP/1.1 429"), "{head}");
    drop(silent);
    home.wait_for("a place", |home| upgraded(home, path).1.starts_with("HTTP/1.1 101"));
    screen.types("echo un''harmed; yes | head -c 2000000; echo do''ne\r");
    screen.wait_for("unharmed");
    screen.wait_for("done");
    // What looks like HTTP in an output is none.
    screen.types("printf 'HTTP/1.1 431 x\\r\\ncontent-length: 0\\r\\n\\r\\n'; exit 5\r");
    screen.wait_for("HTTP/1.1 431 x");
    assert_eq!(screen.code(), Some(5));
}
