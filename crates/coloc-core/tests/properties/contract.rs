//! The memory contract under any order of events, restarts and reloads.

use super::arbitrary::{any_fleet, any_policy};
use crate::testkit::{Restart, TaskBuilder, World, gib, secs, task};
use coloc_core::policy::{Contract, MemoryBasis};
use coloc_core::{Event, Policy};
use coloc_model::{Basis, Bytes, GpuId, Memory, Millis, TaskId};
use proptest::prelude::*;
use proptest::sample::select;

/// Something that may happen. Tasks and GPUs are named by a number that is taken modulo their count.
#[derive(Clone, Copy, Debug)]
enum Step {
    Submit(TaskBuilder),
    Finish(usize),
    Fail(usize),
    OutOfMemory(usize, Bytes),
    Cancel(usize),
    /// Memory, and activity where a monitor can tell.
    See(usize, Bytes, Option<f64>),
    SeeGpu(u32, f64),
    LoseSight(u32),
    Foreign(u32, Bytes),
    Progress(usize),
    Advance(Millis),
    Restart(Restart, bool),
}

fn any_task() -> impl Strategy<Value = TaskBuilder> {
    let size = || select(vec![1u64, 4, 9, 20, 30, 39]);
    let memory = prop_oneof![
        2 => Just(task()),
        3 => size().prop_map(|gib| task().gib(gib)),
        3 => size().prop_map(|gib| task().declares(gib)),
        2 => size().prop_map(|gib| task().lends(gib)),
    ];
    let gpus = prop_oneof![6 => Just(1u32), 2 => Just(2)];
    let rare = || prop_oneof![7 => Just(false), 2 => Just(true)];
    (memory, 0u32..4, gpus, rare(), rare()).prop_map(|(built, kind, gpus, exclusive, borrows)| {
        let built = built.kind(kind).gpus(gpus);
        let built = if exclusive { built.exclusive() } else { built };
        if borrows { built.borrows() } else { built }
    })
}

fn any_steps() -> impl Strategy<Value = Vec<Step>> {
    let memory = || select(vec![0u64, 1, 3, 8, 15, 33]).prop_map(gib);
    let which = || 0usize..64;
    let activity = select(vec![None, Some(0.0), Some(0.4)]);
    let restart = select(vec![Restart::Bare, Restart::Journal, Restart::Reload]);
    let step = prop_oneof![
        7 => any_task().prop_map(Step::Submit),
        3 => which().prop_map(Step::Finish),
        1 => which().prop_map(Step::Fail),
        2 => (which(), memory()).prop_map(|(t, m)| Step::OutOfMemory(t, m)),
        1 => which().prop_map(Step::Cancel),
        6 => (which(), memory(), activity).prop_map(|(t, m, a)| Step::See(t, m, a)),
        2 => (0u32..8, select(vec![0.0, 0.6])).prop_map(|(g, s)| Step::SeeGpu(g, s)),
        1 => (0u32..8).prop_map(Step::LoseSight),
        1 => (0u32..8, memory()).prop_map(|(g, m)| Step::Foreign(g, m)),
        2 => which().prop_map(Step::Progress),
        5 => select(vec![10u64, 35, 65, 400]).prop_map(|s| Step::Advance(secs(s))),
        1 => (restart, any::<bool>()).prop_map(|(r, b)| Step::Restart(r, b)),
    ];
    prop::collection::vec(step, 1..80)
}

fn do_step(world: &mut World, step: Step) {
    let running: Vec<TaskId> = world.running().collect();
    let pick = |which: usize| running.get(which % running.len().max(1)).copied();
    let gpus = world.scheduler.gpus().iter().count() as u32;
    match step {
        Step::Submit(task) => {
            world.submit(task);
        }
        Step::Advance(span) => world.advance(span),
        Step::Restart(restart, backwards) => world.restart(restart, backwards),
        Step::SeeGpu(gpu, sm) => world.observe_gpu(gpu % gpus, sm, Bytes::ZERO),
        Step::LoseSight(gpu) => {
            world.tell(Event::GpuUnseen(GpuId(gpu % gpus)));
        }
        Step::Foreign(gpu, used) => {
            world.tell(Event::ForeignSeen { gpu: GpuId(gpu % gpus), used });
        }
        Step::Cancel(which) => {
            let any = TaskId((which % world.submitted().max(1) as usize) as u32);
            world.cancel(any);
        }
        Step::Finish(which)
        | Step::Fail(which)
        | Step::OutOfMemory(which, _)
        | Step::See(which, ..)
        | Step::Progress(which) => {
            let Some(task) = pick(which) else { return };
            match step {
                Step::See(_, used, Some(sm)) => world.observe_at_work(task, used, sm),
                Step::See(_, used, None) => world.observe(task, used),
                Step::Progress(_) => {
                    world.tell(Event::Progressed(task));
                }
                _ if world.is_stopping(task) => world.stopped(task),
                Step::Fail(_) => world.fail(task),
                Step::OutOfMemory(_, wanted) => world.oom(task, wanted),
                _ => world.finish(task),
            }
        }
    }
}

/// Declared floors and the bounds of tasks that have not settled are within every GPU.
fn promises_are_kept(world: &World) {
    for (gpu, state) in world.scheduler.gpus().iter() {
        let firm = state.residents().iter().filter(|booking| !booking.borrowed);
        let promised = |booking: &coloc_core::gpus::Booking| match booking.settled {
            true => booking.declared,
            false => booking.bytes.max(booking.declared),
        };
        let sum: Bytes = firm.map(promised).sum();
        assert!(sum <= state.capacity, "GPU {gpu}: {sum} promised of {}", state.capacity);
    }
    for id in world.running() {
        let task = world.task(id);
        let Memory::Declared { bytes, .. } = task.memory else { continue };
        for gpu in world.placement(id).gpus() {
            let state = world.scheduler.gpus().get(gpu);
            let booking = state.residents().iter().find(|b| b.task == id).expect("it is there");
            // A task that asks for more than there is asks for all.
            let floor = bytes.min(world.scheduler.most_memory(task.gpus)).min(state.capacity);
            let kept = booking.borrowed || booking.instance.is_some() || booking.claim() >= floor;
            assert!(kept, "task {id} declared {bytes} and has {booking:?}");
        }
    }
}

/// No task can come beside one of which nothing is known. A task that came after it had settled, before it grew, stays.
fn the_unknown_are_alone(world: &World) {
    for (gpu, state) in world.scheduler.gpus().iter() {
        let unsettled = |b: &&coloc_core::gpus::Booking| b.basis == Basis::Unknown && !b.settled;
        let unknown = state.residents().iter().filter(unsettled).count();
        let closed = state.residents().len() == 1 || state.booked() >= state.capacity;
        assert!(unknown == 0 || closed, "GPU {gpu}: {:?}", state.residents());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn promises_hold_whatever_happens(
        fleet in any_fleet(),
        policy in any_policy(),
        share_blind in any::<bool>(),
        steps in any_steps(),
    ) {
        let contract = Some(Contract { share_blind, unknown_instance: None });
        // Other ways to read memory promise nothing.
        let memory = MemoryBasis::Ledger;
        let idle_first = false;
        let mut world = World::new(fleet, Policy { contract, memory, idle_first, ..policy });
        let mut restarted = false;
        for step in steps {
            do_step(&mut world, step);
            restarted |= matches!(step, Step::Restart(..));
            promises_are_kept(&world);
            if !restarted && !share_blind && policy.share != coloc_model::Share::Mig {
                the_unknown_are_alone(&world);
            }
        }
    }
}
