//! What tasks run, and what they wrote down of it.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// The script that every task runs.
const SCRIPT: &str = include_str!("program.sh");
const COLOC: &str = env!("CARGO_BIN_EXE_coloc");

/// What a program does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Work {
    /// Ends with 0 after a while.
    Succeed { millis: u64 },
    /// Ends with 3 after a while.
    Fail { millis: u64 },
    /// Its first attempt ends with 3, others with 0.
    Flaky { millis: u64 },
    /// Never ends by itself.
    Never,
    /// Its first attempt ends when the test says so, others at once.
    Wait,
    /// An emulated training that needs more memory than its GPU has.
    TooLarge,
    /// An emulated training that needs more memory than it said.
    Grows,
}

/// What a program does when it is told to go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Manner {
    /// Leaves and says 0, as one that has saved its work.
    Saves,
    /// Dies of the signal.
    Dies,
    /// Goes on.
    Deaf,
}

/// A program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Program {
    pub(super) work: Work,
    pub(super) manner: Manner,
}

impl Program {
    /// The part of a specification that runs it.
    pub(super) fn spec(&self, home: &Path, name: &str) -> Value {
        let manner = match self.manner {
            Manner::Saves => "saves",
            Manner::Dies => "dies",
            Manner::Deaf => "deaf",
        };
        let (work, millis) = match self.work {
            Work::Succeed { millis } => ("succeed", millis),
            Work::Fail { millis } => ("fail", millis),
            Work::Flaky { millis } => ("flaky", millis),
            Work::Never => ("never", 0),
            Work::Wait => ("wait", 0),
            Work::TooLarge | Work::Grows => ("run", 0),
        };
        let seconds = format!("{}.{:03}", millis / 1000, millis % 1000);
        let script = home.join("program.sh").display().to_string();
        let mut command = vec!["sh".to_owned(), script];
        command.extend([work.to_owned(), manner.to_owned(), seconds]);
        let memory = match self.work {
            Work::TooLarge => Some("60G"),
            Work::Grows => Some("12G"),
            _ => None,
        };
        let train =
            |memory| [COLOC, "emu", "train", "--seconds", "40", "--sm", "0.1", "--memory", memory];
        command.extend(memory.iter().flat_map(|memory| train(memory)).map(str::to_owned));
        let path = std::env::var("PATH").unwrap_or_default();
        let home = home.display().to_string();
        json!({
            "name": name, "command": command, "directory": "/", "gpus": 1,
            "environment": [["PATH", path], ["CRASH_HOME", home]],
        })
    }

    /// Makes what programs need in a directory.
    pub(super) fn prepare(home: &Path) {
        std::fs::write(home.join("program.sh"), SCRIPT).expect("the directory is ours");
        std::fs::create_dir(home.join("last")).expect("the directory is ours");
        std::fs::write(home.join("ledger"), "").expect("the directory is ours");
    }

    /// Lets programs end that wait for it.
    pub(super) fn let_go(home: &Path) {
        std::fs::write(home.join("go"), "").expect("the directory is ours");
    }
}

/// What the programs of one attempt wrote.
#[derive(Clone, Default, PartialEq, Debug)]
pub(super) struct Attempt {
    /// Each start, by its PID: more than one is one too many.
    pub(super) starts: Vec<u32>,
    pub(super) started: f64,
    pub(super) told: bool,
    pub(super) left: bool,
    /// It ended by itself: when, and with which code.
    pub(super) ended: Option<(f64, i32)>,
    /// An earlier attempt was still there.
    pub(super) overlaps: bool,
    /// The control group that it was in.
    pub(super) group: String,
}

/// What programs wrote, by task and attempt.
#[derive(Clone, Default, Debug)]
pub(super) struct Ledger {
    pub(super) tasks: BTreeMap<u32, BTreeMap<u32, Attempt>>,
}

impl Ledger {
    pub(super) fn read(home: &Path) -> Self {
        Ledger::of(&std::fs::read_to_string(home.join("ledger")).expect("the ledger is there"))
    }

    pub(super) fn of(text: &str) -> Self {
        let mut ledger = Ledger::default();
        for line in text.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
            ledger.enter(line).unwrap_or_else(|| panic!("a program wrote {line:?}"));
        }
        ledger
    }

    fn enter(&mut self, line: &str) -> Option<()> {
        let mut words = line.split_whitespace();
        let what = words.next()?;
        let (task, attempt) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let (pid, at): (u32, f64) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let rest = words.next();
        let attempt: &mut Attempt = self.tasks.entry(task).or_default().entry(attempt).or_default();
        match what {
            "S" => {
                attempt.starts.push(pid);
                attempt.started = at;
                attempt.group = rest?.to_owned();
            }
            "T" => attempt.told = true,
            "L" => attempt.left = true,
            "E" => attempt.ended = Some((at, rest?.parse().ok()?)),
            "O" => attempt.overlaps = true,
            _ => return None,
        }
        Some(())
    }

    /// The attempts of a task that started.
    pub(super) fn attempts(&self, task: u32) -> impl Iterator<Item = (u32, &Attempt)> {
        self.tasks.get(&task).into_iter().flatten().map(|(number, attempt)| (*number, attempt))
    }

    /// How often programs of a task started.
    pub(super) fn starts(&self, task: u32) -> usize {
        self.attempts(task).map(|(_, attempt)| attempt.starts.len()).sum()
    }

    /// Attempts that ended by themselves with this code.
    pub(super) fn ended_with(&self, task: u32, code: i32) -> usize {
        let ended = |attempt: &Attempt| attempt.ended.is_some_and(|(_, ended)| ended == code);
        self.attempts(task).filter(|(_, attempt)| ended(attempt)).count()
    }
}
