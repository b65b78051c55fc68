//! What an administrator may get wrong, and what a member of the administrators' group may want too much.

use super::home::{Home, coloc, skipped, text};
use super::remote::Remote;
use super::users::as_nobody;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("it is ours");
}

/// A program that leaves a file beside itself when it is run.
fn program(place: &Path, name: &str) -> (PathBuf, PathBuf) {
    let (program, ran) = (place.join(name), place.join(format!("{name}.ran")));
    std::fs::write(&program, format!("#!/bin/sh\ntouch {}\n", ran.display())).expect("written");
    set_mode(&program, 0o755);
    (program, ran)
}

fn refused(output: &Output, why: &str) {
    let said = text(&output.stderr);
    assert!(!output.status.success() && said.contains(why), "{said}");
}

fn log(home: &Home) -> String {
    std::fs::read_to_string(home.path().join("daemon.log")).expect("a log")
}

#[test]
fn a_hook_that_others_could_change_is_refused_and_never_run() {
    let place = tempfile::tempdir().expect("a folder");
    let (told, ran) = program(place.path(), "told");
    let said = format!("[notify]\nhook = ['fail:{}']\n", told.display());
    let file = |home: &Path| home.join("coloc.toml");
    let home = Home::with_environment(&["--emulate", "1xA100-40GB"], |home| {
        std::fs::write(file(home), &said).expect("a file");
        vec![("COLOC_CONFIG", file(home))]
    });
    let check = || coloc().args(["config", "check"]).arg(file(home.path())).output().expect("runs");
    assert!(check().status.success());
    let id = home.submit(&["--", "false"]);
    home.wait_for("it is told", |_| ran.exists());
    home.wait_for("it is noted", |home| home.story(id).contains("was told of its"));
    // From now on another user could write into it, or put another file in its place.
    for (weak, mode) in [(told.as_path(), 0o757), (place.path(), 0o777)] {
        std::fs::remove_file(&ran).expect("it is there");
        set_mode(weak, mode);
        refused(&check(), "another user could change it");
        refused(&home.try_run(&["config", "reload"]), "another user could change it");
        let mut daemon = coloc();
        daemon.args(["daemon", "--emulate", "1xA100-40GB", "--state"]).arg(place.path().join("x"));
        let started = daemon.env("COLOC_CONFIG", file(home.path())).output().expect("it ends");
        refused(&started, "another user could change it");
        // The daemon that runs had it checked before: it looks again.
        let id = home.submit(&["--", "false"]);
        home.wait_for("it is given up", |home| home.story(id).contains("could not be told"));
        assert!(!ran.exists() && home.story(id).contains("another user"), "{}", home.story(id));
        std::fs::write(&ran, "").expect("a file");
        set_mode(weak, 0o755);
    }
    let gone = "[notify]\nhook = ['fail:/nonexistent/told']\n";
    std::fs::write(file(home.path()), gone).expect("a file");
    refused(&check(), "No such file");
    refused(&home.try_run(&["config", "reload"]), "No such file");
}

#[test]
fn members_of_the_administrators_group_do_not_become_root_by_a_token() {
    if !rustix::process::geteuid().is_root() {
        return skipped("only root can be two users");
    }
    let remote = Remote::new(&["--admin-group", "nogroup"]);
    let home = &remote.home;
    set_mode(home.path(), 0o755);
    for user in ["root", "daemon", "0"] {
        let others = as_nobody(home, &["token", "create", "--user", user]);
        refused(&others, "only root and the daemon's user make tokens for others");
    }
    let own = as_nobody(home, &["token", "create", "--user", "nobody"]);
    let own = text(&own.stdout).lines().next().expect("a token").to_owned();
    let run = remote.run_elsewhere(&own, &["run", "--", "id", "-u"]);
    assert_eq!(text(&run.stdout).trim(), "65534", "{}", text(&run.stderr));
    refused(&remote.run_elsewhere(&own, &["token", "create", "--user", "root"]), "token");
    let theirs = remote.token(&["--user", "daemon"]);
    let id = theirs.split('_').nth(1).expect("a number");
    assert!(as_nobody(home, &["token", "revoke", id]).status.success(), "an administrator may");
    // The log says which user did what.
    assert!(as_nobody(home, &["config", "reload"]).status.success());
    assert!(as_nobody(home, &["drain", "--gpu", "0", "--reason", "fan"]).status.success());
    assert!(as_nobody(home, &["resume", "--gpu", "0"]).status.success());
    let reserve = |user: &str| as_nobody(home, &["reserve", "--gpu", "0", "--for", user]);
    assert!(reserve("root").status.success());
    let again = reserve("daemon");
    let note = "GPU 0 was reserved for root, by nobody: that is over now";
    assert!(again.status.success() && text(&again.stderr).contains(note), "{again:?}");
    assert!(as_nobody(home, &["return", "--gpu", "0"]).status.success());
    assert!(as_nobody(home, &["drain"]).status.success());
    for line in [
        "nobody made token 1 of nobody",
        "root made token 2 of daemon",
        "nobody revoked token 2 of daemon",
        "nobody has settings read again",
        "GPU 0 is drained, by nobody: fan",
        "GPU 0 takes tasks again, by nobody",
        "GPU 0 is reserved for root, by nobody",
        "GPU 0 takes the tasks of all users again, by nobody",
        "draining: nobody wants it so",
    ] {
        home.wait_for(line, |home| log(home).contains(line));
    }
}

#[test]
fn a_state_directory_that_others_could_change_is_refused() {
    let place = tempfile::tempdir().expect("a folder");
    let state = place.path().join("state");
    std::fs::create_dir(&state).expect("a folder");
    let start = |state: &Path| {
        let mut daemon = coloc();
        daemon.args(["daemon", "--emulate", "1xA100-40GB", "--state"]).arg(state);
        let socket = place.path().join("socket");
        // One that starts all the same is ended, which is no success either.
        let mut limited = Command::new("timeout");
        limited.arg("20").arg(daemon.get_program()).args(daemon.get_args()).arg("--socket");
        limited.arg(socket).env("COLOC_CONFIG", "/dev/null").output().expect("it ends")
    };
    set_mode(&state, 0o777);
    refused(&start(&state), "another user could change the daemon's state");
    assert_eq!(std::fs::read_dir(&state).expect("ours").count(), 0, "nothing was changed");
    set_mode(&state, 0o1777);
    refused(&start(&state), "another user could change the daemon's state");
    if !rustix::process::geteuid().is_root() {
        return;
    }
    set_mode(&state, 0o755);
    std::os::unix::fs::chown(&state, Some(65_534), None).expect("we are root");
    for below in [state.clone(), state.join("deeper"), state.join("deeper/still")] {
        refused(&start(&below), "another user could change the daemon's state");
    }
    assert_eq!(std::fs::read_dir(&state).expect("ours").count(), 0, "nothing was changed");
}

#[test]
fn a_task_ends_well_when_its_epilog_speaks_and_no_process_listens() {
    let place = tempfile::tempdir().expect("a folder");
    let epilog = place.path().join("epilog");
    std::fs::write(&epilog, "#!/bin/sh\necho x\nhead -c 60000 /dev/zero\n").expect("written");
    set_mode(&epilog, 0o755);
    let epilog = epilog.to_str().expect("text");
    // The first reads a line and goes; the second holds the pipe and never reads.
    for reader in ["head -n1", "sleep 60"] {
        let shell = format!(
            "mkfifo \"$0.fifo\"; ({reader} < \"$0.fifo\" > /dev/null) & exec \"$@\" 2> \"$0.fifo\""
        );
        let arguments = ["--emulate", "1xA100-40GB", "--epilog", epilog];
        let home = Home::within(&["sh", "-c", &shell], &arguments);
        let tasks: Vec<u32> = (0..4).map(|_| home.submit(&["--", "true"])).collect();
        for task in tasks {
            let waits = ["pending", "launching", "running"];
            home.wait_for("its end", |home| !waits.contains(&home.state(task).as_str()));
            assert_eq!(home.state(task), "completed", "{reader}: {}", home.story(task));
        }
    }
}

/// A daemon of the user "nobody", on a machine whose configuration has a system's daemon.
fn own_daemon(place: &Path, words: &str) -> Output {
    let shell = format!(
        "mount --bind {0}/etc /etc && mount --bind {0}/run /run && \
         exec setpriv --reuid=65534 --regid=65534 --clear-groups env -i HOME={0}/home PATH=$PATH XDG_RUNTIME_DIR={0}/home \
         timeout 5 {1} daemon --state {0}/home/state --socket {0}/home/socket {words}",
        place.display(),
        coloc().get_program().to_string_lossy()
    );
    let started = Command::new("unshare").args(["--mount", "sh", "-c", &shell]).output();
    started.expect("unshare runs")
}

#[test]
fn a_users_own_daemon_does_not_obey_the_systems_configuration() {
    if !rustix::process::geteuid().is_root() {
        return skipped("only root has mounts of its own");
    }
    let place = tempfile::tempdir().expect("a folder");
    let path = place.path();
    set_mode(path, 0o755);
    for folder in ["etc/coloc", "run/coloc", "home/.config/coloc"] {
        std::fs::create_dir_all(path.join(folder)).expect("a folder");
    }
    for file in ["passwd", "group", "ld.so.cache"] {
        let _ = std::fs::copy(Path::new("/etc").join(file), path.join("etc").join(file));
    }
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port();
    let system = format!(
        "[daemon]\nprolog = '/nonexistent'\nadmin-group = 'nosuch'\n[api]\nlisten = '127.0.0.1:{port}'\nmetrics = {port}\n"
    );
    std::fs::write(path.join("etc/coloc/coloc.toml"), system).expect("a file");
    let user = path.join("home/.config/coloc/config.toml");
    let own = |text: &str| {
        std::fs::write(&user, text).expect("a file");
        for part in [".config/coloc/config.toml", ".config/coloc", ".config", ""] {
            std::os::unix::fs::chown(path.join("home").join(part), Some(65_534), Some(65_534))
                .expect("we are root");
        }
    };
    let _listener = std::os::unix::net::UnixListener::bind(path.join("run/coloc/coloc.sock"));
    set_mode(&path.join("run/coloc/coloc.sock"), 0o666);
    own("[daemon]\nqueue = 'fifo'\n[api]\nlisten = ''\nmetrics = ''\n");
    let probe = own_daemon(path, "--emulate 1xA100-40GB");
    let said = text(&probe.stderr);
    if said.contains("unshare") || said.contains("mount:") {
        return skipped("there are no mounts of one's own here");
    }
    // It ran until it was told to stop.
    assert!(said.contains("listening at") && !said.contains("in use"), "{said}");
    assert!(said.contains("a system daemon answers") && said.contains("emulated GPUs"), "{said}");
    own(&format!("[api]\nlisten = '127.0.0.1:{port}'\n"));
    let busy = text(&own_daemon(path, "--emulate 1xA100-40GB").stderr);
    assert!(busy.contains("in use"), "its own file counts: {busy}");
    let real = text(&own_daemon(path, "--listen 127.0.0.1:1").stderr);
    assert!(real.contains("may promise the same memory"), "{real}");
}
