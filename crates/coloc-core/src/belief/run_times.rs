//! How long tasks take, from the runs that ended: of their kind, of their user, and of all.

use coloc_model::{Millis, SignatureId, UserId};
use rustc_hash::FxHashMap;

/// Runs that are remembered of a kind, of a user, and over all.
const OF_KIND: usize = 12;
const OF_USER: usize = 50;
const OF_ALL: usize = 200;
/// Of a user with fewer runs, all others tell more.
const USER_KNOWN: usize = 3;
/// What is assumed before anything was seen, in seconds: run times spread over orders of magnitude.
const PRIOR: [f64; 7] = [60.0, 180.0, 600.0, 1200.0, 2400.0, 7200.0, 21_600.0];
/// The prior weighs as much as so many runs among all.
const PRIOR_RUNS: f64 = 2.0;

/// The last runs of something.
#[derive(Clone, Default, Debug)]
struct Samples {
    seconds: Vec<f64>,
    next: usize,
    sum: f64,
}

impl Samples {
    fn add(&mut self, seconds: f64, most: usize) {
        if self.seconds.len() < most {
            self.seconds.push(seconds);
        } else {
            self.seconds[self.next] = seconds;
            self.next = (self.next + 1) % most;
        }
        // Summed anew instead of adjusted, so that rounding never accumulates.
        self.sum = self.seconds.iter().sum();
    }

    fn len(&self) -> f64 {
        self.seconds.len() as f64
    }
}

/// A weighted mean of what is left.
#[derive(Default)]
struct Mean {
    sum: f64,
    weight: f64,
}

impl Mean {
    fn add(&mut self, samples: &[f64], done: f64, weight: f64) {
        // One that is about to end by a sample has outlived it.
        let outlived = done * 1.02 + 1.0;
        for &seconds in samples.iter().filter(|&&seconds| seconds > outlived) {
            self.sum += (seconds - done) * weight;
            self.weight += weight;
        }
    }

    fn value(&self) -> Option<f64> {
        (self.weight > 0.0).then(|| self.sum / self.weight)
    }
}

/// Run times that were seen.
#[derive(Clone, Default, Debug)]
pub(crate) struct RunTimes {
    of_kind: FxHashMap<SignatureId, Samples>,
    of_user: FxHashMap<UserId, Samples>,
    all: Samples,
    /// How many ended so far.
    pub(crate) ends: u64,
}

impl RunTimes {
    pub(crate) fn learn(&mut self, kind: SignatureId, user: UserId, ran: Millis) {
        let seconds = ran.secs();
        self.of_kind.entry(kind).or_default().add(seconds, OF_KIND);
        self.of_user.entry(user).or_default().add(seconds, OF_USER);
        self.all.add(seconds, OF_ALL);
        self.ends += 1;
    }

    /// The Gittins rank: the least work per task that ends, over all ways to try a task for a while. Of a kind that was
    /// seen twice its own runs tell, else all.
    pub(crate) fn gittins(&self, kind: SignatureId, user: UserId, done: f64) -> f64 {
        let own = self.of_kind.get(&kind).map_or(&[][..], |own| &own.seconds);
        let own = match self.of_user.get(&user) {
            Some(of_user) if own.is_empty() && of_user.seconds.len() >= USER_KNOWN => {
                &of_user.seconds
            }
            _ => own,
        };
        let outlived = done * 1.02 + 1.0;
        let left = |seconds: &[f64], weight: f64| -> Vec<(f64, f64)> {
            let more = seconds.iter().filter(|&&seconds| seconds > outlived);
            more.map(|seconds| (seconds - done, weight)).collect()
        };
        let mut samples = left(own, 1.0);
        if own.len() < 2 || samples.is_empty() {
            let others = 1.0 / (self.all.len() + PRIOR_RUNS);
            samples.extend(left(&self.all.seconds, others));
            samples.extend(left(&PRIOR, others * PRIOR_RUNS / PRIOR.len() as f64));
        }
        samples.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let all: f64 = samples.iter().map(|(_, weight)| weight).sum();
        let (mut ended, mut spent) = (0.0, 0.0);
        let ranks = samples.iter().map(|&(left, weight)| {
            ended += weight;
            spent += left * weight;
            (spent + left * (all - ended)) / ended
        });
        let best = ranks.fold(f64::INFINITY, f64::min);
        if best.is_finite() { best } else { done.max(60.0) }
    }

    /// Seconds that a task is expected to take from now on, given that it has run for `done`. Of a kind that was never
    /// seen, its user's runs tell: otherwise a new name would make a long task look like any other.
    pub(crate) fn expected_left(&self, kind: SignatureId, user: UserId, done: f64) -> f64 {
        let own = self.of_kind.get(&kind);
        if own.is_none()
            && let Some(of_user) = self.of_user.get(&user).filter(|s| s.seconds.len() >= USER_KNOWN)
        {
            let mut mean = Mean::default();
            mean.add(&of_user.seconds, done, 1.0);
            if let Some(left) = mean.value() {
                return left;
            }
        }
        let others = 1.0 / (self.all.len() + PRIOR_RUNS);
        let of_prior = others * PRIOR_RUNS / PRIOR.len() as f64;
        if done == 0.0 {
            let (sum, count) = own.map_or((0.0, 0.0), |own| (own.sum, own.len()));
            let prior: f64 = PRIOR.iter().sum();
            // All others and the prior together weigh as much as one run of the kind.
            return (sum + self.all.sum * others + prior * of_prior) / (count + 1.0);
        }
        let mut mean = Mean::default();
        mean.add(own.map_or(&[], |own| &own.seconds), done, 1.0);
        mean.add(&self.all.seconds, done, others);
        mean.add(&PRIOR, done, of_prior);
        // It has outlived all: what has lasted goes on.
        mean.value().unwrap_or(done / 2.0 + 30.0)
    }
}
