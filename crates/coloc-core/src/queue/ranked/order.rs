//! The order of those that run: ranks change with time, so a pass begins by putting them in order.

use super::Ranked;
use super::holders::{Books, Course, Holder};
use super::seat::{Group, Tie};
use crate::policy::{Policy, Queue};
use crate::service::Letter;
use coloc_model::Time;

/// Running tasks that are moved one by one; with more, all are sorted.
const FEW: usize = 16;

impl Ranked {
    /// Gives each running task its place as of now. Where nobody waits, only the published simulator,
    /// whose lists persist, cares for their order.
    pub(super) fn put_in_order(&mut self, now: Time, policy: &Policy, contended: bool) {
        let course = Course::of(policy);
        self.numbered = false;
        // Who cannot be preempted needs no place.
        if policy.queue == Queue::Sjf || (!contended && course != Course::Varies) {
            return;
        }
        let crossed = now >= self.next_crossing;
        if course == Course::Holds && !crossed {
            debug_assert!(self.running.is_sorted_by_key(|holder| holder.seat.0));
            return;
        }
        if course == Course::Holds && self.next_crossing != Time::START {
            return self.move_those_that_crossed(now, policy);
        }
        self.recount |= crossed;
        let Ranked { running, books, history, epoch: pass, .. } = self;
        let rank = |holder: &Holder| holder.seat.0;
        let seat = |holder: &Holder| holder.seat;
        if policy.service.letter == Letter::Paper {
            // Those that rank the same keep their order, which is all that ties would say.
            match course {
                Course::Falls => {
                    return reseat(running, rank, |_, holder| {
                        holder.seat.0 = Books::falling(now, policy, holder);
                    });
                }
                Course::Holds => {
                    return reseat(running, rank, |_, holder| {
                        holder.seat.0 = books.holding(now, policy, history, holder);
                    });
                }
                Course::Follows => {
                    return reseat(running, rank, |_, holder| {
                        holder.seat.0 = books.following(now, policy, history, holder);
                    });
                }
                Course::Varies => {}
            }
        }
        self.numbered = true;
        let pass = *pass;
        let epoch = match policy.service.letter {
            Letter::Paper => pass,
            // Those that run stand at the head of the simulator's lists.
            Letter::Simulator => -pass,
        };
        reseat(running, seat, |index, holder| {
            let (rank, own) = books.look_at(now, policy, history, holder);
            let moved = own.group == Group::Moved && own.epoch == pass;
            let ran = Tie { epoch, group: Group::Ran, index };
            holder.seat = (rank, if moved { own } else { ran });
        });
    }
}

impl Ranked {
    /// Whoever crossed a limit goes back behind those of its new queue that started before; the others
    /// stay where they are.
    fn move_those_that_crossed(&mut self, now: Time, policy: &Policy) {
        let Ranked { running, books, history, .. } = self;
        let mut first = Time::NEVER;
        // From the back, so that all behind are in order.
        for index in (0..running.len()).rev() {
            let due = running[index].due;
            if due > now {
                first = first.min(due);
                continue;
            }
            let rank = books.holding(now, policy, history, &mut running[index]);
            running[index].seat.0 = rank;
            first = first.min(running[index].due);
            let behind = &running[index + 1..];
            let better = behind.partition_point(|holder| holder.seat.0 < rank);
            running[index..=index + better].rotate_left(1);
        }
        debug_assert!(running.is_sorted_by_key(|holder| holder.seat.0));
        (self.next_crossing, self.recount) = (first, false);
    }
}

/// Gives each running task its seat and puts them in order; those whose keys are the same stay in theirs.
fn reseat<K: Ord>(
    holders: &mut [Holder],
    key: impl Fn(&Holder) -> K,
    mut give: impl FnMut(u32, &mut Holder),
) {
    let mut moves = 0;
    let mut last = None;
    for index in 0..holders.len() {
        let holder = &mut holders[index];
        give(index as u32, holder);
        let found = key(holder);
        if last.as_ref().is_none_or(|last| *last <= found) {
            last = Some(found);
            continue;
        }
        // Mostly they still are in order, but for a few.
        moves += 1;
        if moves <= FEW {
            let at = holders[..index].partition_point(|holder| key(holder) <= found);
            holders[at..=index].rotate_right(1);
        } else {
            last = Some(found);
        }
    }
    if moves > FEW {
        holders.sort_by_key(key);
    }
}
