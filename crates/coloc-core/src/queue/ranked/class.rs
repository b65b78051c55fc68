//! Waiting tasks that ask the same of GPUs, in the order of their seats.

use super::seat::Seat;
use coloc_model::TaskId;
use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};

/// Tasks that are kept at hand.
const AT_HAND: usize = 32;

/// Tasks mostly come and go near the head of a long queue, so the first few are a plain list.
#[derive(Clone, Debug)]
pub(super) struct Class {
    /// How many GPUs each of them asks for.
    pub(super) gang: u32,
    /// The first few, the best last; none only where there is nobody else.
    near: Vec<(Seat, TaskId)>,
    /// All others, who are worse.
    far: BTreeMap<Seat, TaskId>,
}

impl Class {
    /// Nobody waits yet.
    pub(super) fn new(gang: u32) -> Self {
        Class { gang, near: Vec::new(), far: BTreeMap::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.near.is_empty()
    }

    /// The best.
    #[inline]
    pub(super) fn first(&self) -> Option<(Seat, TaskId)> {
        self.near.last().copied()
    }

    /// How many of those at hand have worse seats. Mostly all but one or two have.
    #[inline]
    fn worse(&self, seat: Seat) -> usize {
        self.near.iter().rposition(|&(other, _)| other > seat).map_or(0, |last| last + 1)
    }

    /// The best of those in worse seats.
    pub(super) fn after(&self, seat: Seat) -> Option<(Seat, TaskId)> {
        let worse = self.worse(seat);
        match worse.checked_sub(1) {
            Some(next) => Some(self.near[next]),
            None => self.far.range((Excluded(seat), Unbounded)).next().map(|(&s, &task)| (s, task)),
        }
    }

    pub(super) fn insert(&mut self, seat: Seat, task: TaskId) {
        let worse = self.worse(seat);
        if worse == 0 && !self.far.is_empty() {
            self.far.insert(seat, task);
            return;
        }
        self.near.insert(worse, (seat, task));
        if self.near.len() > AT_HAND {
            self.far.extend(self.near.drain(..AT_HAND / 2));
        }
    }

    pub(super) fn remove(&mut self, seat: Seat) {
        let worse = self.worse(seat);
        if self.near.get(worse).is_none_or(|&(other, _)| other != seat) {
            self.far.remove(&seat);
            return;
        }
        self.near.remove(worse);
        if self.near.is_empty() {
            let first = std::iter::from_fn(|| self.far.pop_first());
            self.near.extend(first.take(AT_HAND / 2));
            self.near.reverse();
        }
    }

    /// Everybody, best first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Seat, TaskId)> + '_ {
        let far = self.far.iter().map(|(&seat, &task)| (seat, task));
        self.near.iter().rev().copied().chain(far)
    }

    /// How many have better seats.
    pub(super) fn ahead(&self, seat: Seat) -> usize {
        let not_better = self.near.partition_point(|&(other, _)| other >= seat);
        self.near.len() - not_better + self.far.range(..seat).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::ranked::seat::{Rank, Tie};
    use proptest::prelude::*;

    fn seat(key: u64) -> Seat {
        (Rank::by(key), Tie::default())
    }

    proptest! {
        /// Whatever comes and goes, it is the order of a map.
        #[test]
        fn everybody_is_in_order(steps in prop::collection::vec((0u64..200, 0u8..5), 0..600)) {
            let mut class = Class::new(1);
            let mut plain = BTreeMap::new();
            for (key, step) in steps {
                match step {
                    // The best goes, as it mostly does.
                    0 => {
                        if let Some((best, _)) = plain.pop_first() {
                            class.remove(best);
                        }
                    }
                    1 => {
                        plain.remove(&seat(key));
                        class.remove(seat(key));
                    }
                    _ => {
                        let task = TaskId(key as u32);
                        if plain.insert(seat(key), task).is_none() {
                            class.insert(seat(key), task);
                        }
                    }
                }
                let pair = |(&seat, &task): (&Seat, &TaskId)| (seat, task);
                prop_assert_eq!(class.first(), plain.first_key_value().map(pair));
                prop_assert_eq!(class.is_empty(), plain.is_empty());
                let next = plain.range((Excluded(seat(key)), Unbounded)).next();
                prop_assert_eq!(class.after(seat(key)), next.map(pair));
                prop_assert_eq!(class.ahead(seat(key)), plain.range(..seat(key)).count());
                prop_assert!(class.iter().eq(plain.iter().map(pair)));
            }
        }
    }
}
