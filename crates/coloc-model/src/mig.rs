//! Multi-Instance GPU: the profiles of each board and where their instances may lie.
//!
//! An instance takes a run of memory slices, and only some starting slices are legal. The tables are
//! defaults for planning; on a real board the driver's own answer wins.

use crate::Bytes;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A size of GPU instance that a board offers.
#[derive(Debug, PartialEq, Eq)]
pub struct Profile {
    /// NVIDIA's name, such as `3g.20gb`.
    pub name: &'static str,
    /// Compute slices.
    pub compute: u8,
    /// Memory slices that it covers.
    pub span: u8,
    /// Memory of the instance in MiB.
    pub memory_mib: u64,
    /// First slices at which an instance may start.
    pub starts: &'static [u8],
}

impl Profile {
    /// Memory of the instance.
    pub const fn memory(&self) -> Bytes {
        Bytes::from_mib(self.memory_mib)
    }
}

/// How one board model can be partitioned.
#[derive(Debug)]
pub struct MigTable {
    /// Memory slices of the board.
    pub memory_slices: u8,
    /// Compute slices of the board.
    pub compute_slices: u8,
    /// SMs in one compute slice.
    pub sms_per_slice: u32,
    /// Profiles, smallest first.
    pub profiles: &'static [Profile],
}

const fn profile(
    name: &'static str,
    compute: u8,
    span: u8,
    memory_mib: u64,
    starts: &'static [u8],
) -> Profile {
    Profile { name, compute, span, memory_mib, starts }
}

/// A seven-slice board: names and MiB of 1g, 1g with double memory, 2g, 3g, 4g and 7g. The legal
/// starts are the same on A100, H100 and H200.
macro_rules! seven_slices {
    ($sms:expr, $($name:literal = $mib:literal),* $(,)?) => {{
        const NAMES: [(&str, u64); 6] = [$(($name, $mib)),*];
        const PROFILES: &[Profile] = &[
            profile(NAMES[0].0, 1, 1, NAMES[0].1, &[0, 1, 2, 3, 4, 5, 6]),
            profile(NAMES[1].0, 1, 2, NAMES[1].1, &[0, 2, 4, 6]),
            profile(NAMES[2].0, 2, 2, NAMES[2].1, &[0, 2, 4]),
            profile(NAMES[3].0, 3, 4, NAMES[3].1, &[0, 4]),
            profile(NAMES[4].0, 4, 4, NAMES[4].1, &[0]),
            profile(NAMES[5].0, 7, 8, NAMES[5].1, &[0]),
        ];
        MigTable { memory_slices: 8, compute_slices: 7, sms_per_slice: $sms, profiles: PROFILES }
    }};
}

impl MigTable {
    /// A100 with 40 GB.
    pub const A100_40: MigTable = seven_slices!(
        14,
        "1g.5gb" = 4864,
        "1g.10gb" = 9856,
        "2g.10gb" = 9856,
        "3g.20gb" = 19_968,
        "4g.20gb" = 19_968,
        "7g.40gb" = 40_192,
    );
    /// A100 with 80 GB.
    pub const A100_80: MigTable = seven_slices!(
        14,
        "1g.10gb" = 9856,
        "1g.20gb" = 19_968,
        "2g.20gb" = 19_968,
        "3g.40gb" = 40_192,
        "4g.40gb" = 40_192,
        "7g.80gb" = 80_384,
    );
    /// H100 with 80 GB.
    pub const H100_80: MigTable = seven_slices!(
        16,
        "1g.10gb" = 10_240,
        "1g.20gb" = 20_480,
        "2g.20gb" = 20_480,
        "3g.40gb" = 40_960,
        "4g.40gb" = 40_960,
        "7g.80gb" = 81_559,
    );
    /// H200 with 141 GB.
    pub const H200_141: MigTable = seven_slices!(
        16,
        "1g.18gb" = 18_432,
        "1g.35gb" = 35_840,
        "2g.35gb" = 35_840,
        "3g.71gb" = 72_704,
        "4g.71gb" = 72_704,
        "7g.141gb" = 143_771,
    );
    /// A30 with 24 GB.
    pub const A30_24: MigTable = MigTable {
        memory_slices: 4,
        compute_slices: 4,
        sms_per_slice: 14,
        profiles: &[
            profile("1g.6gb", 1, 1, 5836, &[0, 1, 2, 3]),
            profile("2g.12gb", 2, 2, 11_672, &[0, 2]),
            profile("4g.24gb", 4, 4, 23_344, &[0]),
        ],
    };

    /// The profile of that name.
    pub fn profile(&self, name: &str) -> Option<&'static Profile> {
        self.profiles.iter().find(|profile| profile.name == name)
    }
}

/// A GPU instance at its place on a board.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Instance {
    /// Compute slices.
    pub compute: u8,
    /// First memory slice.
    pub start: u8,
    /// Memory slices that it covers.
    pub span: u8,
    /// Memory of the instance.
    pub memory: Bytes,
}

impl fmt::Display for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}g@{} ({})", self.compute, self.start, self.memory)
    }
}

/// Which slices of one board are taken.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Layout {
    memory_taken: u16,
    compute_taken: u8,
}

impl Layout {
    fn mask(start: u8, span: u8) -> u16 {
        ((1u16 << span) - 1) << start
    }

    /// Nothing is partitioned off.
    pub const fn is_empty(&self) -> bool {
        self.memory_taken == 0
    }

    /// Every slice is taken.
    pub fn full(table: &MigTable) -> Self {
        let memory_taken = Self::mask(0, table.memory_slices);
        Layout { memory_taken, compute_taken: table.compute_slices }
    }

    /// The slices of both. They may overlap: what a driver says of others is not ours to check.
    #[must_use]
    pub fn with(&self, other: Layout) -> Layout {
        Layout {
            memory_taken: self.memory_taken | other.memory_taken,
            compute_taken: self.compute_taken.saturating_add(other.compute_taken),
        }
    }

    /// One instance and nothing else; slices that no board has are left out.
    pub fn of(compute: u8, start: u8, span: u8) -> Layout {
        let mask = (start..start.saturating_add(span)).filter(|&at| at < 16);
        let memory_taken = mask.fold(0, |mask, at| mask | 1u16 << at);
        Layout { memory_taken, compute_taken: compute }
    }

    /// Where an instance of `profile` would go, if it still fits. Later starts first: the low slices
    /// are the only ones that the large profiles can use.
    pub fn fit(&self, table: &MigTable, profile: &Profile) -> Option<Instance> {
        if self.compute_taken.saturating_add(profile.compute) > table.compute_slices {
            return None;
        }
        let start = profile.starts.iter().rev().copied().find(|&start| {
            start + profile.span <= table.memory_slices
                && self.memory_taken & Self::mask(start, profile.span) == 0
        })?;
        let Profile { compute, span, .. } = *profile;
        Some(Instance { compute, start, span, memory: profile.memory() })
    }

    /// The smallest instance with at least `memory` and at least `compute` slices that still fits.
    pub fn smallest(&self, table: &MigTable, memory: Bytes, compute: u8) -> Option<Instance> {
        table
            .profiles
            .iter()
            .filter(|profile| profile.memory() >= memory && profile.compute >= compute)
            .find_map(|profile| self.fit(table, profile))
    }

    /// The most memory that an instance created now could have.
    pub fn largest_memory(&self, table: &MigTable) -> Bytes {
        let fits = |profile: &&Profile| self.fit(table, profile).is_some();
        table.profiles.iter().filter(fits).map(Profile::memory).max().unwrap_or(Bytes::ZERO)
    }

    /// Takes the slices of `instance`, which must be free.
    pub fn create(&mut self, instance: Instance) {
        let mask = Self::mask(instance.start, instance.span);
        assert_eq!(self.memory_taken & mask, 0, "slices of a MIG instance are already taken");
        self.memory_taken |= mask;
        self.compute_taken += instance.compute;
    }

    /// Returns the slices of `instance`.
    pub fn destroy(&mut self, instance: Instance) {
        let mask = Self::mask(instance.start, instance.span);
        assert_eq!(self.memory_taken & mask, mask, "slices of a MIG instance are not taken");
        self.memory_taken &= !mask;
        self.compute_taken -= instance.compute;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn plan(table: &MigTable, names: &[&str]) -> Option<Vec<u8>> {
        let mut layout = Layout::default();
        names
            .iter()
            .map(|name| {
                let instance = layout.fit(table, table.profile(name).expect("known profile"))?;
                layout.create(instance);
                Some(instance.start)
            })
            .collect()
    }

    #[test]
    fn an_a100_holds_the_documented_mixes() {
        let table = &MigTable::A100_40;
        assert_eq!(plan(table, &["1g.5gb"; 7]).map(|starts| starts.len()), Some(7));
        assert_eq!(plan(table, &["1g.5gb"; 8]), None);
        assert_eq!(plan(table, &["3g.20gb", "3g.20gb"]), Some(vec![4, 0]));
        assert_eq!(plan(table, &["3g.20gb", "3g.20gb", "1g.5gb"]), None);
        assert_eq!(
            plan(table, &["3g.20gb", "2g.10gb", "1g.5gb", "1g.5gb"]).map(|s| s.len()),
            Some(4)
        );
        assert_eq!(plan(table, &["4g.20gb", "3g.20gb"]), Some(vec![0, 4]));
        assert_eq!(plan(table, &["4g.20gb", "4g.20gb"]), None);
        assert_eq!(plan(table, &["7g.40gb", "1g.5gb"]), None);
    }

    #[test]
    fn the_smallest_sufficient_instance_is_chosen() {
        let table = &MigTable::A100_40;
        let layout = Layout::default();
        let chosen = layout.smallest(table, Bytes::from_mib(12_000), 1).expect("fits");
        assert_eq!((chosen.compute, chosen.memory), (3, Bytes::from_mib(19_968)));
        assert_eq!(layout.smallest(table, Bytes::from_mib(40_960), 1), None);
    }

    #[test]
    fn what_others_hold_is_not_given() {
        let table = &MigTable::A100_40;
        let theirs = Layout::of(3, 4, 4);
        let both = Layout::default().with(theirs);
        assert_eq!(both.largest_memory(table), Bytes::from_mib(19_968));
        let given = both.smallest(table, Bytes::from_mib(12_000), 1).expect("the lower half");
        assert_eq!((given.start, given.span), (0, 4));
        assert_eq!(Layout::full(table).largest_memory(table), Bytes::ZERO);
        // Nonsense of a driver is survived.
        assert!(!Layout::of(250, 200, 200).with(Layout::of(250, 15, 9)).is_empty());
    }

    proptest! {
        #[test]
        fn slices_are_never_given_twice(picks in prop::collection::vec((0usize..6, any::<bool>()), 0..40)) {
            let table = &MigTable::A100_40;
            let mut layout = Layout::default();
            let mut alive: Vec<Instance> = Vec::new();
            for (pick, remove) in picks {
                if remove && !alive.is_empty() {
                    layout.destroy(alive.swap_remove(pick % alive.len()));
                } else if let Some(instance) = layout.fit(table, &table.profiles[pick]) {
                    layout.create(instance);
                    alive.push(instance);
                }
                let mut owners = [0u8; 8];
                for instance in &alive {
                    for slice in instance.start..instance.start + instance.span {
                        owners[usize::from(slice)] += 1;
                    }
                }
                prop_assert!(owners.iter().all(|&owners| owners <= 1));
                prop_assert!(alive.iter().map(|i| i.compute).sum::<u8>() <= table.compute_slices);
            }
        }
    }
}
