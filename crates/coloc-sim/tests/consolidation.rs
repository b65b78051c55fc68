//! Counting idle GPUs by node decides as searching them does.

mod common;

use coloc_core::Policy;
use coloc_core::policy::{Pack, Place, Queue};
use coloc_core::service::{GpuTime, Service, Thresholds};
use coloc_model::{Millis, Share};
use coloc_sim::{Estimator, Simulation, TaskResult, Trace};
use common::{fleet, run, trace};
use proptest::prelude::*;
use proptest::sample::select;

fn any_trace() -> impl Strategy<Value = Trace> {
    let task = (0u64..4000, select(vec![1u64, 40, 300, 2000, 9000]), 1u32..9);
    prop::collection::vec(task, 1..30).prop_map(|tasks| {
        let rows = tasks.into_iter().map(|(submit, span, gpus)| (submit, span, gpus, 1, 0.5));
        trace(&rows.collect::<Vec<_>>())
    })
}

fn any_policy() -> impl Strategy<Value = Policy> {
    let queue = select(vec![Queue::Las2d, Queue::Gittins2d, Queue::Srtf, Queue::Sjf, Queue::Fifo]);
    let pack = select(vec![Pack::Always, Pack::Never, Pack::Skew(0.3)]);
    let promote = select(vec![None, Some(1.0), Some(8.0)]);
    (queue, pack, promote).prop_map(|(queue, pack, promote)| {
        let thresholds = Thresholds::two(GpuTime::from_secs(100), GpuTime::from_secs(1000));
        let service = Service { thresholds, promote, ..Service::PLAIN };
        let plain = Policy::plain(queue, Place::Consolidate, Share::Exclusive);
        Policy { service, pack, ..plain }
    })
}

fn results(fleet_spec: &str, policy: Policy, trace: &Trace) -> Vec<TaskResult> {
    run(&Simulation::new(fleet(fleet_spec), policy, Estimator::Oracle), trace).1
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn counting_by_node_decides_as_searching_does(
        trace in any_trace(),
        policy in any_policy(),
        fleet in select(vec!["3x4xV100-16GB", "2xV100-16GB,8xV100-16GB,4xV100-16GB", "8xV100-16GB"]),
    ) {
        // A task might get GPUs kept free after a thousand years, so every GPU is asked.
        let starvation_limit = Some(Millis::from_secs(1000 * 365 * 86_400));
        let searching = Policy { starvation_limit, ..policy };
        prop_assert_eq!(results(fleet, policy, &trace), results(fleet, searching, &trace));
    }
}
