//! What must hold after every kill, and at the end.

use super::model::{Asked, End, Task, When, submission_of};
use super::program::{Ledger, Work};
use super::report::{Fault, Sort};
use super::setup::{SCALE, Setup};
use serde_json::Value;
use std::collections::BTreeMap;

/// The clock that programs read has hundredths of a second.
const CLOCK: f64 = 0.011;
const OVER: [&str; 6] = ["completed", "failed", "cancelled", "timed_out", "out_of_memory", "lost"];

/// The tasks as the daemon tells of them.
pub(super) struct Seen<'a> {
    tasks: BTreeMap<u32, &'a Value>,
    ledger: &'a Ledger,
    setup: Setup,
}

pub(super) fn id_of(task: &Value) -> u32 {
    task["id"].as_u64().expect("a number") as u32
}

pub(super) fn is_over(task: &Value) -> bool {
    task["state"].as_str().is_some_and(|state| OVER.contains(&state))
}

impl<'a> Seen<'a> {
    pub(super) fn new(listed: &'a [Value], ledger: &'a Ledger, setup: Setup) -> Self {
        let tasks = listed.iter().map(|task| (id_of(task), task)).collect();
        Seen { tasks, ledger, setup }
    }

    /// Compares everything that a client knows with what is told.
    pub(super) fn check(&self, tasks: &mut [Task]) -> Vec<Fault> {
        let mut faults = Vec::new();
        for task in tasks {
            let Some(told) = self.tasks.get(&task.id) else {
                faults.push(Fault::of(Sort::Lost, task.id, "is not known any more"));
                continue;
            };
            let found = [self.fields(task, told), self.standing(task, told), self.programs(task)];
            faults.extend(found.into_iter().flatten());
        }
        faults
    }

    /// Tasks that no client knows of, by the names that clients give: a submission that counted twice.
    pub(super) fn strangers<'t>(&self, known: impl Iterator<Item = &'t Task>) -> Vec<Fault> {
        let known: Vec<u32> = known.map(|task| task.id).collect();
        let ours = |task: &Value| {
            let name = submission_of(task["name"].as_str().unwrap_or(""));
            name.starts_with(&format!("{}-", self.setup.name))
        };
        let strange = self.tasks.iter().filter(|(id, task)| ours(task) && !known.contains(id));
        let told = strange.map(|(id, _)| Fault::of(Sort::Doubled, *id, "was never submitted"));
        let ran = self.ledger.tasks.keys().filter(|id| !self.tasks.contains_key(id));
        told.chain(ran.map(|id| Fault::of(Sort::Lost, *id, "ran, and is not known"))).collect()
    }

    /// What was acknowledged of its submission and of updates.
    fn fields(&self, task: &mut Task, told: &Value) -> Option<Fault> {
        let name = told["name"].as_str().unwrap_or("").to_owned();
        let limit = told["time_limit_s"].as_f64().map(|limit| (limit * 1000.0).round() as u64);
        let wrong = if !task.name.turns_out(&name) {
            format!("is called {name:?}")
        } else if !task.priority.turns_out(&told["priority"].as_i64().unwrap_or(i64::MIN)) {
            format!("has priority {}", told["priority"])
        } else if told["array_index"].as_u64() != task.index {
            format!("has number {} in its array, not {:?}", told["array_index"], task.index)
        } else if limit != task.limit_ms.map(|limit| limit * SCALE) {
            format!("has a time limit of {limit:?} ms, not {:?}", task.limit_ms)
        } else {
            return None;
        };
        Some(Fault::of(Sort::Lost, task.id, &wrong))
    }

    /// Where it stands, and whether it may.
    fn standing(&self, task: &mut Task, told: &Value) -> Option<Fault> {
        let state = told["state"].as_str().unwrap_or("").to_owned();
        let exit_code = told["exit_code"].as_i64();
        let starts = self.ledger.starts(task.id);
        let waits = ["pending", "recovering"].contains(&state.as_str());
        if let Some(end) = &task.end {
            if end.state != state || end.exit_code != exit_code {
                let what = format!("had ended as {end:?} and is {state} ({exit_code:?})");
                return Some(Fault::of(Sort::Doubled, task.id, &what));
            }
            let what = format!("had ended as {end:?}, and {starts} programs started by now");
            return (end.starts != starts).then(|| Fault::of(Sort::Doubled, task.id, &what));
        }
        if is_over(told) {
            task.end = Some(End { state, exit_code, starts });
            return self.verdict(task).err().map(|what| Fault::of(Sort::Wrong, task.id, &what));
        }
        if task.held.is_surely(&true) && !waits {
            return Some(Fault::of(Sort::Wrong, task.id, &format!("is held, and is {state}")));
        }
        None
    }

    /// What its programs wrote.
    fn programs(&self, task: &Task) -> Option<Fault> {
        let mut last: Option<(u32, f64)> = None;
        for (number, attempt) in self.ledger.attempts(task.id) {
            let doubled = |what: &str| Some(Fault::of(Sort::Doubled, task.id, what));
            if attempt.starts.len() != 1 {
                return doubled(&format!("attempt {number} started {:?}", attempt.starts));
            }
            if attempt.overlaps {
                return doubled(&format!("attempt {number} met the one before it alive"));
            }
            if let Some((before, ended)) = last
                && attempt.started + CLOCK < ended
            {
                return doubled(&format!("attempt {number} started before {before} had ended"));
            }
            last = attempt.ended.map(|(at, _)| (number, at)).or(last);
        }
        let again = task.requeue != Asked::Never || self.setup.preempts;
        let (done, all) = (self.ledger.ended_with(task.id, 0), self.ledger.attempts(task.id));
        let after = all.skip_while(|(_, a)| a.ended.is_none_or(|(_, code)| code != 0)).count();
        (done > 0 && after > 1 && !again)
            .then(|| Fault::of(Sort::Doubled, task.id, "ran again after it had completed"))
    }
}

/// Verdicts.
impl Seen<'_> {
    /// Whether a task may have ended as it did.
    fn verdict(&self, task: &Task) -> Result<(), String> {
        let Some(end) = &task.end else { return Ok(()) };
        let said = format!("{} ({:?})", end.state, end.exit_code);
        if let Some(reason) = self.kept_out(task) {
            let asked = task.cancel != Asked::Never;
            return match end.state == "cancelled" && (end.starts == 0 || asked) {
                true => Ok(()),
                false => Err(format!("ended as {said} after {} starts, but {reason}", end.starts)),
            };
        }
        if end.state == "cancelled" {
            return match task.cancel {
                Asked::Never => Err("was cancelled, and nobody wanted that".to_owned()),
                Asked::Perhaps | Asked::Acknowledged => Ok(()),
            };
        }
        self.by_itself(task, end).map_err(|why| format!("ended as {said}: {why}"))?;
        // A requeue that was acknowledged starts it again, unless it ended by itself before.
        let again = |from: u32| {
            self.ledger
                .attempts(task.id)
                .any(|(number, attempt)| number > from || number == from && attempt.ended.is_some())
        };
        let timed_out = end.state == "timed_out";
        match task.requeued_from.iter().find(|from| !timed_out && !again(**from)) {
            Some(from) => Err(format!("ended as {said}: its requeue from attempt {from} is lost")),
            None => Ok(()),
        }
    }

    /// Why a task must never have started, if so.
    fn kept_out(&self, task: &Task) -> Option<String> {
        let after = task.after.as_ref()?;
        let states: Vec<&str> =
            after.tasks.iter().filter_map(|on| self.tasks.get(on)?["state"].as_str()).collect();
        let all_well = states.iter().all(|state| *state == "completed");
        let may = match after.when {
            When::Ok => all_well,
            When::NotOk => !all_well,
            When::Any => true,
        };
        (!may).then(|| format!("it waits for {after:?}, which are {states:?}"))
    }

    /// Whether its program did what the daemon says of it.
    fn by_itself(&self, task: &Task, end: &End) -> Result<(), String> {
        let ended_with = |code| self.ledger.ended_with(task.id, code);
        let expected = match task.program.work {
            Work::Succeed { .. } | Work::Flaky { .. } | Work::Wait | Work::Grows => "completed",
            Work::Fail { .. } => "failed",
            Work::Never => "timed_out",
            Work::TooLarge => "out_of_memory",
        };
        if end.state != expected {
            return Err(format!("it had to end as {expected}"));
        }
        match expected {
            "completed" if end.exit_code != Some(0) => Err("completed is exit code 0".to_owned()),
            "completed" if ended_with(0) == 0 => {
                Err("none of its attempts got to its end".to_owned())
            }
            "failed" if end.exit_code != Some(3) => Err("its program says 3".to_owned()),
            "failed" if ended_with(3) <= task.retries => Err(format!(
                "{} of its attempts failed, and it had {} retries",
                ended_with(3),
                task.retries
            )),
            _ => Ok(()),
        }
    }

    /// Tasks of which something was acknowledged that has not happened yet.
    pub(super) fn owed<'t>(&self, tasks: impl Iterator<Item = &'t Task>) -> Vec<Fault> {
        let mut owed = Vec::new();
        for task in tasks.filter(|task| task.end.is_none()) {
            let Some(told) = self.tasks.get(&task.id) else { continue };
            if is_over(told) {
                continue;
            }
            if task.cancel == Asked::Acknowledged {
                owed.push(Fault::of(Sort::Wrong, task.id, "its cancel is lost: it does not end"));
            }
            let last = self.ledger.attempts(task.id).map(|(number, _)| number).max();
            let asked = task.requeued_from.iter().max();
            // Attempts that were never launched leave nothing in the ledger.
            let still = asked.zip(last).is_some_and(|(from, last)| *from == last);
            let runs =
                told["state"] == "running" && told["attempts"].as_u64() == last.map(u64::from);
            if still && runs {
                owed.push(Fault::of(Sort::Wrong, task.id, "its requeue is lost: it runs on"));
            }
        }
        owed
    }
}
