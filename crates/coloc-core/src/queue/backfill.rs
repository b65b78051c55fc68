//! EASY backfilling: the head is promised the earliest time at which running tasks, by their declared
//! durations, will have made room; later tasks may start now only if that promise does not move.

use crate::demand::Demand;
use crate::gpus::GpuState;
use crate::place::Search;
use crate::policy::{Gate, Place};
use crate::scheduler::{Turn, World};
use coloc_model::{Bytes, GpuId, NodeId, TaskId, Time};

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

/// Whether starting `candidate` on `gpus` would delay the head: tried on the ledger, then undone.
fn moves_promise(
    world: &mut World,
    now: Time,
    head: TaskId,
    promised: Time,
    candidate: TaskId,
    gpus: &[GpuId],
) -> bool {
    if promised == Time::NEVER {
        return false;
    }
    let demand = world.demand(candidate);
    let ends = world.tasks.live(candidate).task.duration.map_or(Time::NEVER, |span| now + span);
    let head_demand = world.demand(head);
    let with_candidate = |gpu: GpuId| gpus.contains(&gpu).then_some((ends, &demand));
    earliest(world, now, &head_demand, with_candidate) > promised
}

/// The earliest time at which the head will fit if nothing else is started.
fn promise(world: &World, head: TaskId, now: Time) -> Time {
    earliest(world, now, &world.demand(head), |_| None)
}

fn earliest<'a>(
    world: &World,
    now: Time,
    head: &Demand,
    extra: impl Fn(GpuId) -> Option<(Time, &'a Demand)>,
) -> Time {
    let mut per_node: Vec<(NodeId, Time)> = world
        .gpus
        .iter()
        .map(|(gpu, state)| {
            let node = if world.policy.place == Place::Any { NodeId(0) } else { state.node };
            (node, free_at(world, state, now, head, extra(gpu)))
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

/// When one GPU could take the head: its tasks leave one by one, as declared.
pub(crate) fn free_at(
    world: &World,
    state: &GpuState,
    now: Time,
    head: &Demand,
    extra: Option<(Time, &Demand)>,
) -> Time {
    let mut leaving: Vec<(Time, Bytes, f64)> = state
        .residents()
        .iter()
        .map(|booking| {
            let ends = world.expected_end(booking.task, now);
            (ends, booking.bytes, booking.load)
        })
        .chain(extra.map(|(ends, demand)| (ends, demand.book, demand.load)))
        .collect();
    leaving.sort_unstable_by_key(|&(ends, ..)| ends);
    let mut at = now;
    let mut remaining = &leaving[..];
    while !fits_beside(world, state.capacity, remaining, head) {
        let Some((&(ends, ..), rest)) = remaining.split_first() else { return Time::NEVER };
        at = at.max(ends);
        remaining = rest;
    }
    at
}

fn fits_beside(
    world: &World,
    capacity: Bytes,
    others: &[(Time, Bytes, f64)],
    head: &Demand,
) -> bool {
    if others.is_empty() {
        return head.need <= capacity;
    }
    let booked: Bytes = others.iter().map(|&(_, bytes, _)| bytes).sum();
    let load: f64 = others.iter().map(|&(_, _, load)| load).sum();
    let room = booked + head.need <= capacity;
    let cool = match world.policy.gate {
        Gate::Expected { full, limit } => load < full && load + head.load <= limit,
        _ => true,
    };
    let crowd = world.policy.max_tasks.is_none_or(|limit| others.len() < limit as usize);
    !head.idle_only && room && cool && crowd
}
