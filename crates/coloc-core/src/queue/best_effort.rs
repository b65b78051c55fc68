//! In order of arrival; those that do not fit are skipped.

use super::Ticket;
use crate::place::Search;
use crate::scheduler::{Turn, World};
use coloc_model::{Millis, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

pub(crate) fn run(world: &mut World, turn: &mut Turn) {
    if world.policy.time_matters() {
        world.waiting.unblock_all();
    }
    let mut improved = std::mem::take(&mut world.improved);
    world.gpus.take_improved(&mut improved);
    let mut heads = eligible_heads(world, !improved.is_empty());
    while let Some(Reverse((_, ticket, number))) = heads.pop() {
        let task = world.waiting.order[&ticket];
        let search = if world.waiting.shapes[number].blocked {
            Search::Only(&improved)
        } else {
            Search::Everywhere
        };
        let started = world.try_start(turn, task, search);
        let shape = &mut world.waiting.shapes[number];
        // Where one was looked for among the improved GPUs only, the rest still cannot take any.
        shape.blocked = !started || shape.blocked;
        if turn.is_over() {
            // Not everybody was asked; what improved must be offered again.
            world.waiting.unblock_all();
            break;
        }
        let next = shape.tickets.first().copied();
        if started && let Some(next) = next {
            heads.push(Reverse((rank(world, next), next, number)));
        }
    }
    world.improved = improved;
}

/// When a waiting task's turn is: its arrival, plus a handicap for the time that it is expected to take.
/// The handicap is the same for all of a shape, so within a shape the order is that of arrival.
fn rank(world: &World, ticket: Ticket) -> Time {
    let record = world.tasks.live(world.waiting.order[&ticket]);
    if world.policy.short_first == 0.0 {
        return record.submitted;
    }
    let expected = world.beliefs.expected_run_time(record.task.signature).secs();
    record.submitted + Millis::from_secs_f64(world.policy.short_first * expected)
}

/// The first of each shape that has a chance: blocked shapes have one only if a GPU improved.
fn eligible_heads(
    world: &World,
    any_improved: bool,
) -> BinaryHeap<Reverse<(Time, Ticket, usize)>> {
    let waiting = &world.waiting;
    waiting
        .active
        .iter()
        .filter(|&&number| any_improved || !waiting.shapes[number].blocked)
        .filter_map(|&number| {
            let &ticket = waiting.shapes[number].tickets.first()?;
            Some(Reverse((rank(world, ticket), ticket, number)))
        })
        .collect()
}
