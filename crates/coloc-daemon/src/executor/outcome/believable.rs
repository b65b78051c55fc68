//! Whether an out-of-memory error speaks of the run that died, and what that run needed.

use super::FailedAllocation;
use coloc_model::Bytes;

/// Figures are written with two digits, and drivers keep a little of a GPU for themselves.
const SLACK: f64 = 1.02;
/// A process that held this part of what was seen of it, or less, has not merely emptied its cache.
const FAR_BELOW: f64 = 0.125;
/// A process that needs half of what was seen of it has no reason to ask.
const NEEDS_LESS: f64 = 0.5;
/// A process with a context holds at least this much.
const LEAST_CONTEXT: Bytes = Bytes::from_mib(128);
/// Frameworks see this part of a GPU's memory at least; some GPUs keep a tenth of it for error correction.
const VISIBLE: f64 = 0.85;
/// With more than this in use a framework had begun to work: a context takes less.
const HAD_BEGUN: Bytes = Bytes::from_mib(1024);
/// Between two looks of the monitor memory may grow this much: weights are seen, and not the first activations.
const SPIKE: f64 = 8.0;

/// The figures may be those of a run of which a monitor saw `seen` at most, on a GPU with this much memory. Texts are
/// the user's: an error of another run, printed for some reason, must not decide what this one is given.
pub fn believable(said: &FailedAllocation, seen: Bytes, capacity: Bytes) -> bool {
    let most = capacity.scale(SLACK);
    if said.total.is_some_and(|total| total > most) {
        return false;
    }
    let unseen = seen < LEAST_CONTEXT;
    let Some(held) = said.held else { return !unseen };
    if held < LEAST_CONTEXT || held > said.total.unwrap_or(capacity).scale(SLACK) {
        return false;
    }
    if unseen {
        // It may have died before the first look. Then only its GPU can be recognized.
        return said.total.is_some_and(|total| total >= capacity.scale(VISIBLE));
    }
    let wanted = held + said.asked.unwrap_or_default();
    let too_little = held < seen.scale(FAR_BELOW) || wanted < seen.scale(NEEDS_LESS);
    let too_much = seen > HAD_BEGUN && held > seen.scale(SPIKE);
    !(too_little || too_much)
}

/// What a run that died needed on its GPU, if that is known: what it held and what it asked for, and at least what was
/// seen of it before. `None` if it did not say, or said what cannot be.
pub fn wanted(said: &FailedAllocation, seen: Bytes, capacity: Bytes) -> Option<Bytes> {
    let asked = said.asked.filter(|_| believable(said, seen, capacity))?;
    Some(match said.held {
        Some(held) => (held + asked).max(seen),
        None => seen + asked,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn gib(gib: f64) -> Bytes {
        Bytes((gib * (1u64 << 30) as f64) as u64)
    }

    fn said(held: f64, asked: f64) -> FailedAllocation {
        let (held, asked) = (Some(gib(held)), Some(gib(asked)));
        FailedAllocation { asked, held, free: None, total: Some(gib(39.4)) }
    }

    #[test]
    fn what_matches_the_trace_is_believed() {
        let capacity = gib(40.0);
        for (held, asked, seen) in [
            (9.5, 1.5, 9.5),
            // It grew after the last look, or died before the first one.
            (30.0, 2.0, 10.0),
            (38.0, 2.0, 0.5),
            (38.0, 2.0, 0.0),
            // Its cache was emptied before the error.
            (8.0, 14.0, 20.0),
            (12.0, 0.5, 20.0),
            // A bug of the script; the error is this run's all the same.
            (7.0, 100_000.0, 7.0),
        ] {
            assert!(believable(&said(held, asked), gib(seen), capacity), "{held} {asked} {seen}");
        }
    }

    #[test]
    fn what_does_not_match_the_trace_is_not() {
        let capacity = gib(40.0);
        for (held, asked, seen) in [
            // Of a test of the script's error handling.
            (0.002, 0.02, 2.0),
            // Held too little, wanted too little, held too much for one look of the monitor.
            (0.1, 30.0, 20.0),
            (5.0, 1.0, 20.0),
            (30.0, 1.0, 2.0),
            // Less than a context, of a run that was never seen.
            (0.002, 0.02, 0.0),
            // More than there is.
            (45.0, 1.0, 30.0),
        ] {
            let said = said(held, asked);
            assert!(!believable(&said, gib(seen), capacity), "{held} {asked} {seen}");
            assert_eq!(wanted(&said, gib(seen), capacity), None);
        }
        let elsewhere = FailedAllocation { total: Some(gib(79.2)), ..said(10.0, 1.0) };
        assert!(!believable(&elsewhere, gib(10.0), capacity), "of a larger GPU");
        assert!(believable(&elsewhere, gib(10.0), gib(80.0)));
        let small = FailedAllocation { total: Some(gib(11.0)), ..said(9.0, 1.0) };
        assert!(!believable(&small, gib(0.0), capacity), "of a smaller GPU, and nothing was seen");
        assert!(believable(&small, gib(9.0), capacity), "a limit may be all that it sees");
    }

    #[test]
    fn a_run_needed_what_it_held_and_asked_for() {
        let capacity = gib(40.0);
        let wanted = |said: FailedAllocation, seen| wanted(&said, gib(seen), capacity);
        assert_eq!(wanted(said(9.5, 1.5), 9.0), Some(gib(11.0)));
        // It had held more before.
        assert_eq!(wanted(said(12.0, 0.5), 20.0), Some(gib(20.0)));
        // It did not say what it held, or what it asked for.
        let asked_only = FailedAllocation { held: None, ..said(0.0, 2.0) };
        assert_eq!(wanted(asked_only, 9.0), Some(gib(11.0)));
        assert_eq!(wanted(FailedAllocation { asked: None, ..said(9.0, 0.0) }, 9.0), None);
        assert_eq!(wanted(FailedAllocation::default(), 9.0), None);
        assert_eq!(wanted(asked_only, 0.0), None, "nothing was seen of it");
    }

    proptest! {
        #[test]
        fn a_run_never_needed_less_than_was_seen_of_it(
            held in prop::option::of(0..1u64 << 50),
            asked in prop::option::of(0..1u64 << 50),
            total in prop::option::of(0..1u64 << 50),
            seen in any::<u64>(),
            capacity in any::<u64>(),
        ) {
            let (held, asked, total) = (held.map(Bytes), asked.map(Bytes), total.map(Bytes));
            let said = FailedAllocation { asked, held, free: None, total };
            let needed = wanted(&said, Bytes(seen), Bytes(capacity));
            prop_assert!(needed.is_none_or(|needed| needed >= Bytes(seen)));
        }
    }
}
