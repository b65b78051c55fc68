//! Batch scripts of the kinds that people have, as they are.

use super::home::{Home, text};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the scripts are.
const PLACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/scripts");

/// A script, where it writes, and what must be there. `*` in a name is the script's task.
type Expected = (&'static str, &'static [(&'static str, &'static [&'static str])]);

const SCRIPTS: [Expected; 32] = [
    (
        "ddp-srun",
        &[(
            "slurm-*.out",
            &["world 4", "0: rank 0 of 4 on 1", "3: rank 3 of 4 on 1", "--world-size 4"],
        )],
    ),
    (
        "torchrun",
        &[("slurm-*.out", &["torchrun --nnodes=1 --nproc_per_node=2", "rank none of none on 2"])],
    ),
    (
        "lightning-srun",
        &[("slurm-*.out", &["rank 0 of 2 on 2", "rank 1 of 2 on 2", "--num-nodes 1"])],
    ),
    ("accelerate", &[("slurm-*.out", &["accelerate launch --num_machines 1 --num_processes 2"])]),
    (
        "array-sweep",
        &[("sweep-*_0.out", &["--lr 0.1"]), ("sweep-*_3.out", &["--lr 0.0001", "--run", ".3"])],
    ),
    ("array-lines", &[("lines-1.out", &["--lr 1"]), ("lines-2.out", &["--lr 2"])]),
    (
        "array-extent",
        &[
            ("extent-2.out", &["part 2 of 3, 2 to 8 by 3"]),
            ("extent-8.out", &["part 8 of 3, 2 to 8 by 3"]),
        ],
    ),
    ("conda", &[("slurm-*.out", &["environment train", "rank 0 of 1 on 1"])]),
    (
        "modules",
        &[("slurm-*.out", &["module purge", "module load cuda/12.4 python/3.11", "rank none"])],
    ),
    ("heredoc", &[("heredoc.out", &["name: heredoc.sbatch", "gpus: 1", "rank 0 reads a script"])]),
    ("signal-batch", &[("slurm-*.out", &["shell heard it", "saved"])]),
    ("signal-step", &[("slurm-*.out", &["saved by rank 0", "shell goes on"])]),
    ("requeue", &[("requeue.out", &["start 0", "start 1", "from 17"])]),
    ("chain", &[("slurm-*.out", &["Submitted batch job"]), ("evaluate.out", &["evaluated"])]),
    ("steps", &[("slurm-*.out", &["seed 1", "seed 2", "seed 3", "seed 4"])]),
    ("labels", &[("slurm-*.out", &["0: local 0", "1: local 1", "2: local 2", "0: step 1 of 1"])]),
    ("outputs", &[("slurm-*.out", &["out 0", "out 1", "err 1"])]),
    ("bad-exit", &[("slurm-*.out", &["task 0: Exited with exit code 3", "srun said 143"])]),
    ("export-none", &[("slurm-*.out", &["secret unset", "rank 0"])]),
    ("export-some", &[("slurm-*.out", &["--data cifar10 --epochs 3", "step cifar10 5"])]),
    ("directories", &[("work/directories.out", &["in work", "two directories"])]),
    ("logs", &[("logs-*.log", &["to the log"]), ("logs-*.err", &["to the errors"])]),
    ("cpus-memory", &[("slurm-*.out", &["threads 8, cpus 8, memory 16384", "step threads 2"])]),
    ("per-gpu", &[("slurm-*.out", &["cpus 8, memory 16384"])]),
    ("cluster-flags", &[("slurm-*.out", &["runs all the same"])]),
    ("kinds", &[("slurm-*.out", &["A100"])]),
    (
        "login-shell",
        &[(
            "slurm-*.out",
            &["mode 640", "copy 0 of 2", "copy 1 of 2", "GPU 0: ", "ends 600 s later"],
        )],
    ),
    ("scratch", &[("slurm-*.out", &["lines 2"])]),
    ("notebook", &[("jupyter-*.log", &["ssh -N -L 200", "-m server --port 200"])]),
    ("report", &[("slurm-*.out", &["RUNNING", "JobName=report", "report|RUNNING", "coloc*"])]),
    ("later", &[("slurm-*.out", &["at last"])]),
    ("inline", &[("slurm-*.out", &["trains on 1", "evaluates on 1"])]),
];

/// Programs that scripts start, which say what they were told.
fn make_tools(place: &Path) {
    let say = "#!/bin/sh\necho \"rank ${SLURM_PROCID:-none} of ${SLURM_NTASKS:-none} on $(echo $CUDA_VISIBLE_DEVICES | tr , '\\n' | wc -l): $*\"\n";
    let echo = "#!/bin/sh\necho \"$(basename $0) $*\"\n";
    let tools = place.join("tools");
    std::fs::create_dir_all(&tools).expect("a directory");
    for (name, body) in [("python", say), ("torchrun", echo), ("accelerate", echo)] {
        let file = tools.join(name);
        std::fs::write(&file, body).expect("a program");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).expect("a mode");
    }
    let conda = place.join("miniconda3/etc/profile.d");
    std::fs::create_dir_all(&conda).expect("a directory");
    let body = "conda() { [ \"$1\" = activate ] && export CONDA_DEFAULT_ENV=$2; }\n";
    std::fs::write(conda.join("conda.sh"), body).expect("a file");
    std::fs::create_dir_all(place.join("work")).expect("a directory");
    std::fs::write(place.join("parameters.txt"), "--lr 1\n--lr 2\n").expect("a file");
}

/// Submits a script as its users do, in a directory of its own; says its task.
fn submit(home: &Home, place: &Path, script: &Path) -> (u32, String) {
    let link = home.path().join("sbatch");
    if !link.exists() {
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_coloc"), &link).expect("a link");
    }
    let path =
        format!("{}:{}", place.join("tools").display(), std::env::var("PATH").expect("a path"));
    let submitted = Command::new(link)
        .arg(script.file_name().expect("a name"))
        .current_dir(place)
        .env("COLOC_CONFIG", "/dev/null")
        .env("COLOC_SOCKET", home.socket())
        .env("HOME", place)
        .env("PATH", path)
        .env("SECRET", "x")
        .env("BASH_FUNC_module%%", "() {  echo \"module $*\"\n}")
        .output()
        .expect("it runs");
    let (told, remarks) = (text(&submitted.stdout), text(&submitted.stderr));
    let id = told.trim().strip_prefix("Submitted batch job ").and_then(|id| id.parse().ok());
    (id.unwrap_or_else(|| panic!("{}: {told}{remarks}", script.display())), remarks)
}

/// Every task of a script has ended well.
fn wait_for(home: &Home, name: &str, id: u32) {
    home.wait_for(name, |home| {
        let all = home.json(&["queue", "--all"]);
        let tasks = all["tasks"].as_array().expect("tasks").iter();
        let mut own = tasks.filter(|task| task["id"] == id || task["array_id"] == id);
        own.all(|task| {
            let state = task["state"].as_str().unwrap_or_default();
            assert!(
                !matches!(state, "failed" | "cancelled" | "timed_out" | "lost"),
                "{name}: {task}"
            );
            state == "completed"
        })
    });
}

#[test]
fn scripts_that_people_have_run_unchanged() {
    let home = Home::new(&["--emulate", "8xA100-40GB"]);
    let mut submitted = Vec::new();
    for (name, _) in SCRIPTS {
        let place: PathBuf = home.path().join(name);
        make_tools(&place);
        let script = place.join(format!("{name}.sbatch"));
        std::fs::copy(format!("{PLACE}/{name}.sbatch"), &script).expect("a script");
        let (id, remarks) = submit(&home, &place, &script);
        let has_notice = name == "cluster-flags";
        // A machine without a mailer says so, too.
        let notices = remarks.lines().filter(|line| !line.contains("sendmail")).count();
        assert_eq!(notices, usize::from(has_notice), "{name}: {remarks}");
        submitted.push((id, place));
    }
    let there = std::fs::read_dir(PLACE).expect("a directory").count();
    assert_eq!(there, SCRIPTS.len(), "every script is run");
    for ((name, files), (id, place)) in SCRIPTS.iter().zip(&submitted) {
        wait_for(&home, name, *id);
        for (file, needles) in *files {
            let file = place.join(file.replace('*', &id.to_string()));
            home.wait_for(name, |_| file.exists());
            let shown = || {
                let text = std::fs::read_to_string(&file).unwrap_or_default();
                needles.iter().all(|wanted| text.contains(wanted))
            };
            home.wait_for(&format!("{name}: {needles:?} in {}", file.display()), |_| shown());
        }
    }
}

#[test]
fn only_srun_says_that_srun_started_a_process() {
    let home = Home::new(&["--emulate", "2xA100-40GB"]);
    let script = "#!/bin/bash\n#SBATCH -n 2 -G 2 -c 3 -o out.txt\nenv | sort > batch.txt\nsrun -o step-%t.txt env\n";
    std::fs::write(home.path().join("job.sh"), script).expect("a script");
    let (id, _) = submit(&home, home.path(), &home.path().join("job.sh"));
    home.wait_for_state(id, "completed");
    let read = |name: &str| std::fs::read_to_string(home.path().join(name)).expect("its output");
    let (batch, step) = (read("batch.txt"), read("step-1.txt"));
    let has = |text: &str, line: &str| text.lines().any(|known| known == line);
    // Lightning takes these for a process that srun has started, and starts none itself.
    for name in
        ["SLURM_NTASKS=", "SLURM_PROCID=", "SLURM_LOCALID=", "SLURM_NODEID=", "SLURM_STEP_ID="]
    {
        assert!(!batch.lines().any(|line| line.starts_with(name)), "{name}: {batch}");
        assert!(step.lines().any(|line| line.starts_with(name)), "{name}: {step}");
    }
    for line in [
        "SLURM_NNODES=1",
        "SLURM_JOB_NUM_NODES=1",
        "SLURM_GPUS_ON_NODE=2",
        "SLURM_JOB_GPUS=0,1",
        "SLURM_CPUS_PER_TASK=3",
        "SLURM_CPUS_ON_NODE=6",
        "OMP_NUM_THREADS=3",
        "SLURM_NTASKS_PER_NODE=2",
        "SLURM_JOB_NAME=job.sh",
        "SLURM_JOB_PARTITION=coloc",
    ] {
        assert!(has(&batch, line) && has(&step, line), "{line}: {batch}");
    }
    for line in ["SLURM_PROCID=1", "SLURM_LOCALID=1", "SLURM_NTASKS=2", "SLURM_GTIDS=0,1"] {
        assert!(has(&step, line), "{line}: {step}");
    }
    let host = text(&Command::new("hostname").output().expect("it runs").stdout);
    assert!(has(&batch, &format!("SLURM_JOB_NODELIST={}", host.trim())), "{batch}");
}

#[test]
fn cpus_and_memory_of_the_machine_are_waited_for() {
    let home = Home::new(&["--emulate", "4xA100-40GB", "--cpus", "8", "--host-memory", "32G"]);
    let first = home.submit(&["-c", "6", "--mem", "8G", "--", "sleep", "60"]);
    home.wait_for_state(first, "running");
    let second = home.submit(&["-c", "4", "--", "true"]);
    let third = home.submit(&["--mem", "30G", "--", "true"]);
    let plain = home.submit(&["--", "true"]);
    home.wait_for_state(plain, "completed");
    let why = |id: u32| home.run(&["why", &id.to_string()]);
    assert!(
        why(second).contains("asks for 4 CPUs, and 2 of the machine's 8 are free"),
        "{}",
        why(second)
    );
    assert!(
        why(third).contains("asks for 30.0 GiB of host memory, and 24.0 GiB"),
        "{}",
        why(third)
    );
    let gpus = home.json(&["gpus"]);
    assert_eq!((&gpus["host"]["cpus_used"], &gpus["host"]["cpus_total"]), (&6.into(), &8.into()));
    let shown = home.run(&["gpus"]);
    assert!(shown.contains("Host: 6 of 8 CPUs, 8.0 of 32.0 GiB asked for by tasks"), "{shown}");
    let refused = text(&home.try_run(&["submit", "-c", "9", "--", "true"]).stderr);
    assert!(refused.contains("asks for 9 CPUs") && refused.contains("never start"), "{refused}");
    home.run(&["cancel", &first.to_string()]);
    home.wait_for_state(second, "completed");
    home.wait_for_state(third, "completed");
}

#[test]
fn what_is_no_batch_script_is_refused() {
    let home = Home::new(&["--emulate", "1xA100-40GB"]);
    std::fs::write(home.path().join("plain"), "#SBATCH -n 2\necho\n").expect("a file");
    std::fs::write(home.path().join("het"), "#!/bin/sh\n#SBATCH hetjob\n").expect("a file");
    let link = home.path().join("sbatch");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_coloc"), &link).expect("a link");
    for (words, why) in [
        (&["nosuch.sh"][..], "cannot be read"),
        (&["plain"], "does not look like a batch script"),
        (&["het"], "line 2: a task has one part"),
        (&["--nodes=2", "--wrap", "true"], "there is one server, and 2 are asked for"),
        (&["--container=x", "--wrap", "true"], "tasks run without one"),
        (&["-n", "8", "--ntasks-per-node=4", "--wrap", "true"], "need 2 nodes"),
    ] {
        let mut sbatch = Command::new(&link);
        sbatch.args(words).env("COLOC_CONFIG", "/dev/null").env("COLOC_SOCKET", home.socket());
        let told = sbatch.current_dir(home.path()).output().expect("it runs");
        assert_eq!(told.status.code(), Some(2), "{words:?}");
        assert!(text(&told.stderr).contains(why), "{words:?}: {}", text(&told.stderr));
    }
    assert_eq!(home.json(&["queue", "--all"])["tasks"], serde_json::json!([]));
}
