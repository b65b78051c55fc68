//! The binary as people and programs meet it.

mod support;

use serde_json::Value;
use support::{Workspace, coloc};

const TRACE: &str = "\
submit_time_s,task
0,resnet
10,resnet18_cifar100_20e_1
20,BERT_base
30,gpt2_large_2
40,mobilenet_cifar100_20e_2
";

#[test]
fn simulate_answers_with_the_fields_of_the_contract() {
    let dir = Workspace::with(&[("t.csv", TRACE)]);
    let run = dir.simulate(&["--preset", "coloc", "--json"]);
    let answer: Value = serde_json::from_str(&run.ok()).expect("JSON");
    let fields = [
        "schema",
        "tasks",
        "completed",
        "failed",
        "makespan_s",
        "jct_mean_s",
        "jct_p50_s",
        "jct_p95_s",
        "wait_mean_s",
        "slowdown_mean",
        "oom_count",
        "preemptions",
        "energy_j",
        "smact_mean",
        "memory_mean_bytes",
        "jain_index",
        "makespan_bound_s",
        "wall_s",
    ];
    for field in fields {
        assert!(answer[field].is_number(), "{field} in {answer}");
    }
    assert_eq!((answer["schema"].as_u64(), answer["completed"].as_u64()), (Some(1), Some(5)));
}

#[test]
fn the_same_inputs_give_the_same_bytes() {
    let dir = Workspace::with(&[("t.csv", TRACE)]);
    let flags = [
        "--preset",
        "coloc",
        "--noise",
        "--seed",
        "3",
        "--json",
        "--jobs",
        "j.csv",
        "--timeline",
        "t.json",
    ];
    let read = || {
        let answer = dir.simulate(&flags).ok();
        let answer: Vec<&str> = answer.lines().filter(|line| !line.contains("wall_s")).collect();
        (answer.join("\n"), dir.read("j.csv"), dir.read("t.json"))
    };
    assert_eq!(read(), read());
}

#[test]
fn the_ids_of_a_trace_are_kept() {
    let jobs = "job_id,num_gpu,submit_time,duration\n\"b,1\",1,9,5\na,1,3,5\n";
    let dir = Workspace::with(&[("t.csv", jobs)]);
    let flags = ["simulate", "--trace", "t.csv", "--format", "tiresias", "--fleet", "2xV100-16GB"];
    coloc(dir.path(), &[&flags[..], &["--jobs", "jobs.csv", "--trace-ids"]].concat()).ok();
    insta::assert_snapshot!(dir.read("jobs.csv"), @r#"
    id,submit_s,start_s,end_s,gpus,preemptions,ooms,trace_id
    0,3.000,3.000,8.000,1,0,0,a
    1,9.000,9.000,14.000,1,0,0,"b,1"
    "#);
}

#[test]
fn options_that_do_nothing_are_told() {
    let dir = Workspace::with(&[("t.csv", TRACE)]);
    let said = |flags: &[&str]| {
        let run = dir.simulate(flags);
        run.ok();
        run.stderr()
    };
    assert_eq!(
        said(&["--alpha", "0.5"]),
        "coloc: --alpha has no effect here: it belongs to --queue allox\n"
    );
    assert_eq!(said(&["--queue", "las2d", "--thresholds", "3250", "--promote", "8"]), "");
    let compare = |alpha: &str, policies: &str| {
        let base = ["compare", "--trace", "t.csv", "--format", "carma", "--fleet", "2xA100-40GB"];
        let run = coloc(
            dir.path(),
            &[&base[..], &["--policies", policies, "--alpha", alpha, "--pack", "never"]].concat(),
        );
        run.ok();
        run.stderr()
    };
    let told = compare("0.5", "exclusive,coloc");
    assert!(told.contains("--alpha has no effect") && told.contains("--pack"), "{told}");
    let told = compare("0.5", "exclusive,fifo/consolidate/exclusive");
    assert!(told.contains("--alpha") && !told.contains("--pack"), "{told}");
}

#[test]
fn rows_and_tasks_that_nobody_knows_are_counted() {
    let pods =
        "num_gpu,gpu_milli,creation_time,deletion_time,scheduled_time\n0,0,0,9,1\n1,500,0,9,1\n";
    let dir = Workspace::with(&[("t.csv", pods)]);
    let flags = ["simulate", "--trace", "t.csv", "--format", "alibaba", "--fleet", "2xV100-16GB"];
    let run = coloc(dir.path(), &[&flags[..], &["--estimator", "replay"]].concat());
    run.ok();
    insta::assert_snapshot!(run.stderr(), @r"
    coloc: t.csv: passed over 1 row: 1 without a GPU
    coloc: replay has no graph of 1 of 1 tasks, such as 1x0.500: nothing is known of their memory
    ");
}

#[test]
fn jobs_are_one_line_a_task() {
    let dir = Workspace::with(&[("t.csv", TRACE)]);
    dir.simulate(&["--jobs", "jobs.csv"]).ok();
    insta::assert_snapshot!(dir.read("jobs.csv"), @r"
    id,submit_s,start_s,end_s,gpus,preemptions,ooms
    0,0.000,0.000,2097.600,1,0,0
    1,10.000,10.000,598.000,1,0,0
    2,20.000,598.000,1493.200,1,0,0
    3,30.000,2097.600,6040.800,2,0,0
    4,40.000,6040.800,6640.800,1,0,0
    ");
}

#[test]
fn a_run_reads_well() {
    let dir = Workspace::with(&[("t.csv", TRACE)]);
    let text = dir.simulate(&["--preset", "coloc"]).ok();
    let text = support::without_seconds_taken(&text);
    insta::assert_snapshot!("simulate", text);
}

#[test]
fn a_comparison_reads_well() {
    let dir = Workspace::with(&[("t.csv", TRACE)]);
    let policies = "exclusive,carma-v2,fifo/magm/streams:none,coloc";
    let flags = ["compare", "--trace", "t.csv", "--format", "carma", "--fleet", "2xA100-40GB"];
    let run = coloc(dir.path(), &[&flags[..], &["--policies", policies]].concat());
    insta::assert_snapshot!("compare", run.ok());
}

#[test]
fn a_study_of_collocation_reads_well() {
    let dir = Workspace::with(&[]);
    let flags =
        ["collocate", "--workload", "dlrm-large", "--with", "resnet152-mixed", "--copies", "1"];
    insta::assert_snapshot!("collocate", coloc(dir.path(), &flags).ok());
}

#[test]
fn pages_are_written_whole() {
    let dir = Workspace::with(&[("t.csv", TRACE)]);
    let flags = ["compare", "--trace", "t.csv", "--format", "carma", "--fleet", "2xA100-40GB"];
    let more = ["--policies", "exclusive,coloc", "--html", "page.html", "--json"];
    let answer: Value =
        serde_json::from_str(&coloc(dir.path(), &[&flags[..], &more[..]].concat()).ok())
            .expect("JSON");
    assert_eq!(answer["policies"].as_array().map(Vec::len), Some(2));
    assert!(
        dir.read("page.html").ends_with("</html>\n") || dir.read("page.html").contains("</html>")
    );
    assert_eq!(dir.files(), ["page.html", "t.csv"], "no temporary file is left behind");
}

#[test]
fn explicit_flags_win_over_a_preset() {
    let dir = Workspace::with(&[("t.csv", TRACE)]);
    let figures = |flags: &[&str]| {
        let answer: Value = serde_json::from_str(&dir.simulate(flags).ok()).expect("JSON");
        answer["makespan_s"].as_f64()
    };
    let plain = figures(&["--json"]);
    let flags = ["--preset", "coloc", "--queue", "fifo", "--share", "exclusive", "--json"];
    assert_eq!(figures(&flags), plain);
}

#[test]
fn generated_traces_play_back() {
    let dir = Workspace::with(&[]);
    let flags = ["trace", "generate", "--tasks", "50", "--gpus", "8", "--seed", "4", "-o"];
    coloc(dir.path(), &[&flags[..], &["a.csv"]].concat()).ok();
    coloc(dir.path(), &[&flags[..], &["b.csv"]].concat()).ok();
    assert_eq!(dir.read("a.csv"), dir.read("b.csv"));
    coloc(dir.path(), &["trace", "convert", "a.csv", "-o", "c.csv"]).ok();
    assert_eq!(dir.read("a.csv"), dir.read("c.csv"));
    let run =
        coloc(dir.path(), &["simulate", "--trace", "c.csv", "--fleet", "2x4xA100-40GB", "--json"]);
    let answer: Value = serde_json::from_str(&run.ok()).expect("JSON");
    assert_eq!(answer["completed"].as_u64(), Some(50));
}
