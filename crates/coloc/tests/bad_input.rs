//! Bad input gets an error that says where and what, exit code 2, and changes nothing.

mod support;

use support::{Workspace, coloc};

const GOOD: &str = "submit_time_s,task\n0,resnet\n";

fn complaint(files: &[(&str, &str)], arguments: &[&str]) -> String {
    let dir = Workspace::with(files);
    let before = dir.files();
    let message = coloc(dir.path(), arguments).fails_with(2);
    assert_eq!(dir.files(), before, "nothing was written");
    message
}

fn simulate(trace: &str, flags: &[&str]) -> String {
    let base = ["simulate", "--trace", "t.csv", "--jobs", "out.csv", "--fleet", "4xA100-40GB"];
    complaint(&[("t.csv", trace)], &[&base[..], flags].concat())
}

#[test]
fn a_bad_row_says_file_line_and_column() {
    let carma = ["--format", "carma"];
    insta::assert_snapshot!(simulate("submit_time_s,task\n0,resnet\n5,nonsense\n", &carma), @r#"coloc: t.csv, line 3, column task: unknown task "nonsense": not in the built-in catalogue, and the row gives no duration_s"#);
    insta::assert_snapshot!(simulate("submit_time_s,task\nsoon,resnet\n", &carma), @r#"coloc: t.csv, line 2, column submit_time_s: "soon" is not a number of seconds from 0 to ten years"#);
    insta::assert_snapshot!(simulate("submit_time_s,task\n0,resnet,7\n", &carma), @"coloc: t.csv, line 2: not a CSV file: the row has 3 values, the header 2");
    insta::assert_snapshot!(simulate("when,task\n0,resnet\n", &carma), @r#"coloc: t.csv, line 1: no column "submit_time_s" in the header, which has "when" instead; expected submit_time_s,task"#);
    insta::assert_snapshot!(simulate("submit_s,task,sm\n0,resnet,1.5\n", &[]), @r#"coloc: t.csv, line 2, column sm: "1.5" is not a share from 0 to 1"#);
    let tiresias = ["--format", "tiresias"];
    insta::assert_snapshot!(simulate("job_id,num_gpu,submit_time,duration\n0,1,0,60\n1,none,5,60\n", &tiresias), @r#"coloc: t.csv, line 3, column num_gpu: "none" is not a number of GPUs from 1 to 65536"#);
    let alibaba = ["--format", "alibaba"];
    insta::assert_snapshot!(simulate("name,num_gpu,gpu_milli,creation_time,deletion_time,scheduled_time\np,1,4600,0,9,1\n", &alibaba), @r#"coloc: t.csv, line 2, column gpu_milli: "4600" is not thousandths of a GPU from 1 to 1000"#);
    insta::assert_snapshot!(simulate("", &[]), @r#"coloc: t.csv, line 1: no columns "submit_s", "task" in the header; expected at least submit_s,task"#);
    insta::assert_snapshot!(simulate("submit_s,task\n", &[]), @"coloc: t.csv: the trace has no tasks");
}

#[test]
fn quotas_and_weights_name_somebody_and_leave_something() {
    let users = "submit_s,task,user,group\n0,resnet,ann,vision\n1,resnet,bob,vision\n";
    let said = |flags: &[&str]| simulate(users, flags);
    insta::assert_snapshot!(said(&["--weight", "eve=2"]), @r#"coloc: --weight: the trace has no user "eve"; it has ann, bob"#);
    insta::assert_snapshot!(said(&["--quota", "@speech=2"]), @r#"coloc: --quota: the trace has no group "speech"; it has vision"#);
    insta::assert_snapshot!(said(&["--quota", "@vision=0"]), @"coloc: t.csv, line 2: task 0 needs 1 GPUs at once, its user's or group's quota of GPUs and memory allows at most 0; raise it, or ask for less memory");
    assert!(said(&["--quota", "ann=many"]).contains("expected WHO=LIMIT, such as alice=4"));
    assert!(said(&["--half-life", "1y"]).contains("such as 90s or 1.5h"));
    assert!(said(&["--pack", "2"]).contains("expected always, never or a part from 0 to 1"));
}

#[test]
fn numbers_that_make_no_sense_are_refused() {
    for (flag, value) in [
        ("--alpha", "2"),
        ("--alpha", "nan"),
        ("--alpha", "0"),
        ("--sm-limit", "nan"),
        ("--sm-limit", "0"),
        ("--max-tasks", "0"),
    ] {
        let said = simulate("submit_s,task\n0,resnet\n", &[flag, value]);
        assert!(said.contains(flag), "{flag} {value}: {said}");
    }
}

#[test]
fn what_is_read_is_not_written_over() {
    let flags = ["simulate", "--trace", "t.csv", "--fleet", "4xA100-40GB", "--jobs", "./t.csv"];
    let said = complaint(&[("t.csv", "submit_s,task\n0,resnet\n")], &flags);
    assert!(said.contains("is what is read; write to another file"), "{said}");
}

#[test]
fn a_missing_file_is_named() {
    let flags = ["simulate", "--trace", "none.csv", "--fleet", "4xA100-40GB"];
    insta::assert_snapshot!(complaint(&[], &flags), @"coloc: none.csv: No such file or directory (os error 2)");
}

#[test]
fn a_fleet_that_makes_no_sense_is_refused() {
    let with = |fleet: &str| {
        let flags = ["simulate", "--trace", "t.csv", "--format", "carma", "--fleet", fleet];
        complaint(&[("t.csv", GOOD), ("f.toml", "[[node]]\nmodel = 3\n")], &flags)
    };
    insta::assert_snapshot!(with("4xB300"), @r#"coloc: --fleet: unknown GPU model "B300"; known models: A100-40GB, A100-80GB, H100-80GB, H200-141GB, A30-24GB, V100-16GB, V100-32GB, P100-16GB, K80-12GB, T4-16GB, RTX3090-24GB, RTX4090-24GB, CPU, L40S-48GB, A6000-48GB, A10-24GB, L4-24GB, B200-180GB, RTX5090-32GB, MI300X-192GB"#);
    insta::assert_snapshot!(with("lots"), @r#"coloc: --fleet: cannot read fleet group "lots"; expected GPUSxMODEL or NODESxGPUSxMODEL, such as 4xA100-40GB or 15x4xV100-16GB"#);
    assert!(with("f.toml").contains("f.toml"));
}

#[test]
fn what_could_never_run_is_refused_before_the_start() {
    let fleet = |trace: &str, fleet: &str, flags: &[&str]| {
        let base = ["simulate", "--trace", "t.csv", "--fleet", fleet];
        complaint(&[("t.csv", trace)], &[&base[..], flags].concat())
    };
    let gang = "submit_s,task,gpus\n0,resnet,8\n";
    insta::assert_snapshot!(fleet(gang, "4xA100-40GB", &[]), @"coloc: t.csv, line 2: task 0 needs 8 GPUs on one node, the fleet has at most 4; ask for fewer, or add GPUs");
    let large = "submit_s,task\n0,gpt2_large_2\n";
    insta::assert_snapshot!(fleet(large, "2xT4-16GB", &[]), @"coloc: t.csv, line 2: task 0 (gpt2_large_2) needs 27.7 GiB on each of its GPUs, the largest it can get has 16.0 GiB");
    let own = "submit_s,task,duration_s,memory_mib,sm\n0,mine,60,1000,0.5\n";
    insta::assert_snapshot!(fleet(own, "1xT4-16GB", &["--estimator", "horus"]), @r#"coloc: t.csv, line 2: no published horus estimate for task "mine": it is not in the built-in catalogue; use --estimator oracle or none"#);
    insta::assert_snapshot!(fleet(own, "1xT4-16GB", &["--share", "mig"]), @"coloc: --share mig needs GPUs that can be partitioned; T4-16GB cannot");
}

#[test]
fn policies_and_workloads_are_checked() {
    let policies =
        ["compare", "--trace", "t.csv", "--fleet", "1xT4-16GB", "--policies", "coloc,best"];
    assert!(complaint(&[("t.csv", GOOD)], &policies).contains("carma-v2"));
    let workload = ["collocate", "--workload", "resnet9000"];
    assert!(complaint(&[], &workload).contains("resnet26-cifar10"));
    let copies = ["collocate", "--workload", "resnet", "--copies", "0"];
    assert!(complaint(&[], &copies).contains("1 to 48"));
    let load = ["trace", "generate", "--tasks", "5", "--gpus", "1", "--load", "0", "-o", "x.csv"];
    assert!(complaint(&[], &load).contains("above 0"));
}

#[test]
fn measured_pairs_are_checked() {
    let with = |pairs: &str| {
        let flags = ["simulate", "--trace", "t.csv", "--format", "carma", "--fleet", "1xA100-40GB"];
        let files = [("t.csv", GOOD), ("p.csv", pairs)];
        complaint(&files, &[&flags[..], &["--pairs", "p.csv"]].concat())
    };
    assert!(with("task,beside,speed\nresnet,vgg,0\n").contains("p.csv, line 2"));
    assert!(with("task,beside,speed\nresnet,vgg,fast\n").contains("p.csv, line 2"));
    assert!(with("task,beside\nresnet,vgg\n").contains("p.csv"));
    let windows = "task,beside,speed\r\nresnet,vgg,1\r\nresnet,vgg,fast\r\n";
    insta::assert_snapshot!(with(windows), @r#"coloc: p.csv, line 3: column speed: "fast" is not a number"#);
}

#[test]
fn a_place_that_cannot_be_written_is_named_and_fails_with_1() {
    let dir = Workspace::with(&[("t.csv", GOOD)]);
    let run = dir.simulate(&["--jobs", "no/such/folder/jobs.csv"]);
    assert!(run.fails_with(1).contains("no/such/folder/jobs.csv"));
    assert_eq!(dir.files(), ["t.csv"]);
}

#[test]
fn a_directive_has_options_alone() {
    let said = |line: &str| {
        let script = format!("#!/bin/sh\n#SBATCH --gres=gpu:1\n{line}\n#SBATCH --mem=4G\ntrue\n");
        let files = [("job.sh", script.as_str())];
        complaint(&files, &["submit", "--socket", "none", "job.sh", "-J", "x"])
    };
    insta::assert_snapshot!(said("#SBATCH --job-name=my job"), @r#"coloc: job.sh, line 3: "job" belongs to no option: expected options alone, such as `--gpus 2 -J "a name"`; a value with spaces needs quotes, and a command goes below"#);
    for (line, word) in [
        ("#COLOC evil cmd", "evil"),
        ("#SBATCH -t 10 ; rm", ";"),
        ("#COLOC job.sh", "job.sh"),
        ("#COLOC -- rm", "--"),
        ("#SBATCH ''", ""),
    ] {
        let said = said(line);
        assert!(said.contains(&format!("line 3: {word:?} belongs to no option")), "{line}: {said}");
    }
    insta::assert_snapshot!(said("#SBATCH\t-J"), @"coloc: job.sh, line 3: a value is required for '--name <NAME>' but none was supplied");
    insta::assert_snapshot!(said("#COLOC --nonsense 3"), @"coloc: job.sh, line 3: unexpected argument '--nonsense' found");
    insta::assert_snapshot!(said("#SBATCH -t soon"), @r#"coloc: job.sh, line 3: invalid value 'soon' for '--time <TIME>': "soon" is no time: expected 90 (minutes), 1:30:00, 2-12 or 1h30m"#);
    insta::assert_snapshot!(said("#COLOC --help"), @"coloc: job.sh, line 3: help and version are for the command line");
    insta::assert_snapshot!(said("#COLOC --wrap 'rm -r x'"), @"coloc: job.sh, line 3: the argument '--wrap <COMMAND>' cannot be used with '[COMMAND]...'");
    insta::assert_snapshot!(said("#COLOC --batch 8"), @"coloc: job.sh, line 3: the following required arguments were not provided: <--model-summary <FILE>|--hf-config <FILE>>");
}

/// Lines that need each other are read together.
#[test]
fn directives_that_make_sense_are_taken() {
    let script = "#!/bin/sh\n#SBATCH\t-J 'my job'\n#COLOC --batch 8\n#COLOC --hf-config c.json\n";
    let dir = Workspace::with(&[("job.sh", script)]);
    let said = coloc(dir.path(), &["submit", "--socket", "none", "job.sh", "-J", "x"]).stderr();
    assert!(said.contains("c.json") && !said.contains("line"), "{said}");
}

#[test]
fn options_of_an_estimate_that_change_nothing_are_refused() {
    let files = [("summary.txt", "x")];
    let of = |words: &[&str]| complaint(&files, &[&["estimate"], words].concat());
    let told = of(&["--task", "resnet", "--gpus", "4"]);
    assert!(
        told.contains("--gpus changes nothing here: it divides nothing without --zero"),
        "{told}"
    );
    let told = of(&["--dry-run", "--batch", "8", "--", "true"]);
    assert!(told.contains("--batch changes nothing here: the command says itself"), "{told}");
    let told = of(&["--estimator", "history", "--optimizer", "sgd", "--", "true"]);
    assert!(told.contains("--optimizer changes nothing here"), "{told}");
}

#[test]
fn a_past_is_asked_for_or_read_but_not_both() {
    for flag in ["--host=a:1", "--socket=/x"] {
        let told = complaint(&[], &["whatif", "--state", ".", flag]);
        assert!(told.contains("files to read: give one"), "{told}");
    }
}

#[test]
fn fleets_beyond_all_reason_are_refused_wherever_they_are_read() {
    let huge = "1000000000xA100-40GB";
    let toml = "[[node]]\nmodel = \"A100-40GB\"\ngpus = 4\ncount = 100000000000\n";
    let long = "[[node]]\nmodel = \"A100-40GB\"\ngpus = 1\n".repeat(40_000);
    let files = [("t.csv", "submit_s,task\n0,resnet\n"), ("f.toml", toml), ("long.toml", &long)];
    for fleet in [huge, "100001xA100-40GB", "4000000000x4000000000xT4-16GB", "f.toml", "long.toml"]
    {
        for verb in [
            vec!["simulate", "--trace", "t.csv", "--fleet", fleet],
            vec!["compare", "--trace", "t.csv", "--fleet", fleet, "--policies", "coloc"],
            vec!["emu", "run", "--fleet", fleet, "--", "true"],
        ] {
            let said = complaint(&files, &verb);
            let bound =
                if fleet == "long.toml" { "at most 1048576 bytes" } else { "1 to 100000 GPUs" };
            assert!(said.contains(bound), "{verb:?}: {said}");
        }
    }
    for verb in [
        vec!["daemon", "--emulate", huge],
        vec!["trace", "generate", "--tasks", "4", "--gpus", "1000000000", "-o", "out.csv"],
    ] {
        assert!(complaint(&[], &verb).contains("1 to 100000 GPUs"), "{verb:?}");
    }
}

#[test]
fn values_of_tasks_that_cannot_be_say_what_is_wrong() {
    let submit = |flags: &[&str]| complaint(&[], &[&["submit"], flags, &["--", "true"]].concat());
    for (flags, why) in [
        (&["-G", "-1"][..], "-G: expected a value that is not negative, not -1"),
        (&["-t", "-5"], "-t: expected a value that is not negative, not -5"),
        (&["--retry", "-1"], "--retry: expected a value that is not negative, not -1"),
        (&["--array", "1-99999999"], "an array has at most"),
        (&["-t", "999999999999999"], "is longer than the longest time limit, 11574 days"),
    ] {
        let said = submit(flags);
        assert!(said.contains(why) && !said.contains("-- -"), "{said}");
    }
    let said = complaint(&[], &["submit", "--", ""]);
    assert!(said.contains("the command is empty"), "{said}");
}

#[test]
fn a_working_directory_that_is_gone_is_called_that() {
    let place = Workspace::with(&[]);
    let script = format!(
        "mkdir gone && cd gone && rmdir ../gone && exec '{}' submit -- true",
        env!("CARGO_BIN_EXE_coloc")
    );
    let said = std::process::Command::new("sh")
        .args(["-c", &script])
        .current_dir(place.path())
        .env("COLOC_CONFIG", "/dev/null")
        .output()
        .expect("it runs");
    let told = String::from_utf8_lossy(&said.stderr);
    assert_eq!(said.status.code(), Some(2), "{told}");
    assert!(told.contains("the working directory: it was removed"), "{told}");
}
