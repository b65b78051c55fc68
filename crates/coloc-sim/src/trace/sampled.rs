//! Synthetic traces with the service of real jobs: GPU seconds drawn from samples, gangs as in the
//! Tiresias simulator's own trace, Poisson arrivals at a load.

use super::generate::is_a_fleet;
use super::{GenerateError, Trace, TraceTask, tiresias};
use crate::Names;
use coloc_model::{Millis, SignatureId, Time, UserId};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// GPUs of one job: half of them one, the rest two, four or eight.
const GANGS: [u32; 6] = [1, 1, 1, 2, 4, 8];

/// What kind of trace to make.
#[derive(Clone, PartialEq, Debug)]
pub struct Sampled {
    /// GPU seconds to draw from.
    pub samples: Vec<f64>,
    /// How many tasks.
    pub tasks: usize,
    /// How many GPUs the load refers to.
    pub gpus: u32,
    /// Work that could be done until the last arrival, had every task its GPUs at once, over what the GPUs
    /// can do until then. Work that a few endless jobs would do later does not count.
    pub load: f64,
    /// The most GPUs of one task.
    pub widest: u32,
    /// Makes it reproducible.
    pub seed: u64,
}

impl Sampled {
    /// Makes the trace; every job is alone on its GPUs.
    pub fn generate(&self) -> Result<Trace, GenerateError> {
        if !(1..=100_000_000).contains(&self.tasks) || !is_a_fleet(self.gpus) || self.widest == 0 {
            return Err(GenerateError::Size);
        }
        if self.samples.is_empty() {
            return Err(GenerateError::NoSamples);
        }
        if !(self.load > 0.0 && self.load <= 100.0) {
            return Err(GenerateError::Load(self.load));
        }
        let mut rng = Pcg64Mcg::seed_from_u64(self.seed);
        let (mut names, mut users) = (Names::default(), Names::default());
        let (signature, user) = (SignatureId(names.number("job")), UserId(users.number("user")));
        let draw = |rng: &mut Pcg64Mcg| {
            let service = self.samples[rng.random_range(0..self.samples.len())];
            let gang = GANGS[rng.random_range(0..GANGS.len())];
            let gpus = gang.min(self.widest).min(self.gpus);
            let duration = Millis::from_secs_f64((service / f64::from(gpus)).round().max(1.0));
            let (submit, profile) = (Time::START, tiresias::profile());
            TraceTask {
                submit,
                signature,
                user,
                gpus,
                duration,
                profile,
                exclusive: true,
                priority: 0,
                phases: coloc_physics::Phases::NONE,
                declared: None,
                recorded: None,
                checkpoint: None,
            }
        };
        let mut tasks: Vec<TraceTask> = (0..self.tasks).map(|_| draw(&mut rng)).collect();
        let mut at = 0.0;
        let arrivals: Vec<f64> = tasks
            .iter()
            .map(|_| {
                let now = at;
                at -= libm::log(1.0 - rng.random::<f64>());
                now
            })
            .collect();
        let stretch = self.stretch(&tasks, &arrivals);
        for (task, arrival) in tasks.iter_mut().zip(&arrivals) {
            task.submit = Time::from_secs_f64((arrival * stretch).round());
        }
        Ok(Trace::new(tasks, names, users))
    }

    /// Seconds between arrivals on average that make the load what was asked for. More time between them
    /// means less load, so halving finds it.
    fn stretch(&self, tasks: &[TraceTask], arrivals: &[f64]) -> f64 {
        let last = arrivals.last().copied().unwrap_or(0.0).max(1.0);
        let (mut low, mut high) = (1e-6, 1e9);
        for _ in 0..200 {
            let middle = f64::midpoint(low, high);
            let overloaded = load(tasks, arrivals, middle, last) > self.load * f64::from(self.gpus);
            *(if overloaded { &mut low } else { &mut high }) = middle;
        }
        high
    }
}

/// GPUs that tasks would keep busy on average until the last arrival.
fn load(tasks: &[TraceTask], arrivals: &[f64], stretch: f64, last: f64) -> f64 {
    let busy = tasks.iter().zip(arrivals).map(|(task, arrival)| {
        let left = (last - arrival) * stretch;
        f64::from(task.gpus) * task.duration.secs().min(left)
    });
    busy.sum::<f64>() / (last * stretch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_load_is_what_was_asked_for() {
        let samples = vec![100.0, 2000.0, 50_000.0];
        let make = |seed| {
            let sampled = Sampled {
                samples: samples.clone(),
                tasks: 4000,
                gpus: 60,
                load: 1.2,
                widest: 8,
                seed,
            };
            sampled.generate().expect("a valid request")
        };
        let trace = make(1);
        let arrivals: Vec<f64> = trace.tasks().iter().map(|task| task.submit.secs()).collect();
        let load = load(trace.tasks(), &arrivals, 1.0, arrivals[arrivals.len() - 1]) / 60.0;
        assert!((load / 1.2 - 1.0).abs() < 0.01, "{load}");
        assert_eq!(make(1), trace);
        assert_ne!(make(2), trace);
    }
}
