//! Owners that meet whatever can happen, in random order, and crash at any write: nothing that was acknowledged is lost, nothing
//! runs twice, no GPU is promised beyond its capacity, and the journal says what the owner knows.
//!
//! `COLOC_SIMULATION_SEED=N` replays a seed, and `COLOC_SIMULATION_SEEDS=N` runs so many.

mod actions;
mod checks;
mod random;

use super::*;
use crate::owner::{Changed, Submitted};
use random::Random;
use std::collections::BTreeSet;
use tokio::sync::oneshot::error::TryRecvError;

/// Seeds that a test runs by default: a minute's worth on two cores without optimization.
const SEEDS: u64 = 2_000;
/// Things that happen in each.
const STEPS: u32 = 80;

/// A run that broke a rule.
#[derive(Debug)]
struct Broken {
    seed: u64,
    step: u32,
    what: String,
}

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Broken { seed, step, what } = self;
        write!(f, "seed {seed}, step {step}: {what}\nCOLOC_SIMULATION_SEED={seed} replays it")
    }
}

/// What was tried, so that a test notices when nothing is.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Counts {
    seeds: u64,
    acknowledged: usize,
    restarts: usize,
    launches: usize,
    full_disks: usize,
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.seeds += other.seeds;
        self.acknowledged += other.acknowledged;
        self.restarts += other.restarts;
        self.launches += other.launches;
        self.full_disks += other.full_disks;
    }
}

/// What was asked for.
enum Asked {
    Submission(Answer<Submitted>),
    Change(Answer<Vec<Changed>>, Change),
}

/// A run under way.
struct Run {
    kit: OwnerKit,
    random: Random,
    step: u32,
    /// What happened last.
    last: String,
    /// Tasks whose submission was answered.
    acknowledged: BTreeSet<TaskId>,
    /// What was asked for and not answered yet.
    asked: Vec<Asked>,
    counts: Counts,
}

impl Run {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let (fleet, policy) = (random.fleet(), random.policy());
        Run {
            kit: OwnerKit::new(fleet, policy),
            random,
            step: 0,
            last: String::new(),
            acknowledged: BTreeSet::new(),
            asked: Vec::new(),
            counts: Counts { seeds: 1, ..Counts::default() },
        }
    }

    /// Things happen, and then all is well until every task has ended.
    fn play(&mut self) {
        for step in 0..STEPS {
            self.step = step;
            self.happens();
            if self.random.one_in(4) {
                // More comes before the owner has its turn.
                continue;
            }
            self.turn();
            self.check();
        }
        self.all_is_well();
    }

    /// The owner has its turn. If it crashes it starts again.
    fn turn(&mut self) {
        self.kit.turn();
        self.hear();
        while self.kit.owner.is_none() {
            self.counts.restarts += 1;
            self.asked.clear();
            if self.kit.try_to_start().is_err() {
                self.kit.disk.fill(false);
            }
        }
    }

    /// Hears what was answered.
    fn hear(&mut self) {
        let alone = self.asked.len() == 1;
        let mut waiting = Vec::new();
        for mut asked in std::mem::take(&mut self.asked) {
            match &mut asked {
                Asked::Submission(answer) => match answer.try_recv() {
                    Ok(Ok(submitted)) => self.acknowledge(&submitted.ids),
                    Err(TryRecvError::Empty) => waiting.push(asked),
                    _ => {}
                },
                Asked::Change(answer, change) => match answer.try_recv() {
                    Ok(Ok(each)) if alone => self.check_changed(&each, change),
                    Err(TryRecvError::Empty) => waiting.push(asked),
                    _ => {}
                },
            }
        }
        self.asked = waiting;
    }

    fn acknowledge(&mut self, ids: &[TaskId]) {
        self.counts.acknowledged += ids.len();
        for &task in ids {
            if self.kit.disk.row(task).is_none() {
                panic!("task {task} was acknowledged, and is not on the disk");
            }
        }
        self.acknowledged.extend(ids);
    }

    /// Time passes.
    fn pass(&mut self, span: Duration) {
        const MOST_TURNS: u32 = 300;
        let mut left = span;
        for _ in 0..MOST_TURNS {
            if left == Duration::ZERO {
                return;
            }
            let span = self.kit.owner().timeout().max(Duration::from_millis(1)).min(left);
            self.kit.time.pass(span);
            left = left.saturating_sub(span);
            self.turn();
        }
    }
}

fn run(seed: u64) -> Result<Counts, Broken> {
    let mut run = Run::new(seed);
    let played = catch_unwind(AssertUnwindSafe(|| run.play()));
    run.counts.launches = run.kit.machine.launches();
    played.map(|()| run.counts).map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|&text| text.to_owned()));
        let what = text.unwrap_or_else(|| "a panic".to_owned());
        Broken { seed, step: run.step, what: format!("after \"{}\": {what}", run.last) }
    })
}

/// Runs seeds on two threads until one breaks a rule.
fn run_all(seeds: std::ops::Range<u64>) -> Result<Counts, Broken> {
    const THREADS: u64 = 2;
    let stop = std::sync::atomic::AtomicBool::new(false);
    let work = |first: u64| {
        let mut all = Counts::default();
        for seed in (seeds.start + first..seeds.end).step_by(THREADS as usize) {
            if stop.load(std::sync::atomic::Ordering::Relaxed) {
                break;
            }
            all += run(seed).inspect_err(|_| {
                stop.store(true, std::sync::atomic::Ordering::Relaxed);
            })?;
        }
        Ok(all)
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|first| scope.spawn(move || work(first))).collect();
        let mut all = Counts::default();
        for thread in threads {
            all += thread.join().expect("panics are caught")?;
        }
        Ok(all)
    })
}

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

#[test]
fn whatever_happens_nothing_is_lost_or_runs_twice() {
    let seeds = match variable("COLOC_SIMULATION_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..variable("COLOC_SIMULATION_SEEDS").unwrap_or(SEEDS),
    };
    let expected = seeds.end - seeds.start;
    let counts = run_all(seeds).unwrap_or_else(|broken| panic!("{broken}"));
    println!("{counts:?}");
    assert_eq!(counts.seeds, expected);
    if expected >= 100 {
        let seeds = expected as usize;
        assert!(counts.acknowledged > seeds * 5, "{counts:?}");
        assert!(counts.launches > seeds * 3 && counts.restarts > seeds, "{counts:?}");
        assert!(counts.full_disks > seeds / 10, "{counts:?}");
    }
}

/// The simulation notices a broken rule, by a check that says so in one of these ways.
fn is_noticed(which: Sabotage, words: &[&str]) {
    const SOON: u64 = 100;
    sabotage(Some(which));
    let is_meant = |broken: &Broken| words.iter().any(|word| broken.what.contains(word));
    let broken = (0..SOON).find_map(|seed| run(seed).err().filter(is_meant));
    sabotage(None);
    let broken = broken.expect("a broken rule is noticed");
    println!("{which:?}: {broken}");
}

#[test]
fn an_answer_before_it_is_written_down_is_noticed() {
    is_noticed(Sabotage::AnswerUnwritten, &["and is not on the disk"]);
}

#[test]
fn a_signal_before_its_row_is_noticed() {
    is_noticed(Sabotage::SignalUnwritten, &["without a row"]);
}

#[test]
fn a_skipped_claim_is_noticed() {
    is_noticed(Sabotage::Claim, &["runs twice"]);
}

#[test]
fn a_dropped_ledger_entry_is_noticed() {
    is_noticed(Sabotage::LedgerEntry, &["holds ["]);
}
