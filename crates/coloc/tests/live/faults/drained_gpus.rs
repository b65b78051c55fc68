//! GPUs that take nothing new: faulty ones, and GPUs that an administrator drained. What runs on them goes on, and they
//! come back when an administrator says so.

use super::lost_gpus::{LONG, beside, fault, train, works_on};
use crate::live::home::{Home, text};
use crate::live::users::{as_nobody, shared_home};
use serde_json::Value;

const TWO: [&str; 4] = ["--emulate", "2xA100-40GB", "--time-scale", "20"];

fn gpu(home: &Home, index: u32) -> Value {
    home.json(&["gpus"])["gpus"][index as usize].clone()
}

/// The GPU that a task works on.
fn place(home: &Home, id: u32) -> u32 {
    home.wait_for("work", |home| works_on(home, id, 0) || works_on(home, id, 1));
    home.show(id)["gpu_ids"][0].as_u64().expect("a GPU") as u32
}

fn drained(home: &Home, index: u32) -> bool {
    gpu(home, index)["drained"] == true
}

/// What a task that waits hears from a GPU.
fn refusals(home: &Home, id: u32, index: u32) -> String {
    let why = home.json(&["why", &id.to_string()]);
    why["gpus"][index as usize]["refusals"].to_string()
}

#[test]
fn critical_errors_drain_a_gpu_and_who_fails_of_one_starts_again_elsewhere() {
    for xid in ["48", "94", "95"] {
        let home = Home::new(&TWO);
        let id = train(&home, LONG);
        let here = place(&home, id);
        fault(&home, &["xid", &here.to_string(), xid]);
        home.wait_for("work elsewhere", |home| works_on(home, id, 1 - here));
        let story = home.story(id);
        // By its XID, or by the count of errors if that was seen first.
        let why = format!("GPU {here} had ");
        assert!(story.contains(&why) && story.contains("under it; it starts again"), "{story}");
        home.wait_for("the XID", |home| {
            gpu(home, here)["drain_reason"].to_string().contains(&format!("XID {xid}"))
        });
        let shown = gpu(&home, here);
        assert!(shown["drained_s"].as_f64() > Some(1e9) && shown["lost"] == false, "{shown}");
        assert_eq!(
            (home.show(id)["attempts"].clone(), drained(&home, 1 - here)),
            (2.into(), false)
        );
        let next = train(&home, LONG);
        home.wait_for("a reason", |home| refusals(home, next, here).contains("is drained: "));
        assert!(!refusals(&home, next, here).contains("lost"));
        let doctor = beside(&home, &["doctor"]);
        assert_eq!(doctor.status.code(), Some(3));
        assert!(text(&doctor.stdout).contains(&format!("GPU {here} is drained since")));
    }
}

#[test]
fn memory_that_waits_for_a_remap_stops_new_tasks_and_no_running_one() {
    let mut home = Home::new(&TWO);
    let id = train(&home, LONG);
    let here = place(&home, id);
    let name = here.to_string();
    fault(&home, &["remap", &name]);
    home.wait_for("the drain", |home| drained(home, here));
    let next = train(&home, LONG);
    home.wait_for("work elsewhere", |home| works_on(home, next, 1 - here));
    let third = train(&home, LONG);
    home.wait_for("a reason", |home| refusals(home, third, here).contains("is drained"));
    assert_eq!((home.state(id).as_str(), home.show(id)["attempts"].as_u64()), ("running", Some(1)));
    // A crash of the daemon forgets none of it.
    home.kill();
    home.boot();
    let shown = gpu(&home, here);
    assert!(shown["drain_reason"].to_string().contains("XID 63"), "{shown}");
    assert_eq!(home.state(id), "running");
    home.run(&["cancel", &id.to_string()]);
    home.wait_for_state(id, "cancelled");
    // It comes back when an administrator says so. The administrator is told what is still wrong.
    let resumed = home.try_run(&["resume", "--gpu", &name]);
    let said = text(&resumed.stderr);
    assert!(resumed.status.success() && said.contains("a row remap is pending"), "{said}");
    home.wait_for("work on it", |home| works_on(home, third, here));
    assert!(gpu(&home, here)["faults"].to_string().contains("remap is pending"));
    // What was accepted drains nothing again, not even after a restart.
    home.stop();
    home.boot();
    home.wait_for("a look", |home| gpu(home, here)["faults"].to_string().contains("remap"));
    assert!(!drained(&home, here));
    // A fault after a reset is a new one.
    fault(&home, &["restore", &name]);
    home.wait_for("no fault", |home| {
        gpu(home, here)["faults"].as_array().expect("a list").is_empty()
    });
    fault(&home, &["ecc", &name, "--uncorrected", "2"]);
    home.wait_for("the drain", |home| drained(home, here));
    assert_eq!(gpu(&home, here)["drain_reason"], "2 uncorrected ECC errors");
}

#[test]
fn an_administrator_drains_a_healthy_gpu_and_others_may_not() {
    let Some(home) = shared_home(&["--emulate", "2xA100-40GB"]) else { return };
    for verb in [vec!["drain", "--gpu", "1"], vec!["resume", "--gpu", "1"]] {
        let refused = as_nobody(&home, &verb);
        assert_eq!(refused.status.code(), Some(1));
        assert!(text(&refused.stderr).contains("only an administrator"), "{verb:?}");
    }
    assert!(!drained(&home, 1));
    let uuid = gpu(&home, 1)["uuid"].as_str().expect("a name").to_owned();
    let said = home.run(&["drain", "--gpu", &uuid, "--reason", "new fan"]);
    assert!(said.contains("GPU 1 is drained (new fan); nothing runs on it"), "{said}");
    let shown = gpu(&home, 1);
    assert_eq!((&shown["drain_reason"], &shown["drained_by"]), (&"new fan".into(), &"root".into()));
    assert!(home.run(&["gpus"]).contains("GPU 1 is drained by root since"));
    let first = home.submit(&["--exclusive", "--", "sleep", "600"]);
    home.wait_for_state(first, "running");
    assert_eq!(home.show(first)["gpu_ids"][0], 0);
    let second = home.submit(&["--exclusive", "--", "sleep", "600"]);
    home.wait_for("a reason", |home| refusals(home, second, 1).contains("is drained: new fan"));
    // What makes no sense is refused and changes nothing.
    let wrong: [(&[&str], &str); 5] = [
        (&["drain", "--gpu", "0", "--reason", "\u{1b}[31mred"], "one line of text"),
        (&["drain", "--gpu", "7"], "there is no GPU 7"),
        (&["drain", "--gpu", "first"], "expected a number, a range such as 0-3 or a UUID"),
        (&["drain", "--reason", "why"], "--gpu"),
        (&["drain", "--gpu", "0", "--reason", &"x".repeat(300)], "at most 255 bytes"),
    ];
    for (verb, why) in wrong {
        let refused = home.try_run(verb);
        assert!(!refused.status.success() && text(&refused.stderr).contains(why), "{verb:?}");
    }
    assert!(!drained(&home, 0));
    assert!(home.run(&["drain", "--gpu", "0,1"]).contains("GPU 0 is drained (an administrator"));
    assert_eq!(gpu(&home, 1)["drain_reason"], "new fan", "nothing new was said of it");
    assert_eq!(home.state(first), "running");
    home.run(&["resume", "--gpu", "0,1"]);
    home.wait_for_state(second, "running");
    let again = home.try_run(&["resume", "--gpu", "1"]);
    assert!(again.status.success() && text(&again.stderr).contains("was not drained"));
}

#[test]
fn waiting_for_a_drained_gpu_ends_with_its_last_task() {
    let home = Home::new(&["--emulate", "1xA100-40GB"]);
    let id = home.submit(&["--", "sleep", "600"]);
    home.wait_for_state(id, "running");
    let mut waiting = crate::live::home::coloc()
        .args(["drain", "--gpu", "0", "--wait"])
        .env("COLOC_SOCKET", home.socket())
        .spawn()
        .expect("it runs");
    home.wait_for("the drain", |home| drained(home, 0));
    assert_eq!(waiting.try_wait().expect("it is ours"), None);
    home.run(&["cancel", &id.to_string()]);
    home.wait_for_state(id, "cancelled");
    assert!(waiting.wait().expect("it is ours").success());
}
