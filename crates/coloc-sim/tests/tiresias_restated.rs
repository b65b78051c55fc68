//! The published simulator's loop for 2D-LAS and 2D-Gittins, restated from its description as plainly as
//! possible, beside ours on random traces: every job ends at the same second, preempted as often.

mod common;

use coloc_core::policy::Queue;
use coloc_core::preset::{MemoryKnowledge, Preset};
use coloc_core::service::GpuTime;
use coloc_sim::{Estimator, Simulation};
use common::{fleet, run, trace};
use proptest::prelude::*;
use proptest::sample::select;

const LIMITS: [u64; 2] = [3250, 7200];
/// The quantum of its only table of indices.
const QUANTUM: u64 = 3250;

/// A job of the trace.
#[derive(Clone, Copy, Debug)]
struct Job {
    gpus: u64,
    submit: u64,
    duration: u64,
}

/// A job on its way. Times are whole seconds.
#[derive(Clone, Copy, Default, Debug)]
struct State {
    running: bool,
    /// Since its last promotion.
    executed: u64,
    total_executed: u64,
    /// Only while it has executed something.
    waited: u64,
    checked: u64,
    queue: usize,
    index: f64,
    end: Option<u64>,
    preemptions: u32,
}

impl State {
    /// When it ends, if it goes on.
    fn due(&self, job: &Job) -> Option<u64> {
        self.running.then(|| self.checked + job.duration - self.total_executed)
    }
}

/// How it orders its queues.
struct Rules<'a> {
    gpus: u64,
    knob: Option<f64>,
    /// Samples of service, rising, where queues are sorted by index.
    samples: Option<&'a [u64]>,
}

/// Ends and preemptions of all jobs, which come in the order of their submission.
fn restated(jobs: &[Job], rules: &Rules) -> Vec<(u64, u32)> {
    let mut states = vec![State::default(); jobs.len()];
    let mut queues: [Vec<usize>; 3] = Default::default();
    let (mut arrived, mut jump) = (0, None);
    loop {
        let arrival = jobs.get(arrived).map(|job| job.submit);
        let alive = queues.concat();
        let end = alive.iter().filter_map(|&job| states[job].due(&jobs[job])).min();
        // Arrivals and ends win ties with jumps, which makes no difference: all is done at one moment.
        let Some(now) = arrival.into_iter().chain(end).chain(jump).min() else { break };
        for job in alive {
            if states[job].due(&jobs[job]) == Some(now) {
                states[job].end = Some(now);
                queues[states[job].queue].retain(|&other| other != job);
            }
        }
        while jobs.get(arrived).is_some_and(|job| job.submit == now) {
            states[arrived].checked = now;
            queues[0].push(arrived);
            arrived += 1;
        }
        account(now, jobs, rules, &mut states, &mut queues);
        schedule(jobs, rules, &mut states, &mut queues);
        jump = next_jump(now, jobs, rules, &states, &queues);
    }
    states.iter().map(|job| (job.end.expect("every job ends"), job.preemptions)).collect()
}

/// Time goes into the books, in the order of arrival; demotion by one queue, promotion to the first.
fn account(
    now: u64,
    jobs: &[Job],
    rules: &Rules,
    states: &mut [State],
    queues: &mut [Vec<usize>; 3],
) {
    let mut alive = queues.concat();
    alive.sort_unstable();
    for job in alive {
        let state = &mut states[job];
        let passed = now - std::mem::replace(&mut state.checked, now);
        let before = state.queue;
        if state.running {
            state.executed += passed;
            state.total_executed += passed;
            if LIMITS.get(before).is_some_and(|&limit| state.executed * jobs[job].gpus >= limit) {
                state.queue += 1;
            }
        } else if state.executed > 0 {
            state.waited += passed;
            if let Some(limit) = starving_at(rules, state)
                && state.waited >= limit
            {
                (state.executed, state.waited, state.queue) = (0, 0, 0);
            }
        }
        if state.queue != before {
            queues[before].retain(|&other| other != job);
            queues[states[job].queue].push(job);
        }
    }
}

/// How long a job may wait, if it can be promoted at all.
fn starving_at(rules: &Rules, state: &State) -> Option<u64> {
    let knob = rules.knob.filter(|_| state.queue > 0 && state.executed > 0)?;
    Some((knob * state.executed as f64) as u64)
}

/// Greedily, from an empty cluster; then running jobs go to the head of their queues.
fn schedule(jobs: &[Job], rules: &Rules, states: &mut [State], queues: &mut [Vec<usize>; 3]) {
    let mut free = rules.gpus;
    for queue in queues {
        if let Some(samples) = rules.samples {
            for &job in &*queue {
                states[job].index = index(samples, states[job].executed * jobs[job].gpus);
            }
            let key = |job: usize| (states[job].index, std::cmp::Reverse(jobs[job].submit));
            queue.sort_by(|&one, &other| key(other).partial_cmp(&key(one)).expect("numbers"));
        }
        for &job in &*queue {
            let fits = jobs[job].gpus <= free;
            if fits {
                free -= jobs[job].gpus;
            } else if states[job].running {
                states[job].preemptions += 1;
            }
            states[job].running = fits;
        }
        queue.sort_by_key(|&job| !states[job].running);
    }
}

/// When the next job changes queue; late for demotions, because it takes time for service.
fn next_jump(
    now: u64,
    jobs: &[Job],
    rules: &Rules,
    states: &[State],
    queues: &[Vec<usize>; 3],
) -> Option<u64> {
    let jump = |job: usize| {
        let state = &states[job];
        if state.running {
            let limit = LIMITS.get(state.queue)?;
            return Some(now + limit.saturating_sub(state.executed) / jobs[job].gpus);
        }
        let left = starving_at(rules, state)?.saturating_sub(state.waited);
        (left > 0).then_some(now + left)
    };
    queues.concat().into_iter().filter_map(jump).min()
}

/// The index of a job that has attained `a`: stored one second before each sample, and looked up at the
/// first sample beyond.
fn index(samples: &[u64], a: u64) -> f64 {
    let n = samples.len();
    let up_to = |service: u64| samples.iter().filter(|&&sample| sample <= service).count();
    let Some(&sample) = samples.iter().find(|&&sample| sample > a) else { return 0.0 };
    let a = sample - 1;
    let (i, last) = (up_to(a), samples[n - 1]);
    let k = if a + QUANTUM > last - 1 { n - 1 } else { up_to(a + QUANTUM) }.max(i);
    let share = (k - i) as f64 / (n - i) as f64;
    let spent = samples[i..k].iter().sum::<u64>() + QUANTUM * (n - k) as u64;
    let rounded = |value: f64, digits: i32| {
        let scale = 10f64.powi(digits);
        (value * scale).round_ties_even() / scale
    };
    rounded(1e6 * rounded(share, 5) / (spent / (n - i) as u64) as f64, 4)
}

/// Ours, on the same.
fn ours(jobs: &[Job], rules: &Rules) -> Vec<(u64, u32)> {
    let mut policy = Preset::TiresiasSim.policy(MemoryKnowledge::Oracle);
    policy.service.promote = rules.knob;
    policy.queue = if rules.samples.is_some() { Queue::Gittins2d } else { Queue::Las2d };
    let spec = format!("1x{}xP100-16GB", rules.gpus);
    let mut simulation = Simulation::new(fleet(&spec), policy, Estimator::Oracle);
    let to_history = |samples: &[u64]| samples.iter().map(|&s| GpuTime::from_secs(s)).collect();
    simulation.history = rules.samples.map(to_history);
    let rows: Vec<_> =
        jobs.iter().map(|job| (job.submit, job.duration, job.gpus as u32, 1, 0.5)).collect();
    let (_, results) = run(&simulation, &trace(&rows));
    results.iter().map(|job| (job.end.expect("it ends").0 / 1000, job.preemptions)).collect()
}

fn any_jobs() -> impl Strategy<Value = Vec<Job>> {
    let job = (
        select(vec![1u64, 1, 2, 3, 4]),
        select(vec![0u64, 0, 1, 137, 500, 1000, 3000]),
        prop_oneof![
            select(vec![1u64, 60, 812, 813, 3000, 3250, 3600, 7200, 9000, 12_000]),
            1..30_000u64
        ],
    );
    prop::collection::vec(job, 1..24).prop_map(|jobs| {
        let mut submit = 0;
        let jobs = jobs.into_iter().map(|(gpus, gap, duration)| {
            submit += gap;
            Job { gpus, submit, duration }
        });
        jobs.collect()
    })
}

fn any_knob() -> impl Strategy<Value = Option<f64>> {
    select(vec![None, Some(0.1), Some(0.5), Some(1.0), Some(2.0), Some(8.0), Some(100.0)])
}

fn any_samples() -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(prop_oneof![1..8000u64, 1..100_000u64], 2..40).prop_map(|mut samples| {
        samples.sort_unstable();
        samples
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn las2d_is_the_original(jobs in any_jobs(), knob in any_knob()) {
        let rules = Rules { gpus: 4, knob, samples: None };
        prop_assert_eq!(ours(&jobs, &rules), restated(&jobs, &rules));
    }

    /// The original never sorts by index where it promotes; we do, and so does the restatement.
    #[test]
    fn gittins2d_is_the_original(
        jobs in any_jobs(), knob in any_knob(), samples in any_samples(),
    ) {
        let rules = Rules { gpus: 4, knob, samples: Some(&samples) };
        prop_assert_eq!(ours(&jobs, &rules), restated(&jobs, &rules));
    }
}

/// A job that waits before its first run, or after a promotion, is not starving; and a job that is overdue when
/// it is preempted waits for the next event.
#[test]
fn waiting_counts_only_after_a_run() {
    let job = |gpus, submit, duration| Job { gpus, submit, duration };
    let jobs = [job(2, 0, 7000), job(2, 0, 9000), job(2, 3000, 5000), job(2, 6000, 9000)];
    let rules = Rules { gpus: 2, knob: Some(1.0), samples: None };
    let ends = |results: Vec<(u64, u32)>| results.into_iter().map(|(end, _)| end);
    assert_eq!(ends(restated(&jobs, &rules)).collect::<Vec<_>>(), [23375, 27500, 22875, 30000]);
    assert_eq!(ours(&jobs, &rules), restated(&jobs, &rules));
}
