//! Options that do nothing under the chosen policy: a user who gives one expects something of it.

use crate::args::physics::PhysicsArgs;
use crate::args::policy::PolicyArgs;
use coloc_core::policy::{Knowledge, Place, Policy, Queue};
use coloc_model::Share;

/// An option, and what it would need.
type Idle = (&'static str, &'static str);

/// Tells of each option that does nothing under any of these policies.
pub(crate) fn tell<'a>(policies: impl IntoIterator<Item = &'a PolicyArgs>, physics: &PhysicsArgs) {
    let idle = policies.into_iter().map(|args| without_effect(args, physics));
    let in_all = idle.reduce(|all, next| all.into_iter().filter(|o| next.contains(o)).collect());
    for (option, needs) in in_all.unwrap_or_default() {
        eprintln!("coloc: {option} has no effect here: {needs}");
    }
}

/// Options that were given and do nothing.
fn without_effect(args: &PolicyArgs, physics: &PhysicsArgs) -> Vec<Idle> {
    let policy = args.policy();
    let by_queue = of_queues(args, &policy);
    let by_place = of_sharing(args, physics, &policy);
    let given = by_queue.into_iter().chain(by_place);
    given.filter(|&(given, _)| given).map(|(_, idle)| idle).collect()
}

const SERVICE: &str = "it belongs to --queue las2d and gittins2d";
const ALLOX: &str = "it belongs to --queue allox";
const FAIR: &str = "it belongs to --queue fair";

/// What belongs to some queue disciplines only, and whether it was given to another.
fn of_queues(args: &PolicyArgs, policy: &Policy) -> [(bool, Idle); 10] {
    let PolicyArgs { tuning, service, accounts, .. } = args;
    let by_service = matches!(policy.queue, Queue::Las2d | Queue::Gittins2d);
    let looks_again =
        by_service || matches!(policy.queue, Queue::Srtf | Queue::Srsf | Queue::Allox);
    let (allox, fair) = (policy.queue == Queue::Allox, policy.queue == Queue::Fair);
    let one_queue = by_service && !policy.service.thresholds.is_some();
    [
        (service.thresholds.is_some() && !by_service, ("--thresholds", SERVICE)),
        (service.promote.is_some() && !by_service, ("--promote", SERVICE)),
        (
            service.promote.is_some() && one_queue,
            ("--promote", "without --thresholds there is one queue"),
        ),
        (
            service.history.is_some() && policy.queue != Queue::Gittins2d,
            ("--history", "it belongs to --queue gittins2d"),
        ),
        (
            service.quantum.is_some() && !looks_again,
            ("--quantum", "priorities do not change while tasks run or wait"),
        ),
        (tuning.alpha.is_some() && !allox, ("--alpha", ALLOX)),
        (tuning.learn_speeds && !allox, ("--learn-speeds", ALLOX)),
        (accounts.half_life.is_some() && !fair, ("--half-life", FAIR)),
        (accounts.fair_order.is_some() && !fair, ("--fair-order", FAIR)),
        (
            !accounts.weight.is_empty() && !fair && policy.queue != Queue::LeastWork,
            ("--weight", "it belongs to --queue fair and least-work"),
        ),
    ]
}

const CONTRACT: &str = "it belongs to --contract on";
const SHARED: &str = "no two tasks share a GPU";

/// What depends on where tasks are put and whether they share, and whether it was given in vain.
fn of_sharing(args: &PolicyArgs, physics: &PhysicsArgs, policy: &Policy) -> [(bool, Idle); 15] {
    let tuning = &args.tuning;
    let (whole, spans) = (policy.needs_idle(), policy.spans_nodes());
    let blind = matches!(policy.knowledge, Knowledge::Unknown { .. });
    let contract = policy.contract.is_some();
    let preempts =
        matches!(policy.queue, Queue::Srtf | Queue::Srsf | Queue::Las2d | Queue::Gittins2d)
            || policy.queue == Queue::LeastWork && policy.preemption.is_some();
    let free = "no task is preempted under this --queue";
    [
        (
            tuning.pack.is_some() && policy.place != Place::Consolidate,
            ("--pack", "it belongs to --place consolidate"),
        ),
        (tuning.margin.is_some() && blind, ("--margin", "nothing is estimated")),
        (tuning.min_free.is_some() && !blind, ("--min-free", "it belongs to --estimator none")),
        (tuning.share_blind && !contract, ("--share-blind", CONTRACT)),
        (
            tuning.unknown_instance.is_some() && !(contract && policy.share == Share::Mig),
            ("--unknown-instance", "it belongs to --contract on with --share mig"),
        ),
        (physics.reclaim && !contract, ("--reclaim", CONTRACT)),
        (tuning.max_tasks.is_some() && whole, ("--max-tasks", SHARED)),
        (tuning.sm_limit.is_some() && whole, ("--sm-limit", SHARED)),
        (tuning.same_user && whole, ("--same-user", SHARED)),
        (physics.interference != 1.0 && whole, ("--interference", SHARED)),
        (physics.pairs.is_some() && whole, ("--pairs", SHARED)),
        (
            physics.spread_speed != 1.0 && !spans,
            ("--spread-speed", "gangs stay on one node under this --place"),
        ),
        (
            tuning.starvation_limit.is_some() && policy.queue.is_ranked(),
            ("--starvation-limit", "under this --queue tasks that starve are promoted"),
        ),
        (physics.preempt_cost != 0.0 && !preempts, ("--preempt-cost", free)),
        (physics.preempt_cost_per_gib != 0.0 && !preempts, ("--preempt-cost-per-gib", free)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::tuning::TuningArgs;
    use crate::parse::named_policy;

    fn idle(policy: &str, tuning: TuningArgs, physics: &PhysicsArgs) -> Vec<&'static str> {
        let mut args = named_policy::parse(policy).expect("a policy").args;
        args.tuning = tuning;
        args.service.promote = Some(8.0);
        without_effect(&args, physics).into_iter().map(|(option, _)| option).collect()
    }

    #[test]
    fn options_belong_to_disciplines() {
        let tuning = TuningArgs { alpha: Some(0.5), max_tasks: Some(2), ..TuningArgs::default() };
        let physics = PhysicsArgs { preempt_cost: 5.0, ..PhysicsArgs::default() };
        let idle = |policy| idle(policy, tuning.clone(), &physics);
        assert_eq!(idle("fifo/magm/mps"), ["--promote", "--alpha", "--preempt-cost"]);
        assert_eq!(idle("allox"), ["--promote", "--max-tasks", "--preempt-cost"]);
        assert_eq!(idle("tiresias"), ["--alpha", "--max-tasks"]);
        assert_eq!(idle("las2d/magm/mps"), ["--promote", "--alpha"], "there is one queue");
    }
}
