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

/// All passes of a scheduler together.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct PassTotals {
    /// How many there were.
    pub passes: u64,
    /// Tasks that they started.
    pub started: u64,
    refused: [u64; Refusal::KINDS],
}

/// The rules in the order of `Refusal::kind`, by the names that refusals are written with.
const RULES: [&str; Refusal::KINDS] = [
    "reserved",
    "held_alone",
    "occupied",
    "settling",
    "crowded",
    "other_user",
    "memory",
    "no_instance",
    "busy",
    "away",
    "foreign",
    "mps_clients",
    "kind",
    "drained",
    "other_pool",
    "kept_for_others",
    "other_sharing",
];

impl PassTotals {
    pub(crate) fn add(&mut self, pass: &PassCounts) {
        self.passes += 1;
        self.started += u64::from(pass.started);
        for (sum, refused) in self.refused.iter_mut().zip(pass.refused) {
            *sum += refused;
        }
    }

    /// How often each rule refused a GPU.
    pub fn refused(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        RULES.into_iter().zip(self.refused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::Measure;
    use coloc_model::{Millis, TaskId, UserId};

    /// The name that serde gives the variant.
    fn written(refusal: Refusal) -> String {
        let variant = format!("{refusal:?}");
        let variant = variant.split_whitespace().next().unwrap_or_default();
        let snake = |c: char| match c.is_uppercase() {
            true => format!("_{}", c.to_ascii_lowercase()),
            false => c.to_string(),
        };
        variant.chars().map(snake).collect::<String>().trim_start_matches('_').to_owned()
    }

    #[test]
    fn rules_are_counted_by_the_names_that_refusals_are_written_with() {
        let all = [
            Refusal::Reserved { reserved_for: TaskId(1) },
            Refusal::Away,
            Refusal::Drained,
            Refusal::Kind,
            Refusal::OtherPool,
            Refusal::KeptForOthers,
            Refusal::OtherSharing { holder: TaskId(1) },
            Refusal::Foreign { used: Bytes(1) },
            Refusal::HeldAlone { holder: TaskId(1), until_settled: false },
            Refusal::Occupied { tasks: 1 },
            Refusal::Settling { left: Millis(1) },
            Refusal::Crowded { limit: 1 },
            Refusal::MpsClients { clients: 1, limit: 1 },
            Refusal::OtherUser { user: UserId(1) },
            Refusal::Memory { need: Bytes(2), available: Bytes(1) },
            Refusal::NoInstance { need: Bytes(2), largest: Bytes(1) },
            Refusal::Busy { measure: Measure::MeanSm, value: 1.0, limit: 0.5 },
        ];
        assert_eq!(all.len(), Refusal::KINDS);
        for refusal in all {
            let mut pass = PassCounts::default();
            pass.note(GpuId(0), refusal);
            let mut totals = PassTotals::default();
            totals.add(&pass);
            let counted: Vec<_> = totals.refused().filter(|(_, count)| *count > 0).collect();
            assert_eq!(counted, [(written(refusal).as_str(), 1)]);
        }
    }
}
