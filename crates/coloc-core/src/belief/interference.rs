//! How tasks of a kind take neighbours and what they are to them, where that was measured.

use super::{Beliefs, Learned, slowdown};
use coloc_model::{InterferenceProfile, Lesson, SignatureId};

/// A measurement counts as much as this many sightings.
const WEIGHT: u32 = 8;
/// Beyond these a measurement says more of the day than of the task.
const WILDEST: f64 = 8.0;
const LEAST_FACTOR: f64 = 0.125;

/// The interference profile of tasks that were measured side by side: what each lost for the other, against what was believed of
/// it. Which of the two was to blame a pair cannot tell, so it is divided between them.
pub fn profile_of_pair(lost: f64, others_lost: f64) -> InterferenceProfile {
    let part = |factor: f64| factor.clamp(LEAST_FACTOR, WILDEST).sqrt();
    InterferenceProfile { sensitivity: part(lost), pressure: part(others_lost) }
}

/// What a measured slow-down is, of the slow-down for neighbours that was believed; `None` where the believed one is too
/// small to compare with, or where the device as a whole was the limit.
pub fn lost(product: f64, measured: f64, own: f64, others: f64) -> Option<f64> {
    let stretched = (own + others).max(1.0);
    let believed = product * own * others;
    let lost = (measured / stretched - 1.0) / believed;
    (believed > 0.01 && lost.is_finite()).then(|| lost.clamp(LEAST_FACTOR, WILDEST))
}

impl Beliefs {
    /// Believes what was measured.
    pub(crate) fn teach(&mut self, signature: SignatureId, lesson: &Lesson) {
        if let Some(sm) = lesson.sm {
            let count = self.sm.get(&signature).map_or(0, |known| known.count).max(WEIGHT);
            self.sm.insert(signature, Learned { mean: sm.get(), count });
        }
        if let Some(peak) = lesson.peak {
            self.learn_peak(signature, peak);
        }
        if let Some(InterferenceProfile { sensitivity, pressure }) = lesson.interference {
            // No task takes neighbours as if they were not there, nor beyond all measure.
            let sane = |value: f64| {
                if value.is_finite() { value.clamp(LEAST_FACTOR, WILDEST) } else { 1.0 }
            };
            let interference =
                InterferenceProfile { sensitivity: sane(sensitivity), pressure: sane(pressure) };
            self.mildest.sensitivity = self.mildest.sensitivity.min(interference.sensitivity);
            self.mildest.pressure = self.mildest.pressure.min(interference.pressure);
            self.profiles.insert(signature, interference);
        }
        self.taught.insert(signature);
        self.version += 1;
    }

    /// Kinds of tasks that were measured.
    pub fn lessons(&self) -> usize {
        self.taught.len()
    }

    /// How tasks of a kind take neighbours, and are ones.
    pub fn interference(&self, signature: SignatureId) -> InterferenceProfile {
        self.profiles.get(&signature).copied().unwrap_or_default()
    }

    /// The least that what any two tasks do to each other can be, of the usual.
    pub(crate) fn least_factor(&self) -> f64 {
        self.mildest.sensitivity * self.mildest.pressure
    }
}

/// [`super::predicted_harm`] among tasks of which some were measured. Each has its SM demand and its interference profile.
pub fn harm_by_profile(
    product: f64,
    incumbents: impl Iterator<Item = (f64, InterferenceProfile)> + Clone,
    newcomer: (f64, InterferenceProfile),
) -> f64 {
    let (joining, interference) = newcomer;
    let load: f64 = incumbents.clone().map(|(demand, _)| demand).sum();
    let felt: f64 =
        incumbents.clone().map(|(demand, interference)| demand * interference.pressure).sum();
    let takes = |own: f64, interference: InterferenceProfile, felt: f64, all: f64| {
        (1.0 + product * own * interference.sensitivity * felt) * all.max(1.0)
    };
    let own = takes(joining, interference, felt, load + joining) - 1.0;
    let others: f64 = incumbents
        .map(|(demand, its)| {
            let before = felt - demand * its.pressure;
            let after = before + joining * interference.pressure;
            takes(demand, its, after, load + joining) - takes(demand, its, before, load)
        })
        .sum();
    own + others
}

/// How many times as long a task of this interference profile takes beside others of that one.
pub fn slowdown_by_profile(
    product: f64,
    own: (f64, InterferenceProfile),
    others: (f64, InterferenceProfile),
) -> f64 {
    let usual = slowdown(product, own.0, others.0);
    let stretched = (own.0 + others.0).max(1.0);
    (usual / stretched - 1.0) * own.1.sensitivity * others.1.pressure * stretched + stretched
}

#[cfg(test)]
mod tests {
    use super::super::{least_harm, predicted_harm};
    use super::*;
    use coloc_model::Fraction;
    use proptest::prelude::*;

    #[test]
    fn what_was_measured_is_what_is_believed_afterwards() {
        let (own, measured) = (0.6, 1.5);
        let factor = lost(0.33, measured, own, own).expect("a slow-down to speak of");
        let interference = profile_of_pair(factor, factor);
        let believed = slowdown_by_profile(0.33, (own, interference), (own, interference));
        assert!((believed - measured).abs() < 1e-9, "{believed}");
        assert_eq!(lost(0.33, 1.0, 0.05, 0.05), None, "too small to compare with");
    }

    #[test]
    fn lessons_are_remembered_and_nonsense_is_tamed() {
        let (mut beliefs, kind) = (Beliefs::default(), SignatureId(4));
        assert_eq!(
            (beliefs.interference(kind), beliefs.least_factor()),
            (InterferenceProfile::USUAL, 1.0)
        );
        let interference = Some(InterferenceProfile { sensitivity: f64::NAN, pressure: -3.0 });
        let lesson = Lesson { sm: Some(Fraction::new(0.7)), peak: None, interference };
        beliefs.teach(kind, &lesson);
        assert_eq!(beliefs.sm_demand(kind, None), 0.7);
        assert_eq!(
            beliefs.interference(kind),
            InterferenceProfile { sensitivity: 1.0, pressure: LEAST_FACTOR }
        );
        assert_eq!(beliefs.least_factor(), LEAST_FACTOR);
    }

    proptest! {
        #[test]
        fn the_bound_holds_whatever_was_measured(
            incumbents in prop::collection::vec((0.0f64..1.0, 0.125f64..8.0, 0.125f64..8.0), 0..6),
            newcomer in (0.0f64..1.0, 0.125f64..8.0, 0.125f64..8.0),
        ) {
            let with = |(demand, sensitivity, pressure)| (demand, InterferenceProfile { sensitivity, pressure });
            let all: Vec<(f64, InterferenceProfile)> = incumbents.into_iter().map(with).collect();
            let newcomer = with(newcomer);
            let load: f64 = all.iter().map(|(demand, _)| demand).sum();
            let profiles = || all.iter().chain([&newcomer]).map(|(_, interference)| *interference);
            let least = |of: fn(InterferenceProfile) -> f64| profiles().map(of).fold(1.0, f64::min);
            let least_factor = least(|t| t.sensitivity) * least(|t| t.pressure);
            let harm = harm_by_profile(0.33, all.iter().copied(), newcomer);
            prop_assert!(least_harm(0.33, load, newcomer.0, least_factor) <= harm + 1e-9);
            let usual = all.iter().map(|(demand, _)| (*demand, InterferenceProfile::USUAL));
            let plain = predicted_harm(0.33, all.iter().map(|(demand, _)| *demand), newcomer.0);
            let same = harm_by_profile(0.33, usual, (newcomer.0, InterferenceProfile::USUAL));
            prop_assert!((plain - same).abs() < 1e-9);
        }
    }
}
