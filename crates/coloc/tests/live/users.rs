//! Two users on one daemon of root's: each sees the queue, and touches only what is theirs.

use super::home::{Home, coloc, skipped, text};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::process::{Command, Output};

const NOBODY: u32 = 65_534;

/// A daemon of root's that other users can reach; `None`, with a word, for a user who is not root.
pub(super) fn shared_home(arguments: &[&str]) -> Option<Home> {
    if !rustix::process::geteuid().is_root() {
        skipped("only root can be two users");
        return None;
    }
    let home = Home::new(arguments);
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(home.path(), open).expect("the directory is ours");
    Some(home)
}

/// The command line as another user.
pub(super) fn as_nobody(home: &Home, arguments: &[&str]) -> Output {
    Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(coloc().get_program())
        .args(arguments)
        .current_dir("/tmp")
        .env("COLOC_SOCKET", home.socket())
        .env("HOME", "/nonexistent")
        .output()
        .expect("setpriv runs")
}

pub(super) fn submit_as_nobody(home: &Home, arguments: &[&str]) -> u32 {
    let all: Vec<&str> = ["submit", "--parsable"].iter().chain(arguments).copied().collect();
    let output = as_nobody(home, &all);
    text(&output.stdout).trim().parse().unwrap_or_else(|_| panic!("{}", text(&output.stderr)))
}

fn run_directory(home: &Home, task: u32) -> std::path::PathBuf {
    home.path().join(format!("state/runs/{task}.1"))
}

#[test]
fn nobody_touches_the_tasks_of_others() {
    let Some(home) = shared_home(&["--emulate", "1xA100-40GB"]) else { return };
    let roots = home.submit(&["--", "sh", "-c", "echo secret; sleep 60"]);
    home.wait_for("its words", |home| home.run(&["logs", &roots.to_string()]) == "secret\n");
    let id = roots.to_string();
    for verb in [
        vec!["cancel", &id],
        vec!["cancel", "-s", "USR1", &id],
        vec!["requeue", &id],
        vec!["hold", &id],
        vec!["release", &id],
        vec!["update", &id, "--name", "mine"],
        vec!["logs", &id],
    ] {
        let output = as_nobody(&home, &verb);
        assert_eq!(output.status.code(), Some(1), "{verb:?}");
        let said = text(&output.stderr);
        assert!(said.contains("belongs to another user"), "{verb:?}: {said}");
        assert!(!text(&output.stdout).contains("secret"), "{verb:?}");
    }
    assert!(text(&as_nobody(&home, &["drain"]).stderr).contains("only an administrator"));
    let urgent = as_nobody(&home, &["submit", "--priority", "1", "--", "true"]);
    assert!(text(&urgent.stderr).contains("only an administrator"), "{}", text(&urgent.stderr));
    assert_eq!(home.state(roots), "running");
    let listed = as_nobody(&home, &["queue"]);
    assert!(text(&listed.stdout).contains(&id), "everybody sees the queue");
    let theirs = submit_as_nobody(&home, &["--hold", "--", "true"]);
    home.run(&["cancel", &theirs.to_string()]);
    assert_eq!(home.state(theirs), "cancelled", "an administrator may");
    let journal = std::fs::metadata(home.path().join("state/journal.db")).expect("a journal");
    assert_eq!(journal.mode() & 0o077, 0, "environments are nobody else's business");
}

#[test]
fn last_and_all_are_ones_own() {
    let Some(home) = shared_home(&["--emulate", "1xA100-40GB"]) else { return };
    let roots = home.submit(&["--hold", "--", "true"]);
    let theirs = submit_as_nobody(&home, &["--hold", "--", "true"]);
    let later = home.submit(&["--hold", "--", "true"]);
    let shown = as_nobody(&home, &["show", "last", "--json"]);
    assert!(text(&shown.stdout).contains(&format!("\"id\": {theirs},")), "{}", text(&shown.stdout));
    let listed = as_nobody(&home, &["queue", "--me", "--noheader"]);
    assert_eq!(text(&listed.stdout).lines().count(), 1);
    let cancelled = as_nobody(&home, &["cancel", "all"]);
    assert_eq!(
        text(&cancelled.stdout),
        format!("Cancelled {theirs}\n"),
        "{}",
        text(&cancelled.stderr)
    );
    let again = submit_as_nobody(&home, &["--hold", "--", "true"]);
    assert_eq!(home.run(&["cancel", "all"]), format!("Cancelled {roots}, {later}\n"));
    assert_eq!(home.run(&["cancel", "all", "--user", "nobody"]), format!("Cancelled {again}\n"));
    let last = submit_as_nobody(&home, &["--hold", "-J", "x", "--", "true"]);
    assert_eq!(home.run(&["cancel", "-J", "x"]), "", "not root's");
    assert_eq!(home.run(&["cancel", "-J", "x", "--all-users"]), format!("Cancelled {last}\n"));
}

#[test]
fn tasks_run_as_who_submitted_them_and_their_files_are_theirs() {
    let Some(home) = shared_home(&["--emulate", "1xA100-40GB"]) else { return };
    let place = tempfile::tempdir().expect("a directory");
    std::os::unix::fs::chown(place.path(), Some(NOBODY), Some(NOBODY)).expect("it is ours to give");
    let out = place.path().join("out");
    let script = "id -u; id -g; id -G; cat /etc/shadow >/dev/null 2>&1 || echo no shadow";
    let out_text = out.to_str().expect("text");
    let id = submit_as_nobody(&home, &["-o", out_text, "--", "sh", "-c", script]);
    home.wait_for_state(id, "completed");
    let said = std::fs::read_to_string(&out).expect("its output");
    assert_eq!(said, "65534\n65534\n65534\nno shadow\n");
    assert_eq!(std::fs::metadata(&out).expect("a file").uid(), NOBODY);
    let run = run_directory(&home, id);
    assert_eq!(std::fs::metadata(&run).expect("a directory").uid(), 0);
    for entry in std::fs::read_dir(run).expect("a directory").flatten() {
        assert_eq!(entry.metadata().expect("a file").uid(), 0, "{:?}", entry.path());
    }
    let attached = as_nobody(&home, &["run", "--", "sh", "-c", "id -un; exit 4"]);
    assert_eq!((attached.status.code(), text(&attached.stdout).as_str()), (Some(4), "nobody\n"));
    let script = "trap 'echo heard; exit 5' USR1; echo ready; while :; do sleep 0.05; done";
    let hears = submit_as_nobody(&home, &["--", "bash", "-c", script]);
    let word = hears.to_string();
    home.wait_for("its words", |home| home.run(&["logs", &word]).contains("ready"));
    assert!(as_nobody(&home, &["cancel", "--signal", "USR1", &word]).status.success());
    home.wait_for_state(hears, "failed");
    assert_eq!(home.run(&["logs", &word]), "ready\nheard\n");
    let train = env!("CARGO_BIN_EXE_coloc");
    let words = ["--", train, "emu", "train", "--memory", "1G", "--seconds", "0.2"];
    let training = submit_as_nobody(&home, &words);
    home.wait_for("an end", |home| {
        !["pending", "running"].contains(&home.state(training).as_str())
    });
    let log = home.run(&["logs", &training.to_string()]);
    assert_eq!(home.state(training), "completed", "{log}");
}

#[test]
fn a_run_directory_is_not_its_users_to_change() {
    let Some(home) = shared_home(&["--emulate", "1xA100-40GB"]) else { return };
    // Whatever is tried there, from inside the task: a forged end, a log that is a link, another order, another process.
    let attempts = "for file in claim exit.json stop.json fault log log.start order.json shim.json; do \
                      echo forged > $file && echo $file was written; \
                      ln -sf /etc/shadow $file && echo $file was linked; \
                      test -e $file && rm -f $file && echo $file was removed; done 2>/dev/null; \
                    mkfifo pipe 2>/dev/null && echo a pipe was made; \
                    cat log exit.json claim 2>/dev/null && echo it was read; \
                    mkdir folder 2>/dev/null && echo a folder was made; echo done; exit 3";
    let script = format!("cd {}; {attempts}", run_directory(&home, 1).display());
    let id = submit_as_nobody(&home, &["--", "sh", "-c", &script]);
    home.wait_for_state(id, "failed");
    assert_eq!(home.show(id)["exit_code"], 3);
    let said = as_nobody(&home, &["logs", &id.to_string()]);
    assert_eq!(text(&said.stdout), "done\n");
}

/// The way to root that there was: the order stood in a directory of the user's, and a shim of root's read it there. Now a
/// user who rewrites and replaces whatever appears in the run directory, as fast as it can, changes nothing.
#[test]
fn nobody_becomes_root_by_changing_what_a_shim_reads() {
    let Some(home) = shared_home(&["--emulate", "1xA100-40GB"]) else { return };
    let runs = home.path().join("state/runs");
    let swap = format!(
        "end=$(( $(date +%s) + 20 )); while [ $(date +%s) -lt $end ]; do for d in {}/*; do \
         for f in order.json claim; do [ -e $d/$f ] || continue; \
         sed 's/65534/0/g' $d/$f > /tmp/coloc-swap-$$ 2>/dev/null && mv -f /tmp/coloc-swap-$$ $d/$f; \
         done; done; done 2>/dev/null; rm -f /tmp/coloc-swap-$$",
        runs.display()
    );
    let mut attacker = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", "sh", "-c", &swap])
        .spawn()
        .expect("setpriv runs");
    for _ in 0..10 {
        let id = submit_as_nobody(&home, &["--", "id", "-u"]);
        home.wait_for_state(id, "completed");
        let said = as_nobody(&home, &["logs", &id.to_string()]);
        assert_eq!(text(&said.stdout), "65534\n", "{}", home.story(id));
    }
    attacker.kill().and_then(|()| attacker.wait()).expect("it is ours");
}

#[test]
fn a_task_is_started_with_the_submitters_mask_and_limits_and_nothing_of_the_daemons() {
    let Some(home) = shared_home(&["--emulate", "1xA100-40GB"]) else { return };
    let id = {
        let script = "umask; ulimit -n; ulimit -c; env | grep -c SECRET; ls /proc/self/fd | wc -l";
        let output = Command::new("setpriv")
            .args(["--reuid=65534", "--regid=65534", "--clear-groups", "sh", "-c"])
            .arg(format!(
                "umask 027; ulimit -n 321; ulimit -c 0; exec {} submit --parsable -- sh -c '{script}'",
                coloc().get_program().display()
            ))
            .current_dir("/tmp")
            .env("COLOC_SOCKET", home.socket())
            .env("HOME", "/nonexistent")
            .output()
            .expect("setpriv runs");
        text(&output.stdout).trim().parse::<u32>().expect("an id")
    };
    home.wait_for_state(id, "completed");
    // ls itself opens the folder, beside the three that every process has.
    assert_eq!(home.run(&["logs", &id.to_string()]), "0027\n321\n0\n0\n4\n");
}

#[test]
fn outputs_are_opened_as_their_user() {
    let Some(home) = shared_home(&["--emulate", "1xA100-40GB"]) else { return };
    let secret = home.path().join("secret");
    std::fs::write(&secret, "root knows\n").expect("a file");
    std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o600)).expect("it is ours");
    let folder = home.path().join("closed");
    std::fs::create_dir(&folder).expect("a folder");
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o700)).expect("it is ours");
    let (there, not_there) = (folder.join("there"), folder.join("not there"));
    std::fs::write(&there, "").expect("a file");
    let reasons = [&secret, &there, &not_there].map(|file| {
        let file = file.to_str().expect("text");
        let id = submit_as_nobody(&home, &["-o", file, "--", "true"]);
        home.wait_for_state(id, "failed");
        let shown = home.show(id)["reason"].as_str().expect("a reason").to_owned();
        assert!(shown.contains("Permission denied"), "{shown}");
        shown.replace(file, "FILE")
    });
    assert_eq!(reasons[1], reasons[2], "what is there and what is not look the same");
    assert_eq!(std::fs::read_to_string(&secret).expect("a file"), "root knows\n");
    assert!(!not_there.exists());
    for device in ["/dev/zero", "/dev/full"] {
        let id = submit_as_nobody(&home, &["-o", device, "--", "true"]);
        home.wait_for_state(id, "failed");
    }
    // Files of the kernel's do something when root writes to them, whichever user opened them.
    let slack = format!("/proc/{}/timerslack_ns", home.pid());
    let before = std::fs::read_to_string(&slack).expect("the daemon's");
    for file in [slack.as_str(), "/proc/self/timerslack_ns", "/proc/self/oom_score_adj"] {
        let id = submit_as_nobody(&home, &["-o", file, "--", "echo", "100000000000000"]);
        home.wait_for_state(id, "failed");
    }
    assert_eq!(std::fs::read_to_string(&slack).expect("the daemon's"), before);
    let null = submit_as_nobody(&home, &["-o", "/dev/null", "--", "true"]);
    home.wait_for_state(null, "completed");
}
