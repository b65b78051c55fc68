//! The GPU with the least memory left over.

use super::Cost;
use coloc_model::Bytes;

/// Available memory; below an inner node of the index it is at least what is needed.
pub(super) fn cost(least_available: Bytes, need: Bytes) -> Cost {
    least_available.max(need).0
}
