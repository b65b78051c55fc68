//! Identity with the original Tiresias simulator on its own 60 jobs.

mod support;

use coloc_core::Policy;
use coloc_core::policy::{Place, Queue};
use coloc_model::Share;
use coloc_sim::trace::Format;
use support::{play, read, shared};

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
