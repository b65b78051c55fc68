//! Signs of training at the end of a task's output.

use regex_lite::Regex;
use rustc_hash::FxHasher;
use std::hash::{Hash as _, Hasher as _};
use std::sync::LazyLock;

/// What a line of training has: a word of it, and a number. Bars of other work, such as loading, have no such word.
static TRAINS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)\b(?:epoch|iter(?:ation)?|step|batch|loss)s?\b[^0-9]{0,4}[0-9]").ok()
});

/// The last line of a log's end that speaks of training, as a number that another line has not.
pub(super) fn sign_of_training(end: &[u8]) -> Option<u64> {
    let text = String::from_utf8_lossy(end);
    let pattern = TRAINS.as_ref()?;
    let line = text.rsplit(['\n', '\r']).find(|line| pattern.is_match(line))?;
    let mut hasher = FxHasher::default();
    line.hash(&mut hasher);
    Some(hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn training_is_told_from_loading() {
        let sign = |text: &str| sign_of_training(text.as_bytes());
        for trains in [
            "epoch 1/2 iter 450/1000 loss 0.4012",
            "Epoch: [0][ 10/625]\tTime 0.1",
            "{'loss': 0.51, 'epoch': 0.1}",
            "step=120, lr=0.1",
            "Train Epoch: 3 [640/60000 (1%)]",
            "  3%|x| 3/100 [00:01<00:40, 2.4it/s, loss=0.4]",
        ] {
            assert!(sign(trains).is_some(), "{trains}");
        }
        for loads in [
            "Map: 12%|#    | 1200/10000 [00:01<00:08, 1000 examples/s]",
            "loading shard 12 of 40",
            "Downloading: 40%",
            "",
        ] {
            assert_eq!(sign(loads), None, "{loads}");
        }
        assert_ne!(sign("step 1\nsaved"), sign("step 1\rstep 2\nsaved"));
        assert_eq!(sign("step 2\n"), sign("noise\nstep 2\nsaved"));
        assert!(sign_of_training(b"\xff\xfe step 3 \xff").is_some());
    }
}
