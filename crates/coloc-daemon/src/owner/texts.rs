//! Texts that many tasks have in common are kept once: thousands of tasks come from one shell.

use crate::spec::TaskSpec;
use crate::text::RawText;
use rustc_hash::FxHashSet;

/// Nobody looks for texts that are not needed any more below this many bytes.
const WORTH_A_SWEEP: usize = 1 << 20;

/// Texts of tasks that have not ended.
#[derive(Default)]
pub(super) struct Texts {
    known: FxHashSet<RawText>,
    bytes: usize,
    /// Bytes that the last sweep left.
    left: usize,
}

impl Texts {
    /// Replaces a submission's texts by those that are known.
    pub(super) fn share(&mut self, spec: &mut TaskSpec) {
        let variables = spec.environment.iter_mut().flat_map(|(name, value)| [name, value]);
        let others = spec.script.iter_mut().chain([&mut spec.directory]).chain(variables);
        for text in spec.command.iter_mut().chain(others) {
            match self.known.get(text) {
                Some(known) => *text = known.clone(),
                None => {
                    self.bytes += text.as_bytes().len();
                    self.known.insert(text.clone());
                }
            }
        }
        if self.bytes > WORTH_A_SWEEP.max(self.left * 2) {
            self.sweep();
        }
    }

    fn sweep(&mut self) {
        self.known.retain(|text| text.is_shared());
        self.bytes = self.known.iter().map(|text| text.as_bytes().len()).sum();
        self.left = self.bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::tests::spec;

    #[test]
    fn one_text_for_all_and_none_when_they_are_gone() {
        let mut texts = Texts::default();
        let mut all: Vec<TaskSpec> = (0..3).map(|_| spec(&["train", "--lr"])).collect();
        all.iter_mut().for_each(|spec| texts.share(spec));
        assert_eq!(texts.known.len(), 3, "two words and a directory");
        assert!(std::ptr::eq(all[0].command[0].as_bytes(), all[2].command[0].as_bytes()));
        drop(all);
        let large = "x".repeat(WORTH_A_SWEEP + 1);
        texts.share(&mut spec(&[&large]));
        texts.sweep();
        assert!(texts.known.is_empty());
    }
}
