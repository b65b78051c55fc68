//! What the end of a task's output says of its training: a sign that it goes on, and how far it is.

use regex_lite::Regex;
use rustc_hash::FxHasher;
use std::hash::{Hash as _, Hasher as _};
use std::sync::LazyLock;

/// What a line of training has: a word of it, and a number. Bars of other work, such as loading, have no such word.
static TRAINS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)\b(?:epoch|iter(?:ation)?|step|batch|loss)s?\b[^0-9]{0,4}[0-9]").ok()
});
/// `iter 450/1000`, `step: 12`, `Batch [ 3/40]`.
static COUNTS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)\b(iter|step|batch)(?:ation|e)?s?\b[ :=\[#]{0,4}(\d+)(?:\s?(?:/|of)\s?(\d+))?")
        .ok()
});
/// `epoch 1/2`, `Epoch: [0]`.
static EPOCHS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)\b(epoch)s?\b[ :=\[#]{0,4}(\d+)(?:\s?(?:/|of)\s?(\d+))?").ok()
});
/// A bar without a name, which might be of anything, but of a training most of all: ` 45%|####5     | 450/1000 [00:10<`.
static BAR: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^\s*(\d+)%\|[^|]*\|\s*(\d+)/(\d+) \[\d").ok());
/// `[640/60000 (1%)]`, in a line that speaks of training.
static OF_ALL: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"()(\d+)\s?/\s?(\d+)").ok());

/// `progress 27%`: how far all of it is, in so many words.
static PROGRESS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)\bprogress\b[ :=]{0,3}(\d{1,3})(?:\.(\d{1,2})\d*)?\s?%").ok()
});

/// How many of how many, and of what.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Count {
    /// The number that was told.
    pub number: u64,
    /// The number of all, if it was told.
    pub total: Option<u64>,
}

/// How far a log says that its training is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Counted {
    /// Iterations, of the epoch if there is one.
    pub iterations: Option<Count>,
    /// What they are called.
    pub unit: &'static str,
    /// Epochs.
    pub epochs: Option<Count>,
    /// How far all of it is, in hundredths of a percent.
    pub percent: Option<u32>,
}

/// The last line of a log's end that speaks of training, as a number that another line has not.
pub(super) fn sign_of_training(end: &[u8]) -> Option<u64> {
    let text = String::from_utf8_lossy(end);
    let pattern = TRAINS.as_ref()?;
    let line = text.rsplit(['\n', '\r']).find(|line| pattern.is_match(line))?;
    let mut hasher = FxHasher::default();
    line.hash(&mut hasher);
    Some(hasher.finish())
}

/// How far a log's end says that the training is: by its last line with a count, and the last epoch up to there.
pub(super) fn count(end: &[u8]) -> Option<Counted> {
    let text = String::from_utf8_lossy(end);
    let lines: Vec<&str> = text.split(['\n', '\r']).collect();
    let counts = lines.iter().enumerate().rev();
    let iterations = counts.clone().find_map(|(at, line)| Some((at, iterations(line)?)));
    let epochs = counts.clone().find_map(|(at, line)| Some((at, matched(&EPOCHS, line)?)));
    let said = counts.clone().find_map(|(at, line)| Some((at, percent(line)?)));
    let last = iterations.map(|(at, _)| at).max(epochs.map(|(at, _)| at));
    // What was said before the last count is out of date.
    let percent = said.filter(|(at, _)| Some(*at) >= last).map(|(_, percent)| percent);
    match (iterations, epochs) {
        // An epoch that was told last has no count yet, or its lines have none.
        (Some((told, (count, unit))), Some((epoch, epochs))) if epoch <= told => {
            Some(Counted { iterations: Some(count), unit, epochs: Some(epochs), percent })
        }
        (_, Some((_, epochs))) => {
            Some(Counted { iterations: None, unit: "epoch", epochs: Some(epochs), percent })
        }
        (Some((_, (count, unit))), None) => {
            Some(Counted { iterations: Some(count), unit, epochs: None, percent })
        }
        // Other work has progress too.
        (None, None) => None,
    }
}

/// What a line says of all of its training, in hundredths of a percent.
fn percent(line: &str) -> Option<u32> {
    let found = PROGRESS.as_ref()?.captures(line)?;
    let whole: u32 = found.get(1)?.as_str().parse().ok()?;
    let digits = found.get(2).map_or("", |digits| digits.as_str());
    let rest: u32 = format!("{digits:0<2}").parse().ok()?;
    Some(whole * 100 + rest).filter(|percent| *percent <= 10_000)
}

fn iterations(line: &str) -> Option<(Count, &'static str)> {
    if let Some(count) = matched(&COUNTS, line) {
        let word = COUNTS.as_ref()?.captures(line)?.get(1)?.as_str().to_ascii_lowercase();
        let unit = ["step", "batch"].into_iter().find(|unit| *unit == word);
        return Some((count, unit.unwrap_or("iter")));
    }
    if let Some(count) = matched(&BAR, line) {
        return Some((count, "iter"));
    }
    if !TRAINS.as_ref()?.is_match(line) {
        return None;
    }
    // `Epoch 3/10` counts epochs, and what stands behind it iterations.
    let behind = EPOCHS.as_ref()?.find(line).map_or(line, |epoch| &line[epoch.end()..]);
    Some((matched(&OF_ALL, behind)?, "iter"))
}

/// The number, and that of all, that a pattern finds in its second and third group.
fn matched(pattern: &LazyLock<Option<Regex>>, line: &str) -> Option<Count> {
    let found = pattern.as_ref()?.captures(line)?;
    let number = found.get(2)?;
    let is_fraction = line[number.end()..]
        .strip_prefix('.')
        .is_some_and(|rest| rest.starts_with(|digit: char| digit.is_ascii_digit()));
    if is_fraction {
        return None;
    }
    let total = found.get(3).and_then(|total| total.as_str().parse().ok());
    Some(Count { number: number.as_str().parse().ok()?, total: total.filter(|total| *total > 0) })
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

    #[test]
    fn usual_trainings_are_counted() {
        let told = |text: &str| {
            let told = count(text.as_bytes())?;
            let pair = |count: Count| (count.number, count.total);
            Some((told.iterations.map(pair), told.unit, told.epochs.map(pair)))
        };
        let both = |done, total, epoch| Some((Some((done, Some(total))), "iter", epoch));
        let emulated = "epoch 1/2 iter 450/1000 loss 0.4012 51.2 samples/s progress 45%";
        assert_eq!(told(emulated), both(450, 1000, Some((1, Some(2)))));
        let tqdm = "loading\n 45%|####5     | 450/1000 [00:10<00:12, 43.2it/s]\r";
        assert_eq!(told(tqdm), both(450, 1000, None));
        let lightning = "Epoch 0:  12%|#  | 12/100 [00:01<00:09,  9.1it/s, loss=2.3]";
        assert_eq!(told(lightning), both(12, 100, Some((0, None))));
        let keras = "Epoch 3/10\n 45/100 [====>.....] - ETA: 1s - loss: 0.3012";
        assert_eq!(told(keras), both(45, 100, Some((3, Some(10)))));
        let example = "Train Epoch: 3 [640/60000 (1%)]\tLoss: 0.5";
        assert_eq!(told(example), both(640, 60000, Some((3, None))));
        assert_eq!(told("Epoch: [0][ 10/625]\tTime 0.1"), both(10, 625, Some((0, None))));
        assert_eq!(told("step: 70, loss 3"), Some((Some((70, None)), "step", None)));
        assert_eq!(told("Iteration 5 of 20"), both(5, 20, None));
        assert_eq!(told("iter 9/9\nEpoch 4/10"), Some((None, "epoch", Some((4, Some(10))))));
        let hugging_face = "{'loss': 0.51, 'epoch': 0.1}\r  3%|x| 3/100 [00:01<00:40, 2.4it/s]";
        assert_eq!(told(hugging_face), both(3, 100, None));
    }

    #[test]
    fn what_is_said_of_all_is_read() {
        let said = |text: &str| count(text.as_bytes()).and_then(|told| told.percent);
        assert_eq!(said("epoch 3/10 iter 216/800 loss 0.4 progress 27%"), Some(2700));
        assert_eq!(said("step 7\nProgress: 12.5 %\nok"), Some(1250));
        assert_eq!(said("progress 27%\niter 300/800"), None, "that was before");
        assert_eq!(said("step 3, progress 270%"), None);
    }

    #[test]
    fn other_work_and_nonsense_are_not_counted() {
        for text in [
            "Map: 12%|#    | 1200/10000 [00:01<00:08, 1000 examples/s]",
            "loading shard 12/40",
            "batch size 32, batch_size=32, epoch 0.5",
            "step 99999999999999999999999",
            "",
        ] {
            assert_eq!(count(text.as_bytes()), None, "{text}");
        }
        assert!(
            count(b"\xff\xfe step 3/0 \xff")
                .is_some_and(|told| { told.iterations == Some(Count { number: 3, total: None }) })
        );
    }
}
