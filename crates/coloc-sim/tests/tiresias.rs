//! Identity with the original Tiresias simulator on its own 60 jobs.

mod support;

use coloc_core::Policy;
use coloc_core::policy::{Place, Queue};
use coloc_core::preset::{MemoryKnowledge, Preset};
use coloc_core::service::GpuTime;
use coloc_model::Share;
use coloc_sim::Silent;
use coloc_sim::trace::{Format, read_column};
use support::{play, read, shared, simulation};

const CLUSTERS: [(&str, &str); 2] = [("n2g4", "2x4xP100-16GB"), ("n4g4", "4x4xP100-16GB")];

/// Start, end and preemptions of each job, in the order of the trace.
fn reference(cluster: &str, schedule: &str) -> Option<Vec<(f64, f64, u32)>> {
    let text = std::fs::read_to_string(shared("traces/tiresias/reference_jobs.csv")?).ok()?;
    let mut rows: Vec<(u32, (f64, f64, u32))> = text
        .lines()
        .map(|line| line.split(',').collect::<Vec<_>>())
        .filter(|row| row[0] == cluster && row[1] == schedule)
        .map(|row| {
            let number = |column: usize| row[column].parse::<f64>().expect("a number");
            (number(2) as u32, (number(4), number(5), number(6) as u32))
        })
        .collect();
    rows.sort_by_key(|&(job, _)| job);
    Some(rows.into_iter().map(|(_, job)| job).collect())
}

fn assert_identity(queue: Queue, schedule: &str) {
    let Some(file) = shared("traces/tiresias/60_job.csv") else { return };
    let trace = read(&file, Format::Tiresias);
    for (cluster, spec) in CLUSTERS {
        let Some(reference) = reference(cluster, schedule) else { return };
        let policy = Policy::plain(queue, Place::Any, Share::Exclusive);
        let (_, results) = play(spec, policy, &trace);
        let got: Vec<(f64, f64, u32)> = results
            .iter()
            .map(|job| {
                let seconds = |at: Option<coloc_model::Time>| at.expect("every job ran").secs();
                (seconds(job.start), seconds(job.end), job.preemptions)
            })
            .collect();
        assert_eq!(reference.len(), 60);
        assert_eq!(got, reference, "{schedule} on {cluster}");
    }
}

#[test]
fn fifo_is_the_original_job_by_job() {
    assert_identity(Queue::Fifo, "fifo");
}

#[test]
fn best_effort_is_the_original_job_by_job() {
    assert_identity(Queue::BestEffort, "fjf");
}

#[test]
fn srtf_is_the_original_job_by_job() {
    assert_identity(Queue::Srtf, "shortest");
}

#[test]
fn srsf_is_the_original_job_by_job() {
    assert_identity(Queue::Srsf, "shortest-gpu");
}

/// Mean completion time, makespan and preemptions of every cluster.
fn results(schedule: &str) -> Option<Vec<(String, f64, f64, u32)>> {
    let text = std::fs::read_to_string(shared("traces/tiresias/reference_results.csv")?).ok()?;
    let rows = text
        .lines()
        .map(|line| line.split(',').collect::<Vec<_>>())
        .filter(|row| row[2] == schedule)
        .map(|row| {
            let number = |column: usize| row[column].parse::<f64>().expect("a number");
            let nodes = row[1].trim_start_matches('n').trim_end_matches("g4");
            let spec = format!("{nodes}x4xP100-16GB");
            (spec, number(5), number(8), number(9) as u32)
        });
    Some(rows.collect())
}

fn assert_results(queue: Queue, promote: Option<f64>, schedule: &str) {
    let Some(file) = shared("traces/tiresias/60_job.csv") else { return };
    let Some(samples) = shared("traces/tiresias/yarn-gput1000.csv") else { return };
    let samples = std::fs::File::open(&samples).map(|input| read_column(&samples, input));
    let samples = samples.expect("a readable file").expect("samples");
    let trace = read(&file, Format::Tiresias);
    let Some(results) = results(schedule) else { return };
    assert_eq!(results.len(), 3);
    for (spec, jct, makespan, preemptions) in results {
        let mut policy = Preset::TiresiasSim.policy(MemoryKnowledge::Oracle);
        policy.queue = queue;
        policy.service.promote = promote;
        let mut simulation = simulation(&spec, policy);
        simulation.history =
            Some(samples.iter().map(|&seconds| GpuTime::from_secs_f64(seconds)).collect());
        let (summary, _) = simulation.run(&trace, &mut Silent).expect("the trace fits");
        assert!((summary.jct_mean_s - jct).abs() < 0.006, "{schedule} on {spec}: {summary:?}");
        assert_eq!((summary.makespan_s, summary.preemptions), (makespan, preemptions), "{spec}");
    }
}

#[test]
fn las2d_is_the_original() {
    assert_results(Queue::Las2d, None, "dlas-gpu");
}

#[test]
fn las2d_with_promotion_is_the_original() {
    assert_results(Queue::Las2d, Some(8.0), "dlas-gpu-8");
}

#[test]
fn gittins2d_is_the_original() {
    assert_results(Queue::Gittins2d, None, "dlas-gpu-gittins");
}
