//! Choices of a seed.

use coloc_core::policy::{Place, Policy, Queue};
use coloc_core::preset::{MemoryKnowledge, Preset};
use coloc_model::Share;

/// SplitMix64: the same seed gives the same choices.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Random(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below this one.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    pub(super) fn one_in(&mut self, many: u64) -> bool {
        self.below(many) == 0
    }

    /// One of these.
    pub(super) fn of<T: Clone>(&mut self, all: &[T]) -> Option<T> {
        let chosen = self.below(all.len() as u64) as usize;
        all.get(chosen).cloned()
    }

    pub(super) fn fleet(&mut self) -> &'static str {
        let fleets = ["1xA100-40GB", "2xA100-40GB", "4xA100-40GB", "2x2xA100-40GB", "2xA30-24GB"];
        let fleets: Vec<&str> = fleets
            .into_iter()
            .filter(|fleet| fleet.parse::<coloc_model::Fleet>().is_ok())
            .collect();
        self.of(&fleets).expect("a fleet")
    }

    pub(super) fn policy(&mut self) -> Policy {
        let plain = |queue| Policy::plain(queue, Place::Exclusive, Share::Exclusive);
        let contract = Preset::Coloc.policy(MemoryKnowledge::Estimate);
        let policies = [
            contract,
            contract,
            Policy { share: Share::Streams, ..contract },
            Policy { queue: Queue::Backfill, ..contract },
            Policy { queue: Queue::Las2d, ..contract },
            Preset::Tiresias.policy(MemoryKnowledge::None),
            plain(Queue::Fifo),
            plain(Queue::Sjf),
            plain(Queue::Srtf),
            plain(Queue::Las2d),
            plain(Queue::Gittins2d),
            plain(Queue::Fair),
        ];
        self.of(&policies).expect("a policy")
    }

    /// A policy that shares GPUs as this one does: another would meet tasks where it would never have put them.
    pub(super) fn policy_like(&mut self, policy: &Policy) -> Policy {
        let other = self.policy();
        let alike = other.share == policy.share && other.contract == policy.contract;
        if alike { other } else { *policy }
    }
}
