//! The shortcuts are exact. A scheduler whose policy depends on the passing of time looks at every GPU
//! for every task in every pass; a settle time of zero makes it do so without changing the policy.

use super::arbitrary::{Step, any_fleet, any_policy, any_steps};
use crate::testkit::World;
use coloc_core::Policy;
use coloc_core::policy::{Gate, Pack, Place, Queue};
use coloc_core::service::{GpuTime, Service, Thresholds};
use coloc_model::{Millis, Share, TaskId};
use proptest::prelude::*;
use proptest::sample::select;

/// What of a run two schedulers must agree on.
fn decisions(world: &World) -> (Vec<(coloc_model::Time, TaskId)>, Vec<Vec<u32>>) {
    let placements = world.running().map(|id| world.gpus(id)).collect();
    (world.launches.clone(), placements)
}

/// Plays the steps with shortcuts and without, comparing after each.
fn compare(fleet: &str, policy: Policy, steps: &[Step]) -> Result<(), TestCaseError> {
    let brute = Policy { settle: Some(Millis::ZERO), ..policy };
    prop_assert!(!policy.time_matters() && brute.time_matters());
    compare_with(fleet, policy, brute, steps)
}

fn compare_with(
    fleet: &str,
    policy: Policy,
    brute: Policy,
    steps: &[Step],
) -> Result<(), TestCaseError> {
    let mut quick = World::new(fleet, policy);
    let mut brute = World::new(fleet, brute);
    for &step in steps {
        quick.step(step);
        brute.step(step);
        prop_assert_eq!(decisions(&quick), decisions(&brute), "after {:?}", step);
    }
    Ok(())
}

/// No gate that ages, and no settle time: what the index and the blocked shapes are for.
fn timeless(policy: Policy) -> Policy {
    let gate = match policy.gate {
        Gate::Expected { .. } => policy.gate,
        _ => Gate::Open,
    };
    // Ranked by the gate's score, which ends at one, or by demand, which does not.
    let place = match policy.place {
        Place::Lug if gate != Gate::Open || policy.learn => Place::Magm,
        place => place,
    };
    Policy { gate, place, settle: None, ..policy }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn what_was_refused_stays_refused_until_something_improves(
        fleet in any_fleet(),
        policy in any_policy(),
        steps in any_steps(80),
    ) {
        let policy = Policy { learn: false, starvation_limit: None, ..policy };
        compare(fleet, timeless(policy), &steps)?;
    }

    #[test]
    fn keeping_room_for_the_patient_is_no_exception(
        fleet in any_fleet(),
        policy in any_policy(),
        steps in any_steps(80),
    ) {
        compare(fleet, timeless(Policy { learn: false, ..policy }), &steps)?;
    }

    #[test]
    fn nor_is_learning(
        fleet in any_fleet(),
        policy in any_policy(),
        steps in any_steps(80),
    ) {
        let policy = Policy { learn: true, starvation_limit: None, ..policy };
        compare(fleet, timeless(policy), &steps)?;
    }

    /// Where gangs are packed, the tasks to preempt are told from idle GPUs by node, unless room may be kept for a
    /// task; here that is never so soon, and they are found by trying.
    #[test]
    fn victims_that_are_counted_are_those_that_trying_finds(
        fleet in any_fleet(),
        queue in select(vec![Queue::Srtf, Queue::Srsf, Queue::Las2d, Queue::Gittins2d]),
        pack in select(vec![Pack::Always, Pack::Never]),
        limited: bool,
        steps in any_steps(80),
    ) {
        let thresholds = match limited {
            true => Thresholds::two(GpuTime::from_secs(30), GpuTime::from_secs(200)),
            false => Thresholds::NONE,
        };
        let service = Service { thresholds, ..Service::PLAIN };
        let plain = Policy::plain(queue, Place::Consolidate, Share::Exclusive);
        let policy = Policy { pack, service, ..plain };
        let brute = Policy { starvation_limit: Some(Millis::from_secs(1 << 40)), ..policy };
        compare_with(fleet, policy, brute, &steps)?;
    }
}
