//! Policies by name, as clients of the daemon spell them.

use coloc_core::Preset;
use coloc_core::policy::{Place, Policy, Queue};
use coloc_model::Share;
use coloc_sim::Estimator;
use serde::de::DeserializeOwned;

/// A policy with the name that people see.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct NamedPolicy {
    pub(crate) name: String,
    pub(crate) policy: Policy,
    pub(crate) estimator: Estimator,
}

fn value<T: DeserializeOwned>(text: &str) -> Option<T> {
    serde_json::from_value(text.into()).ok()
}

/// Reads `NAME[:oracle|:recorded|:none]`, where `NAME` is `exclusive`, a preset, or `QUEUE/PLACE/SHARE`. What was known of tasks when they
/// were submitted is recorded, and counts unless another estimator is named.
pub(crate) fn parse(text: &str) -> Result<NamedPolicy, String> {
    let wrong = || {
        format!(
            "{text:?} is no policy: a policy is exclusive, a preset, or QUEUE/PLACE/SHARE, each with :oracle, :recorded or :none if \
             you like, such as carma-v2:oracle or best-effort/magm/mps"
        )
    };
    let (name, estimator) = match text.split_once(':') {
        None => (text, Estimator::Recorded),
        Some((name, "recorded")) => (name, Estimator::Recorded),
        Some((name, "oracle")) => (name, Estimator::Oracle),
        Some((name, "none")) => (name, Estimator::None),
        Some(_) => return Err(wrong()),
    };
    let parts: Vec<&str> = name.split('/').collect();
    let policy = match parts[..] {
        ["exclusive"] => Policy::plain(Queue::Fifo, Place::Exclusive, Share::Exclusive),
        [preset] => value::<Preset>(preset).ok_or_else(wrong)?.policy(estimator.knowledge()),
        [queue, place, share] => {
            let parts = value(queue).zip(value(place)).zip(value(share));
            let ((queue, place), share) = parts.ok_or_else(wrong)?;
            Policy::plain(queue, place, share)
        }
        _ => return Err(wrong()),
    };
    Ok(NamedPolicy { name: text.to_owned(), policy, estimator })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_spell_out_policies_and_nonsense_is_refused() {
        assert!(parse("exclusive").expect("one").policy.needs_idle());
        assert_eq!(parse("carma-v2:oracle").expect("one").estimator, Estimator::Oracle);
        assert_eq!(parse("best-effort/magm/mps").expect("one").policy.share, Share::Mps);
        for text in ["", "carma", "fifo/magm", "fifo/magm/mps/x", "coloc:guess", "a/b/c", ":oracle"]
        {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }
}
