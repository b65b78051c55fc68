//! Configuration files, units, aliases, completions and manual pages.

use super::home::{Home, coloc, text};
use std::path::Path;
use std::process::{Command, Output};

fn with_files(place: &Path, arguments: &[&str]) -> Output {
    coloc()
        .args(arguments)
        .env_remove("COLOC_CONFIG")
        .env_remove("COLOC_SOCKET")
        .env("XDG_CONFIG_HOME", place)
        .env("HOME", place)
        .output()
        .expect("it runs")
}

#[test]
fn a_daemon_takes_its_flags_from_a_file_and_what_is_typed_wins() {
    let home = Home::with_environment(&["--time-scale", "2"], |place| {
        let file = place.join("coloc.toml");
        let text =
            "[daemon]\nemulate = '3xA100-40GB'\ngrace = 0.3\nqueue = 'fifo'\ntime-scale = 9\n";
        std::fs::write(&file, text).expect("a file");
        vec![("COLOC_CONFIG", file)]
    });
    let gpus = |count: &str| home.try_run(&["submit", "--hold", "--gpus", count, "--", "true"]);
    assert!(gpus("3").status.success());
    assert!(text(&gpus("4").stderr).contains("needs 4 GPUs"));
    let file = home.path().join("submit.toml");
    std::fs::write(&file, "[submit]\nname = 'from a file'\ntime = '7'\nhold = true\n")
        .expect("a file");
    let submit = |more: &[&str]| {
        let words = ["submit", "--parsable"].iter().chain(more).copied().chain(["--", "true"]);
        let words: Vec<&str> = words.collect();
        let output = coloc()
            .args(words)
            .env("COLOC_CONFIG", &file)
            .env("COLOC_SOCKET", home.socket())
            .output()
            .expect("it runs");
        home.show(text(&output.stdout).trim().parse().expect("an id"))
    };
    let (plain, typed) = (submit(&[]), submit(&["-J", "typed"]));
    assert_eq!((&plain["name"], &plain["time_limit_s"]), (&"from a file".into(), &420.0.into()));
    assert_eq!((&typed["name"], &typed["time_limit_s"]), (&"typed".into(), &420.0.into()));
}

#[test]
fn a_wrong_file_is_told_with_its_line_and_column() {
    let place = tempfile::tempdir().expect("a directory");
    let file = place.path().join("coloc/config.toml");
    std::fs::create_dir_all(file.parent().expect("a parent")).expect("a directory");
    std::fs::write(&file, "[daemon]\nqueue = 'lifo'\n").expect("a file");
    for words in [vec!["config", "check"], vec!["config", "show"], vec!["daemon"]] {
        let output = with_files(place.path(), &words);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        let said = text(&output.stderr);
        assert!(said.contains("config.toml, line 2, column 9: invalid value 'lifo'"), "{said}");
        assert!(said.contains("best-effort"), "the choices are told: {said}");
    }
    std::fs::write(&file, "[daemon]\nqueue = 'fifo'\n[client]\nsocket = '/a'\n").expect("a file");
    assert!(with_files(place.path(), &["config", "check"]).status.success());
    let shown = text(&with_files(place.path(), &["config", "show", "--origin"]).stdout);
    assert!(
        shown.contains("queue = \"fifo\"  # ") && shown.contains("config.toml, line 2"),
        "{shown}"
    );
    let nobody = with_files(place.path(), &["queue"]);
    assert!(text(&nobody.stderr).contains("no daemon answers at /a"), "{}", text(&nobody.stderr));
    let environment = coloc()
        .args(["config", "show", "--origin"])
        .env("COLOC_CONFIG", &file)
        .env("COLOC_SOCKET", "/b")
        .output()
        .expect("it runs");
    let shown = text(&environment.stdout);
    assert!(shown.contains("socket = \"/b\"  # environment, COLOC_SOCKET"), "{shown}");
}

#[test]
fn init_writes_what_config_check_takes() {
    let place = tempfile::tempdir().expect("a directory");
    let root = place.path().to_str().expect("text");
    let init = || with_files(place.path(), &["init", "--system", "--root", root]);
    let output = init();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let file = place.path().join("etc/coloc/coloc.toml");
    let written = std::fs::read_to_string(&file).expect("a file");
    assert!(written.contains("#queue = ") && written.contains("# Order of the queue"), "{written}");
    let checked = with_files(place.path(), &["config", "check", file.to_str().expect("text")]);
    assert!(checked.status.success(), "{}", text(&checked.stderr));
    let unit = place.path().join("etc/systemd/system/coloc.service");
    let unit = std::fs::read_to_string(unit).expect("a unit");
    for line in ["Type=notify", "KillMode=process", "CapabilityBoundingSet=", "Delegate=yes"] {
        assert!(unit.contains(line), "{unit}");
    }
    std::fs::write(&file, "# mine\n").expect("a file");
    assert!(text(&init().stdout).contains("left alone"));
    assert_eq!(std::fs::read_to_string(&file).expect("a file"), "# mine\n");
}

#[test]
fn every_key_of_the_written_file_is_one() {
    let place = tempfile::tempdir().expect("a directory");
    let root = place.path().to_str().expect("text");
    with_files(place.path(), &["init", "--system", "--root", root]);
    let file = place.path().join("etc/coloc/coloc.toml");
    let text_of = std::fs::read_to_string(&file).expect("a file");
    let mut section = "";
    let mut keys = 0;
    for line in text_of.lines() {
        if line.starts_with('[') {
            section = line;
        }
        let Some((key, value)) = line.strip_prefix('#').and_then(|line| line.split_once(" = "))
        else {
            continue;
        };
        if key.contains(' ') || value == "\"\"" {
            continue;
        }
        keys += 1;
        // Some keys need another: time has a speed on emulated GPUs, and only a page is open to all.
        let beside = match key {
            "time-scale" => "emulate = \"1xA100-40GB\"\n",
            "web-anonymous" => "web = \"7451\"\n",
            _ => "",
        };
        std::fs::write(&file, format!("{section}\n{key} = {value}\n{beside}")).expect("a file");
        let checked = with_files(place.path(), &["config", "check", file.to_str().expect("text")]);
        assert!(checked.status.success(), "{line}: {}", text(&checked.stderr));
    }
    assert!(keys > 12 && text_of.contains("#queue = \"least-work\""), "{keys}");
}

#[test]
fn systemd_is_told_when_the_daemon_is_ready() {
    let place = tempfile::tempdir().expect("a directory");
    let socket = place.path().join("notify");
    let listener = std::os::unix::net::UnixDatagram::bind(&socket).expect("a socket");
    let timeout = Some(std::time::Duration::from_secs(60));
    listener.set_read_timeout(timeout).expect("a timeout");
    let said = || {
        let mut word = [0; 64];
        let length = listener.recv(&mut word).expect("a word");
        text(&word[..length])
    };
    let mut home = Home::with_environment(&["--emulate", "1xA100-40GB"], |_| {
        vec![("NOTIFY_SOCKET", socket.clone())]
    });
    assert_eq!(said(), "READY=1");
    home.stop();
    assert_eq!(said(), "STOPPING=1");
}

#[test]
fn slurms_names_do_what_they_do_there() {
    let home = Home::new(&["--emulate", "1xA100-40GB"]);
    let bin = home.path().join("bin");
    let bin_text = bin.to_str().expect("text");
    assert!(
        coloc().args(["init", "--slurm-aliases", bin_text]).status().expect("it runs").success()
    );
    let run = |name: &str, words: &[&str]| {
        let output = Command::new(bin.join(name))
            .args(words)
            .current_dir(home.path())
            .env("COLOC_CONFIG", "/dev/null")
            .env("COLOC_SOCKET", home.socket())
            .output()
            .expect("it runs");
        assert!(output.status.success(), "{name} {words:?}: {}", text(&output.stderr));
        text(&output.stdout)
    };
    let script =
        "#!/bin/sh\n#SBATCH --job-name=hello\n#SBATCH --gres=gpu:1\n#SBATCH --mem=4G\necho hi $1\n";
    std::fs::write(home.path().join("job.sh"), script).expect("a script");
    assert_eq!(run("sbatch", &["job.sh", "you"]), "Submitted batch job 1\n");
    home.wait_for_state(1, "completed");
    assert_eq!(home.show(1)["name"], "hello");
    let written = std::fs::read_to_string(home.path().join("slurm-1.out")).expect("its output");
    assert_eq!(written, "hi you\n");
    assert_eq!(run("sbatch", &["--parsable", "-J", "wrapped", "--wrap", "sleep 60"]), "2\n");
    run("sbatch", &["-a", "1-3", "--hold", "--wrap", "true"]);
    assert_eq!(run("squeue", &["-h"]).lines().count(), 4);
    home.wait_for_state(2, "running");
    assert_eq!(run("squeue", &["-h", "-t", "R", "--me"]).lines().count(), 1);
    run("scancel", &["3_2"]);
    assert_eq!(home.state(4), "cancelled");
    run("scancel", &["3"]);
    assert_eq!((home.state(3), home.state(5)), ("cancelled".into(), "cancelled".into()));
    run("scancel", &["-n", "wrapped"]);
    home.wait_for_state(2, "cancelled");
    let taken = coloc().args(["init", "--slurm-aliases", "/bin"]).args(["--dry-run"]).output();
    assert!(taken.expect("it runs").status.success());
}

#[test]
fn shells_and_manuals_are_served() {
    for shell in ["bash", "zsh", "fish"] {
        let output = coloc().args(["completions", shell]).output().expect("it runs");
        assert!(text(&output.stdout).contains("idle-timeout"), "{shell}");
    }
    let place = tempfile::tempdir().expect("a directory");
    let pages = coloc().args(["man", "-o"]).arg(place.path()).status().expect("it runs");
    assert!(pages.success());
    let page = std::fs::read_to_string(place.path().join("coloc-submit.1")).expect("a page");
    assert!(page.contains("gpu\\-mem") && page.contains("coloc"), "{page}");
    assert!(!place.path().join("coloc-shim.1").exists(), "nobody types that");
}
