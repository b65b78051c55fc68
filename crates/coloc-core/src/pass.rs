//! What a pass remembers of itself: counts, not explanations. Explanations are computed on demand.

use crate::screen::Refusal;
use coloc_model::{Bytes, GpuId};

/// How the last pass went.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct PassCounts {
    /// Tasks that were started.
    pub started: u32,
    /// Refusals by kind, as `Refusal::kind` numbers them.
    pub refused: [u64; Refusal::KINDS],
    /// The GPU that lacked the least memory for a task, and how it refused.
    pub nearest_miss: Option<(GpuId, Refusal)>,
}

impl PassCounts {
    pub(crate) fn note(&mut self, gpu: GpuId, refusal: Refusal) {
        self.refused[refusal.kind()] += 1;
        let short = |refusal: &Refusal| refusal.short_of().unwrap_or(Bytes::MAX);
        if self.nearest_miss.is_none_or(|(_, nearest)| short(&refusal) < short(&nearest)) {
            self.nearest_miss = Some((gpu, refusal));
        }
    }
}
