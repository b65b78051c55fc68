//! The order of those that run: ranks change with time, so a pass begins by putting them in order.

use super::Ranked;
use super::holders::{Books, Course, Holder};
use super::seat::{Group, Seat, Tie};
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
        if now < self.steady_until {
            debug_assert!(self.running.is_sorted_by_key(|holder| holder.seat.0));
            return;
        }
        self.recount = true;
        if course == Course::Holds && self.steady_until != Time::START {
            return self.move_those_that_crossed(now, policy);
        }
        self.numbered = true;
        let Ranked { running, books, history, epoch: pass, .. } = self;
        let pass = *pass;
        let epoch = match policy.service.letter {
            Letter::Paper => pass,
            // Those that run stand at the head of the simulator's lists.
            Letter::Simulator => -pass,
        };
        let ran = |index| Tie { epoch, group: Group::Ran, index };
        // Among those that ran, ties are given in this order.
        let by_rank = |one: &Seat, other: &Seat| one.0 <= other.0;
        match course {
            Course::Falls => {
                let rank = |holder: &mut Holder| Books::falling(now, policy, holder);
                reseat(running, |index, holder| (rank(holder), ran(index)), by_rank);
            }
            Course::Holds => {
                let mut rank = |holder: &mut Holder| books.holding(now, policy, history, holder);
                reseat(running, |index, holder| (rank(holder), ran(index)), by_rank);
            }
            Course::Follows => {
                let mut rank = |holder: &mut Holder| books.following(now, policy, history, holder);
                reseat(running, |index, holder| (rank(holder), ran(index)), by_rank);
            }
            Course::Varies => {
                let seat = |index, holder: &mut Holder| {
                    let (rank, own) = books.look_at(now, policy, history, holder);
                    let moved = own.group == Group::Moved && own.epoch == pass;
                    (rank, if moved { own } else { ran(index) })
                };
                reseat(running, seat, Seat::le);
            }
        }
    }
}

impl Ranked {
    /// Whoever crossed a limit goes back behind those of its new queue that started before; the others
    /// stay where they are.
    fn move_those_that_crossed(&mut self, now: Time, policy: &Policy) {
        let Ranked { running, books, history, .. } = self;
        // From the back, so that all behind are in order.
        for index in (0..running.len()).rev() {
            if running[index].due > now {
                continue;
            }
            let rank = books.holding(now, policy, history, &mut running[index]);
            running[index].seat.0 = rank;
            let behind = &running[index + 1..];
            let better = behind.partition_point(|holder| holder.seat.0 < rank);
            running[index..=index + better].rotate_left(1);
        }
        debug_assert!(running.is_sorted_by_key(|holder| holder.seat.0));
    }
}

/// Gives each running task its seat, and puts them in order. `sorted` says whether two seats are in
/// order, of which the second was given later.
fn reseat(
    holders: &mut [Holder],
    mut seat: impl FnMut(u32, &mut Holder) -> Seat,
    sorted: impl Fn(&Seat, &Seat) -> bool,
) {
    let mut moves = 0;
    let mut last = Seat::default();
    for index in 0..holders.len() {
        let holder = &mut holders[index];
        let found = seat(index as u32, holder);
        holder.seat = found;
        if index == 0 || sorted(&last, &found) {
            last = found;
            continue;
        }
        // Mostly they still are in order, but for a few.
        moves += 1;
        if moves <= FEW {
            let at = holders[..index].partition_point(|holder| sorted(&holder.seat, &found));
            holders[at..=index].rotate_right(1);
        } else {
            last = found;
        }
    }
    if moves > FEW {
        holders.sort_by_key(|holder| holder.seat);
    }
}
