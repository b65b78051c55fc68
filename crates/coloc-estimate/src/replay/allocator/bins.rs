//! Which bin of the free list a size belongs to: sixteen for each power of two.

use super::free_list::Pool;

/// Bins of both pools. Spans of the small pool are at most 4096 grains and in the bins below
/// `LARGE_BINS`; those of the large pool have at least 2049 and are in the bins from there on.
pub(super) const BINS: u32 = 512;
pub(super) const LARGE_BINS: u32 = 160;
const SHIFT: u32 = LARGE_BINS - 128;

/// Where spans of this size are listed.
#[inline(always)]
pub(super) fn bin(pool: Pool, grains: u64) -> u32 {
    // Looked up: some processors take long to find a number's highest bit.
    match pool {
        Pool::Small => u32::from(SMALL[grains as usize % SMALL.len()]),
        Pool::Large => match LARGE.get((grains >> STEP) as usize) {
            Some(bin) => u32::from(*bin),
            None => work_out(pool, grains),
        },
    }
}

/// The bins of all sizes of the small pool; spans are never larger than a segment.
static SMALL: [u8; 8192] = {
    let mut bins = [0; 8192];
    let mut grains = 1;
    while grains < bins.len() {
        bins[grains] = work_out(Pool::Small, grains as u64) as u8;
        grains += 1;
    }
    bins
};

/// Sizes of the large pool that differ in less share a bin.
const STEP: u32 = 7;

/// The bins of the large pool's sizes below a gibibyte.
static LARGE: [u16; 1 << 14] = {
    let mut bins = [0; 1 << 14];
    let mut step = 16;
    while step < bins.len() {
        bins[step] = work_out(Pool::Large, (step << STEP) as u64) as u16;
        step += 1;
    }
    bins
};

const fn work_out(pool: Pool, grains: u64) -> u32 {
    let exponent = (grains | 16).ilog2() - 4;
    let within_pool = exponent * 16 + (grains >> exponent) as u32;
    let bin = within_pool + if matches!(pool, Pool::Large) { SHIFT } else { 0 };
    // Anything past the last bin shares it; order within a bin keeps the search exact.
    if bin < BINS { bin } else { BINS - 1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bins_follow_the_order_of_sizes(size in 1u64..u64::from(u32::MAX), more in 0u64..1 << 20) {
            prop_assert!(bin(Pool::Small, size.min(4096)) <= bin(Pool::Small, (size + more).min(4096)));
            prop_assert!(bin(Pool::Small, size.min(4096)) < LARGE_BINS);
            let large = size.max(2049);
            prop_assert!(bin(Pool::Large, large) <= bin(Pool::Large, large + more));
            prop_assert!((LARGE_BINS..BINS).contains(&bin(Pool::Large, large)));
        }

        #[test]
        fn what_is_looked_up_is_what_is_worked_out(size in 1u64..1 << 24) {
            prop_assert_eq!(bin(Pool::Small, size % 4096 + 1), work_out(Pool::Small, size % 4096 + 1));
            prop_assert_eq!(bin(Pool::Large, size + 2048), work_out(Pool::Large, size + 2048));
        }
    }
}
