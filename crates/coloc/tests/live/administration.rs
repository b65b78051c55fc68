//! What the administrator of a server does, with two users who are not.

use super::home::{Home, coloc, text};
use super::users::{as_nobody, shared_home, submit_as_nobody};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

/// The command line as the user "daemon", who is in no group of interest.
fn as_daemon(home: &Home, arguments: &[&str]) -> Output {
    Command::new("setpriv")
        .args(["--reuid=1", "--regid=1", "--clear-groups"])
        .arg(coloc().get_program())
        .args(arguments)
        .current_dir("/tmp")
        .env("COLOC_SOCKET", home.socket())
        .env("HOME", "/nonexistent")
        .output()
        .expect("setpriv runs")
}

fn refused(output: &Output, why: &str) {
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains(why), "{said}");
}

#[test]
fn a_running_task_is_given_more_time_and_its_shim_minds_it_over_a_restart() {
    let Some(mut home) = shared_home(&["--emulate", "1xA100-40GB", "--grace", "1"]) else { return };
    let long = submit_as_nobody(&home, &["-t", "0:4", "--gpu-mem", "1G", "--", "sleep", "600"]);
    let short = submit_as_nobody(&home, &["-t", "10:00", "--gpu-mem", "1G", "--", "sleep", "600"]);
    home.wait_for_state(long, "running");
    let id = long.to_string();
    refused(&as_nobody(&home, &["update", &id, "--time", "+1h"]), "an administrator longer");
    refused(&as_daemon(&home, &["update", &id, "--time", "1"]), "belongs to another user");
    home.run(&["update", &id, "--time", "+1h"]);
    let began = home.show(long)["started_s"].as_f64().expect("it runs");
    home.kill();
    // While no daemon runs, the shim alone minds the limit.
    let passed = || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    while passed().expect("after 1970").as_secs_f64() < began + 5.0 {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    home.boot();
    assert_eq!(
        (home.state(long), home.show(long)["time_limit_s"].as_f64()),
        ("running".into(), Some(3604.0))
    );
    assert!(home.story(long).contains("updated: time limit"), "{}", home.story(long));
    // Its owner makes it shorter, and it ends at that.
    home.wait_for_state(short, "running");
    let ran =
        home.show(short)["started_s"].as_f64().map(|at| passed().expect("time").as_secs_f64() - at);
    let limit = format!("0:{}", ran.expect("it runs") as u64 + 3);
    let said = as_nobody(&home, &["update", &short.to_string(), "--time", &limit]);
    assert!(said.status.success(), "{}", text(&said.stderr));
    home.wait_for_state(short, "timed_out");
    home.run(&["cancel", &id]);
}

#[test]
fn members_of_the_administrators_group_are_administrators() {
    let arguments = ["--emulate", "1xA100-40GB", "--admin-group", "nogroup"];
    let Some(home) = shared_home(&arguments) else { return };
    let roots = home.submit(&["--hold", "--", "true"]);
    let drained = as_nobody(&home, &["drain", "--gpu", "0-0", "--reason", "fan"]);
    assert!(drained.status.success(), "{}", text(&drained.stderr));
    refused(&as_daemon(&home, &["resume", "--gpu", "0"]), "only an administrator");
    refused(&as_daemon(&home, &["cancel", &roots.to_string()]), "belongs to another user");
    assert!(as_nobody(&home, &["resume", "--gpu", "0"]).status.success());
    assert!(as_nobody(&home, &["cancel", &roots.to_string()]).status.success());
    let shown = home.run(&["config", "show", "--live"]);
    assert!(shown.contains("admin-group = \"nogroup\""), "{shown}");
    let unknown = coloc()
        .args(["daemon", "--emulate", "1xA100-40GB", "--admin-group", "nosuchgroup", "--state"])
        .arg(home.path().join("other"))
        .output()
        .expect("it runs");
    assert_eq!(unknown.status.code(), Some(2));
    assert!(text(&unknown.stderr).contains("there is no group \"nosuchgroup\""));
}

/// A daemon of root's with a configuration file that other users can read.
fn configured(gpus: &str, configuration: impl FnOnce(&Path) -> String) -> Option<Home> {
    if !rustix::process::geteuid().is_root() {
        super::home::skipped("only root can be two users");
        return None;
    }
    let home = Home::with_environment(&["--emulate", gpus, "--grace", "1"], |place| {
        let file = place.join("coloc.toml");
        std::fs::write(&file, configuration(place)).expect("a file");
        vec![("COLOC_CONFIG", file)]
    });
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(home.path(), open).expect("the directory is ours");
    Some(home)
}

fn script(place: &Path, name: &str, body: &str) -> String {
    let file = place.join(name);
    std::fs::write(&file, format!("#!/bin/sh\n{body}\n")).expect("a script");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    file.display().to_string()
}

#[test]
fn a_reserved_gpu_is_for_its_users_and_told_to_others() {
    let Some(mut home) = shared_home(&["--emulate", "2xA100-40GB"]) else { return };
    refused(
        &as_nobody(&home, &["reserve", "--gpu", "0", "--for", "nobody"]),
        "only an administrator",
    );
    let unknown = home.try_run(&["reserve", "--gpu", "0", "--for", "no-such-user"]);
    refused(&unknown, "there is no user \"no-such-user\"");
    let said = home.run(&["reserve", "--gpu", "0", "--for", "nobody", "--reason", "a deadline"]);
    assert_eq!(said, "GPU 0 is reserved for nobody: a deadline\n");
    let roots = home.submit(&["--gpus", "2", "--gpu-mem", "1G", "--", "true"]);
    home.wait_for("why", |home| {
        home.run(&["why", &roots.to_string()]).contains("is reserved for nobody: a deadline")
    });
    let theirs = submit_as_nobody(&home, &["--exclusive", "--", "sleep", "60"]);
    home.wait_for_state(theirs, "running");
    home.kill();
    home.boot();
    let gpus = home.json(&["gpus"]);
    assert_eq!(gpus["gpus"][0]["reserved_for"], serde_json::json!(["nobody"]));
    assert!(home.run(&["gpus"]).contains("reserved"), "the table tells it");
    assert_eq!(home.state(roots), "pending", "also after a restart");
    home.run(&["cancel", &theirs.to_string()]);
    home.run(&["return", "--gpu", "0"]);
    home.wait_for_state(roots, "completed");
}

#[test]
fn pools_are_named_by_submissions_and_closed_to_others() {
    let pools = "[[pool]]\nname = 'shared'\ngpus = [0]\n[[pool]]\nname = 'whole'\ngpus = '1-2'\n\
                 share = 'exclusive'\nallow = ['@daemon', 'root']\nmax-time = '1h'\n";
    let Some(home) = configured("3xA100-40GB", |_| format!("[daemon]\nshare = 'mps'\n{pools}"))
    else {
        return;
    };
    let shared = submit_as_nobody(&home, &["--gpu-mem", "1G", "--", "sleep", "60"]);
    home.wait_for_state(shared, "running");
    assert_eq!(home.show(shared)["gpu_ids"], serde_json::json!([0]));
    assert_eq!(home.show(shared)["pools"], serde_json::json!(["shared"]));
    let sleep = ["--", "sleep", "60"];
    let submit = |user: fn(&Home, &[&str]) -> Output, flags: &[&str]| {
        user(&home, &[&["submit", "--parsable"], flags, &sleep].concat())
    };
    refused(&submit(as_nobody, &["--pool", "whole"]), "pool whole is not for you");
    refused(
        &submit(as_nobody, &["-p", "nosuch"]),
        "there is no pool \"nosuch\"; there are shared, whole",
    );
    refused(
        &submit(as_daemon, &["-p", "whole", "-t", "2h"]),
        "no task may run longer than 60.0 min",
    );
    let whole = submit(as_daemon, &["-p", "whole", "--gpu-mem", "1G"]);
    let whole: u32 =
        text(&whole.stdout).trim().parse().unwrap_or_else(|_| panic!("{}", text(&whole.stderr)));
    home.wait_for_state(whole, "running");
    assert_eq!(home.show(whole)["time_limit_s"], 3600.0, "the pool's largest");
    let wide = home.submit(&["--pool", "whole", "--gpus", "2", "--", "true"]);
    home.wait_for("why", |home| {
        home.run(&["why", &wide.to_string()]).contains("is in pool shared, not in the task's")
    });
    assert!(home.run(&["gpus"]).contains("[whole]"), "{}", home.run(&["gpus"]));
    assert_eq!(home.json(&["gpus"])["gpus"][2]["pool"], serde_json::json!(["whole"]));
    // More time for a task, but not more than its pool allows.
    refused(
        &home.try_run(&["update", &whole.to_string(), "--time", "+2h"]),
        "no task may run longer",
    );
    home.run(&["cancel", "all", "--all-users"]);
}

#[test]
fn hooks_run_around_each_attempt_whatever_becomes_of_it() {
    let hooks = |place: &Path| {
        let log = place.join("hooks").display().to_string();
        let line = format!(
            "echo $COLOC_HOOK $COLOC_TASK_ID $COLOC_TASK_USER $COLOC_GPUS $COLOC_EXIT_CODE >> {log}; id -u"
        );
        let (prolog, epilog) = (script(place, "prolog", &line), script(place, "epilog", &line));
        format!("[daemon]\nprolog = '{prolog}'\nepilog = '{epilog}'\n")
    };
    let Some(mut home) = configured("1xA100-40GB", hooks) else { return };
    let said = |home: &Home| std::fs::read_to_string(home.path().join("hooks")).unwrap_or_default();
    let done = submit_as_nobody(&home, &["--", "sh", "-c", "id -u; exit 3"]);
    home.wait_for_state(done, "failed");
    assert_eq!(said(&home), format!("prolog {done} nobody 0\nepilog {done} nobody 0 3\n"));
    let words = as_nobody(&home, &["logs", &done.to_string()]);
    assert_eq!(text(&words.stdout), "0\n65534\n", "the prolog is root's, the program the user's");
    // While no daemon runs, the shim does it; and the daemon does it for a shim that is killed.
    let orphan = submit_as_nobody(&home, &["--gpu-mem", "1G", "--", "sleep", "1"]);
    home.wait_for_state(orphan, "running");
    home.kill();
    let line = format!("epilog {orphan} nobody 0 0\n");
    home.wait_for("the epilog", |home| said(home).contains(&line));
    home.boot();
    home.wait_for_state(orphan, "completed");
    let killed = submit_as_nobody(&home, &["--gpu-mem", "1G", "--", "sleep", "600"]);
    home.wait_for_state(killed, "running");
    let leader = || home.json(&["gpus"])["gpus"][0]["residents"][0]["leader_pid"].as_u64();
    home.wait_for("its shim", |_| leader().is_some());
    Command::new("kill")
        .args(["-KILL", &leader().expect("a shim").to_string()])
        .status()
        .expect("kill runs");
    home.wait_for_state(killed, "lost");
    home.wait_for("the epilog", |home| said(home).contains(&format!("epilog {killed} nobody 0\n")));
    let all = said(&home);
    for task in [done, orphan, killed] {
        assert_eq!(all.matches(&format!("epilog {task} ")).count(), 1, "once each: {all}");
    }
}

#[test]
fn a_prolog_that_fails_keeps_the_task_and_drains_the_gpu() {
    let hooks = |place: &Path| {
        let test = format!("echo checking; test -e {}", place.join("healthy").display());
        format!("[daemon]\nprolog = '{}'\n", script(place, "prolog", &test))
    };
    let Some(home) = configured("1xA100-40GB", hooks) else { return };
    let task = submit_as_nobody(&home, &["--", "true"]);
    home.wait_for("a drained GPU", |home| home.json(&["gpus"])["gpus"][0]["drained"] == true);
    let gpu = &home.json(&["gpus"])["gpus"][0];
    let reason = gpu["drain_reason"].as_str().expect("a reason");
    assert!(
        reason.starts_with("the prolog failed 3 times in a row: it ended with exit status: 1"),
        "{reason}"
    );
    assert_eq!(home.state(task), "pending");
    assert!(home.story(task).contains("the administrator's prolog failed"), "{}", home.story(task));
    let queue = home.try_run(&["queue"]);
    assert!(text(&queue.stderr).contains("GPU 0 takes nothing new"), "{}", text(&queue.stderr));
    std::fs::write(home.path().join("healthy"), "").expect("a file");
    home.run(&["resume", "--gpu", "0"]);
    home.wait_for_state(task, "completed");
}

#[test]
fn a_configuration_that_others_could_change_is_refused() {
    let place = tempfile::tempdir().expect("a directory");
    let file = place.path().join("coloc.toml");
    let check = |text: &str, mode: u32| {
        std::fs::write(&file, text).expect("a file");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).expect("it is ours");
        let output = coloc().args(["config", "check"]).arg(&file).output().expect("it runs");
        (output.status.code(), super::home::text(&output.stderr))
    };
    let (code, said) = check("[daemon]\nqueue = 'fifo'\n", 0o666);
    assert!(code == Some(2) && said.contains("another user could change it"), "{said}");
    assert_eq!(check("[daemon]\nqueue = 'fifo'\n", 0o644).0, Some(0));
    assert_eq!(check("[submit]\ngpus = 2\n", 0o666).0, Some(0), "it is not the daemon's");
    // What a reload would refuse, with its line.
    for (text, place, why) in [
        ("[daemon]\n\nadmin-group = 'nosuch'\n", "line 3", "there is no group \"nosuch\""),
        ("[daemon]\nquota = ['no-such-user=4']\n", "line 2", "there is no user"),
        (
            "[daemon]\nmax-time = '1h'\ndefault-time = '2h'\n",
            "line 3",
            "more than --max-time allows",
        ),
        ("[daemon]\nprolog = '/nonexistent'\n", "line 2", "No such file"),
        ("[[pool]]\nname = 'a'\n[[pool]]\nname = 'a'\n", "line 1", "two pools have the name"),
        (
            "[[pool]]\nname = 'a'\ngpus = '0-2'\nshare = 'mps'\n[[pool]]\nname = 'b'\ngpus = [2]\nshare = 'streams'\n",
            "line 1",
            "GPU 2 is in pool a with mps and in pool b with streams",
        ),
        (
            "[[pool]]\nname = 'a'\ndefault = true\n[[pool]]\nname = 'b'\ndefault = true\n",
            "line 1",
            "both the default",
        ),
        (
            "[[pool]]\nname = 'a'\nmax-time = '3h'\n[daemon]\nmax-time = '2h'\n",
            "line 1",
            "is more than the daemon's",
        ),
        ("[notify]\nwebhook-allow = ['a:80', 'http://foo']\n", "line 2", "without http://"),
        ("[notify]\nsendmail = '/nonexistent/sendmail'\n", "line 2", "No such file"),
    ] {
        let (code, said) = check(text, 0o644);
        assert!(code == Some(2) && said.contains(place) && said.contains(why), "{text}: {said}");
    }
}

#[test]
fn the_unit_passes_systemds_own_check() {
    let place = tempfile::tempdir().expect("a directory");
    let written =
        coloc().args(["init", "--system", "--root"]).arg(place.path()).output().expect("it runs");
    assert!(written.status.success(), "{}", text(&written.stderr));
    let file = std::fs::read_to_string(place.path().join("etc/coloc/coloc.toml")).expect("a file");
    let has = |line: &&str| file.lines().any(|known| known == *line);
    assert!(["[daemon]", "[api]", "[notify]", "#hook = \"\""].iter().all(has), "{file}");
    let unit = place.path().join("etc/systemd/system/coloc.service");
    let body = std::fs::read_to_string(&unit).expect("a unit");
    assert!(!body.contains("ProtectClock"), "it hides the GPUs before systemd 252");
    let Ok(verified) = Command::new("systemd-analyze").arg("verify").arg(&unit).output() else {
        return super::home::skipped("there is no systemd-analyze");
    };
    let said = text(&verified.stderr);
    // Before 254 systemd does not know the subgroup, and goes on without it.
    let is_later = |line: &str| line.contains("Unknown key 'DelegateSubgroup'");
    let ours = said.lines().filter(|line| line.contains("coloc.service") && !is_later(line));
    let ours: Vec<&str> = ours.collect();
    assert!(verified.status.success() && ours.is_empty(), "{said}");
}

#[test]
fn a_client_says_which_sockets_it_tried() {
    let place = tempfile::tempdir().expect("a directory");
    let alone = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(coloc().get_program())
        .arg("queue")
        .env("COLOC_CONFIG", "/dev/null")
        .env("XDG_RUNTIME_DIR", place.path())
        .output();
    let Ok(alone) = alone else { return };
    if !rustix::process::geteuid().is_root() {
        return super::home::skipped("only root can be another user");
    }
    let said = text(&alone.stderr);
    let own = place.path().join("coloc.sock").display().to_string();
    assert!(said.contains(&format!("{own} nor at /run/coloc/coloc.sock")), "{said}");
}
