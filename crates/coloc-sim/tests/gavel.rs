//! Gavel's traces as tasks, in both widths.

mod support;

use coloc_core::Policy;
use coloc_core::policy::{Place, Queue};
use coloc_model::Share;
use coloc_sim::trace::{Format, TraceError, published_speeds, read};
use coloc_sim::{Silent, Trace};
use std::path::Path;
use support::simulation;

fn parse(text: &str) -> Result<Trace, TraceError> {
    read(Path::new("some.trace"), text.as_bytes(), Format::Gavel)
}

const SEVEN: &str = "ResNet-50 (batch size 64)\tcd %s && python3 \"main.py\" -j 4\t-n\t1\t4395\t0.000000\t1\n\
                     LM (batch size 5)\tpython3 main.py\t--steps\t0\t69880\t10.5\t8\n\
                     CycleGAN\tpython3 cyclegan.py\t--n_steps\t1\t4426\t20\t4\n";
const TEN: &str =
    "ResNet-50 (batch size 64)\tpython3 main.py\t/tmp\t-n\t1\t4395\t1\t1.0\t-1\t7.25\n";

#[test]
fn steps_become_run_times_on_v100s() {
    let trace = parse(SEVEN).expect("valid rows");
    let facts: Vec<_> = trace
        .tasks()
        .iter()
        .map(|task| (trace.name(task), task.gpus, task.submit.secs(), task.duration.secs()))
        .collect();
    assert_eq!(
        facts,
        [
            ("ResNet-50 (batch size 64)", 1, 0.0, 1000.0),
            ("LM (batch size 5) x8", 8, 10.5, 100.0),
            ("CycleGAN x4", 4, 20.0, 250.0),
        ]
    );
    let ten = parse(TEN).expect("a valid row");
    let [task] = ten.tasks() else { panic!("one row") };
    assert_eq!((task.submit.secs(), task.duration.secs()), (7.25, 1000.0));
}

#[test]
fn a_job_takes_as_long_as_its_gpu_takes() {
    let trace = parse(SEVEN).expect("valid rows");
    let policy = Policy::plain(Queue::Fifo, Place::Any, Share::Exclusive);
    for (fleet, seconds) in [("13xV100-16GB", 1000.0), ("13xK80-12GB", 1000.0 * 4.395 / 0.619)] {
        let mut simulation = simulation(fleet, policy);
        simulation.speeds = published_speeds(&trace);
        let (_, results) = simulation.run(&trace, &mut Silent).expect("the trace fits");
        let took = results[0].end.expect("it ended").secs();
        assert!((took - seconds).abs() < 0.01, "{fleet}: {took}");
    }
}

#[test]
fn a_gang_that_is_spread_is_slower() {
    let trace = parse("LM (batch size 5)\tx\tx\t0\t69880\t0\t8\n").expect("a valid row");
    let policy = Policy::plain(Queue::Fifo, Place::Any, Share::Exclusive);
    for (fleet, seconds) in [("8xV100-16GB", 100.0), ("2x4xV100-16GB", 100.0 * 698.8 / 73.12)] {
        let mut simulation = simulation(fleet, policy);
        simulation.speeds = published_speeds(&trace);
        let (_, results) = simulation.run(&trace, &mut Silent).expect("the trace fits");
        let took = results[0].end.expect("it ended").secs();
        assert!((took - seconds).abs() < 0.01, "{fleet}: {took}");
    }
}

#[test]
fn a_bad_row_is_named_with_its_line_and_column() {
    let with = |row: &str| parse(&format!("{SEVEN}{row}\n")).expect_err("a bad row").to_string();
    let cases = [
        (
            "ResNet-51\tx\tx\t1\t10\t0\t1",
            "job_type",
            r#""ResNet-51" is not a job that Gavel measured"#,
        ),
        ("\tx\tx\t1\t10\t0\t1", "job_type", r#""" is not a job"#),
        ("A3C\tx\tx\t1\tmany\t0\t1", "total_steps", r#""many" is not a number of steps"#),
        ("A3C\tx\tx\t1\t0\t0\t1", "total_steps", r#""0" is not a number of steps"#),
        ("A3C\tx\tx\t1\t-5\t0\t1", "total_steps", r#""-5" is not"#),
        ("A3C\tx\tx\t1\t1e300\t0\t1", "total_steps", r#""1e300" is not"#),
        ("A3C\tx\tx\t1\tNaN\t0\t1", "total_steps", r#""NaN" is not"#),
        ("A3C\tx\tx\t1\t\t0\t1", "total_steps", r#""" is not"#),
        ("A3C\tx\tx\t1\t10\tnoon\t1", "arrival_time", r#""noon" is not a number of seconds"#),
        ("A3C\tx\tx\t1\t10\t-1\t1", "arrival_time", r#""-1" is not"#),
        ("A3C\tx\tx\t1\t10\t0\t0", "scale_factor", r#""0" is not a number of GPUs"#),
        ("A3C\tx\tx\t1\t10\t0\t1.5", "scale_factor", r#""1.5" is not a number of GPUs"#),
        ("A3C\tx\tx\t1\t10\t0\t", "scale_factor", r#""" is not a number of GPUs"#),
    ];
    for (row, column, what) in cases {
        let message = with(row);
        let place = format!("some.trace, line 4, column {column}: ");
        assert!(message.starts_with(&place) && message.contains(what), "{row:?}: {message}");
    }
    assert!(with("A3C\tx\tx\t1\t10\t0").contains("line 4: not a CSV file: the row has 6 values"));
}

#[test]
fn the_number_of_columns_must_be_known() {
    let message = parse("A3C\t10\n").expect_err("two columns").to_string();
    assert!(message.contains("line 1: the row has 2 columns; expected 7 columns"), "{message}");
}

#[test]
fn the_published_traces_are_read_whole() {
    for (name, jobs) in [("51b7ef", 18), ("0e4a51", 1181), ("ee9e8c", 2000)] {
        let Some(file) = support::shared(&format!("traces/gavel/{name}.trace")) else { return };
        assert_eq!(support::read(&file, Format::Gavel).tasks().len(), jobs, "{name}");
    }
}
