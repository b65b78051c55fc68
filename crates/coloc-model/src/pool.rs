//! Pools of GPUs, as tasks name them.

use serde::{Deserialize, Serialize};

/// The most pools that there can be.
pub const MOST_POOLS: usize = 64;

/// Some pools, each by its place in the configuration: the first is preferred.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PoolSet(u64);

impl PoolSet {
    /// Adds a pool. What is beyond the most that there can be is left out.
    pub fn insert(&mut self, pool: usize) {
        self.0 |= u32::try_from(pool).ok().and_then(|pool| 1_u64.checked_shl(pool)).unwrap_or(0);
    }

    /// They have a pool in common.
    pub const fn meets(self, other: PoolSet) -> bool {
        self.0 & other.0 != 0
    }

    /// How many there are.
    pub const fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// There are none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Their places in the configuration, the preferred first.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        (0..MOST_POOLS).filter(move |pool| self.0 >> pool & 1 == 1)
    }
}

impl FromIterator<usize> for PoolSet {
    fn from_iter<I: IntoIterator<Item = usize>>(pools: I) -> Self {
        let mut set = PoolSet::default();
        pools.into_iter().for_each(|pool| set.insert(pool));
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pools_come_in_the_order_of_the_configuration() {
        let set: PoolSet = [5, 0, 63, 64].into_iter().collect();
        assert_eq!((set.iter().collect::<Vec<_>>(), set.len()), (vec![0, 5, 63], 3));
        let one = |pool: usize| PoolSet::from_iter([pool]);
        assert!(set.meets(one(5)) && !set.meets(one(4)) && one(64).is_empty());
    }
}
