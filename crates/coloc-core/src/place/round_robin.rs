//! The next GPU in turn after the one that got the last task.

use super::Cost;
use std::ops::Range;

/// Steps from the cursor to the nearest of some GPUs, going round.
pub(super) fn cost(ids: Range<u32>, cursor: u32, gpus: usize) -> Cost {
    if ids.contains(&cursor) {
        return 0;
    }
    let gpus = gpus as u64;
    (u64::from(ids.start) + gpus - u64::from(cursor)) % gpus
}
