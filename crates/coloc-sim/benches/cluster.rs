//! How long cluster-scale simulations take: 2,000 contended jobs on 60 GPUs under every discipline, and
//! 100,000 jobs on 2,000 GPUs under 2D-LAS, and one matching of AlloX. `docs/performance.md` has the figures.

use coloc_core::Policy;
use coloc_core::policy::{Place, Queue};
use coloc_core::preset::{MemoryKnowledge, Preset};
use coloc_core::queue::allox::matching::{Costs, Group, matching};
use coloc_core::service::{GpuTime, Service, Thresholds};
use coloc_model::{Millis, Share};
use coloc_sim::trace::Sampled;
use coloc_sim::{Estimator, Silent, Simulation, Trace};
use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use std::time::Duration;

/// Quantiles of the service of jobs on a YARN cluster in GPU seconds, as published with Tiresias.
const SERVICE: [(f64, f64); 7] = [
    (0.0, 121.0),
    (0.25, 860.0),
    (0.5, 2227.0),
    (0.75, 8200.0),
    (0.9, 76_000.0),
    (0.99, 2_290_000.0),
    (1.0, 53_300_000.0),
];

/// A thousand samples between the quantiles, on a log scale.
fn samples() -> Vec<f64> {
    let at = |rank: f64| {
        let next = SERVICE.iter().position(|&(q, _)| q >= rank).unwrap_or(0).max(1);
        let ((low, from), (high, to)) = (SERVICE[next - 1], SERVICE[next]);
        from * libm::pow(to / from, (rank - low) / (high - low))
    };
    (0..1000).map(|index| at(f64::from(index) / 999.0)).collect()
}

fn trace(tasks: usize, gpus: u32) -> Trace {
    let sampled = Sampled { samples: samples(), tasks, gpus, load: 1.2, widest: 8, seed: 1 };
    sampled.generate().expect("a valid trace")
}

fn simulation(nodes: u32, queue: Queue) -> Simulation {
    let service = Service {
        thresholds: Thresholds::two(GpuTime::from_secs(3250), GpuTime::from_secs(7200)),
        ..Service::PLAIN
    };
    let policy = Policy { service, ..Policy::plain(queue, Place::Any, Share::Exclusive) };
    let fleet = format!("{nodes}x4xP100-16GB").parse().expect("a valid fleet");
    let mut simulation = Simulation::new(fleet, policy, Estimator::Oracle);
    simulation.history = Some(samples().into_iter().map(GpuTime::from_secs_f64).collect());
    simulation
}

fn run(simulation: &Simulation, trace: &Trace) -> f64 {
    simulation.run(trace, &mut Silent).expect("the trace fits the fleet").0.jct_mean_s
}

fn contended(c: &mut Criterion) {
    let trace = trace(2_000, 60);
    let mut group = c.benchmark_group("2000-jobs-60-gpus");
    let queues = [
        ("fifo", Queue::Fifo),
        ("best-effort", Queue::BestEffort),
        ("backfill", Queue::Backfill),
        ("sjf", Queue::Sjf),
        ("srtf", Queue::Srtf),
        ("srsf", Queue::Srsf),
        ("las2d", Queue::Las2d),
        ("gittins2d", Queue::Gittins2d),
        ("fair", Queue::Fair),
    ];
    for (name, queue) in queues {
        let simulation = simulation(15, queue);
        group.bench_function(name, |b| b.iter(|| run(&simulation, black_box(&trace))));
    }
    group.finish();
}

/// The paper's preset: packed gangs, and a task that waited too long goes back to the first queue.
fn promoted(c: &mut Criterion) {
    let trace = trace(2_000, 60);
    let policy = Preset::Tiresias.policy(MemoryKnowledge::Oracle);
    let simulation = Simulation { policy, ..simulation(15, Queue::Las2d) };
    let mut group = c.benchmark_group("2000-jobs-60-gpus-promotion");
    group.sample_size(20);
    group.bench_function("tiresias", |b| b.iter(|| run(&simulation, black_box(&trace))));
    group.finish();
}

fn large(c: &mut Criterion) {
    let trace = trace(100_000, 2_000);
    let mut group = c.benchmark_group("100000-jobs-2000-gpus");
    group.sample_size(10).measurement_time(Duration::from_secs(60));
    let simulation = simulation(500, Queue::Las2d);
    group.bench_function("las2d", |b| b.iter(|| run(&simulation, black_box(&trace))));
    group.finish();
}

/// A thousand jobs with speeds of their own on 300 devices of three kinds.
struct Jobs;

impl Costs for Jobs {
    fn time(&self, job: usize, group: usize) -> Option<Millis> {
        let length = 60_000 + (job * 7919 % 1000) as u64 * 5_000;
        let slowdown = 1 + group as u64 * (1 + job as u64 * 31 % 5);
        Some(Millis(length * slowdown))
    }

    fn delay(&self, job: usize, _: usize) -> Millis {
        Millis(job as u64 * 100)
    }
}

fn one_matching(c: &mut Criterion) {
    let groups = [Group { devices: 100 }; 3];
    c.bench_function("matching-1000-jobs-300-devices", |b| {
        b.iter(|| matching(1000, black_box(&groups), &Jobs));
    });
}

criterion_group!(benches, contended, promoted, one_matching, large);
criterion_main!(benches);
