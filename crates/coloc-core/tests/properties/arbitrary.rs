//! Random policies, fleets and happenings.

use crate::testkit::{TaskBuilder, World, gib, mib, secs, share, task};
use coloc_core::Policy;
use coloc_core::policy::{
    Gate, Knowledge, MemoryBasis, OnOom, Pace, Place, Preemption, Queue, Recovery,
};
use coloc_model::{Bytes, Millis, Share, TaskId};
use proptest::prelude::*;
use proptest::sample::select;

/// Something that may happen. Tasks are named by a number that is taken modulo their count.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Submit(TaskBuilder),
    Finish(usize),
    Fail(usize),
    OutOfMemory(usize, Bytes),
    Cancel(usize),
    SeeTask(usize, Bytes),
    SeeGpu(u32, f64, Bytes),
    Advance(Millis),
}

/// Few enough kinds and sizes that shapes repeat and ties occur.
fn any_task() -> impl Strategy<Value = TaskBuilder> {
    let estimate = prop_oneof![
        1 => Just(None),
        5 => (select(vec![1u64, 4, 9, 20, 39, 40]), select(vec![0.0, 0.1, 0.4, 0.7]), any::<bool>())
            .prop_map(Some),
    ];
    let gpus = prop_oneof![6 => Just(1u32), 2 => Just(2), 1 => Just(3)];
    let exclusive = prop_oneof![9 => Just(false), 1 => Just(true)];
    let models: Vec<&[&str]> = vec![&[], &[], &[], &["A100-80GB"], &["A100-40GB", "A30-24GB"]];
    let asks = (exclusive, select(models), estimate);
    let goes = (select(vec![0u64, 50, 120]), select(vec![0i32, 0, 0, 0, -1, 2]), any::<bool>());
    (0u32..5, 0u32..2, gpus, asks, goes).prop_map(
        |(kind, user, gpus, (exclusive, models, estimate), (span, priority, saves))| {
            let mut built = task().kind(kind).user(user).gpus(gpus).priority(priority);
            if exclusive {
                built = built.exclusive();
            }
            if saves {
                built = built.saves();
            }
            if !models.is_empty() {
                built = built.on(models);
            }
            if let Some((gib, sm, knows_sm)) = estimate {
                built = built.gib(gib);
                if knows_sm {
                    built = built.sm(sm);
                }
            }
            if span > 0 { built.secs(span) } else { built }
        },
    )
}

pub(crate) fn any_steps(most: usize) -> impl Strategy<Value = Vec<Step>> {
    let memory = || select(vec![1u64, 5, 12, 30]).prop_map(gib);
    let which = || 0usize..64;
    let step = prop_oneof![
        6 => any_task().prop_map(Step::Submit),
        4 => which().prop_map(Step::Finish),
        1 => which().prop_map(Step::Fail),
        1 => (which(), memory()).prop_map(|(t, m)| Step::OutOfMemory(t, m)),
        1 => which().prop_map(Step::Cancel),
        2 => (which(), memory()).prop_map(|(t, m)| Step::SeeTask(t, m)),
        2 => (0u32..8, select(vec![0.0, 0.3, 0.9]), memory())
            .prop_map(|(g, s, m)| Step::SeeGpu(g, s, m)),
        3 => select(vec![1u64, 15, 35, 65, 300]).prop_map(|s| Step::Advance(secs(s))),
    ];
    prop::collection::vec(step, 1..most)
}

pub(crate) fn any_fleet() -> impl Strategy<Value = &'static str> {
    select(vec![
        "1xA100-40GB",
        "4xA100-40GB",
        "2x3xA100-40GB",
        "3x2xA100-40GB",
        "1xA30-24GB,3xA100-80GB",
        "1xA100-80GB,3xA30-24GB",
    ])
}

pub(crate) fn any_place() -> impl Strategy<Value = Place> {
    select(vec![
        Place::Any,
        Place::Exclusive,
        Place::RoundRobin,
        Place::FirstFit,
        Place::BestFit,
        Place::Magm,
        Place::Lug,
        Place::LeastInterference,
        Place::Consolidate,
    ])
}

pub(crate) fn any_gate() -> impl Strategy<Value = Gate> {
    select(vec![
        Gate::Open,
        Gate::TumblingMean { limit: share(0.5), window: secs(90) },
        Gate::Risk { sm: share(0.5), occupancy: share(0.2), dram: share(0.9) },
        Gate::Expected { limit: 1.1 },
    ])
}

pub(crate) fn any_policy() -> impl Strategy<Value = Policy> {
    let queue = select(vec![
        Queue::Fifo,
        Queue::BestEffort,
        Queue::Backfill,
        Queue::Fair,
        Queue::LeastWork,
        Queue::LeastWork,
    ]);
    let knowledge = select(vec![
        Knowledge::Estimated { margin: Bytes::ZERO },
        Knowledge::Estimated { margin: gib(1) },
        Knowledge::Unknown { min_free: gib(5) },
    ]);
    let memory = select(vec![MemoryBasis::Ledger, MemoryBasis::Reported { reserve: mib(512) }]);
    let on_oom = select(vec![OnOom::Fail, OnOom::Exclusive, OnOom::Grow { margin: share(0.1) }]);
    let recovery = (on_oom, 0u32..4, any::<bool>())
        .prop_map(|(on_oom, retries, stops_others)| Recovery { on_oom, retries, stops_others });
    let settle = select(vec![None, Some(secs(30))]);
    let pace = select(vec![0u64, 0, 10]);
    let limits = (select(vec![None, Some(1), Some(2)]), any::<bool>(), any::<bool>());
    let preemption = Preemption { every: secs(30), after_ends: 1, stays: 0.5 };
    let order = (
        select(vec![None, Some(secs(60))]),
        (select(vec![None, Some(secs(100))]), select(vec![None, Some(2.0)])),
        select(vec![None, Some(preemption)]),
        any::<bool>(),
    );
    (
        (queue, any_place(), select(Share::ALL.to_vec())),
        (knowledge, memory, any_gate(), settle),
        (limits, pace, recovery, order),
    )
        .prop_map(|((queue, place, share), (knowledge, memory, gate, settle), rest)| {
            let ((max_tasks, same_user, idle_first), pace, recovery, order) = rest;
            let (starvation_limit, (ageing, overtaking), preemption, learn) = order;
            Policy {
                knowledge,
                memory,
                gate,
                settle,
                max_tasks,
                same_user,
                idle_first,
                pace: Pace { idle: secs(pace), shared: secs(2 * pace) },
                recovery,
                starvation_limit,
                ageing,
                overtaking,
                preemption,
                learn,
                ..Policy::plain(queue, place, share)
            }
        })
}

impl World {
    /// Does a step, if it makes sense now.
    pub(crate) fn step(&mut self, step: Step) {
        let running: Vec<TaskId> = self.running().collect();
        let pick = |which: usize| running.get(which % running.len().max(1)).copied();
        match step {
            Step::Submit(task) => {
                self.submit(task);
            }
            Step::Advance(span) => self.advance(span),
            Step::SeeGpu(gpu, sm, used) => {
                let gpus = self.scheduler.gpus().iter().count() as u32;
                self.observe_gpu(gpu % gpus, sm, used);
            }
            Step::Cancel(which) => {
                let cancelled = TaskId((which % self.submitted().max(1) as usize) as u32);
                self.cancel(cancelled);
            }
            Step::Finish(which)
            | Step::Fail(which)
            | Step::OutOfMemory(which, _)
            | Step::SeeTask(which, _) => {
                let Some(task) = pick(which) else { return };
                match step {
                    Step::SeeTask(_, used) => self.observe(task, used),
                    // What was to be stopped is stopped first.
                    _ if self.is_stopping(task) => self.stopped(task),
                    Step::Fail(_) => self.fail(task),
                    Step::OutOfMemory(_, wanted) => self.oom(task, wanted),
                    _ => self.finish(task),
                }
            }
        }
    }
}
