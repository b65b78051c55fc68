//! What holds of every simulation: small random traces under random policies.

mod common;

use coloc_core::Policy;
use coloc_core::policy::{Gate, Knowledge, MemoryBasis, OnOom, Place, Queue, Recovery};
use coloc_core::preset::{MemoryKnowledge, Preset};
use coloc_model::{Bytes, Fraction, GpuSignal, Millis, Share, Slot, TaskId, TaskState, Time};
use coloc_physics::Noise;
use coloc_sim::{
    AttemptEnd, Estimator, Observer, Simulation, Summary, TaskResult, Trace, makespan_bound,
};
use common::{fleet, run, trace};
use proptest::prelude::*;
use proptest::sample::select;
use std::collections::BTreeSet;

fn any_trace() -> impl Strategy<Value = Trace> {
    let task = (
        0u64..600,
        select(vec![1u64, 15, 40, 300, 2000]),
        select(vec![1u32, 1, 1, 2]),
        select(vec![0u64, 1, 6, 15, 35]),
        select(vec![0.0, 0.1, 0.4, 0.6, 0.9]),
    );
    prop::collection::vec(task, 1..16).prop_map(|tasks| trace(&tasks))
}

fn any_policy() -> impl Strategy<Value = Policy> {
    let queue = select(vec![Queue::Fifo, Queue::BestEffort, Queue::Backfill]);
    let place = select(vec![
        Place::Any,
        Place::Exclusive,
        Place::RoundRobin,
        Place::FirstFit,
        Place::BestFit,
        Place::Magm,
        Place::Lug,
        Place::LeastInterference,
    ]);
    let gate = select(vec![
        Gate::Open,
        Gate::TumblingMean { limit: Fraction::new(0.6), window: Millis::from_secs(90) },
        Gate::Risk {
            sm: Fraction::new(0.6),
            occupancy: Fraction::new(0.2),
            dram: Fraction::new(0.2),
        },
        Gate::Expected { limit: 1.3 },
    ]);
    let plain = (queue, place, select(Share::ALL.to_vec()), gate, any::<bool>(), any::<bool>());
    let plain = plain.prop_map(|(queue, place, share, gate, learn, settles)| Policy {
        gate,
        learn,
        settle: settles.then_some(Millis::from_secs(30)),
        ..Policy::plain(queue, place, share)
    });
    let known = select(vec![MemoryKnowledge::Oracle, MemoryKnowledge::Estimate]);
    let presets = (select(vec![Preset::CarmaV1, Preset::CarmaV2, Preset::Coloc]), known)
        .prop_map(|(preset, known)| preset.policy(known));
    prop_oneof![3 => plain, 1 => presets]
}

/// Plain policies that are told nothing, and must live on recovery.
fn blind(policy: Policy) -> Policy {
    let knowledge = Knowledge::Unknown { min_free: Bytes::from_mib(2048) };
    let recovery = Recovery { retries: policy.recovery.retries.min(5), ..policy.recovery };
    Policy { knowledge, recovery, ..policy }
}

fn simulation(policy: Policy, estimator: Estimator) -> Simulation {
    Simulation::new(fleet("2x2xA100-40GB"), policy, estimator)
}

/// Watches a run for what must not happen.
#[derive(Default)]
struct Guard {
    most_used: Bytes,
    deaths: u32,
    /// (GPU, from, to, task) of every attempt.
    attempts: Vec<(u32, Time, Time, TaskId)>,
    clock: Time,
}

impl Observer for Guard {
    fn sees_gpus(&self) -> bool {
        true
    }

    fn gpu_changed(&mut self, now: Time, _gpu: usize, signal: &GpuSignal, watts: f64) {
        assert!(now >= self.clock, "time runs backwards");
        self.clock = now;
        self.most_used = self.most_used.max(signal.used);
        assert!((52.0..=400.0).contains(&watts), "{watts} W");
    }

    fn attempt_ended(
        &mut self,
        task: TaskId,
        started: Time,
        now: Time,
        slots: &[Slot],
        end: AttemptEnd,
    ) {
        self.deaths += u32::from(end == AttemptEnd::OutOfMemory);
        self.attempts.extend(slots.iter().map(|slot| (slot.gpu.0, started, now, task)));
    }
}

fn guarded(simulation: &Simulation, trace: &Trace) -> (Summary, Vec<TaskResult>, Guard) {
    let mut guard = Guard::default();
    let (summary, results) = simulation.run(trace, &mut guard).expect("it fits the fleet");
    (summary, results, guard)
}

/// Deaths that need not have been: the longest that any task can take beside every other.
fn check_times(trace: &Trace, results: &[TaskResult]) {
    let crowd = trace.tasks().len() as f64;
    for (task, result) in trace.tasks().iter().zip(results) {
        let (Some(start), Some(end)) = (result.start, result.end) else { continue };
        assert!(start >= task.submit && end >= start);
        if result.state != TaskState::Completed {
            continue;
        }
        let alone = task.duration.secs();
        assert!(result.ran_s >= alone - 2e-3, "{} s of {alone}", result.ran_s);
        assert!(end.since(task.submit).secs() >= alone - 2e-3);
        // Pairs slow each other by at most 0.55 or 0.49 each, capacity by the number of tasks, packing
        // by its overload; a slice of a board by at most 7.8.
        let worst = (1.0 + 0.55 * crowd) * crowd * (1.0 + 0.06 * crowd) * 8.0;
        assert!(result.ran_s <= alone * worst + 1.0, "{} s of {alone}", result.ran_s);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn with_measured_memory_every_task_completes(
        trace in any_trace(),
        policy in any_policy(),
    ) {
        let simulation = simulation(policy, Estimator::Oracle);
        let (summary, results, guard) = guarded(&simulation, &trace);
        prop_assert_eq!(summary.completed, trace.tasks().len());
        prop_assert!(guard.most_used <= Bytes::from_mib(40_960));
        check_times(&trace, &results);
        // A ledger and a measured bound: no task dies.
        if policy.memory == MemoryBasis::Ledger {
            prop_assert_eq!((summary.oom_count, guard.deaths), (0, 0));
        }
    }

    #[test]
    fn without_knowledge_every_task_ends_one_way_or_another(
        trace in any_trace(),
        policy in any_policy(),
    ) {
        let simulation = simulation(blind(policy), Estimator::None);
        let (summary, results, guard) = guarded(&simulation, &trace);
        for result in &results {
            prop_assert!(result.end.is_some());
            prop_assert!(matches!(result.state, TaskState::Completed | TaskState::OutOfMemory));
        }
        prop_assert_eq!(summary.oom_count, guard.deaths);
        prop_assert!(guard.most_used <= Bytes::from_mib(40_960));
        check_times(&trace, &results);
        if matches!(policy.recovery.on_oom, OnOom::Grow { .. }) {
            prop_assert_eq!(summary.failed, 0, "the last try is alone on a GPU that is large enough");
        }
    }

    #[test]
    fn the_energy_of_tasks_and_of_empty_devices_is_that_of_the_devices(
        trace in any_trace(),
        policy in any_policy(),
    ) {
        let (summary, results) = run(&simulation(blind(policy), Estimator::None), &trace);
        let tasks: f64 = results.iter().map(|result| result.energy_j).sum();
        let error = (tasks + summary.energy_vacant_j - summary.energy_j).abs();
        prop_assert!(error <= 1e-9 * summary.energy_j, "{error} J of {}", summary.energy_j);
    }

    #[test]
    fn the_same_inputs_give_the_same_bits(
        trace in any_trace(),
        policy in any_policy(),
        seed in any::<u64>(),
    ) {
        let mut simulation = simulation(policy, Estimator::Oracle);
        simulation.noise = Some(Noise::new(seed));
        let (once, again) = (run(&simulation, &trace), run(&simulation, &trace));
        // Debug prints floats so that they differ if their bits do.
        prop_assert_eq!(format!("{once:?}"), format!("{again:?}"));
    }

    #[test]
    fn looking_changes_nothing(
        trace in any_trace(),
        policy in any_policy(),
        preemptive in prop::option::of(select(vec![Queue::Srtf, Queue::Las2d, Queue::Gittins2d])),
        blindly: bool,
    ) {
        let policy = Policy { queue: preemptive.unwrap_or(policy.queue), ..policy };
        let simulation = match blindly {
            false => simulation(policy, Estimator::Oracle),
            true => simulation(blind(policy), Estimator::None),
        };
        let (summary, results, _) = guarded(&simulation, &trace);
        let unseen = run(&simulation, &trace);
        prop_assert_eq!(format!("{:?}", (summary, results)), format!("{unseen:?}"));
    }

    #[test]
    fn no_policy_beats_the_bound(trace in any_trace(), policy in any_policy()) {
        let simulation = simulation(policy, Estimator::Oracle);
        let (summary, _) = run(&simulation, &trace);
        let bound = makespan_bound(&trace, &simulation.fleet).secs();
        prop_assert_eq!(summary.makespan_bound_s, bound);
        prop_assert!(summary.makespan_s >= bound - 2e-3, "{} under {bound}", summary.makespan_s);
    }

    #[test]
    fn exclusive_gpus_have_one_guest_at_a_time(
        trace in any_trace(),
        place in select(vec![Place::Any, Place::Exclusive, Place::Magm, Place::LeastInterference]),
        queue in select(vec![Queue::Fifo, Queue::BestEffort, Queue::Backfill]),
    ) {
        let policy = Policy::plain(queue, place, Share::Exclusive);
        let (_, results, mut guard) = guarded(&simulation(policy, Estimator::Oracle), &trace);
        guard.attempts.sort_unstable();
        for pair in guard.attempts.windows(2) {
            let ((gpu, _, until, _), (next_gpu, from, ..)) = (pair[0], pair[1]);
            prop_assert!(gpu != next_gpu || from >= until);
        }
        for (task, result) in trace.tasks().iter().zip(&results) {
            prop_assert!((result.ran_s - task.duration.secs()).abs() < 2e-3, "undisturbed");
        }
        let ran: BTreeSet<TaskId> = guard.attempts.iter().map(|attempt| attempt.3).collect();
        prop_assert_eq!(ran.len(), trace.tasks().len());
    }
}
