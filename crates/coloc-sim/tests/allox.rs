//! AlloX in the simulator: the slides' four jobs, users, and refusal of gangs.

mod support;

use coloc_core::policy::Queue;
use coloc_core::preset::{MemoryKnowledge, Preset};
use coloc_model::{GpuModel, SignatureId, SpeedTable};
use coloc_sim::trace::{Format, read};
use coloc_sim::{Silent, Simulation, Trace};
use std::path::Path;
use support::simulation;

const X: GpuModel = GpuModel::A100_40GB;

/// Jobs with their time on X; `ratios` are how much longer Y, a K80, takes.
fn mixed(rows: &str, ratios: &[f64]) -> (Trace, Simulation) {
    let text = format!("submit_s,task,user,duration_s,memory_mib,sm\n{rows}");
    let trace = read(Path::new("jobs"), text.as_bytes(), Format::Coloc).expect("valid rows");
    let policy = Preset::Allox.policy(MemoryKnowledge::Oracle);
    let mut simulation = simulation("2xA100-40GB,2xK80-12GB", policy);
    let slow: GpuModel = "K80-12GB".parse().expect("a known model");
    let mut speeds = SpeedTable::default();
    for (job, ratio) in ratios.iter().enumerate() {
        speeds.insert(SignatureId(job as u32), X, 1.0);
        speeds.insert(SignatureId(job as u32), slow, 1.0 / ratio);
    }
    simulation.speeds = speeds;
    (trace, simulation)
}

fn ends(trace: &Trace, simulation: &Simulation) -> Vec<f64> {
    let (_, results) = simulation.run(trace, &mut Silent).expect("the trace fits");
    results.iter().map(|job| job.end.expect("every job ended").secs().round()).collect()
}

const FOUR: &str = "0,a,u,10,1000,0.5\n0,b,u,15,1000,0.5\n0,c,u,20,1000,0.5\n0,d,u,20,1000,0.5\n";
const RATIOS: [f64; 4] = [2.0, 25.0 / 15.0, 5.0, 4.5];

#[test]
fn four_jobs_of_the_slides() {
    let (trace, mut simulation) = mixed(FOUR, &RATIOS);
    assert_eq!(ends(&trace, &simulation), [20.0, 25.0, 20.0, 20.0]);
    // In order of arrival the fast devices go to the jobs that need them least.
    simulation.policy.queue = Queue::Fifo;
    assert_eq!(ends(&trace, &simulation), [10.0, 15.0, 100.0, 90.0]);
}

#[test]
fn with_a_small_alpha_the_least_served_user_goes_first() {
    // One user has four long jobs; the other comes later with one that is longer than any of them.
    let mut rows: String = (0..8).map(|job| format!("{job},a,many,100,1000,0.5\n")).collect();
    rows.push_str("9,b,one,200,1000,0.5\n");
    let start = |alpha| {
        let (trace, mut simulation) = mixed(&rows, &[1.0, 1.0]);
        simulation.policy.alpha = alpha;
        let (_, results) = simulation.run(&trace, &mut Silent).expect("the trace fits");
        results[8].start.expect("it ran").secs()
    };
    assert_eq!(start(1.0), 200.0, "for the best mean the longest goes last");
    assert_eq!(start(0.1), 100.0, "the first device that is free is its own");
}

#[test]
fn gangs_are_refused_clearly() {
    let text = "num_gpu,submit_time,duration\n2,0,10\n";
    let trace = read(Path::new("jobs"), text.as_bytes(), Format::Tiresias).expect("valid rows");
    let policy = Preset::Allox.policy(MemoryKnowledge::Oracle);
    let error = simulation("4xP100-16GB", policy).run(&trace, &mut Silent).expect_err("a gang");
    let said = "jobs, line 2: task 0 needs 2 GPUs at once, allox gives a task at most 1; gangs need another queue";
    assert_eq!(error.to_string(), said);
}

/// A block of cores can stand in for a device: what gains little from a GPU goes there.
#[test]
fn cores_are_a_kind_of_device() {
    let rows = "0,a,u,10,1000,0.5\n0,b,u,12,1000,0.5\n";
    let (trace, mut simulation) = mixed(rows, &[]);
    simulation.fleet = support::fleet("1xA100-40GB,1xCPU");
    let cores: GpuModel = "CPU".parse().expect("a known model");
    simulation.speeds.insert(SignatureId(0), cores, 0.05);
    simulation.speeds.insert(SignatureId(1), cores, 0.6);
    assert_eq!(ends(&trace, &simulation), [10.0, 20.0]);
    // Where one of them does not run there at all, they take turns.
    simulation.speeds.insert(SignatureId(1), cores, 0.0);
    assert_eq!(ends(&trace, &simulation), [10.0, 22.0]);
}

/// The scheduler is not told that K80s are slow: the first runs show it, and later ones keep off.
#[test]
fn speeds_are_learned_from_runs() {
    let rows: String =
        (0..100).map(|job| format!("{},a,u,10,1000,0.5\n", 12 * (job / 3))).collect();
    let mean = |learn| {
        let (trace, mut simulation) = mixed(&rows, &[20.0]);
        simulation.fleet = support::fleet("1xK80-12GB,2xA100-40GB");
        simulation.policy.learn_speeds = learn;
        simulation.run(&trace, &mut Silent).expect("the trace fits").0.jct_mean_s
    };
    // Three at a time for two fast devices: the third waits, or takes the slow one.
    let (told, learned) = (mean(false), mean(true));
    assert!(told < 70.0, "{told}");
    assert!(learned < 1.3 * told, "a few tries at most: {learned} against {told}");
}

/// A matching may be repeated although nothing happened; where all went as expected nothing changes.
#[test]
fn matching_again_and_again_changes_nothing_by_itself() {
    let (trace, mut simulation) = mixed(FOUR, &RATIOS);
    simulation.policy.service.quantum = Some(coloc_model::Millis::from_secs(1));
    assert_eq!(ends(&trace, &simulation), [20.0, 25.0, 20.0, 20.0]);
}
