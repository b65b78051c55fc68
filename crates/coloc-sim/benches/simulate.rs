//! How long a simulation takes: the 90-task trace under each preset, and generated traces of growing
//! size. `docs/performance.md` has the table.

use coloc_core::Policy;
use coloc_core::policy::{Place, Queue};
use coloc_core::preset::Preset;
use coloc_model::{Fleet, Share};
use coloc_sim::trace::{Generator, mix90};
use coloc_sim::{Estimator, Silent, Simulation, Trace};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use std::time::Duration;

fn fleet(spec: &str) -> Fleet {
    spec.parse().expect("a valid fleet")
}

fn preset(preset: Preset, estimator: Estimator) -> (Policy, Estimator) {
    (preset.policy(estimator.knowledge()), estimator)
}

fn run(fleet: &Fleet, policy: Policy, estimator: Estimator, trace: &Trace) -> f64 {
    let simulation = Simulation::new(fleet.clone(), policy, estimator);
    let (summary, _) = simulation.run(trace, &mut Silent).expect("the trace fits the fleet");
    summary.makespan_s
}

fn published_trace(c: &mut Criterion) {
    let (fleet, trace) = (fleet("4xA100-40GB"), mix90());
    let exclusive = Policy::plain(Queue::Fifo, Place::Exclusive, Share::Exclusive);
    let backfill = Policy::plain(Queue::Backfill, Place::Magm, Share::Mps);
    let cases = [
        ("exclusive", (exclusive, Estimator::Oracle)),
        ("backfill-magm-mps", (backfill, Estimator::Oracle)),
        ("carma-v1", preset(Preset::CarmaV1, Estimator::GpuMemNet)),
        ("carma-v2", preset(Preset::CarmaV2, Estimator::GpuMemNet)),
        ("coloc", preset(Preset::Coloc, Estimator::Oracle)),
    ];
    let mut group = c.benchmark_group("mix90");
    for (name, (policy, estimator)) in cases {
        group
            .bench_function(name, |b| b.iter(|| run(&fleet, policy, estimator, black_box(&trace))));
    }
    group.finish();
}

/// A hundred tasks a GPU; time per task should stay flat.
fn growth(c: &mut Criterion) {
    let mut group = c.benchmark_group("growth");
    group.sample_size(10).measurement_time(Duration::from_secs(8));
    for (load, name) in [(0.9, "load-0.9"), (1.5, "load-1.5"), (3.5, "backlog-3.5")] {
        for tasks in [1_000usize, 10_000, 100_000] {
            let gpus = tasks as u32 / 100;
            let generator = Generator { tasks, gpus, load, widest: 4, seed: 1 };
            let trace = generator.generate().expect("a valid trace");
            let fleet = fleet(&format!("{}x4xA100-40GB", gpus.div_ceil(4)));
            let (policy, estimator) = preset(Preset::Coloc, Estimator::Oracle);
            group.throughput(Throughput::Elements(tasks as u64));
            group.bench_function(BenchmarkId::new(name, tasks), |b| {
                b.iter(|| run(&fleet, policy, estimator, black_box(&trace)));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, published_trace, growth);
criterion_main!(benches);
