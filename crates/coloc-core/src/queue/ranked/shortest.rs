//! Full information: the order if it is known how long every task takes.
//!
//! `sjf` by run time, `srtf` by run time that is left, `srsf` by GPUs times run time that is left.

use super::order_key::Rank;
use coloc_model::Millis;

/// SJF. A task without a declared run time goes last, here and below.
pub(super) fn job(duration: Option<Millis>) -> Rank {
    Rank::by(duration.map_or(u64::MAX, |span| span.0))
}

/// SRTF.
pub(super) fn remaining_time(duration: Option<Millis>, done: Millis) -> Rank {
    Rank::by(left(duration, done))
}

/// SRSF.
pub(super) fn remaining_service(duration: Option<Millis>, done: Millis, gpus: u32) -> Rank {
    Rank::by(left(duration, done).saturating_mul(u64::from(gpus)))
}

fn left(duration: Option<Millis>, done: Millis) -> u64 {
    duration.map_or(u64::MAX, |span| span.0.saturating_sub(done.0))
}
