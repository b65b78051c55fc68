//! What a trace remembers of its file: lines, ids, and rows that became no task.

mod common;

use coloc_core::Policy;
use coloc_core::accounts::{Account, Accounts, Quota};
use coloc_core::policy::{Place, Queue};
use coloc_estimate::environment::Environment;
use coloc_estimate::learned::calibration;
use coloc_model::{Loads, Share, TaskId, UserId};
use coloc_sim::trace::{Format, TraceError, read};
use coloc_sim::{Estimator, Silent, Simulation, Surroundings, Trace};
use common::fleet;
use std::path::Path;

fn parse(text: &str, format: Format) -> Result<Trace, TraceError> {
    read(Path::new("jobs.csv"), text.as_bytes(), format)
}

const JOBS: &str =
    "job_id,num_gpu,submit_time,duration\r\nb,1,9,5\r\n\r\na,8,3,5\r\n\"x,y\",1,3,5\r\n";

#[test]
fn tasks_keep_their_lines_and_ids_in_the_order_of_submission() {
    let trace = parse(JOBS, Format::Tiresias).expect("a valid trace");
    let of = |task| {
        let id = TaskId(task);
        (trace.own_id(id), trace.place(id).map(|place| place.line))
    };
    assert_eq!(of(0), (Some("a"), Some(4)));
    assert_eq!(of(1), (Some("x,y"), Some(5)));
    assert_eq!(of(2), (Some("b"), Some(2)));
    assert_eq!(of(3), (None, None));
}

#[test]
fn an_id_that_comes_twice_is_refused() {
    let text = "job_id,num_gpu,submit_time,duration\n7,1,0,5\n8,1,0,5\n7,1,3,5\n";
    let error = parse(text, Format::Tiresias).expect_err("7 is there twice").to_string();
    assert_eq!(
        error,
        "jobs.csv, line 4, column job_id: \"7\" is the id of line 2 too; each task has its own"
    );
    let without = "num_gpu,submit_time,duration\n1,0,5\n1,0,5\n";
    assert!(parse(without, Format::Tiresias).is_ok(), "no ids, nothing to repeat");
}

#[test]
fn whoever_can_never_run_is_named_with_its_line() {
    let trace = parse(JOBS, Format::Tiresias).expect("a valid trace");
    let policy = Policy::plain(Queue::Fifo, Place::Any, Share::Exclusive);
    let mut simulation = Simulation::new(fleet("4xV100-16GB"), policy, Estimator::Oracle);
    let refused = |simulation: &Simulation| {
        simulation.run(&trace, &mut Silent).expect_err("8 GPUs are too many").to_string()
    };
    let by_fleet = refused(&simulation);
    assert!(by_fleet.starts_with("jobs.csv, line 4: task 0 needs 8 GPUs"), "{by_fleet}");

    simulation.fleet = fleet("8xV100-16GB");
    let quota = Quota { gpus: Some(4), ..Quota::NONE };
    simulation.accounts = Accounts::default();
    simulation.accounts.set_user(UserId(0), Account { quota, ..Account::PLAIN });
    let by_quota = refused(&simulation);
    assert!(by_quota.starts_with("jobs.csv, line 4: ") && by_quota.contains("quota"), "{by_quota}");
}

#[test]
fn rows_that_are_no_tasks_are_counted_by_their_reasons() {
    let header = "name,num_gpu,gpu_milli,creation_time,deletion_time,scheduled_time\n";
    let rows = "p0,0,0,0,9,1\np1,1,500,0,9,1\np2,1,500,0,9,\np3,0,0,0,9,1\np4,1,500,0,9,9\n";
    let trace = parse(&format!("{header}{rows}"), Format::Alibaba).expect("one task");
    assert_eq!(trace.tasks().len(), 1);
    assert_eq!(trace.own_id(TaskId(0)), Some("p1"));
    assert_eq!(
        trace.passed_over().to_string(),
        "passed over 4 rows: 1 gone as soon as scheduled, 1 never scheduled, 2 without a GPU"
    );
    let none = parse(&format!("{header}p0,0,0,0,9,1\n"), Format::Alibaba).expect_err("no task");
    assert!(none.to_string().ends_with("passed over 1 row: 1 without a GPU"), "{none}");
}

#[test]
fn replay_says_how_many_tasks_it_does_not_know() {
    let text = "submit_s,task,duration_s,memory_mib,sm\n0,mystery,5,100,0.5\n1,mystery,5,100,0.5\n";
    let trace = parse(text, Format::Coloc).expect("a valid trace");
    assert_eq!(Estimator::Replay.silent_on(&trace), Some((2, "mystery")));
    assert_eq!(Estimator::Oracle.silent_on(&trace), None);
    let known = coloc_sim::trace::mix90();
    let unknown = Estimator::Replay.silent_on(&known).map_or(0, |(unknown, _)| unknown);
    assert!(unknown < known.tasks().len());
}

/// The constant of the environment that is named is added, and what was not measured of it widens the bound.
#[test]
fn replay_takes_the_environment_that_is_named() {
    let trace = coloc_sim::trace::mix90();
    let of = |name: &str| {
        trace.tasks().iter().find(|task| trace.name(task) == name).expect("a task of the trace")
    };
    let (resnet, bert) = (of("resnet"), of("BERT_base"));
    let here = Surroundings {
        name: "here".to_owned(),
        constants: Environment { base_mib: 700.0, ..Environment::default() },
        doubts: Vec::new(),
    };
    let doubts = vec![(Loads::BatchNorm, "nobody measured it".to_owned())];
    let doubted = Surroundings { doubts, ..here.clone() };
    let told = |task, within| {
        let told =
            Estimator::Replay.estimate(&trace, task, within).expect("it is in the catalogue");
        told.expect("it has a graph")
    };
    assert_eq!(told(bert, None).peak.mib() - told(bert, Some(&here)).peak.mib(), 483.0 - 700.0);
    assert_eq!(told(bert, Some(&doubted)), told(bert, Some(&here)), "it normalises no batches");
    assert_eq!(told(resnet, Some(&doubted)).peak, told(resnet, Some(&here)).peak);
    assert!(told(resnet, Some(&doubted)).bound > told(resnet, Some(&here)).bound);
    assert_eq!(told(resnet, None), {
        let carma = Surroundings {
            name: "carma".to_owned(),
            constants: calibration().environments["carma"],
            doubts: Vec::new(),
        };
        told(resnet, Some(&carma))
    });
}
