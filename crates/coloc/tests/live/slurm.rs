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
    assert!(!remarks.contains("--mail") && !remarks.contains("a100"), "{remarks}");
    let task = home.show(1);
    assert_eq!((&task["name"], &task["gpus"]), (&json!("big"), &json!(2)));
    assert_eq!(task["time_limit_s"], json!(null));
    let written = std::fs::read_to_string(home.path().join("out.txt")).expect("its output");
    assert_eq!(written.matches("GPU-").count(), 2, "{written}");
    assert!(written.ends_with("127.0.0.1 12001\n") && !written.contains("before"), "{written}");
    // A task that is submitted from within a task meets elsewhere, and one that says where meets there.
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
    let wrong = slurm(&home, "squeue", &["-o", "%s"]);
    assert!(text(&wrong.stderr).contains("%s is not known"), "{}", text(&wrong.stderr));
}

#[test]
fn formats_that_scripts_have_are_answered() {
    let home = Home::new(&["--emulate", "1xA100-40GB"]);
    said(&home, "sbatch", &["-H", "-J", "one", "-a", "0-1", "-c", "3", "--wrap", "true"]);
    let list = |arguments: &[&str]| said(&home, "squeue", arguments);
    let usual = list(&[]);
    let mut lines = usual.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let header = ["JOBID", "PARTITION", "NAME", "USER", "ST", "TIME", "NODES", "NODELIST(REASON)"];
    assert_eq!(lines.next().expect("a header"), header);
    let first = lines.next().expect("a task");
    assert_eq!((first[0], first[4], first[7]), ("1_0", "PD", "(JobHeldUser)"), "{usual}");
    assert_eq!(list(&["-h", "-j", "1", "-o", "%C %B %q"]), "3 N/A N/A\n3 N/A N/A\n");
    let place = home.path().canonicalize().expect("a path").display().to_string();
    assert_eq!(list(&["-h", "-o", "%Z"]).lines().next(), Some(place.as_str()));
    let named = list(&["-h", "-O", "JobID:4,tres-alloc:30,QOS"]);
    assert!(named.starts_with("1_0 cpu=3,node=1,gres/gpu=1"), "{named}");
    said(&home, "scancel", &["1"]);
    assert_eq!(list(&["-h", "-t", "CA", "-o", "%i %t"]), "1_0 CA\n1_1 CA\n");
    assert_eq!(list(&["-h", "-t", "all", "-o", "%i"]), "1_0\n1_1\n");
    assert_eq!(list(&["-h"]), "");
    let ran = home.run(&["run", "--gpu-mem", "1G", "--", "true"]);
    assert_eq!(ran, "");
    let queue = home.run(&["queue", "-t", "completed"]);
    assert!(queue.lines().count() == 2 && queue.contains("CD"), "{queue}");
    let past = said(&home, "sacct", &["-nPX", "--format=JobID,State,MaxRSS,CPUTime,AveCPU"]);
    assert!(past.contains("3|COMPLETED||00:00:0"), "{past}");
    let nodes = said(&home, "sinfo", &["-h", "-O", "NodeList:30,StateCompact:10,FreeMem"]);
    assert!(nodes.contains("idle") && nodes.contains("N/A"), "{nodes}");
    let outside = slurm(&home, "srun", &["--gpu-mem", "1G", "echo", "here"]);
    assert_eq!(text(&outside.stdout), "here\n", "{}", text(&outside.stderr));
    let mut squeue = Command::new(home.path().join("squeue"));
    squeue.args(["-h", "-t", "all"]).env("COLOC_CONFIG", "/dev/null");
    squeue.env("COLOC_SOCKET", home.socket()).env("SQUEUE_FORMAT", "%i-%t");
    let told = squeue.output().expect("it runs");
    assert!(text(&told.stdout).starts_with("1_0-CA\n"), "{}", text(&told.stdout));
    let wrong = slurm(&home, "sinfo", &["-O", "nope"]);
    assert_eq!(wrong.status.code(), Some(2), "{}", text(&wrong.stderr));
}

#[test]
fn output_that_cannot_be_followed_is_no_failure() {
    let home = Home::new(&["--emulate", "1xA100-40GB"]);
    let ran = home.try_run(&["run", "-o", "/dev/null", "--", "sh", "-c", "exit 7"]);
    assert_eq!(ran.status.code(), Some(7), "{}", text(&ran.stderr));
    assert!(text(&ran.stderr).contains("the output of task 1 is not shown"));
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
    // One of several is enough; a while is a while.
    let any = home.submit(&["-d", &format!("afterok:{endless}?afterok:1"), "--", "true"]);
    let never = home.submit(&["-d", "afterok:5?afternotok:6", "--", "true"]);
    let late = home.submit(&["-d", "after:4+60", "--", "true"]);
    home.wait_for_state(never, "cancelled");
    home.wait_for("their reasons", |home| {
        let why = |id: u32| home.show(id)["reason"].as_str().unwrap_or_default().to_owned();
        why(any).contains(&format!("task {endless} to end")) && why(late).contains("a while after")
    });
    home.run(&["update", &any.to_string(), "-d", &format!("afterok:{endless}?afterok:6")]);
    home.wait_for_state(any, "completed");
    home.run(&["update", &late.to_string(), "-d", "after:4"]);
    home.wait_for_state(late, "completed");
    home.run(&["release", &endless]);
    home.wait_for_state(after, "completed");
}

#[test]
fn arrays_with_gaps_meet_number_by_number_and_names_one_by_one() {
    let mut home = Home::new(&["--emulate", "8xA100-40GB"]);
    let first = home.submit(&["-H", "-a", "9,1-7:3", "--gpu-mem", "1G", "--", "true"]);
    let after = format!("aftercorr:{first}");
    let second = home.submit(&["-a", "1-9:4", "-d", &after, "--gpu-mem", "1G", "--", "true"]);
    let reason = |home: &Home, id: u32| home.show(id)["reason"].as_str().map(str::to_owned);
    // 1, 4, 7 and 9 against 1, 5 and 9: a task that has no counterpart waits for all.
    home.wait_for("their reasons", |home| {
        let waits = |on: u32| Some(format!("waits for task {on} to end"));
        reason(home, second) == waits(first)
            && reason(home, second + 1) == waits(first)
            && reason(home, second + 2) == waits(first + 3)
    });
    let named = |name: &str| {
        home.submit(&["-H", "-J", name, "-d", "singleton", "--gpu-mem", "1G", "--", "sleep", "60"])
    };
    let ids: Vec<u32> = (0..3).map(|_| named("alone")).collect();
    let other = named("other");
    home.run(&["release", &format!("{}-{other}", ids[1])]);
    home.wait_for_state(other, "running");
    home.wait_for("both wait", |home| {
        reason(home, ids[1]) == Some(format!("waits for task {} to end", ids[0]))
            && reason(home, ids[2]) == Some(format!("waits for task {} to end", ids[1]))
    });
    let refused =
        text(&home.try_run(&["update", &ids[0].to_string(), "-d", &ids[2].to_string()]).stderr);
    assert!(refused.contains("would wait for itself"), "{refused}");
    home.kill();
    home.boot();
    // A task that is renamed is waited for no longer, and neither is one that goes.
    home.run(&["update", &ids[0].to_string(), "-J", "otherwise"]);
    home.wait_for_state(ids[1], "running");
    home.run(&["cancel", &ids[1].to_string()]);
    home.wait_for_state(ids[2], "running");
}

#[test]
fn signals_reach_tasks_that_go_on() {
    let home = Home::new(&["--emulate", "1xA100-40GB"]);
    // The child would die of a signal that its parent handles.
    let script =
        "trap 'echo caught' USR1; sleep 600 & echo ready $$ $!; while :; do sleep 0.05; done";
    let id = home.submit(&["--", "bash", "-c", script]);
    let word = id.to_string();
    let says = |word: &str| {
        home.wait_for(word, |home| home.run(&["logs", &id.to_string()]).contains(word));
    };
    says("ready");
    assert_eq!(said(&home, "scancel", &["--signal=USR1", &word]), format!("Signalled {id}\n"));
    says("caught");
    assert_eq!(home.state(id), "running");
    let log = home.run(&["logs", &word]);
    let pids = log.lines().next().expect("a line").strip_prefix("ready ").expect("its words");
    let state = |pid: &str| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit(')').next().and_then(|rest| rest.trim().chars().next())
    };
    let all = |wanted: fn(char) -> bool| pids.split(' ').all(|pid| state(pid).is_some_and(wanted));
    assert!(all(|state| state != 'Z'), "the child heard nothing");
    home.run(&["cancel", "-s", "STOP", &word]);
    home.wait_for("they stand still", |_| all(|state| state == 'T'));
    home.run(&["cancel", "-s", "18", &word]);
    home.wait_for("they go on", |_| all(|state| state != 'T'));
    assert!(home.story(id).contains("its program is sent SIGUSR1"), "{}", home.story(id));
    let waits = home.submit(&["--hold", "--", "true"]);
    let refused = home.try_run(&["cancel", "-s", "USR1", &waits.to_string()]);
    assert!(text(&refused.stderr).contains("only a task that runs hears signals"));
    assert_eq!(home.run(&["cancel", "-s", "CONT", "all"]), format!("Signalled {id}\n"));
    for wrong in [&["cancel", "-s", "NOPE", &word][..], &["hold", "-s", "USR1", &word]] {
        assert_eq!(home.try_run(wrong).status.code(), Some(2), "{wrong:?}");
    }
    home.run(&["cancel", "-f", "-s", "USR2", &word]);
    home.wait_for_state(id, "failed");
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
        let reason = home.show(id.parse().expect("an id"))["reason"].clone();
        let reason = reason.as_str().unwrap_or_default();
        reason.starts_with("waits for its begin time, 20") && reason.ends_with(" UTC")
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

#[test]
fn a_dependency_that_cannot_be_met_is_told_at_once() {
    let home = Home::new(&["--emulate", "1xA100-40GB"]);
    let failed = home.submit(&["--", "false"]);
    home.wait_for_state(failed, "failed");
    let late = home.try_run(&["submit", "-d", "afterok:last", "--", "true"]);
    let said = text(&late.stderr);
    assert!(said.contains("was cancelled at once: task 1 did not end as it had to"), "{said}");
    let array = home.submit(&["-a", "3-4", "--", "true"]);
    home.wait_for_state(array + 1, "completed");
    let story = home.story(array + 1);
    assert!(story.contains(&format!("submitted as number 4 of array {array}")), "{story}");
}
