//! What came of it, for people.

use super::setup::Plan;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

/// What kind of fault.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Sort {
    /// Something that was acknowledged is not known any more.
    Lost,
    /// Something happened twice.
    Doubled,
    /// A task did not end, or stands, as it should.
    Wrong,
    /// A process, group or instance is left.
    Left,
    /// The daemon did not start, or not soon.
    Start,
}

/// Something that must not be.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Fault {
    pub(super) sort: Sort,
    pub(super) task: Option<u32>,
    pub(super) what: String,
    /// What is known of the task.
    pub(super) story: String,
}

impl Fault {
    pub(super) fn of(sort: Sort, task: u32, what: &str) -> Self {
        Fault { sort, task: Some(task), what: what.to_owned(), story: String::new() }
    }

    pub(super) fn general(sort: Sort, what: String) -> Self {
        Fault { sort, task: None, what, story: String::new() }
    }
}

/// What came of one setup.
#[derive(Clone, Default, Debug)]
pub(super) struct Outcome {
    pub(super) name: &'static str,
    pub(super) groups: bool,
    pub(super) kills: usize,
    pub(super) tasks: usize,
    pub(super) attempts: usize,
    pub(super) preemptions: u64,
    pub(super) acknowledged: usize,
    pub(super) unanswered: usize,
    pub(super) starts: Vec<Duration>,
    pub(super) faults: Vec<Fault>,
    pub(super) log: String,
}

impl Outcome {
    fn count(&self, sort: Sort) -> usize {
        self.faults.iter().filter(|fault| fault.sort == sort).count()
    }

    fn row(&self) -> String {
        let millis = |part: f64| percentile(&self.starts, part).as_millis();
        format!(
            "{:<17} {:<7} {:>5} {:>6} {:>8} {:>9} {:>6} {:>10} {:>5} {:>7} {:>6} {:>5} {:>6}  {:>4} {:>4} {:>4}",
            self.name,
            if self.groups { "groups" } else { "session" },
            self.kills,
            self.tasks,
            self.attempts,
            self.preemptions,
            self.acknowledged,
            self.unanswered,
            self.count(Sort::Lost),
            self.count(Sort::Doubled),
            self.count(Sort::Wrong),
            self.count(Sort::Left),
            self.count(Sort::Start),
            millis(0.5),
            millis(0.99),
            millis(1.0),
        )
    }

    /// Each fault in a line, then the stories of two of each kind, then the daemon's last words.
    fn tell_faults(&self, text: &mut String) {
        const MOST_LINES: usize = 40;
        const MOST_STORIES: usize = 2;
        let line = |fault: &Fault| {
            let task = fault.task.map_or(String::new(), |task| format!("task {task} "));
            format!("  {:?}: {task}{}", fault.sort, fault.what)
        };
        let _ = writeln!(text, "\n{}: {} faults", self.name, self.faults.len());
        for fault in self.faults.iter().take(MOST_LINES) {
            let _ = writeln!(text, "{}", line(fault));
        }
        let mut told = BTreeMap::<String, usize>::new();
        for fault in self.faults.iter().filter(|fault| fault.task.is_some()) {
            // Alike but for numbers.
            let shape = fault.what.replace(|letter: char| letter.is_ascii_digit(), "");
            let count = told.entry(shape).or_default();
            *count += 1;
            if *count <= MOST_STORIES {
                let _ = writeln!(text, "\n{}\n{}", line(fault), fault.story);
            }
        }
        let _ = writeln!(text, "  the daemon's log ends:\n{}", self.log);
    }

    /// All of them together.
    fn sum(outcomes: &[Outcome]) -> Self {
        let mut sum = Outcome { name: "all", ..Outcome::default() };
        for outcome in outcomes {
            sum.kills += outcome.kills;
            sum.tasks += outcome.tasks;
            sum.attempts += outcome.attempts;
            sum.preemptions += outcome.preemptions;
            sum.acknowledged += outcome.acknowledged;
            sum.unanswered += outcome.unanswered;
            sum.starts.extend(&outcome.starts);
            sum.faults.extend(outcome.faults.iter().cloned());
        }
        sum
    }
}

/// The span that this part of them does not exceed.
pub(super) fn percentile(spans: &[Duration], part: f64) -> Duration {
    let mut sorted = spans.to_vec();
    sorted.sort_unstable();
    let place = (part * sorted.len() as f64).ceil() as usize;
    sorted.get(place.saturating_sub(1)).copied().unwrap_or_default()
}

/// The table, and what is known of each fault.
pub(super) fn report(plan: &Plan, outcomes: &[Outcome]) -> String {
    let mut text = format!("crash test: COLOC_CRASH_SEED=0x{:x}\n", plan.seed);
    text.push_str(
        "setup             kept by kills  tasks attempts preempted  acked unanswered  lost doubled  wrong  left starts   p50  p99  max ms\n",
    );
    for outcome in outcomes {
        let _ = writeln!(text, "{}", outcome.row());
    }
    let sum = Outcome::sum(outcomes).row();
    let _ = writeln!(text, "{}", sum.replacen("session", "       ", 1));
    for outcome in outcomes.iter().filter(|outcome| !outcome.faults.is_empty()) {
        outcome.tell_faults(&mut text);
    }
    text
}
