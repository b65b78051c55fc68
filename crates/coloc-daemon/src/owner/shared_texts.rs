//! Texts and environments that many tasks have in common are kept once: thousands of tasks come from one shell.

use coloc_api::resource_limits::ResourceLimit;
use coloc_api::spec::TaskSpec;
use coloc_api::text::RawText;
use coloc_api::variables::Variables;
use rustc_hash::FxHashSet;
use std::collections::VecDeque;
use std::sync::Arc;

/// Nothing that is not needed any more is looked for below this many bytes.
const WORTH_A_SWEEP: usize = 1 << 20;

/// Of so many shells the limits are remembered.
const SHELLS: usize = 16;

/// Texts and environments of tasks that have not ended.
#[derive(Default, Debug)]
pub(crate) struct SharedTexts {
    known: FxHashSet<RawText>,
    environments: FxHashSet<Variables>,
    bytes: usize,
    /// Bytes that the last sweep left.
    left: usize,
    /// What the last few shells were held to.
    limits: VecDeque<Arc<[ResourceLimit]>>,
}

fn size(environment: &Variables) -> usize {
    size_of_val::<[_]>(environment)
}

impl SharedTexts {
    /// Replaces a submission's texts by shared texts, where these are known.
    pub(crate) fn share(&mut self, spec: &mut TaskSpec) {
        spec.environment = self.shared_environment(&spec.environment);
        let others = spec.script.iter_mut().chain([&mut spec.directory]);
        for text in spec.command.iter_mut().chain(others) {
            *text = self.shared(text);
        }
        match self.limits.iter().find(|known| **known == spec.limits) {
            Some(known) => spec.limits = known.clone(),
            None => {
                self.limits.truncate(SHELLS - 1);
                self.limits.push_front(spec.limits.clone());
            }
        }
        // As long as it is kept for each task, it should not be larger than it needs to be.
        spec.command.shrink_to_fit();
        if self.bytes > WORTH_A_SWEEP.max(self.left * 2) {
            self.sweep();
        }
    }

    fn shared(&mut self, text: &RawText) -> RawText {
        if let Some(known) = self.known.get(text) {
            return known.clone();
        }
        self.bytes += text.as_bytes().len();
        self.known.insert(text.clone());
        text.clone()
    }

    fn shared_environment(&mut self, environment: &Variables) -> Variables {
        if let Some(known) = self.environments.get(environment) {
            return known.clone();
        }
        let share = |(name, value): &(RawText, RawText)| (self.shared(name), self.shared(value));
        let shared: Variables = environment.iter().map(share).collect();
        self.bytes += size(&shared);
        self.environments.insert(shared.clone());
        shared
    }

    fn sweep(&mut self) {
        self.environments.retain(Variables::is_shared);
        self.known.retain(RawText::is_shared);
        let shared_texts = self.known.iter().map(|text| text.as_bytes().len()).sum::<usize>();
        self.bytes = shared_texts + self.environments.iter().map(size).sum::<usize>();
        self.left = self.bytes;
        // A burst that is over gives its room back.
        self.environments.shrink_to_fit();
        self.known.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::spec;

    #[test]
    fn one_text_for_all_and_none_when_they_are_gone() {
        let mut shared_texts = SharedTexts::default();
        let variables = || vec![("A".into(), "B".into()), ("C".into(), "B".into())].into();
        let with = || TaskSpec { environment: variables(), ..spec(&["train", "--lr"]) };
        let mut all: Vec<TaskSpec> = (0..3).map(|_| with()).collect();
        all.iter_mut().for_each(|spec| shared_texts.share(spec));
        assert_eq!(
            shared_texts.known.len(),
            6,
            "two words, a directory, and three of the environment"
        );
        assert!(std::ptr::eq(all[0].command[0].as_bytes(), all[2].command[0].as_bytes()));
        assert!(std::ptr::eq(&raw const *all[0].environment, &raw const *all[2].environment));
        drop(all);
        let large = "x".repeat(WORTH_A_SWEEP + 1);
        shared_texts.share(&mut spec(&[&large]));
        shared_texts.sweep();
        assert!(shared_texts.known.is_empty() && shared_texts.environments.is_empty());
        assert_eq!(shared_texts.bytes, 0);
    }
}
