//! MAGM: the GPU with the most available memory (CARMA).

use super::Cost;
use coloc_model::Bytes;

pub(super) fn cost(available: Bytes) -> Cost {
    Cost::MAX - available.0
}
