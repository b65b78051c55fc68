//! What a run amounts to. The fields of [`Summary`] are a contract.

use crate::trace::Trace;
use coloc_core::SettlingCounts;
use coloc_model::{TaskState, Time};
use serde::Serialize;

/// What became of one task.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TaskResult {
    /// First launch.
    pub start: Option<Time>,
    /// When it ended, however it ended.
    pub end: Option<Time>,
    /// How it ended.
    pub state: TaskState,
    /// Times it was preempted.
    pub preemptions: u32,
    /// Times it ran out of memory.
    pub ooms: u32,
    /// Seconds on its GPUs in the attempts that did its work.
    pub ran_s: f64,
    /// Its share of the energy of its GPUs, in joules.
    pub energy_j: f64,
}

/// The figures of a run.
#[derive(Clone, PartialEq, Default, Debug, Serialize)]
pub struct Summary {
    /// Tasks submitted.
    pub tasks: usize,
    /// Tasks that completed.
    pub completed: usize,
    /// Tasks that did not.
    pub failed: usize,
    /// Until the last task ended.
    pub makespan_s: f64,
    /// Mean time from submission to completion.
    pub jct_mean_s: f64,
    /// Median of it.
    pub jct_p50_s: f64,
    /// 95th percentile of it.
    pub jct_p95_s: f64,
    /// Mean time from submission to first launch.
    pub wait_mean_s: f64,
    /// Mean of completion time over run time alone.
    pub slowdown_mean: f64,
    /// Mean of time on the GPU over run time alone.
    pub run_slowdown_mean: f64,
    /// Out-of-memory kills.
    pub oom_count: u32,
    /// Preemptions.
    pub preemptions: u32,
    /// Energy of all GPUs until the last task ended.
    pub energy_j: f64,
    /// The part of it that GPUs drew while empty.
    pub energy_vacant_j: f64,
    /// SM activity, mean over GPUs and time.
    pub smact_mean: f64,
    /// Memory in use, mean over GPUs and time.
    pub memory_mean_bytes: f64,
    /// Jain's index of the users' mean progress (run time alone over completion time).
    pub jain_index: f64,
    /// No policy can be faster than this.
    pub makespan_bound_s: f64,
    /// What became of the memory contract, under a policy that has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contract: Option<MemoryFigures>,
}

/// How often tasks settled under the memory contract, and what came of it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct MemoryFigures {
    /// Tasks whose booking shrank, or that got company, on evidence.
    pub settled: u64,
    /// Such tasks that came to hold more than was left to them.
    pub outgrown: u64,
    /// Out-of-memory kills of tasks that were within their booking.
    pub wronged: u64,
    /// Tasks that were sent away from memory that was lent to them.
    pub recalled: u64,
}

impl From<SettlingCounts> for MemoryFigures {
    fn from(counts: SettlingCounts) -> Self {
        let SettlingCounts { settled, outgrown, wronged, recalled } = counts;
        MemoryFigures { settled, outgrown, wronged, recalled }
    }
}

/// What the engine measured of the fleet as a whole.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub(crate) struct FleetTotals {
    pub(crate) energy_j: f64,
    pub(crate) energy_vacant_j: f64,
    pub(crate) smact_mean: f64,
    pub(crate) memory_mean_bytes: f64,
}

impl Summary {
    pub(crate) fn new(
        trace: &Trace,
        results: &[TaskResult],
        makespan: Time,
        bound: Time,
        totals: FleetTotals,
    ) -> Self {
        let mut jcts = Vec::with_capacity(results.len());
        let (mut slowdown, mut run_slowdown, mut wait) = (0.0, 0.0, 0.0);
        let mut started = 0usize;
        let mut progress = vec![(0.0, 0usize); trace.users().len()];
        for (task, result) in trace.tasks().iter().zip(results) {
            if let Some(start) = result.start {
                started += 1;
                wait += start.since(task.submit).secs();
            }
            let (TaskState::Completed, Some(end)) = (result.state, result.end) else { continue };
            let (jct, alone) = (end.since(task.submit).secs(), task.duration.secs());
            jcts.push(jct);
            slowdown += jct / alone;
            run_slowdown += result.ran_s / alone;
            let (sum, count) = &mut progress[task.user.index()];
            *sum += alone / jct;
            *count += 1;
        }
        let completed = jcts.len();
        let jct_sum: f64 = jcts.iter().sum();
        jcts.sort_unstable_by(f64::total_cmp);
        Summary {
            tasks: results.len(),
            completed,
            failed: results.len() - completed,
            makespan_s: makespan.secs(),
            jct_mean_s: mean(jct_sum, completed),
            jct_p50_s: median(&jcts),
            jct_p95_s: percentile_95(&jcts),
            wait_mean_s: mean(wait, started),
            slowdown_mean: mean(slowdown, completed),
            run_slowdown_mean: mean(run_slowdown, completed),
            oom_count: results.iter().map(|result| result.ooms).sum(),
            preemptions: results.iter().map(|result| result.preemptions).sum(),
            energy_j: totals.energy_j,
            energy_vacant_j: totals.energy_vacant_j,
            smact_mean: totals.smact_mean,
            memory_mean_bytes: totals.memory_mean_bytes,
            jain_index: jain(
                progress.iter().filter(|(_, n)| *n > 0).map(|&(sum, n)| sum / n as f64),
            ),
            makespan_bound_s: bound.secs(),
            contract: None,
        }
    }
}

fn mean(sum: f64, count: usize) -> f64 {
    if count == 0 { 0.0 } else { sum / count as f64 }
}

/// The middle of sorted values, or the mean of the two in the middle; zero if there are none.
fn median(sorted: &[f64]) -> f64 {
    let at = |index: usize| sorted.get(index).copied().unwrap_or(0.0);
    match sorted.len() {
        0 => 0.0,
        n => f64::midpoint(at((n - 1) / 2), at(n / 2)),
    }
}

/// The first of sorted values that has 95 % of them before it, as in the published reference results;
/// zero if there are none.
fn percentile_95(sorted: &[f64]) -> f64 {
    sorted.get(sorted.len() * 95 / 100).copied().unwrap_or(0.0)
}

/// Jain's index: 1 when all are equal, 1/n when one has everything.
fn jain(values: impl Iterator<Item = f64>) -> f64 {
    let (mut count, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for value in values {
        count += 1.0;
        sum += value;
        squares += value * value;
    }
    if squares == 0.0 { 1.0 } else { sum * sum / (count * squares) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jain_index_of_the_extremes() {
        assert_eq!(jain([2.0, 2.0, 2.0].into_iter()), 1.0);
        assert!((jain([1.0, 0.0, 0.0, 0.0].into_iter()) - 0.25).abs() < 1e-12);
        assert_eq!(jain(std::iter::empty()), 1.0);
    }

    #[test]
    fn percentiles_are_those_of_the_reference() {
        let values: Vec<f64> = (1..=60).map(f64::from).collect();
        assert_eq!((median(&values), percentile_95(&values)), (30.5, 58.0));
        assert_eq!((median(&values[..3]), percentile_95(&values[..3])), (2.0, 3.0));
        assert_eq!((median(&[]), percentile_95(&[])), (0.0, 0.0));
    }
}
