//! A million tasks on ten thousand GPUs, once each: seconds and peak memory, as rows of a table. Not a
//! criterion benchmark because one run takes as long as criterion would like to take for a hundred.

use coloc_core::Policy;
use coloc_core::policy::{Place, Queue};
use coloc_core::preset::Preset;
use coloc_model::{Fleet, Share};
use coloc_sim::trace::Generator;
use coloc_sim::{Estimator, Silent, Simulation};
use std::time::Instant;

fn main() {
    // `cargo test --benches` only wants to know whether it starts.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let fleet: Fleet = "2500x4xA100-40GB".parse().expect("a valid fleet");
    let estimator = Estimator::Oracle;
    let coloc = Preset::Coloc.policy(estimator.knowledge());
    let exclusive = Policy::plain(Queue::Fifo, Place::Exclusive, Share::Exclusive);
    let shared = Policy::plain(Queue::BestEffort, Place::Magm, Share::Mps);
    println!("| load | policy | seconds | us/task | mean wait | peak memory |");
    println!("|---|---|---|---|---|---|");
    for load in [0.9, 1.5, 3.5] {
        let generator = Generator { tasks: 1_000_000, gpus: 10_000, load, widest: 4, seed: 1 };
        let trace = generator.generate().expect("a valid trace");
        let policies =
            [("coloc", coloc), ("fifo exclusive", exclusive), ("best-effort magm mps", shared)];
        for (name, policy) in policies {
            let simulation = Simulation::new(fleet.clone(), policy, estimator);
            let began = Instant::now();
            let (summary, _) = simulation.run(&trace, &mut Silent).expect("it fits");
            let seconds = began.elapsed().as_secs_f64();
            println!(
                "| {load} | {name} | {seconds:.1} | {seconds:.1} | {:.1} h | {} |",
                summary.wait_mean_s / 3600.0,
                peak_memory()
            );
        }
    }
}

/// The most memory that this process has had, as Linux tells it.
fn peak_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.map_or("unknown".into(), |line| line.trim().to_owned())
}
