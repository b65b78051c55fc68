//! Synthetic traces: run times and bursts like those of a shared cluster, tasks from the catalogue.

use super::{Trace, TraceTask};
use crate::Names;
use coloc_model::{MOST_GPUS, Millis, SignatureId, Time, UserId};
use coloc_physics::catalogue::{self, Class, Workload};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// Quantiles of 83,154 run times of Microsoft's Philly cluster, in seconds; the top 5 % are cut at a day.
const RUN_TIMES: [(f64, f64); 9] = [
    (0.0, 30.0),
    (0.05, 48.0),
    (0.10, 61.0),
    (0.25, 131.0),
    (0.50, 1186.0),
    (0.75, 3342.0),
    (0.90, 12_860.0),
    (0.95, 49_969.0),
    (1.0, 86_400.0),
];
/// Share of light and of medium tasks in CARMA's mixed trace; the rest is heavy.
const LIGHT: f64 = 0.65;
const MEDIUM: f64 = 0.27;
/// Share of submissions that belong to a sweep: one user sends several of one kind at once.
const SWEEPS: f64 = 0.3;
const SWEEP_LENGTH: usize = 6;
/// How much busier noon is than the mean of the day.
const DAY_SWING: f64 = 0.6;
const DAY: f64 = 86_400.0;

/// What kind of trace to make.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Generator {
    /// How many tasks.
    pub tasks: usize,
    /// How many GPUs of A100-40GB class the load refers to.
    pub gpus: u32,
    /// Demand of all tasks run exclusively, over what the GPUs can do until the last arrival.
    pub load: f64,
    /// The most GPUs of one task.
    pub widest: u32,
    /// Makes it reproducible.
    pub seed: u64,
}

/// A trace that cannot be made.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum GenerateError {
    /// No tasks or no GPUs, or too many.
    #[error("a trace needs 1 to 100,000,000 tasks, and 1 to {MOST_GPUS} GPUs")]
    Size,
    /// A load that means nothing.
    #[error("the load must lie above 0 and at most 100, not {0}")]
    Load(f64),
    /// Nothing to draw from.
    #[error("a trace from samples needs at least one sample")]
    NoSamples,
}

/// There can be so many GPUs.
pub(super) fn is_a_fleet(gpus: u32) -> bool {
    (1..=MOST_GPUS).contains(&u64::from(gpus))
}

impl Generator {
    /// Makes the trace.
    pub fn generate(&self) -> Result<Trace, GenerateError> {
        if !(1..=100_000_000).contains(&self.tasks) || !is_a_fleet(self.gpus) || self.widest == 0 {
            return Err(GenerateError::Size);
        }
        if !(self.load > 0.0 && self.load <= 100.0) {
            return Err(GenerateError::Load(self.load));
        }
        let mut rng = Pcg64Mcg::seed_from_u64(self.seed);
        let (mut names, mut users) = (Names::default(), Names::default());
        let crowd = 2 + (f64::from(self.gpus).sqrt() as usize) * 2;
        (0..crowd).for_each(|user| {
            users.number(&format!("user{user}"));
        });
        let mut tasks: Vec<TraceTask> = Vec::with_capacity(self.tasks);
        let mut sweep: Option<(&Workload, UserId, usize)> = None;
        while tasks.len() < self.tasks {
            let (workload, user) = match &mut sweep {
                Some((workload, user, left)) if *left > 0 => {
                    *left -= 1;
                    (*workload, *user)
                }
                _ => {
                    let fresh = (pick_workload(&mut rng), pick_user(&mut rng, crowd));
                    let starts = rng.random::<f64>() < SWEEPS / SWEEP_LENGTH as f64;
                    sweep = starts.then_some((fresh.0, fresh.1, SWEEP_LENGTH - 1));
                    fresh
                }
            };
            tasks.push(self.draw(&mut rng, workload, user, &mut names));
        }
        self.spread_arrivals(&mut rng, &mut tasks);
        Ok(Trace::new(tasks, names, users))
    }

    fn draw(
        &self,
        rng: &mut Pcg64Mcg,
        workload: &Workload,
        user: UserId,
        names: &mut Names,
    ) -> TraceTask {
        let gang = match rng.random::<f64>() {
            u if u < 0.90 => 1,
            u if u < 0.97 => 2,
            _ => 4,
        };
        let tilt = match workload.class {
            Class::Light => 1.3,
            Class::Medium => 1.0,
            Class::Heavy => 0.8,
        };
        let rank = libm::pow(rng.random::<f64>(), tilt);
        TraceTask {
            submit: Time::START,
            signature: SignatureId(names.number(workload.name)),
            user,
            gpus: gang.max(workload.gpus).min(self.widest).min(self.gpus),
            duration: Millis::from_secs_f64(run_time(rank)),
            profile: workload.profile(),
            exclusive: false,
            priority: 0,
            phases: coloc_physics::Phases::NONE,
            declared: None,
            recorded: None,
            checkpoint: None,
        }
    }

    /// Arrival times over a span that makes the load what was asked for, busier at noon than at night.
    fn spread_arrivals(&self, rng: &mut Pcg64Mcg, tasks: &mut [TraceTask]) {
        let work: f64 = tasks.iter().map(|t| t.duration.secs() * f64::from(t.gpus)).sum();
        let span = work / (self.load * f64::from(self.gpus));
        let mut gaps: Vec<f64> =
            tasks.iter().map(|_| -libm::log(1.0 - rng.random::<f64>())).collect();
        let mut together = 1;
        for index in 1..tasks.len() {
            let (before, this) = (&tasks[index - 1], &tasks[index]);
            let same = before.signature == this.signature && before.user == this.user;
            together = if same && together < SWEEP_LENGTH { together + 1 } else { 1 };
            if together > 1 {
                gaps[index] = 0.0;
            }
        }
        let total: f64 = gaps.iter().sum();
        let mut passed = -gaps[0];
        for (task, gap) in tasks.iter_mut().zip(&gaps) {
            passed += gap;
            let uniform = span * (passed / total).max(0.0);
            let swing = DAY_SWING * DAY / std::f64::consts::TAU;
            let warped = uniform + swing * libm::sin(std::f64::consts::TAU * uniform / DAY);
            task.submit = Time::from_secs_f64(warped.max(0.0));
        }
    }
}

fn pick_workload(rng: &mut Pcg64Mcg) -> &'static Workload {
    let class = match rng.random::<f64>() {
        u if u < LIGHT => Class::Light,
        u if u < LIGHT + MEDIUM => Class::Medium,
        _ => Class::Heavy,
    };
    let count = catalogue::all().filter(|workload| workload.class == class).count();
    let chosen = rng.random_range(0..count);
    let mut of_class = catalogue::all().filter(|workload| workload.class == class);
    of_class.nth(chosen).expect("the index was drawn below the count")
}

/// A few users send most of the work.
fn pick_user(rng: &mut Pcg64Mcg, users: usize) -> UserId {
    let u: f64 = rng.random();
    UserId::from(((u * u) * users as f64) as usize)
}

/// The run time at a rank from 0 to 1, interpolated between the published quantiles on a log scale.
fn run_time(rank: f64) -> f64 {
    let next = RUN_TIMES.iter().position(|&(q, _)| q >= rank).unwrap_or(RUN_TIMES.len() - 1).max(1);
    let ((low, from), (high, to)) = (RUN_TIMES[next - 1], RUN_TIMES[next]);
    let share = (rank - low) / (high - low);
    libm::exp(libm::log(from) + share * (libm::log(to) - libm::log(from)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn make(load: f64, seed: u64) -> Trace {
        let generator = Generator { tasks: 5000, gpus: 64, load, widest: 4, seed };
        generator.generate().expect("a valid request")
    }

    #[test]
    fn the_load_is_what_was_asked_for() {
        for load in [0.5, 0.9, 1.5] {
            let trace = make(load, 1);
            let work: f64 =
                trace.tasks().iter().map(|t| t.duration.secs() * f64::from(t.gpus)).sum();
            let last = trace.tasks().last().expect("tasks").submit.secs();
            let got = work / (last * 64.0);
            assert!((got / load - 1.0).abs() < 0.1, "asked {load}, got {got}");
        }
    }

    #[test]
    fn a_seed_fixes_the_trace() {
        assert_eq!(make(0.9, 7), make(0.9, 7));
        assert_ne!(make(0.9, 7), make(0.9, 8));
    }

    #[test]
    fn run_times_follow_the_published_quantiles() {
        assert_eq!(run_time(0.5).round(), 1186.0);
        assert_eq!(run_time(0.0).round(), 30.0);
        assert_eq!(run_time(1.0).round(), 86_400.0);
        assert!(run_time(0.6) > 1186.0 && run_time(0.6) < 3342.0);
    }

    #[test]
    fn nonsense_is_refused() {
        let base = Generator { tasks: 10, gpus: 4, load: 0.9, widest: 4, seed: 0 };
        assert!(Generator { tasks: 0, ..base }.generate().is_err());
        assert!(Generator { gpus: 0, ..base }.generate().is_err());
        assert!(Generator { load: f64::NAN, ..base }.generate().is_err());
        assert!(Generator { load: -1.0, ..base }.generate().is_err());
    }
}
