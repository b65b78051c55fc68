//! In order of arrival, or with a head start for what is expected to be short, or by what users have had;
//! tasks that do not fit are skipped.

use super::{Ticket, fair};
use crate::place::{Search, hopeful};
use crate::policy::Queue;
use crate::scheduler::{Pass, SchedulerState};
use coloc_model::{GpuId, Millis, TaskId, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The first waiting task of a shape.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Head {
    /// What goes before its turn: the priority. Under fair, only among tasks of one user.
    rank: u64,
    /// When its turn is, by the discipline's measure.
    due: u64,
    ticket: Ticket,
    shape: usize,
    task: TaskId,
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
        if scheduler.policy.queue == Queue::Fair
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

/// The first of a shape and when its turn is: on arrival, plus a handicap for the time that it is
/// expected to take. The handicap is the same for all of a shape, so among them arrival decides.
fn head(scheduler: &SchedulerState, now: Time, shape: usize) -> Option<Head> {
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
    let mut due = ticket.submitted;
    if scheduler.policy.short_first > 0.0 {
        let expected = scheduler.beliefs.expected_run_time(queue.signature).secs();
        let handicap = Millis::from_secs_f64(scheduler.policy.short_first * expected);
        due = due + scheduler.policy.overtake_limit.map_or(handicap, |most| handicap.min(most));
    }
    Some(Head { rank: ticket.rank, due: due.0, ticket, shape, task })
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
