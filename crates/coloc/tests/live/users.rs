//! Two users on one daemon of root's: each sees the queue, and touches only what is theirs.

use super::home::{Home, coloc, skipped, text};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::{Command, Output};

const NOBODY: u32 = 65_534;

/// A daemon of root's that other users can reach; `None`, with a word, for who is not root.
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
fn as_nobody(home: &Home, arguments: &[&str]) -> Output {
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
    for entry in std::fs::read_dir(run_directory(&home, id)).expect("a directory").flatten() {
        assert_eq!(entry.metadata().expect("a file").uid(), NOBODY, "{:?}", entry.path());
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
fn what_a_user_puts_in_place_of_our_files_is_not_followed() {
    let Some(home) = shared_home(&["--emulate", "1xA100-40GB"]) else { return };
    let secret = home.path().join("secret");
    std::fs::write(&secret, "CUDA out of memory, root knows\n").expect("a file");
    std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o600)).expect("it is ours");
    // Whoever owns the directory may put a link where the log was.
    let next = run_directory(&home, 1);
    let script = format!("cd {}; ln -sf {} log; exit 1", next.display(), secret.display());
    let id = submit_as_nobody(&home, &["--", "sh", "-c", &script]);
    home.wait_for_state(id, "failed");
    let read = as_nobody(&home, &["logs", &id.to_string()]);
    assert_eq!(read.status.code(), Some(1));
    assert!(!text(&read.stdout).contains("root knows"));
    assert!(!home.story(id).contains("root knows"), "{}", home.story(id));
    // Or a pipe that nobody ever writes to, which must not stop the daemon.
    let next = run_directory(&home, 2);
    let script = format!("cd {}; rm -f log; mkfifo log; exit 1", next.display());
    let id = submit_as_nobody(&home, &["--", "sh", "-c", &script]);
    home.wait_for_state(id, "failed");
    // Or somebody else's process where ours was named: neither a cancel nor a signal must reach it.
    let mut innocent = Command::new("sleep").arg("60").spawn().expect("sleep runs");
    let began = started(innocent.id());
    let next = run_directory(&home, 3);
    let forged = format!(
        r#"{{"shim":{{"pid":{0},"began":{began}}},"main":{{"pid":{0},"began":{began}}},"at":0}}"#,
        innocent.id()
    );
    let ready = next.join("ready");
    let forge = |next: &Path| {
        let forge = format!("echo '{forged}' > shim.json; touch ready; sleep 60");
        // Once the shim has written it, it does not do so again.
        format!("cd {}; until test -e shim.json; do sleep 0.01; done; {forge}", next.display())
    };
    let id = submit_as_nobody(&home, &["--", "sh", "-c", &forge(&next)]);
    home.wait_for("the forgery", |_| ready.exists());
    home.run(&["cancel", &id.to_string()]);
    home.wait_for_state(id, "cancelled");
    let next = run_directory(&home, 4);
    let id = submit_as_nobody(&home, &["--", "sh", "-c", &forge(&next)]);
    home.wait_for("the forgery", |_| next.join("ready").exists());
    // Nor a signal, although nobody can tell any more who the program is.
    let lost = home.try_run(&["cancel", "-s", "TERM", &id.to_string()]);
    assert!(text(&lost.stderr).contains("only a task that runs"), "{}", text(&lost.stderr));
    assert_eq!(home.state(id), "running");
    home.run(&["cancel", "-f", "-s", "USR2", &id.to_string()]);
    home.wait_for_state(id, "failed");
    assert_eq!(innocent.try_wait().expect("it is ours"), None, "it lives");
    innocent.kill().and_then(|()| innocent.wait()).expect("it is ours");
}

/// When a process began, in ticks since boot.
fn started(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat"));
    let stat = stat.expect("it runs");
    let after_name = stat.rsplit(')').next().expect("a name");
    after_name.split_whitespace().nth(19).and_then(|n| n.parse().ok()).expect("a number")
}
