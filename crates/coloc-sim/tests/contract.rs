//! The memory contract in simulations: tasks that load first, grow late, declare too much, or say nothing.

mod common;

use coloc_core::policy::{Contract, Place, Queue};
use coloc_core::{Policy, Preset};
use coloc_model::{Bytes, Millis, Share, TaskState};
use coloc_physics::{Evaluate, LateGrowth, Load, Phases};
use coloc_sim::trace::Recorded;
use coloc_sim::{Declarations, Estimator, Simulation, Summary, TaskResult, Trace, TraceTask};
use common::{fleet, run, trace};
use proptest::prelude::*;
use proptest::sample::select;

const fn gib(gib: u64) -> Bytes {
    Bytes::from_mib(gib * 1024)
}

const fn secs(secs: u64) -> Millis {
    Millis::from_secs(secs)
}

/// A trace whose tasks are changed one by one.
fn changed(trace: &Trace, change: impl Fn(usize, &mut TraceTask)) -> Trace {
    let mut tasks = trace.tasks().to_vec();
    tasks.iter_mut().enumerate().for_each(|(index, task)| change(index, task));
    Trace::new(tasks, trace.names().clone(), trace.users().clone())
}

/// With the contract and by the old rule.
fn both(spec: &str, estimator: Estimator, trace: &Trace) -> [(Summary, Vec<TaskResult>); 2] {
    let preset = Preset::Coloc.policy(estimator.knowledge());
    [Some(Contract::default()), None].map(|contract| {
        run(&Simulation::new(fleet(spec), Policy { contract, ..preset }, estimator), trace)
    })
}

#[test]
fn a_task_that_loads_first_keeps_what_it_declared() {
    let tasks = trace(&[(0, 3600, 1, 30, 0.2), (120, 3600, 1, 35, 0.2)]);
    let loading = changed(&tasks, |index, task| {
        task.declared = Some(task.profile.memory);
        if index == 0 {
            task.phases.load = Some(Load { span: secs(300), held: Bytes::from_mib(500) });
        }
    });
    let [(with, results), (old, _)] = both("1xA100-40GB", Estimator::None, &loading);
    assert_eq!((with.oom_count, with.completed), (0, 2));
    assert!(results[1].start >= results[0].end, "65 GiB of 40 are never promised");
    assert!(old.oom_count > 0, "the old rule gave them away after a minute");
}

#[test]
fn a_recorded_estimate_is_booked_at_its_bound() {
    let tasks = trace(&[(0, 200, 1, 10, 0.2), (0, 200, 1, 10, 0.2)]);
    let recorded = |bound| {
        let tasks = changed(&tasks, |_, task| {
            task.recorded = Some(Recorded { peak: gib(10), bound: gib(bound) });
        });
        both("1xA100-40GB", Estimator::Recorded, &tasks)[0].1.clone()
    };
    let (tight, loose) = (recorded(12), recorded(25));
    assert_eq!(tight[0].start, tight[1].start);
    assert!(loose[1].start >= loose[0].end, "50 GiB of 40 are never promised");
    let [(_, unknown), _] = both("1xA100-40GB", Estimator::Recorded, &tasks);
    assert!(unknown[1].start > unknown[0].start, "nothing was known of them");
}

#[test]
fn tasks_of_which_nothing_is_known_do_not_kill_each_other() {
    let large: Vec<_> = (0..8).map(|task| (0, 900, 1, 21 + task, 0.3)).collect();
    let [(with, _), (old, _)] = both("4xA100-40GB", Estimator::None, &trace(&large));
    assert_eq!((with.oom_count, with.completed), (0, 8));
    assert!(old.oom_count > 0);
}

#[test]
fn an_estimate_that_is_right_survives_late_growth() {
    let tasks = trace(&[(0, 3600, 1, 10, 0.2), (600, 3600, 1, 18, 0.2)]);
    let late = LateGrowth { after: secs(1200), held: gib(22) };
    let growing = changed(&tasks, |index, task| {
        task.phases.late = (index == 0).then_some(late);
    });
    let [(with, results), (old, _)] = both("1xA100-40GB", Estimator::Oracle, &growing);
    assert_eq!((with.oom_count, with.completed), (0, 2));
    assert!(results[1].start < results[0].end, "22 and 18 GiB fit");
    assert_eq!(old.oom_count, 0);
    let tight = changed(&growing, |index, task| {
        if index == 1 {
            task.profile.memory = gib(19);
        }
    });
    let [(with, _), (old, _)] = both("1xA100-40GB", Estimator::Oracle, &tight);
    assert_eq!(with.oom_count, 0);
    assert!(old.oom_count > 0, "the old rule took the late growth for waste");
}

#[test]
fn a_device_is_idle_while_a_task_loads() {
    let tasks = trace(&[(0, 1000, 1, 10, 0.5)]);
    let loading = changed(&tasks, |_, task| {
        task.phases.load = Some(Load { span: secs(500), held: Bytes::from_mib(500) });
    });
    for (told, share) in [(tasks, 0.5), (loading, 0.25)] {
        let [(with, _), _] = both("1xA100-40GB", Estimator::Oracle, &told);
        assert!((with.smact_mean - share).abs() < 1e-3, "{}", with.smact_mean);
    }
}

#[test]
fn whole_gpus_have_phases_too() {
    let tasks = trace(&[(0, 1000, 1, 10, 0.5)]);
    let evaluate = Evaluate { every: secs(100), span: secs(50), held: gib(30) };
    let phases = Phases { evaluate: Some(evaluate), ..Phases::NONE };
    let evaluating = changed(&tasks, |_, task| task.phases = phases);
    let policy = Policy::plain(Queue::Fifo, Place::Exclusive, Share::Exclusive);
    let memory = |trace: &Trace| {
        let simulation = Simulation::new(fleet("1xA100-40GB"), policy, Estimator::Oracle);
        run(&simulation, trace).0.memory_mean_bytes / f64::from(1 << 30)
    };
    let more = memory(&evaluating) - memory(&tasks);
    assert!((more - 9.0).abs() < 0.2, "nine evaluations of 50 s with 20 GiB more: {more}");
}

#[test]
fn over_declaration_costs_room_and_lending_gives_it_back() {
    let tasks = trace(&[(0, 3600, 1, 10, 0.2), (1, 3600, 1, 11, 0.2)]);
    let policy = Preset::Coloc.policy(Estimator::Oracle.knowledge());
    let starts = |factor, reclaim| {
        let mut simulation = Simulation::new(fleet("1xA100-40GB"), policy, Estimator::Oracle);
        simulation.declarations = Declarations { factor: Some(factor), reclaim };
        let (summary, results) = run(&simulation, &tasks);
        assert_eq!((summary.oom_count, summary.completed), (0, 2));
        results[1].start.expect("it started").secs()
    };
    assert!(starts(1.0, false) < 2.0);
    assert!(starts(2.5, false) > 3000.0, "25 and 27.5 GiB do not fit");
    let lent = starts(2.5, true);
    assert!((500.0..1000.0).contains(&lent), "once the first was seen to need less: {lent}");
}

#[test]
fn a_lender_gets_its_memory_back() {
    let tasks = trace(&[(0, 7200, 1, 10, 0.2), (1, 7200, 1, 11, 0.2)]);
    let growing = changed(&tasks, |index, task| {
        let late = LateGrowth { after: secs(3600), held: gib(29) };
        task.phases.late = (index == 0).then_some(late);
        task.declared = Some(if index == 0 { gib(30) } else { gib(15) });
    });
    let policy = Preset::Coloc.policy(Estimator::Oracle.knowledge());
    let mut simulation = Simulation::new(fleet("1xA100-40GB"), policy, Estimator::Oracle);
    simulation.declarations.reclaim = true;
    let (summary, results) = run(&simulation, &growing);
    let figures = summary.contract.expect("the preset has the contract");
    assert_eq!((summary.oom_count, figures.recalled, summary.completed), (0, 1, 2));
    assert_eq!((results[0].preemptions, results[1].preemptions), (0, 1));
}

fn any_phases() -> impl Strategy<Value = Phases> {
    let load = select(vec![None, Some(Load { span: secs(200), held: Bytes::from_mib(700) })]);
    let evaluate = Evaluate { every: secs(300), span: secs(20), held: gib(16) };
    let evaluate = select(vec![None, None, Some(evaluate)]);
    let late = select(vec![None, None, Some(LateGrowth { after: secs(700), held: gib(25) })]);
    (load, evaluate, late).prop_map(|(load, evaluate, late)| Phases { load, evaluate, late })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Debug builds check the ledger after every step.
    #[test]
    fn whatever_tasks_do_all_complete_and_the_ledger_stands(
        tasks in prop::collection::vec((0u64..2000, 60u64..4000, 1u32..3, 1u64..24, 0.01f64..0.9), 1..24),
        phases in prop::collection::vec(any_phases(), 24),
        says in prop::collection::vec(select(vec![None, None, Some(0.5), Some(1.0), Some(3.0)]), 24),
        estimator in select(vec![Estimator::Oracle, Estimator::None]),
        share in select(vec![Share::Mps, Share::Streams, Share::Mig]),
        reclaim in any::<bool>(),
    ) {
        let told = changed(&trace(&tasks), |index, task| {
            task.phases = phases[index];
            task.declared = says[index].map(|factor| task.memory_curve().peak().scale(factor));
        });
        let policy = Policy { share, ..Preset::Coloc.policy(estimator.knowledge()) };
        let mut simulation = Simulation::new(fleet("2x2xA100-40GB"), policy, estimator);
        simulation.declarations.reclaim = reclaim;
        let (_, results) = run(&simulation, &told);
        let completed = results.iter().filter(|result| result.state == TaskState::Completed);
        prop_assert_eq!(completed.count(), results.len());
    }

    /// A task that declares or estimates right does not die, whatever the others do within their word.
    #[test]
    fn the_honest_do_not_die(
        tasks in prop::collection::vec((0u64..2000, 60u64..4000, 1u32..3, 1u64..24, 0.01f64..0.9), 1..24),
        phases in prop::collection::vec(any_phases(), 24),
        declares in prop::collection::vec(any::<bool>(), 24),
    ) {
        let told = changed(&trace(&tasks), |index, task| {
            task.phases = phases[index];
            task.declared = declares[index].then(|| task.memory_curve().peak());
        });
        let policy = Preset::Coloc.policy(Estimator::Oracle.knowledge());
        let simulation = Simulation::new(fleet("2x2xA100-40GB"), policy, Estimator::Oracle);
        prop_assert_eq!(run(&simulation, &told).0.oom_count, 0);
    }
}
