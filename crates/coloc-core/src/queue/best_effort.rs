//! In order of arrival, or with a head start for what is expected to be short, or by what users have had;
//! those that do not fit are skipped.

use super::{Ticket, fair};
use crate::place::{Search, hopeful};
use crate::policy::Queue;
use crate::scheduler::{Turn, World};
use coloc_model::{GpuId, Millis, TaskId, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The first waiting task of a shape.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Head {
    /// What goes before its turn: the priority. Under fair, only among tasks of one user.
    rank: u64,
    /// When its turn is, by the discipline's measure.
    turn: u64,
    ticket: Ticket,
    shape: usize,
    task: TaskId,
}

pub(crate) fn run(world: &mut World, turn: &mut Turn) {
    if world.policy.time_matters() {
        world.waiting.unblock_all();
    }
    let mut improved = std::mem::take(&mut world.improved);
    world.gpus.take_improved(&mut improved);
    let mut heads: Vec<Reverse<Head>> = Vec::new();
    for index in 0..world.waiting.active.len() {
        let shape = world.waiting.active[index];
        if has_a_chance(world, shape, &improved) {
            heads.extend(head(world, turn.now, shape).map(Reverse));
        }
    }
    let mut heads = BinaryHeap::from(heads);
    while let Some(Reverse(Head { turn: expected, shape, task, .. })) = heads.pop() {
        // Its user may have been served since.
        if world.policy.queue == Queue::Fair
            && let Some(now) = head(world, turn.now, shape).filter(|now| now.turn != expected)
        {
            heads.push(Reverse(now));
            continue;
        }
        if world.over_quota(task).is_some() {
            // GPUs that improve meanwhile must be offered once the quota allows.
            world.waiting.shapes[shape].blocked = false;
            continue;
        }
        // Whoever came before may have taken the room.
        if !has_a_chance(world, shape, &improved) {
            continue;
        }
        let was_blocked = world.waiting.shapes[shape].blocked;
        let search = if was_blocked { Search::Only(&improved) } else { Search::Everywhere };
        let kept_for_it = world.reserved == Some(task);
        let started = world.try_start(turn, task, search);
        // Where one was looked for among the improved GPUs only, the rest still cannot take any.
        world.waiting.shapes[shape].blocked = was_blocked || !started;
        if turn.is_over() {
            // Not everybody was asked; what improved must be offered again.
            world.waiting.unblock_all();
            break;
        }
        if started && kept_for_it {
            // What was kept for it and not used is there for those who were asked before, too.
            world.waiting.unblock_all();
            world.improved = improved;
            return run(world, turn);
        }
        if started && let Some(next) = head(world, turn.now, shape) {
            heads.push(Reverse(next));
        }
    }
    world.improved = improved;
}

/// The first of a shape and when its turn is: on arrival, plus a handicap for the time that it is
/// expected to take. The handicap is the same for all of a shape, so among them arrival decides.
fn head(world: &World, now: Time, shape: usize) -> Option<Head> {
    let queue = &world.waiting.shapes[shape];
    let (&ticket, &task) = queue.tickets.first_key_value()?;
    if world.policy.queue == Queue::Fair {
        return Some(Head {
            rank: 0,
            turn: fair::turn(world, now, queue.user),
            ticket,
            shape,
            task,
        });
    }
    let mut turn = ticket.submitted;
    if world.policy.short_first > 0.0 {
        let expected = world.beliefs.expected_run_time(queue.signature).secs();
        let handicap = Millis::from_secs_f64(world.policy.short_first * expected);
        turn = turn + world.policy.overtake_limit.map_or(handicap, |most| handicap.min(most));
    }
    Some(Head { rank: ticket.rank, turn: turn.0, ticket, shape, task })
}

/// Whether a task of the shape might fit: a blocked shape has a chance only on GPUs that improved. Asked
/// of every shape in every pass, so what the shape asks for is kept until beliefs change.
fn has_a_chance(world: &mut World, shape: usize, improved: &[GpuId]) -> bool {
    if !world.waiting.shapes[shape].blocked {
        return true;
    }
    let version = world.beliefs.version();
    let demand = match world.waiting.shapes[shape].demand {
        _ if improved.is_empty() => return false,
        Some((known, demand)) if known == version => demand,
        _ => {
            let first = world.waiting.shapes[shape].tickets.first_key_value();
            let Some((_, &task)) = first else { return false };
            let demand = world.demand(task);
            world.waiting.shapes[shape].demand = Some((version, demand));
            demand
        }
    };
    let policy = &world.policy;
    improved.iter().any(|&gpu| {
        let offer = world.gpus.offer(gpu);
        // A look at idle GPUs asks for less than the task itself.
        hopeful(policy, &demand, &offer)
            || (policy.idle_first && hopeful(policy, &demand.on_idle(), &offer))
    })
}
