//! Slurm's accounting as tasks.

use coloc_sim::Trace;
use coloc_sim::trace::{Format, TraceError, read};
use std::path::Path;

fn parse(text: &str) -> Result<Trace, TraceError> {
    read(Path::new("jobs.txt"), text.as_bytes(), Format::Sacct)
}

const HEADER: &str =
    "JobID|User|Account|JobName|Partition|State|Submit|Start|End|Elapsed|ReqTRES|AllocTRES\n";

/// One of each kind that a cluster's accounting has.
const ROWS: &str = "\
101|alice|vision|train|gpu|COMPLETED|2024-03-01T08:00:10|2024-03-01T08:01:00|2024-03-01T10:01:00|02:00:00|cpu=8,gres/gpu=2|billing=8,cpu=8,gres/gpu:a100=2,gres/gpu=2,mem=64G,node=1
101.batch||vision|batch||COMPLETED|2024-03-01T08:01:00|2024-03-01T08:01:00|2024-03-01T10:01:00|02:00:00||cpu=8,gres/gpu=2
102|bob|speech|asr \"v2\"|gpu|CANCELLED by 1000|2024-03-01T08:00:00|2024-03-01T08:00:00|2024-03-02T09:00:01|1-01:00:01||cpu=8,gres/gpu:v100=1
103|bob|vision|eval|gpu|FAILED|2024-03-01T08:00:05|2024-03-01T08:00:09|2024-03-01T08:01:49|00:01:40|cpu=4,gres/gpu=1|
104|alice|vision|wait|gpu|PENDING|2024-03-01T09:00:00|Unknown|Unknown|00:00:00|cpu=8,gres/gpu=4|
105|alice|vision|cpu|cpu|COMPLETED|2024-03-01T09:00:00|2024-03-01T09:00:00|2024-03-01T09:10:00|00:10:00|cpu=8|cpu=8,mem=4G
106|alice|vision|gone|gpu|CANCELLED|2024-03-01T09:00:00|None|2024-03-01T09:10:00|00:00:00|cpu=8,gres/gpu=1|
107|alice|vision|now|gpu|RUNNING|2024-03-01T09:00:00|2024-03-01T09:00:00|Unknown|00:10:00|cpu=8,gres/gpu=1|cpu=8,gres/gpu=1
";

#[test]
fn jobs_that_ran_on_gpus_become_tasks() {
    let trace = parse(&format!("{HEADER}{ROWS}")).expect("valid rows");
    let facts: Vec<_> = trace
        .tasks()
        .iter()
        .map(|task| {
            let (submit, seconds) = (task.submit.secs(), task.duration.secs());
            (trace.name(task), trace.user(task), trace.group(task), task.gpus, submit, seconds)
        })
        .collect();
    assert_eq!(
        facts,
        [
            ("asr \"v2\"", "bob", Some("speech"), 1, 0.0, 90_001.0),
            ("eval", "bob@vision", Some("vision"), 1, 5.0, 100.0),
            ("train", "alice", Some("vision"), 2, 10.0, 7200.0),
        ]
    );
    assert!(trace.tasks().iter().all(|task| task.exclusive));
}

#[test]
fn columns_come_in_any_order_and_times_in_several_forms() {
    let text = "AllocTRES|ElapsedRaw|Submit|State|JobID\ngres/gpu=1|60|1709280000|TIMEOUT|7\n";
    let trace = parse(text).expect("a valid row");
    assert_eq!(trace.tasks()[0].duration.secs(), 60.0);
    let text = "JobID|State|Submit|Start|End|ReqTRES\n\
                7|NODE_FAIL|2024-02-28T00:00:00|2024-02-28T23:59:30|2024-02-29T00:00:30|gres/gpu=1\n";
    assert_eq!(parse(text).expect("a valid row").tasks()[0].duration.secs(), 60.0);
}

#[test]
fn a_bad_row_is_named_with_its_line_and_column() {
    let good = ROWS.lines().next().expect("a row");
    let with = |from: &str, to: &str| {
        let bad = good.replacen(from, to, 1);
        assert_ne!(bad, good);
        parse(&format!("{HEADER}{good}\n{bad}\n")).expect_err("a bad row").to_string()
    };
    let cases = [
        ("2024-03-01T08:00:10", "yesterday", "Submit", r#""yesterday" is not a time"#),
        ("2024-03-01T08:00:10", "2024-13-01T08:00:10", "Submit", "is not a time"),
        ("2024-03-01T08:00:10", "", "Submit", r#""" is not a time"#),
        ("02:00:00", "two hours", "Elapsed", r#""two hours" is not a span"#),
        ("02:00:00", "99999-00:00:00", "Elapsed", "is not a span"),
        ("gres/gpu:a100=2,gres/gpu=2", "gres/gpu=x", "AllocTRES", "is not resources"),
        ("gres/gpu:a100=2,gres/gpu=2", "gres/gpu=-1", "AllocTRES", "is not resources"),
        ("gres/gpu:a100=2,gres/gpu=2", "gpus", "AllocTRES", "is not resources"),
    ];
    for (from, to, column, what) in cases {
        let message = with(from, to);
        let place = format!("jobs.txt, line 3, column {column}: ");
        assert!(message.starts_with(&place) && message.contains(what), "{to:?}: {message}");
    }
    assert!(with("|alice", "").contains("line 3: not a CSV file: the row has 11 values"));
}

#[test]
fn a_header_is_needed() {
    let message = parse(ROWS).expect_err("no header").to_string();
    assert!(
        message.contains(r#"line 1: no columns "Submit", "JobID", "State" in the header"#),
        "{message}"
    );
    assert!(message.contains("sacct -P -X -a -o"), "what to do: {message}");
}
