//! The next GPU in turn after the one that got the last task.

use super::Cost;

/// Steps from the cursor to the nearest GPU of `first..end`, going round.
pub(super) fn cost(first: u32, end: u32, cursor: u32, gpus: usize) -> Cost {
    if (first..end).contains(&cursor) {
        return 0;
    }
    let gpus = gpus as u64;
    (u64::from(first) + gpus - u64::from(cursor)) % gpus
}
