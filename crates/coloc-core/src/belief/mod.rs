//! What the scheduler believes of tasks that it has seen before. The truth is in the world; this is
//! learned from the monitor and kept per signature.

mod interference;
mod peaks;
mod run_times;

pub use interference::{harm_by_profile, lost, profile_of_pair, slowdown_by_profile};
pub use peaks::SeenPeak;

use coloc_model::{
    Bytes, Fraction, InterferenceProfile, Millis, Share, SignatureId, TaskId, UserId,
};
use peaks::Peaks;
use run_times::RunTimes;
use rustc_hash::{FxHashMap, FxHashSet};

/// SM demand expected of a task of which nothing at all is known, until anything has been learned.
pub const FIRST_GUESS: f64 = 0.5;
/// SM demand that a shared GPU is held to for such a task: one that took many of them would be full before any was seen.
const CAUTIOUS_GUESS: f64 = 0.62;
/// A new observation weighs at least this much, so that beliefs follow a task that changes.
const LEAST_WEIGHT: f64 = 0.125;
/// Slow-down of one task per product of its own and a neighbour's SM demand where contexts take turns: the one-parameter
/// model that does best on pairs that were not measured.
const PRODUCT_STREAMS: f64 = 0.49;
/// The same under MPS, SMs and DRAM together.
const PRODUCT_MPS: f64 = 0.33;

/// Slow-down per product of SM demands, by how tasks share a GPU. MIG instances do not slow each other down; there it only
/// prefers the emptier GPU.
pub fn product(share: Share) -> f64 {
    match share {
        Share::Mps => PRODUCT_MPS,
        Share::Streams | Share::Mig | Share::Exclusive => PRODUCT_STREAMS,
    }
}

/// Beliefs that differ by less are the same.
pub(crate) const NOTICEABLE: f64 = 1e-3;

#[derive(Clone, Copy, Default, Debug)]
struct Learned {
    mean: f64,
    count: u32,
}

impl Learned {
    fn add(&mut self, value: f64) {
        self.count += 1;
        let weight = (1.0 / f64::from(self.count)).max(LEAST_WEIGHT);
        self.mean += weight * (value - self.mean);
    }
}

/// Beliefs about how busy tasks keep a GPU and how much memory they end up with.
#[derive(Clone, Default, Debug)]
pub struct Beliefs {
    sm: FxHashMap<SignatureId, Learned>,
    overall: Learned,
    peaks: FxHashMap<SignatureId, Peaks>,
    warm_ups: FxHashMap<SignatureId, Learned>,
    run_times: FxHashMap<SignatureId, Learned>,
    any_run_time: Learned,
    runs: RunTimes,
    profiles: FxHashMap<SignatureId, InterferenceProfile>,
    mildest: InterferenceProfile,
    taught: FxHashSet<SignatureId>,
    version: u64,
}

impl Beliefs {
    /// Expected SM demand of a task when alone: seen, else estimated, else what tasks are like here.
    pub fn sm_demand(&self, signature: SignatureId, estimated: Option<Fraction>) -> f64 {
        if let Some(learned) = self.sm.get(&signature) {
            return learned.mean;
        }
        match estimated {
            Some(estimate) => estimate.get(),
            None if self.overall.count > 0 => self.overall.mean,
            None => FIRST_GUESS,
        }
    }

    /// The same where tasks share SMs: of a task of which nothing is known not too little.
    pub(crate) fn shared_sm_demand(&self, signature: SignatureId, sm: Option<Fraction>) -> f64 {
        let demand = self.sm_demand(signature, sm);
        let unknown = sm.is_none() && !self.knows(signature);
        if unknown { demand.max(CAUTIOUS_GUESS) } else { demand }
    }

    /// Whether such a task has been seen.
    pub fn knows(&self, signature: SignatureId) -> bool {
        self.sm.contains_key(&signature)
    }

    /// How often such tasks were seen.
    pub(crate) fn times_seen(&self, signature: SignatureId) -> u32 {
        self.sm.get(&signature).map_or(0, |learned| learned.count)
    }

    /// The most memory that such tasks held.
    pub fn peak(&self, signature: SignatureId) -> Option<SeenPeak> {
        self.peaks.get(&signature)?.seen()
    }

    /// Changes whenever a task's expected memory or demand may have changed.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// Remembers for good the most that such a task held or wanted: without a contract.
    pub(crate) fn learn_peak(&mut self, signature: SignatureId, peak: Bytes) {
        // No sighting is not a sighting of nothing.
        if peak > Bytes::ZERO && self.peaks.entry(signature).or_default().raise(peak) {
            self.version += 1;
        }
    }

    /// Remembers what a run held that settled, or that has ended well.
    pub(crate) fn teach_peak(
        &mut self,
        signature: SignatureId,
        run: TaskId,
        peak: Bytes,
        ended: bool,
    ) {
        let peaks = self.peaks.entry(signature).or_default();
        if peak > Bytes::ZERO && peaks.teach(run, peak, ended) {
            self.version += 1;
        }
    }

    /// By how much such tasks outgrow what they held when they had settled.
    pub fn late_growth(&self, signature: SignatureId) -> f64 {
        self.peaks.get(&signature).map_or(0.0, Peaks::late_growth)
    }

    /// Remembers by how much a run outgrew what it held when it had settled.
    pub(crate) fn learn_late_growth(&mut self, signature: SignatureId, growth: f64) {
        if self.peaks.entry(signature).or_default().grew(growth) {
            self.version += 1;
        }
    }

    /// How long after their start such tasks came to the plateau of memory at which they settled.
    pub fn warm_up(&self, signature: SignatureId) -> Option<Millis> {
        self.warm_ups.get(&signature).map(|learned| Millis::from_secs_f64(learned.mean))
    }

    pub(crate) fn learn_warm_up(&mut self, signature: SignatureId, span: Millis) {
        self.warm_ups.entry(signature).or_default().add(span.secs());
    }

    /// How long such tasks were on their GPUs.
    pub fn run_time(&self, signature: SignatureId) -> Option<Millis> {
        self.run_times.get(&signature).map(|learned| Millis::from_secs_f64(learned.mean))
    }

    /// How long a task is expected to be on its GPUs; like the others if it was never seen.
    pub fn expected_run_time(&self, signature: SignatureId) -> Millis {
        let like_others = || Millis::from_secs_f64(self.any_run_time.mean);
        self.run_time(signature).unwrap_or_else(like_others)
    }

    /// Seconds that a task is expected to take from now on, given that it has run for `done`.
    pub(crate) fn expected_left(&self, signature: SignatureId, user: UserId, done: Millis) -> f64 {
        self.runs.expected_left(signature, user, done.secs())
    }

    /// The Gittins rank of a task that has run for `done` and can be interrupted, in seconds.
    pub(crate) fn gittins(&self, signature: SignatureId, user: UserId, done: Millis) -> f64 {
        self.runs.gittins(signature, user, done.secs())
    }

    /// How many runs have ended.
    pub(crate) fn ends(&self) -> u64 {
        self.runs.ends
    }

    pub(crate) fn learn_run_time(&mut self, signature: SignatureId, user: UserId, ran: Millis) {
        self.runs.learn(signature, user, ran);
        self.run_times.entry(signature).or_default().add(ran.secs());
        self.any_run_time.add(ran.secs());
    }

    pub(crate) fn learn(&mut self, signature: SignatureId, sm: f64) {
        let learned = self.sm.entry(signature).or_default();
        let before = *learned;
        learned.add(sm);
        if before.count == 0 || (learned.mean - before.mean).abs() > NOTICEABLE {
            self.version += 1;
        }
        self.overall.add(sm);
    }
}

/// Predicted harm of putting a newcomer beside incumbents: the newcomer's slow-down and what each
/// incumbent loses, summed. Demands are SM shares.
pub fn predicted_harm(
    product: f64,
    incumbents: impl Iterator<Item = f64> + Clone,
    newcomer: f64,
) -> f64 {
    let load: f64 = incumbents.clone().sum();
    let crowd = |total: f64| total.max(1.0);
    let stretched = crowd(load + newcomer);
    let own = slowdown(product, newcomer, load) - 1.0;
    let others: f64 = incumbents
        .map(|demand| {
            let before = (1.0 + product * demand * (load - demand)) * crowd(load);
            let after = (1.0 + product * demand * (load - demand + newcomer)) * stretched;
            after - before
        })
        .sum();
    own + others
}

/// How many times as long a task is believed to take beside others as alone. Demands are SM shares.
pub fn slowdown(product: f64, own: f64, others: f64) -> f64 {
    (1.0 + product * own * others) * (own + others).max(1.0)
}

/// A lower bound of [`predicted_harm`] from the incumbents' total demand alone, which grows with it. Where tasks are known
/// to interfere less than usual, `least_factor` is the least that a product can be of the usual.
pub(crate) fn least_harm(product: f64, load: f64, newcomer: f64, least_factor: f64) -> f64 {
    let stretched = (load + newcomer).max(1.0);
    let felt = product * least_factor * newcomer * load * stretched;
    // At least one incumbent is stretched, and together they feel the newcomer.
    let others = if load > 0.0 { felt + stretched - load.max(1.0) } else { 0.0 };
    felt + stretched - 1.0 + others
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_was_seen_wins_over_estimates_and_guesses() {
        let mut beliefs = Beliefs::default();
        let (known, new) = (SignatureId(1), SignatureId(2));
        assert_eq!(beliefs.sm_demand(known, None), FIRST_GUESS);
        beliefs.learn(known, 0.2);
        assert_eq!(beliefs.sm_demand(known, Some(Fraction::new(0.9))), 0.2);
        assert_eq!(beliefs.sm_demand(new, Some(Fraction::new(0.9))), 0.9);
        assert_eq!(beliefs.sm_demand(new, None), 0.2);
        assert_eq!(beliefs.shared_sm_demand(new, None), CAUTIOUS_GUESS);
        assert_eq!(beliefs.shared_sm_demand(known, None), 0.2);
    }

    #[test]
    fn an_empty_gpu_harms_nobody_and_a_fuller_one_harms_more() {
        let harm =
            |incumbents: &[f64]| predicted_harm(PRODUCT_MPS, incumbents.iter().copied(), 0.4);
        assert_eq!(harm(&[]), 0.0);
        assert!(harm(&[0.2]) < harm(&[0.5]));
        assert!(harm(&[0.5]) < harm(&[0.5, 0.3]));
    }

    proptest! {
        #[test]
        fn the_bound_is_below_the_harm_and_grows_with_load(
            incumbents in prop::collection::vec(0.0f64..1.0, 0..6),
            newcomer in 0.0f64..1.0,
            less in 0.0f64..1.0,
        ) {
            let load: f64 = incumbents.iter().sum();
            let harm = predicted_harm(PRODUCT_MPS, incumbents.iter().copied(), newcomer);
            let least = |load| least_harm(PRODUCT_MPS, load, newcomer, 1.0);
            prop_assert!(least(load) <= harm + 1e-9);
            prop_assert!(least(load * less) <= least(load) + 1e-9);
        }
    }
}
