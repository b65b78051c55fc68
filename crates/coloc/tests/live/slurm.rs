//! What people's hands and scripts know from Slurm.

use super::home::{Home, text};
use serde_json::json;
use std::io::Read as _;
use std::process::{Command, Output};

/// A command of Slurm's, which is a link to the program.
fn slurm(home: &Home, name: &str, arguments: &[&str]) -> Output {
    let link = home.path().join(name);
    if !link.exists() {
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_coloc"), &link).expect("a link");
    }
    let mut program = Command::new(link);
    program.args(arguments).env("COLOC_CONFIG", "/dev/null").env("COLOC_SOCKET", home.socket());
    program.current_dir(home.path()).output().expect("it runs")
}

fn said(home: &Home, name: &str, arguments: &[&str]) -> String {
    let output = slurm(home, name, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn a_script_for_a_cluster_runs_here() {
    let home = Home::new(&["--emulate", "2xA100-40GB"]);
    let script = "#!/bin/bash
#SBATCH --job-name=big
#SBATCH -p gpu -A lab -q normal --comment 'for the paper'
#SBATCH --nodes=1 --ntasks-per-node=1 --cpus-per-task=8
#SBATCH --gres=gpu:a100:2
#SBATCH -C a100 --mail-type=END --mail-user=a@b.c
#SBATCH --time=UNLIMITED --requeue --open-mode=truncate
#SBATCH -o out.txt
echo $NVIDIA_VISIBLE_DEVICES; echo $MASTER_ADDR $MASTER_PORT
[ $NVIDIA_VISIBLE_DEVICES = $CUDA_VISIBLE_DEVICES ] && exit 6
";
    std::fs::write(home.path().join("job.sh"), script).expect("a script");
    std::fs::write(home.path().join("out.txt"), "of before\n").expect("a file");
    let waited = slurm(&home, "sbatch", &["-W", "job.sh"]);
    assert_eq!(waited.status.code(), Some(6), "{}", text(&waited.stderr));
    let remarks = text(&waited.stderr);
    for word in ["kind a100", "--constraint a100", "no mail is sent"] {
        assert!(remarks.contains(word), "{remarks}");
    }
    let task = home.show(1);
    assert_eq!((&task["name"], &task["gpus"]), (&json!("big"), &json!(2)));
    assert_eq!(task["time_limit_s"], json!(null));
    let written = std::fs::read_to_string(home.path().join("out.txt")).expect("its output");
    assert_eq!(written.matches("GPU-").count(), 2, "{written}");
    assert!(written.ends_with("127.0.0.1 12001\n") && !written.contains("before"), "{written}");
    // Who is submitted from within a task meets elsewhere, and who says where meets there.
    let inner = ["submit", "-W", "-o", "inner.txt", "--", "sh", "-c", "echo $MASTER_PORT"];
    let outer = [&["submit", "-W", "--", env!("CARGO_BIN_EXE_coloc")], &inner[..]].concat();
    said(&home, "coloc", &outer);
    let written = std::fs::read_to_string(home.path().join("inner.txt")).expect("its output");
    assert_eq!(written, "12003\n");
    let given = [
        "submit",
        "-W",
        "--export",
        "ALL,MASTER_PORT=9",
        "-o",
        "given.txt",
        "--",
        "sh",
        "-c",
        "echo $MASTER_PORT",
    ];
    said(&home, "coloc", &given);
    let written = std::fs::read_to_string(home.path().join("given.txt")).expect("its output");
    assert_eq!(written, "9\n");
    // However a script asks for GPUs, what is typed counts.
    let gpus = |asked: &str, typed: &[&str]| {
        let script = format!("#!/bin/sh\n#SBATCH {asked}\ntrue\n");
        std::fs::write(home.path().join("asks.sh"), script).expect("a script");
        let words = [&["-H", "--parsable"], typed, &["asks.sh"]].concat();
        let id = said(&home, "sbatch", &words);
        home.show(id.trim().parse().expect("an id"))["gpus"].clone()
    };
    for asked in ["--gres=gpu:2", "-G 2", "--gpus-per-node=2", "--gpus-per-task=2"] {
        assert_eq!(gpus(asked, &[]), 2, "{asked}");
        for typed in ["--gpus=1", "--gres=gpu:1", "--gpus-per-node=1", "--gpus-per-task=1"] {
            assert_eq!(gpus(asked, &[typed]), 1, "{asked} {typed}");
        }
    }
    let unknown = slurm(&home, "sbatch", &["--burst-buffer=x", "job.sh"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(text(&unknown.stderr).contains("--burst-buffer"), "{}", text(&unknown.stderr));
}

#[test]
fn squeue_is_asked_in_its_own_words() {
    let home = Home::new(&["--emulate", "1xA100-40GB"]);
    said(&home, "sbatch", &["-H", "-J", "one", "-t", "1-0", "--wrap", "true"]);
    said(&home, "sbatch", &["-H", "-J", "two", "-a", "3-4", "--nice=7", "--wrap", "true"]);
    let list = |arguments: &[&str]| said(&home, "squeue", arguments);
    assert_eq!(
        list(&["-h", "-o", "%i %j %t %l"]),
        "1 one PD 1-00:00:00\n2_3 two PD UNLIMITED\n2_4 two PD UNLIMITED\n"
    );
    assert_eq!(list(&["-h", "-n", "two", "-S", "-i", "-o", "%A"]), "3\n2\n");
    assert_eq!(list(&["-h", "-j", "2", "-O", "JobID:5,Priority:4"]), "2_3  -7  \n2_4  -7  \n");
    assert_eq!(list(&["-a", "-u", "nobody-here,nor-there"]).lines().count(), 1);
    assert!(list(&["-l"]).contains("TIME_LIMI") && list(&["-l"]).contains("PENDING"));
    assert!(list(&["--start"]).contains("START"));
    assert_eq!(said(&home, "scancel", &["-n", "two", "-t", "PENDING"]), "Cancelled 2-3\n");
    let mut watch = Command::new(home.path().join("squeue"));
    watch.args(["-h", "-i", "0.1", "-o", "%j"]).env("COLOC_CONFIG", "/dev/null");
    watch.env("COLOC_SOCKET", home.socket()).stdout(std::process::Stdio::piped());
    let mut watch = watch.spawn().expect("it starts");
    let mut heard = [0; 12];
    watch.stdout.as_mut().expect("a pipe").read_exact(&mut heard).expect("three lists");
    assert_eq!(text(&heard), "one\none\none\n");
    watch.kill().expect("it is ours");
    watch.wait().expect("it ends");
    let wrong = slurm(&home, "squeue", &["-o", "%y"]);
    assert!(text(&wrong.stderr).contains("%y is not known"), "{}", text(&wrong.stderr));
}

#[test]
fn dependencies_are_met_as_slurm_meets_them() {
    let home = Home::new(&["--emulate", "8xA100-40GB"]);
    let go = home.path().join("go");
    let waits = format!(
        "while ! test -e {}; do sleep 0.02; done; test $COLOC_ARRAY_INDEX != 2",
        go.display()
    );
    // 1-3, and each of 4-6 after its own.
    home.submit(&["-a", "1-3", "--gpu-mem", "1G", "--", "sh", "-c", &waits]);
    home.submit(&["-a", "1-3", "-d", "aftercorr:1", "--gpu-mem", "1G", "--", "true"]);
    for _ in 0..2 {
        home.submit(&["-J", "alone", "-d", "singleton", "--gpu-mem", "1G", "--", "sleep", "0.2"]);
    }
    home.wait_for("the second waits for the first", |home| {
        home.state(7) == "completed" || home.show(8)["reason"] == "waits for task 7 to end"
    });
    home.wait_for_state(8, "completed");
    let (first, second) = (home.show(7), home.show(8));
    assert!(second["started_s"].as_f64() >= first["ended_s"].as_f64());
    assert_eq!(home.state(4), "pending");
    std::fs::write(&go, "").expect("a file");
    for (id, state) in [(4, "completed"), (5, "cancelled"), (6, "completed")] {
        home.wait_for_state(id, state);
    }
    // It need not end: that it was started is enough.
    let endless = home.submit(&["--hold", "--", "sleep", "600"]).to_string();
    let after = home.submit(&["-d", &format!("after:{endless}"), "--", "true"]);
    home.wait_for("its reason", |home| {
        home.show(after)["reason"].as_str().is_some_and(|why| why.contains("waits for task"))
    });
    home.run(&["release", &endless]);
    home.wait_for_state(after, "completed");
}

#[test]
fn whatever_waits_can_be_changed() {
    let home = Home::new(&["--emulate", "2xA100-40GB"]);
    let busy = home.submit(&["-G", "2", "--exclusive", "--", "sleep", "60"]);
    home.wait_for_state(busy, "running");
    let id = home.submit(&["-G", "2", "--exclusive", "-t", "5", "--", "true"]).to_string();
    let other = home.submit(&["-d", &id, "--", "true"]).to_string();
    home.run(&[
        "update",
        &id,
        "-G",
        "1",
        "--exclusive=false",
        "-t",
        "UNLIMITED",
        "--nice",
        "3",
        "--retry",
        "2",
        "--on-oom",
        "fail",
    ]);
    let task = home.show(id.parse().expect("an id"));
    assert_eq!((&task["gpus"], &task["priority"]), (&json!(1), &json!(-3)));
    assert_eq!(task["time_limit_s"], json!(null));
    let refused = |arguments: &[&str]| text(&home.try_run(arguments).stderr);
    assert!(refused(&["update", &id, "--after", &other]).contains("would wait for itself"));
    // The number of an array means all of it.
    let array = home.submit(&["-H", "-a", "1-3", "--", "true"]);
    let (first, second) = (array.to_string(), (array + 1).to_string());
    assert!(refused(&["update", &second, "--after", &first]).contains("would wait for itself"));
    home.run(&["update", &second, "--after", &id]);
    home.run(&["cancel", &format!("{array}-{}", array + 2)]);
    assert!(refused(&["update", &id, "-G", "9"]).contains("needs 9 GPUs"));
    assert!(refused(&["update", &busy.to_string(), "-G", "1"]).contains("fixed while it runs"));
    home.run(&["update", &busy.to_string(), "--retry", "1"]);
    // It waits for its hour, although there is room, and then for nothing any more.
    home.run(&["update", &id, "--begin", "now+1hour"]);
    home.run(&["cancel", &busy.to_string()]);
    home.wait_for("its begin", |home| {
        home.show(id.parse().expect("an id"))["reason"] == "waits for its begin time"
    });
    home.run(&["update", &id, "--begin", "now"]);
    home.wait_for_state(id.parse().expect("an id"), "completed");
    home.wait_for_state(other.parse().expect("an id"), "completed");
}

#[test]
fn a_login_shells_environment_is_not_this_ones() {
    let home = Home::new(&["--emulate", "1xA100-40GB"]);
    let profile = home.path().join(".profile");
    std::fs::write(&profile, "echo Welcome\nexport FROM_PROFILE='a b'\n").expect("a profile");
    let submit = Command::new(env!("CARGO_BIN_EXE_coloc"))
        .args(["submit", "--user-env", "--export", "GIVEN=x", "-W", "-o", "out", "--", "sh", "-c"])
        .arg("echo $FROM_PROFILE/$ONLY_HERE/$GIVEN")
        .env("COLOC_SOCKET", home.socket())
        .env("COLOC_CONFIG", "/dev/null")
        .env("HOME", home.path())
        .env("SHELL", "/bin/sh")
        .env("ONLY_HERE", "here")
        .current_dir(home.path())
        .output()
        .expect("it runs");
    assert!(submit.status.success(), "{}", text(&submit.stderr));
    let out = std::fs::read_to_string(home.path().join("out")).expect("its output");
    assert_eq!(out, "a b//x\n");
}
