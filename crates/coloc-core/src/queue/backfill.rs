//! EASY backfilling: the head is promised the earliest time at which running tasks, by their declared
//! durations, will have made room; later tasks may start now only if that promise does not move.

use crate::demand::Demand;
use crate::place::Search;
use crate::policy::{Gate, MemoryBasis, Place, Policy};
use crate::scheduler::{Turn, World};
use crate::screen::Case;
use coloc_model::{GpuId, NodeId, TaskId, Time};

/// How many waiting tasks are tried behind the head in one pass, as Slurm's `bf_max_job_test` bounds it.
const DEPTH: usize = 500;

pub(crate) fn run(world: &mut World, turn: &mut Turn) {
    super::fifo::run(world, turn);
    let Some(head) = world.waiting.head() else { return };
    if turn.is_over() {
        return;
    }
    let promised = promise(world, head, turn.now);
    let ticket = world.tasks.live(head).ticket;
    let candidates: Vec<TaskId> = world.waiting.behind(ticket).take(DEPTH).collect();
    for candidate in candidates {
        let Some(gpus) = world.find(turn, candidate, Search::Everywhere) else { continue };
        if moves_promise(world, turn.now, head, promised, candidate, &gpus) {
            continue;
        }
        world.start(turn, candidate, gpus);
        if turn.is_over() {
            break;
        }
    }
}

/// Whether starting `candidate` on `gpus` would delay the head. A head whose start nobody can foresee
/// might be delayed by anybody.
fn moves_promise(
    world: &World,
    now: Time,
    head: TaskId,
    promised: Time,
    candidate: TaskId,
    gpus: &[GpuId],
) -> bool {
    let demand = world.demand(candidate);
    let with_candidate = |gpu: GpuId| gpus.contains(&gpu).then_some(&demand);
    promised == Time::NEVER || earliest(world, now, &world.demand(head), with_candidate) > promised
}

/// The earliest time at which the head will fit if nothing else is started.
fn promise(world: &World, head: TaskId, now: Time) -> Time {
    earliest(world, now, &world.demand(head), |_| None)
}

fn earliest<'a>(
    world: &World,
    now: Time,
    head: &Demand,
    newcomer: impl Fn(GpuId) -> Option<&'a Demand>,
) -> Time {
    let mut per_node: Vec<(NodeId, Time)> = world
        .gpus
        .iter()
        .map(|(gpu, state)| {
            let node = if world.policy.place == Place::Any { NodeId(0) } else { state.node };
            (node, free_at(world, gpu, now, head, newcomer(gpu)))
        })
        .collect();
    per_node.sort_unstable();
    let wanted = head.gpus as usize;
    per_node
        .chunk_by(|a, b| a.0 == b.0)
        .filter_map(|node| node.get(wanted - 1).map(|&(_, at)| at))
        .min()
        .unwrap_or(Time::NEVER)
}

/// When one GPU, perhaps with a newcomer on it, could take the head: its tasks leave one by one, as
/// expected, on a copy of its ledger, until every rule that does not depend on the moment is content.
pub(crate) fn free_at(
    world: &World,
    gpu: GpuId,
    now: Time,
    head: &Demand,
    newcomer: Option<&Demand>,
) -> Time {
    let gate = match world.policy.gate {
        gate @ Gate::Expected { .. } => gate,
        _ => Gate::Open,
    };
    let policy = &Policy { gate, memory: MemoryBasis::Ledger, ..world.policy };
    let mut imagined = world.gpus.get(gpu).clone();
    imagined.reserved = None;
    imagined.busy_until = now;
    if let Some(demand) = newcomer {
        let slot = world.slot(gpu, demand);
        imagined.book(now, imagined.booking(demand, slot.instance));
    }
    let mut leaving: Vec<(Time, TaskId)> = imagined
        .residents()
        .iter()
        .map(|booking| (world.expected_end(booking.task, now), booking.task))
        .collect();
    leaving.sort_unstable();
    let mut leaving = leaving.into_iter();
    let mut at = now;
    while (Case { policy, state: &imagined, now, demand: head }).refusal().is_some() {
        let Some((ends, task)) = leaving.next() else { return Time::NEVER };
        at = at.max(ends);
        imagined.release(now, task);
    }
    at
}
