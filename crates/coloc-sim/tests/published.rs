//! The simulator against published numbers, and our policy against the one that they belong to.

mod common;

use coloc_core::Preset;
use coloc_physics::catalogue;
use coloc_sim::{Estimator, Summary, TaskResult};
use common::{carma_trace, exclusive, preset, run, shared};
use std::collections::BTreeMap;

const TRACES: [&str; 3] = ["mix90", "heavy60", "t1"];
const ESTIMATORS: [Estimator; 5] = [
    Estimator::Oracle,
    Estimator::None,
    Estimator::Horus,
    Estimator::FakeTensor,
    Estimator::GpuMemNet,
];

fn assert_near(what: &str, got: f64, published: f64, tolerance: f64) {
    let error = (got / published - 1.0).abs();
    assert!(error <= tolerance, "{what}: {got:.4} against {published}, off by {error:.4}");
}

/// Mean power of one GPU of the server.
fn watts(summary: &Summary) -> f64 {
    summary.energy_j / summary.makespan_s / 4.0
}

#[test]
fn exclusive_makespans_are_the_derived_ones() {
    for (name, minutes) in [("mix90", 734.9), ("heavy60", 595.0), ("t1", 470.4)] {
        let Some(trace) = carma_trace(name) else { return };
        let (summary, _) = run(&exclusive(), &trace);
        assert_near(name, summary.makespan_s / 60.0, minutes, 0.001);
        assert_eq!((summary.completed, summary.oom_count), (trace.tasks().len(), 0), "{name}");
    }
}

#[test]
fn the_catalogue_is_the_published_table() {
    let Some(path) = shared("traces/carma/tasks.csv") else { return };
    let mut table = csv::Reader::from_path(path).expect("a readable table");
    let mut rows = 0;
    for row in table.deserialize() {
        let row: BTreeMap<String, String> = row.expect("a row of the table");
        let name = row["task"].as_str();
        let number = |column: &str| row[column].parse::<f64>().ok();
        let Some(minutes) = number("total_min_readme").or((name == "mnist_train").then_some(3.0))
        else {
            assert!(catalogue::find(name).is_none(), "{name} has no published time");
            continue;
        };
        let known = catalogue::find(name).unwrap_or_else(|| panic!("{name} is not catalogued"));
        rows += 1;
        assert_eq!(Some(f64::from(known.gpus)), number("gpus"), "{name}");
        assert!((known.duration().secs() - minutes * 60.0).abs() < 1e-3, "{name}");
        assert_eq!(Some(known.memory().mib()), number("mem_mib_rad"), "{name}");
        let estimates = known.estimates;
        for (column, ours) in [
            ("horus_mib", estimates.horus_mib),
            ("faketensor_mib", estimates.faketensor_mib),
            ("gpumemnet_mib", estimates.gpumemnet_mib),
        ] {
            let theirs = number(column).unwrap_or_else(|| panic!("{name} has no {column}"));
            assert!((ours - theirs).abs() < 1e-3, "{name} {column}: {ours} against {theirs}");
        }
    }
    assert_eq!(rows, catalogue::all().count(), "the catalogue has rows of its own");
}

#[test]
fn carma_gains_on_t1_what_was_published() {
    let Some(trace) = carma_trace("t1") else { return };
    let (alone, _) = run(&exclusive(), &trace);
    let (carma, _) = run(&preset(Preset::CarmaV2, Estimator::GpuMemNet), &trace);
    let makespan = carma.makespan_s / alone.makespan_s - 1.0;
    assert!((-0.43..=-0.27).contains(&makespan), "makespan {makespan:+.3}, published -0.35");
    let energy = carma.energy_j / alone.energy_j - 1.0;
    assert!((-0.25..=-0.10).contains(&energy), "energy {energy:+.3}");
}

/// Both are told the same; mean over the trace and 12 shuffles of it.
#[test]
fn ours_beats_carma_on_every_trace() {
    for name in TRACES {
        let Some(trace) = carma_trace(name) else { return };
        let (mut carma, mut ours) = ((0.0, 0.0), (0.0, 0.0));
        for seed in 0..13 {
            let trace = if seed == 0 { trace.clone() } else { trace.shuffled(seed) };
            for (chosen, sums) in [(Preset::CarmaV2, &mut carma), (Preset::Coloc, &mut ours)] {
                let (summary, _) = run(&preset(chosen, Estimator::Oracle), &trace);
                assert_eq!(summary.failed, 0, "{name}, shuffle {seed}");
                *sums = (sums.0 + summary.makespan_s, sums.1 + summary.jct_mean_s);
            }
        }
        let (makespan, jct) = (ours.0 / carma.0 - 1.0, ours.1 / carma.1 - 1.0);
        println!("{name}: makespan {makespan:+.3}, mean JCT {jct:+.3}");
        assert!(jct <= -0.15, "{name}: mean JCT {jct:+.3}");
        assert!(makespan <= 0.02, "{name}: makespan {makespan:+.3}");
    }
}

#[test]
fn ours_still_beats_carma_when_interference_is_halved_or_doubled() {
    for name in TRACES {
        let Some(trace) = carma_trace(name) else { return };
        for factor in [0.5, 2.0] {
            let played = |chosen, estimator| {
                let mut simulation = preset(chosen, estimator);
                let interference = &mut simulation.physics.interference;
                *interference = interference.scaled(factor);
                run(&simulation, &trace).0
            };
            let carma = played(Preset::CarmaV2, Estimator::GpuMemNet);
            let ours = played(Preset::Coloc, Estimator::Oracle);
            assert_eq!(ours.oom_count, 0, "{name} x{factor}");
            assert!(ours.jct_mean_s < carma.jct_mean_s, "{name} x{factor}");
        }
    }
}

#[test]
fn ours_loses_no_task_whatever_it_is_told() {
    for name in TRACES {
        let Some(trace) = carma_trace(name) else { return };
        for estimator in ESTIMATORS {
            let (summary, results) = run(&preset(Preset::Coloc, estimator), &trace);
            let lost = results.iter().filter(|result| result.end.is_none()).count();
            assert_eq!((summary.failed, lost), (0, 0), "{name} with {}", estimator.name());
        }
    }
}

#[test]
fn the_heavy_trace_shows_the_published_activity_and_power() {
    let Some(trace) = carma_trace("heavy60") else { return };
    let (alone, _) = run(&exclusive(), &trace);
    assert_near("exclusive SMACT", alone.smact_mean, 0.61, 0.03);
    assert_near("exclusive power", watts(&alone), 217.0, 0.03);
    let (carma, _) = run(&preset(Preset::CarmaV1, Estimator::GpuMemNet), &trace);
    assert_near("collocated SMACT", carma.smact_mean, 0.85, 0.03);
    assert_near("collocated power", watts(&carma), 254.0, 0.03);
}

#[test]
fn no_run_is_shorter_than_the_task_alone() {
    for name in TRACES {
        let Some(trace) = carma_trace(name) else { return };
        for (chosen, estimator) in [Preset::CarmaV1, Preset::CarmaV2, Preset::Coloc]
            .into_iter()
            .flat_map(|chosen| ESTIMATORS.map(|estimator| (chosen, estimator)))
        {
            let (_, results) = run(&preset(chosen, estimator), &trace);
            for (task, TaskResult { ran_s, ooms, .. }) in trace.tasks().iter().zip(results) {
                let (what, alone) = (trace.name(task), task.duration.secs());
                assert!(
                    ran_s >= alone - 2e-3,
                    "{name}, {chosen:?}, {}: {what} ran {ran_s} s of {alone} after {ooms} deaths",
                    estimator.name()
                );
            }
        }
    }
}
