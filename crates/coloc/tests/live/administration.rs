//! What the administrator of a server does, with two users who are not.

use super::home::{Home, coloc, text};
use super::users::{as_nobody, shared_home, submit_as_nobody};
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
    let drained = as_nobody(&home, &["drain", "--gpu", "0", "--reason", "fan"]);
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
