//! In order of arrival, by what users have had, or by expected work; tasks that do not fit are skipped.

use super::{Ticket, fair, least_work};
use crate::place::{Search, hopeful};
use crate::policy::Queue;
use crate::scheduler::{Pass, SchedulerState};
use coloc_model::{GpuId, TaskId, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The first waiting task of a shape.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Head {
    /// What goes before its turn: the priority. Under fair, only among tasks of one user.
    pub(super) rank: u64,
    /// When its turn is, by the discipline's measure.
    pub(super) due: u64,
    ticket: Ticket,
    pub(super) shape: usize,
    pub(super) task: TaskId,
}

pub(crate) fn run(scheduler: &mut SchedulerState, pass: &mut Pass) {
    if scheduler.policy.time_matters() {
        scheduler.waiting.unblock_all();
    }
    let mut improved = std::mem::take(&mut scheduler.improved);
    scheduler.gpus.take_improved(&mut improved);
    let mut heads: Vec<Reverse<Head>> = Vec::new();
    for index in 0..scheduler.waiting.active.len() {
        let shape = scheduler.waiting.active[index];
        if has_a_chance(scheduler, shape, &improved) {
            heads.extend(head(scheduler, pass.now, shape).map(Reverse));
        }
    }
    let mut heads = BinaryHeap::from(heads);
    while let Some(Reverse(Head { due: expected, shape, task, .. })) = heads.pop() {
        // Its user may have been served since.
        if matches!(scheduler.policy.queue, Queue::Fair | Queue::LeastWork)
            && let Some(now) = head(scheduler, pass.now, shape).filter(|now| now.due != expected)
        {
            heads.push(Reverse(now));
            continue;
        }
        if scheduler.is_barred(task) {
            // GPUs that improve meanwhile must be offered once the quota allows.
            scheduler.waiting.shapes[shape].blocked = false;
            continue;
        }
        // A task before it may have taken the room.
        if !has_a_chance(scheduler, shape, &improved) {
            continue;
        }
        let was_blocked = scheduler.waiting.shapes[shape].blocked;
        let search = if was_blocked { Search::Only(&improved) } else { Search::Everywhere };
        let kept_for_it = scheduler.reserved == Some(task);
        let started = scheduler.try_start(pass, task, search);
        // Where one was looked for among the improved GPUs only, the rest still cannot take any.
        scheduler.waiting.shapes[shape].blocked = was_blocked || !started;
        if pass.is_over() {
            // Not every shape was tried; what improved must be offered again.
            scheduler.waiting.unblock_all();
            break;
        }
        if started && kept_for_it {
            // What was kept for it and not used is there for the tasks that were tried before, too.
            scheduler.waiting.unblock_all();
            scheduler.improved = improved;
            return run(scheduler, pass);
        }
        if started && let Some(next) = head(scheduler, pass.now, shape) {
            heads.push(Reverse(next));
        }
    }
    scheduler.improved = improved;
}

/// The first of a shape and when its turn is. Among tasks of a shape arrival decides.
pub(super) fn head(scheduler: &SchedulerState, now: Time, shape: usize) -> Option<Head> {
    let queue = &scheduler.waiting.shapes[shape];
    let (&ticket, &task) = queue.tickets.first_key_value()?;
    if scheduler.policy.queue == Queue::Fair {
        return Some(Head {
            rank: 0,
            due: fair::due(scheduler, now, queue.user),
            ticket,
            shape,
            task,
        });
    }
    if scheduler.policy.queue == Queue::LeastWork {
        let due = least_work::due(scheduler, now, task);
        return Some(Head { rank: ticket.rank, due, ticket, shape, task });
    }
    Some(Head { rank: ticket.rank, due: ticket.submitted.0, ticket, shape, task })
}

/// Whether a task of the shape might fit: a blocked shape has a chance only on GPUs that improved. Asked
/// of every shape in every pass, so what the shape asks for is kept until beliefs change.
fn has_a_chance(scheduler: &mut SchedulerState, shape: usize, improved: &[GpuId]) -> bool {
    if !scheduler.waiting.shapes[shape].blocked {
        return true;
    }
    let version = scheduler.beliefs.version();
    let demand = match scheduler.waiting.shapes[shape].demand {
        _ if improved.is_empty() => return false,
        Some((known, demand)) if known == version => demand,
        _ => {
            let first = scheduler.waiting.shapes[shape].tickets.first_key_value();
            let Some((_, &task)) = first else { return false };
            let demand = scheduler.demand(task);
            scheduler.waiting.shapes[shape].demand = Some((version, demand));
            demand
        }
    };
    let policy = &scheduler.policy;
    improved.iter().any(|&gpu| {
        let offer = scheduler.gpus.offer(gpu);
        // A look at idle GPUs asks for less than the task itself.
        hopeful(policy, &demand, &offer)
            || (policy.idle_first && hopeful(policy, &demand.on_idle(), &offer))
    })
}
