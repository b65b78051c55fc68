//! How far a training is, from what it prints.

use regex_lite::Regex;
use std::time::Instant;

/// What trainings usually print: `iter 450/1000`, `step: 12`, tqdm's bars, counts like `12/100`.
const USUAL: [&str; 3] = [
    r"(?i)\b(?:iter(?:ation)?|step|batch)s?\b[ :=\[#]{0,3}(\d+)",
    r"(\d+)/\d+ \[\d",
    r"(\d+)\s?/\s?\d+",
];
/// Longer lines are no progress.
const LONGEST: usize = 4096;

/// A pattern that says nothing of progress.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PatternError {
    /// It is no regular expression.
    #[error("{0}")]
    Regex(#[from] regex_lite::Error),
    /// It has no group.
    #[error("it needs a group around the number of iterations done, such as 'step (\\d+)'")]
    NoGroup,
}

/// What tells progress.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    known: Vec<Regex>,
}

impl Pattern {
    /// A pattern of one's own, whose first group is the number of iterations done, or the usual ones.
    pub(crate) fn new(own: Option<&str>) -> Result<Self, PatternError> {
        let known = match own {
            Some(own) => vec![Regex::new(own)?],
            None => USUAL.iter().map(|text| Regex::new(text)).collect::<Result<_, _>>()?,
        };
        if known.iter().any(|regex| regex.captures_len() < 2) {
            return Err(PatternError::NoGroup);
        }
        Ok(Pattern { known })
    }

    /// The number of iterations that a line tells, and which pattern saw it. One that matched before is the one that
    /// counts: another would count something else.
    fn count(&self, line: &str, used: Option<usize>) -> Option<(usize, f64)> {
        let known = self.known.iter().enumerate();
        let mut fitting = known.filter(|(index, _)| used.is_none_or(|used| used == *index));
        fitting.find_map(|(index, regex)| {
            let group = regex.captures(line)?.get(1)?;
            Some((index, group.as_str().parse::<f64>().ok().filter(|count| count.is_finite())?))
        })
    }
}

/// One copy's progress over time.
#[derive(Clone, Default, Debug)]
pub(crate) struct Progress {
    used: Option<usize>,
    last: f64,
    /// Of epochs that are over.
    before: f64,
    /// Iterations done, and when that was said.
    pub(crate) said: Vec<(Instant, f64)>,
}

impl Progress {
    /// Reads a line of output.
    pub(crate) fn hear(&mut self, pattern: &Pattern, line: &[u8], at: Instant) {
        if line.len() > LONGEST {
            return;
        }
        let Some((used, count)) = pattern.count(&String::from_utf8_lossy(line), self.used) else {
            return;
        };
        self.used = Some(used);
        if count < self.last {
            // Counts begin anew with every epoch.
            self.before += self.last;
        }
        self.last = count;
        self.said.push((at, self.before + count));
    }

    /// How often something was told since then.
    pub(crate) fn words_since(&self, from: Instant) -> usize {
        self.said.len() - self.said.partition_point(|(at, _)| *at < from)
    }

    /// Iterations a second between two moments, by the first and the last word in between.
    pub(crate) fn rate(&self, from: Instant, until: Instant) -> Option<f64> {
        let mut within = self.said.iter().filter(|(at, _)| (from..=until).contains(at));
        let first = within.next()?;
        let last = within.next_back()?;
        let (span, done) = (last.0.duration_since(first.0).as_secs_f64(), last.1 - first.1);
        (span > 0.0 && done > 0.0).then(|| done / span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::Duration;

    fn heard(own: Option<&str>, lines: &[&str]) -> Vec<f64> {
        let pattern = Pattern::new(own).expect("a pattern");
        let (mut progress, now) = (Progress::default(), Instant::now());
        for line in lines {
            progress.hear(&pattern, line.as_bytes(), now);
        }
        progress.said.iter().map(|(_, count)| *count).collect()
    }

    #[test]
    fn usual_trainings_are_understood() {
        let emulated = "epoch 1/2 iter 450/1000 loss 0.4012 51.2 samples/s progress 45%";
        assert_eq!(heard(None, &[emulated]), [450.0]);
        let tqdm = " 45%|####5     | 450/1000 [00:10<00:12, 43.2it/s]";
        assert_eq!(heard(None, &[tqdm]), [450.0]);
        let lightning = "Epoch 0:  12%|#  | 12/100 [00:01<00:09,  9.1it/s, loss=2.3]";
        assert_eq!(heard(None, &[lightning]), [12.0]);
        assert_eq!(heard(None, &["step: 70, loss 3", "Step=80"]), [70.0, 80.0]);
        assert_eq!(heard(None, &["[ 3/40] train", "loading 12 files", "nothing"]), [3.0]);
        assert_eq!(heard(Some(r"done (\d+)"), &["step 4", "done 9"]), [9.0]);
    }

    #[test]
    fn epochs_add_up_and_one_pattern_is_kept_to() {
        let lines = ["iter 50/100", "iter 100/100", "iter 10/100", "eval 3/7", "iter 30/100"];
        assert_eq!(heard(None, &lines), [50.0, 100.0, 110.0, 130.0]);
    }

    #[test]
    fn a_rate_is_that_of_the_time_that_counts() {
        let (mut progress, began) = (Progress::default(), Instant::now());
        let at = |seconds| began + Duration::from_secs(seconds);
        progress.said = vec![(at(0), 1.0), (at(10), 100.0), (at(20), 150.0), (at(30), 200.0)];
        assert_eq!(progress.rate(at(10), at(30)), Some(5.0));
        assert_eq!(progress.rate(at(21), at(40)), None, "one word is no speed");
    }

    #[test]
    fn patterns_without_a_number_are_refused() {
        assert!(matches!(Pattern::new(Some("step")), Err(PatternError::NoGroup)));
        assert!(matches!(Pattern::new(Some("step (")), Err(PatternError::Regex(_))));
    }

    proptest! {
        #[test]
        fn no_output_confuses_it(lines in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 0..20)) {
            let pattern = Pattern::new(None).expect("patterns");
            let mut progress = Progress::default();
            for line in &lines {
                progress.hear(&pattern, line, Instant::now());
            }
            prop_assert!(progress.said.windows(2).all(|pair| pair[0].1 <= pair[1].1));
        }
    }
}
