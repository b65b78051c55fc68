//! Faults of the machine are not the tasks': launching waits for better times, and says why.

use crate::live::home::{Home, coloc, text};
use std::path::Path;
use std::process::Command;

/// A daemon that runs from a copy of the program.
fn from_a_copy() -> (tempfile::TempDir, Home) {
    let place = tempfile::tempdir().expect("a directory");
    let copy = place.path().join("coloc");
    std::fs::copy(coloc().get_program(), &copy).expect("a copy");
    // The first word is the directory of the state, the second the program that is replaced by its copy.
    let libraries = Path::new(env!("CARGO_BIN_EXE_coloc")).with_file_name("deps");
    let script = format!(
        "shift; export COLOC_EMU_LIBRARIES={}; exec {} \"$@\"",
        libraries.display(),
        copy.display()
    );
    let home = Home::within(&["sh", "-c", &script], &["--emulate", "2xA100-40GB"]);
    (place, home)
}

#[test]
fn a_program_that_is_away_during_an_upgrade_fails_no_task() {
    let (place, home) = from_a_copy();
    let (here, away) = (place.path().join("coloc"), place.path().join("away"));
    std::fs::rename(&here, &away).expect("it is ours");
    let tasks: Vec<u32> = (0..4).map(|_| home.submit(&["--", "true"])).collect();
    home.wait_for("the reason", |home| {
        let reason = home.show(tasks[0])["reason"].as_str().unwrap_or_default().to_owned();
        reason.contains("cannot start a shim")
    });
    assert!(home.run(&["queue"]).contains("cannot start a shim"), "{}", home.run(&["queue"]));
    let why = home.run(&["why", &tasks[0].to_string()]);
    assert!(why.contains("nothing is launched: cannot start a shim"), "{why}");
    let doctor = home.try_run(&["doctor"]);
    let said = text(&doctor.stdout);
    assert!(said.contains("BROKEN   nothing is launched"), "{said}");
    std::fs::rename(&away, &here).expect("it is ours");
    for task in tasks {
        home.wait_for_state(task, "completed");
        assert_eq!(home.show(task)["attempts"], 1, "{}", home.story(task));
    }
    assert!(text(&home.try_run(&["doctor"]).stdout).contains("tasks are launched"));
}

#[test]
fn too_few_file_descriptors_fail_no_task() {
    let home = Home::new(&["--emulate", "8xA100-40GB", "--share", "streams"]);
    let open = std::fs::read_dir(format!("/proc/{}/fd", home.pid())).expect("its files").count();
    let limit = |most: usize| {
        let (pid, most) = (format!("--pid={}", home.pid()), format!("--nofile={most}:"));
        let limited = Command::new("prlimit").args([pid, most]).status();
        assert!(limited.expect("prlimit runs").success());
    };
    limit(open + 9);
    let first = home.submit(&["--gpu-mem", "1G", "-a", "1-40", "--", "sleep", "5"]);
    let tasks = first..first + 40;
    let log = home.path().join("daemon.log");
    home.wait_for("a fault", |_| {
        std::fs::read_to_string(&log).is_ok_and(|log| log.contains("Too many open files"))
    });
    limit(1024);
    for task in tasks {
        home.wait_for("its end", |home| home.show(task)["ended_s"].is_number());
        assert_eq!(home.state(task), "completed", "{}", home.story(task));
    }
}

#[test]
fn an_end_that_cannot_be_read_is_read_later() {
    let mut home = Home::new(&["--emulate", "1xA100-40GB"]);
    let id = home.submit(&["--", "sh", "-c", "echo done; sleep 0.3; exit 7"]);
    home.wait_for("its words", |home| home.run(&["logs", &id.to_string()]) == "done\n");
    home.kill();
    let exit = home.path().join(format!("state/runs/{id}.1/exit.json"));
    let timeout = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while !exit.exists() && std::time::Instant::now() < timeout {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    // What cannot be read because of the machine looks like this to the daemon.
    let aside = exit.with_file_name("aside");
    std::fs::rename(&exit, &aside).expect("it is ours");
    std::fs::create_dir(&exit).expect("a directory in its place");
    home.boot();
    home.wait_for("the reason", |home| {
        let reason = home.show(id)["reason"].as_str().unwrap_or_default().to_owned();
        reason.contains("the machine cannot tell how it is")
    });
    assert_eq!(home.state(id), "running");
    std::fs::remove_dir(&exit).expect("it is empty");
    std::fs::rename(&aside, &exit).expect("it is ours");
    home.wait_for_state(id, "failed");
    assert_eq!(home.show(id)["exit_code"], 7);
}

#[test]
fn nothing_that_is_started_has_the_daemons_environment() {
    let secret = "COLOC_TEST_SECRET";
    let home = Home::with_environment(&["--emulate", "1xA100-40GB", "--share", "mps"], |_| {
        vec![(secret, "known to the daemon".into())]
    });
    let id = home.submit(&["--gpu-mem", "2G", "--", "sleep", "60"]);
    home.wait_for_state(id, "running");
    // Whatever is of this daemon, by the fleet that it was given: the task, its shim, MPS and DCGM.
    let place = home.path().display().to_string();
    let mut others = 0;
    for entry in std::fs::read_dir("/proc").expect("processes").flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
        let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        let environment = text(&environment);
        if pid != home.pid() && environment.contains(&place) {
            others += 1;
            let command = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            assert!(!environment.contains(secret), "{}", text(&command));
        }
    }
    assert!(others >= 3, "a shim, a task, a control daemon: {others}");
}

#[test]
fn a_task_whose_files_are_gone_is_lost_and_not_started_beside_itself() {
    let mut home = Home::with_environment(&["--emulate", "2xA100-40GB"], |_| {
        vec![("COLOC_CGROUP", "none".into())]
    });
    let ran = home.path().join("ran");
    let script = format!("echo $$ >> {}; sleep 600", ran.display());
    let tasks = [0, 1].map(|_| home.submit(&["--exclusive", "--", "sh", "-c", &script]));
    let lines = || std::fs::read_to_string(&ran).map_or(0, |text| text.lines().count());
    home.wait_for("both", |_| lines() == 2);
    home.wait_for("room for their ends", |home| {
        tasks.iter().all(|id| home.path().join(format!("state/runs/{id}.1/.exit.json")).exists())
    });
    home.kill();
    let runs = home.path().join("state/runs");
    std::fs::remove_dir_all(runs.join(format!("{}.1", tasks[0]))).expect("it is ours");
    std::fs::remove_file(runs.join(format!("{}.1/claim", tasks[1]))).expect("it is ours");
    home.boot();
    for task in tasks {
        home.wait_for_state(task, "lost");
    }
    assert_eq!(lines(), 2);
    let pids = std::fs::read_to_string(&ran).expect("numbers");
    home.wait_for("their ends", |_| {
        pids.lines().all(|pid| !Path::new("/proc").join(pid).join("exe").exists())
    });
}

#[test]
fn a_story_has_an_end_however_often_a_task_is_changed() {
    let home = Home::new(&["--emulate", "1xA100-40GB"]);
    let id = home.submit(&["--hold", "--", "true"]).to_string();
    for n in 0..3 {
        home.run(&["hold", &id]);
        home.run(&["update", &id, "--name", &format!("name {n}")]);
    }
    let story = home.story(id.parse().expect("an id"));
    assert_eq!(story.matches("held").count(), 0, "it was held from the start: {story}");
    let mut socket = std::os::unix::net::UnixStream::connect(home.socket()).expect("a socket");
    for n in 0..300 {
        use std::io::{Read as _, Write as _};
        let body = format!(r#"{{"ids":[{id}],"change":{{"update":{{"name":"n{n}"}}}}}}"#);
        let head = "POST /v1/tasks/change HTTP/1.1\r\nhost: x\r\ncontent-type: application/json";
        write!(socket, "{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).expect("sent");
        let length = socket.read(&mut [0; 4096]).expect("an answer");
        assert!(length > 0);
    }
    let story = home.story(id.parse().expect("an id"));
    assert_eq!(story.lines().count(), 200, "{story}");
    assert!(story.starts_with("submitted") && story.contains("n299"), "{story}");
}

#[test]
fn the_lock_is_the_daemons_alone_and_waited_for_a_moment() {
    use std::os::unix::fs::MetadataExt as _;
    let mut home = Home::new(&["--emulate", "1xA100-40GB"]);
    let lock = home.path().join("state/lock");
    assert_eq!(std::fs::metadata(&lock).expect("a lock").mode() & 0o777, 0o600);
    home.kill();
    // As a child of the last daemon that has not become a shim yet.
    let mut child = hold(&lock, "1");
    home.boot();
    child.wait().expect("it is ours");
    home.run(&["queue"]);
}

/// Holds a lock for some seconds; it is held when this returns.
fn hold(lock: &Path, seconds: &str) -> std::process::Child {
    let child =
        Command::new("flock").arg(lock).args(["sleep", seconds]).spawn().expect("flock runs");
    let is_held = || {
        let try_it = Command::new("flock").arg("--nonblock").arg(lock).arg("true").status();
        !try_it.expect("flock runs").success()
    };
    while !is_held() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    child
}

#[test]
fn an_end_that_cannot_be_written_is_written_later() {
    let home = Home::new(&["--emulate", "1xA100-40GB"]);
    let go = home.path().join("go");
    let until = format!("while ! test -e {}; do sleep 0.02; done; exit 7", go.display());
    let id = home.submit(&["--", "sh", "-c", &until]);
    let run = home.path().join(format!("state/runs/{id}.1"));
    home.wait_for("room for its end", |_| run.join(".exit.json").exists());
    // What cannot be written because of the machine looks like this to the shim.
    std::fs::create_dir(run.join("exit.json")).expect("a directory in its place");
    std::fs::write(&go, "").expect("a file");
    std::thread::sleep(std::time::Duration::from_secs(1));
    assert_eq!(home.state(id), "running", "how it ended is not known yet");
    std::fs::remove_dir(run.join("exit.json")).expect("it is empty");
    home.wait_for_state(id, "failed");
    assert_eq!(home.show(id)["exit_code"], 7);
}
