//! A client that submits tasks and does things to its own, and remembers what it was told.

use super::http::{Answer, ask};
use super::model::{After, Asked, OneOf, Submission, Task, When, submission_of};
use super::program::{Manner, Program, Work};
use super::random::Random;
use super::setup::{Kind, SCALE, Setup};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Tasks of one client that have not ended, at most: the machine has to keep up.
const MOST_AT_ONCE: usize = 8;

/// One of several clients at work at once. No two of them touch the same task.
pub(super) struct Client {
    number: usize,
    home: PathBuf,
    setup: Setup,
    kinds: BTreeSet<Kind>,
    random: Random,
    submissions: usize,
    pub(super) tasks: Vec<Task>,
    /// Submissions that were not answered.
    unsure: Vec<Submission>,
    /// The last one that was answered and has a key, with its tasks.
    keyed: Option<(Submission, Vec<u32>)>,
    pub(super) acknowledged: usize,
    pub(super) unanswered: usize,
}

/// The daemon is gone.
pub(super) struct Gone;

impl Client {
    pub(super) fn new(
        number: usize,
        home: &Path,
        setup: Setup,
        kinds: &BTreeSet<Kind>,
        random: Random,
    ) -> Self {
        Client {
            number,
            home: home.to_owned(),
            setup,
            kinds: kinds.clone(),
            random,
            submissions: 0,
            tasks: Vec::new(),
            unsure: Vec::new(),
            keyed: None,
            acknowledged: 0,
            unanswered: 0,
        }
    }

    /// Works until the daemon is gone.
    pub(super) fn work(&mut self) {
        while self.step().is_ok() {
            std::thread::sleep(self.random.millis(0, 30));
        }
    }

    fn has(&mut self, kind: Kind, percent: u64) -> bool {
        self.kinds.contains(&kind) && self.random.percent(percent)
    }

    fn step(&mut self) -> Result<(), Gone> {
        let alive = self.tasks.iter().filter(|task| task.end.is_none()).count();
        if alive < MOST_AT_ONCE && self.random.percent(40) {
            return self.submit();
        }
        let kinds = [Kind::Cancel, Kind::Hold, Kind::Requeue, Kind::Requeue, Kind::Update];
        let kinds: Vec<Kind> = kinds.into_iter().filter(|kind| self.kinds.contains(kind)).collect();
        match self.random.pick(&kinds) {
            // Fewer cancels: what is cancelled shows nothing else any more.
            Some(Kind::Cancel) if self.random.percent(50) => self.cancel(),
            Some(Kind::Hold) => self.hold_or_release(),
            Some(Kind::Requeue) => self.requeue(),
            Some(Kind::Update) => self.update(),
            _ => match ask(&self.socket(), "GET /v1/status", None) {
                Answer::Unsent | Answer::Unanswered => Err(Gone),
                _ => Ok(()),
            },
        }
    }

    fn socket(&self) -> PathBuf {
        self.home.join("socket")
    }

    fn send(&mut self, line: &str, body: &Value) -> Answer {
        let answer = ask(&self.socket(), line, Some(body));
        match answer {
            Answer::Done(_) => self.acknowledged += 1,
            Answer::Unanswered => self.unanswered += 1,
            _ => {}
        }
        answer
    }

    fn change(&mut self, id: u32, change: Value) -> Answer {
        let answer = self.send("POST /v1/tasks/change", &json!({"ids": [id], "change": change}));
        match &answer {
            Answer::Done(said) if said["done"] == json!([id]) => answer,
            Answer::Done(said) => Answer::Refused {
                code: said["refused"][0]["code"].as_str().unwrap_or("").to_owned(),
                message: said["refused"][0]["message"].as_str().unwrap_or("").to_owned(),
            },
            _ => answer,
        }
    }
}

/// Submissions.
impl Client {
    fn submit(&mut self) -> Result<(), Gone> {
        let submission = self.invent();
        match self.send("POST /v1/tasks", &submission.body) {
            Answer::Done(said) => {
                self.accept(submission, &said);
                Ok(())
            }
            Answer::Refused { code, .. } if code == "draining" => Ok(()),
            Answer::Refused { message, .. } => panic!("{message}: {}", submission.body),
            Answer::Unanswered => {
                self.unsure.push(submission);
                Err(Gone)
            }
            Answer::Unsent => Err(Gone),
        }
    }

    fn accept(&mut self, submission: Submission, said: &Value) {
        let ids = said["ids"].as_array().expect("ids").iter();
        let ids: Vec<u32> = ids.map(|id| id.as_u64().expect("a number") as u32).collect();
        assert_eq!(ids.len(), submission.size(), "{said}");
        self.tasks.extend(submission.tasks(&ids));
        if submission.has_key() {
            self.keyed = Some((submission, ids));
        }
    }

    fn invent(&mut self) -> Submission {
        self.submissions += 1;
        let name = format!("{}-{}-{}", self.setup.name, self.number, self.submissions);
        let program = self.program();
        let retries = match program.work {
            Work::Flaky { .. } => 1,
            Work::Fail { .. } if self.kinds.contains(&Kind::Retry) => self.random.below(3) as usize,
            _ => 0,
        };
        let many = match program.work {
            Work::Succeed { .. } | Work::Fail { .. } => self.has(Kind::Array, 15),
            _ => false,
        };
        let indices = if many { (1..3 + self.random.below(3)).collect() } else { Vec::new() };
        let limit_ms = match program.work {
            Work::Never => Some(self.random.below(500) + 100),
            // What such queues go by. No task reaches it.
            _ if self.setup.preempts => Some(self.random.below(60_000) + 60_000),
            _ => None,
        };
        let after = self.has(Kind::Dependency, 25).then(|| self.after()).flatten();
        let (held, priority) = (self.has(Kind::Hold, 15), self.random.below(5) as i64);
        let mut spec = program.spec(&self.home, &name);
        spec["retries"] = json!(retries);
        spec["priority"] = json!(priority);
        spec["gpu_memory"] = json!(4u64 << 30);
        spec["time_limit"] = json!(limit_ms.map(|limit| limit * SCALE));
        if program.work == Work::TooLarge {
            spec["on_oom"] = json!("fail");
        }
        if let Some(after) = &after {
            let on = |task: &u32| json!({"task": task, "when": after.when.name()});
            spec["after"] = after.tasks.first().map(on).into_iter().collect();
        }
        let mut body = json!({"spec": spec, "held": held});
        if many {
            let at_once = self.random.percent(50).then_some(1);
            body["array"] = json!({"indices": indices, "at_once": at_once});
        }
        if self.has(Kind::Key, 50) {
            body["key"] = json!(name);
        }
        Submission { name, body, program, retries, indices, limit_ms, priority, held, after }
    }

    fn program(&mut self) -> Program {
        let millis = self.random.below(400);
        let waits = |task: &Task| task.program.work == Work::Wait && task.end.is_none();
        // They keep a GPU: one of each client at a time.
        let work = if !self.tasks.iter().any(waits) {
            Work::Wait
        } else if self.has(Kind::Memory, 8) {
            if self.random.percent(50) { Work::TooLarge } else { Work::Grows }
        } else if self.has(Kind::Limit, 15) {
            Work::Never
        } else if self.has(Kind::Retry, 15) {
            Work::Flaky { millis }
        } else if self.random.percent(15) {
            Work::Fail { millis }
        } else {
            Work::Succeed { millis }
        };
        let manners = [Manner::Saves, Manner::Dies, Manner::Deaf];
        let manner = *self.random.pick(&manners).expect("there are some");
        Program { work, manner }
    }

    /// One of its own tasks to wait for, or a whole array.
    fn after(&mut self) -> Option<After> {
        let first = |task: &&Task| task.index.is_none_or(|index| index == 1);
        let all: Vec<&Task> = self.tasks.iter().rev().take(12).filter(first).collect();
        let task = *self.random.pick(&all)?;
        let when = *self.random.pick(&[When::Ok, When::NotOk, When::Any])?;
        let ids: Vec<u32> = match task.index {
            None => vec![task.id],
            // Ids of an array follow each other, and so do its numbers.
            Some(_) => {
                let name = submission_of(&task.name.any()).to_owned();
                let same = |other: &&Task| submission_of(&other.name.any()) == name;
                self.tasks.iter().filter(same).map(|task| task.id).collect()
            }
        };
        Some(After { tasks: ids, when })
    }
}

/// Changes.
impl Client {
    /// A task that can be asked for something, the newest most likely.
    fn choose(&mut self) -> Option<usize> {
        let alive = self.tasks.iter().enumerate().filter(|(_, task)| task.lives());
        let alive: Vec<usize> = alive.map(|(place, _)| place).collect();
        self.random.pick(&alive).copied()
    }

    fn cancel(&mut self) -> Result<(), Gone> {
        let Some(place) = self.choose() else { return Ok(()) };
        match self.change(self.tasks[place].id, json!("cancel")) {
            Answer::Done(_) => self.tasks[place].cancel = Asked::Acknowledged,
            Answer::Refused { .. } => {}
            Answer::Unsent => return Err(Gone),
            Answer::Unanswered => {
                self.tasks[place].cancel = Asked::Perhaps;
                return Err(Gone);
            }
        }
        Ok(())
    }

    fn hold_or_release(&mut self) -> Result<(), Gone> {
        let Some(place) = self.choose() else { return Ok(()) };
        let hold = self.random.percent(50);
        let change = if hold { "hold" } else { "release" };
        match self.change(self.tasks[place].id, json!(change)) {
            Answer::Done(_) => self.tasks[place].held = OneOf::surely(hold),
            Answer::Refused { code, .. } if code == "not_held" => {
                self.tasks[place].held = OneOf::surely(false);
            }
            Answer::Refused { .. } => {}
            Answer::Unsent => return Err(Gone),
            Answer::Unanswered => {
                self.tasks[place].held.or(hold);
                return Err(Gone);
            }
        }
        Ok(())
    }

    fn requeue(&mut self) -> Result<(), Gone> {
        let Some(place) = self.choose() else { return Ok(()) };
        let id = self.tasks[place].id;
        let shown = match ask(&self.socket(), &format!("GET /v1/tasks/{id}"), None) {
            Answer::Done(shown) => shown,
            Answer::Refused { message, .. } => {
                // A daemon that stops by itself has said why.
                let log = self.socket().with_file_name("daemon.log");
                let log = std::fs::read_to_string(log).unwrap_or_default();
                panic!("task {id}: {message}\n{log}");
            }
            Answer::Unsent | Answer::Unanswered => return Err(Gone),
        };
        let attempt = shown["attempts"].as_u64().expect("a number") as u32;
        if attempt == 0 {
            return Ok(());
        }
        match self.change(id, json!("requeue")) {
            Answer::Done(_) => {
                self.tasks[place].requeue = Asked::Acknowledged;
                // One that was not launched yet may have the same number again.
                if shown["state"] == "running" {
                    self.tasks[place].requeued_from.push(attempt);
                }
            }
            Answer::Refused { .. } => {}
            Answer::Unsent => return Err(Gone),
            Answer::Unanswered => {
                let task = &mut self.tasks[place];
                task.requeue = task.requeue.max(Asked::Perhaps);
                return Err(Gone);
            }
        }
        Ok(())
    }

    fn update(&mut self) -> Result<(), Gone> {
        let Some(place) = self.choose() else { return Ok(()) };
        let task = &self.tasks[place];
        let name = format!("{}+{}", submission_of(&task.name.any()), self.random.below(1000));
        let (id, priority) = (task.id, self.random.below(5) as i64);
        match self.change(id, json!({"update": {"name": name, "priority": priority}})) {
            Answer::Done(_) => {
                self.tasks[place].name = OneOf::surely(name);
                self.tasks[place].priority = OneOf::surely(priority);
            }
            Answer::Refused { .. } => {}
            Answer::Unsent => return Err(Gone),
            Answer::Unanswered => {
                self.tasks[place].name.or(name);
                self.tasks[place].priority.or(priority);
                return Err(Gone);
            }
        }
        Ok(())
    }
}

/// After a restart.
impl Client {
    /// Finds out what became of submissions that were not answered; says what must not be.
    pub(super) fn find_out(&mut self, listed: &[Value]) -> Vec<String> {
        let mut wrong = Vec::new();
        for submission in std::mem::take(&mut self.unsure) {
            let there = ids_of(&submission.name, listed);
            if !there.is_empty() && there.len() != submission.size() {
                wrong.push(format!("{}: only {there:?} of it are there", submission.name));
            } else if submission.has_key() {
                wrong.extend(self.send_again(submission, &there));
            } else if !there.is_empty() {
                self.tasks.extend(submission.tasks(&there));
            }
        }
        if self.random.percent(40)
            && let Some((submission, ids)) = self.keyed.clone()
            && let Answer::Done(said) = self.send("POST /v1/tasks", &submission.body)
            && said["ids"] != json!(ids)
        {
            wrong.push(format!("{}: was {ids:?}, is now {}", submission.name, said["ids"]));
        }
        wrong
    }

    /// A submission with a key counts once, however often it is sent.
    fn send_again(&mut self, submission: Submission, there: &[u32]) -> Option<String> {
        match self.send("POST /v1/tasks", &submission.body) {
            Answer::Done(said) => {
                let same = there.is_empty() || said["ids"] == json!(there);
                let name = submission.name.clone();
                self.accept(submission, &said);
                (!same).then(|| format!("{name}: {there:?} were there, is now {}", said["ids"]))
            }
            Answer::Refused { code, .. } if code == "draining" && there.is_empty() => None,
            other => Some(format!("{}: sent again: {other:?}", submission.name)),
        }
    }

    /// Lets all go on that are held, or may be.
    pub(super) fn release_all(&mut self) {
        for place in 0..self.tasks.len() {
            if self.tasks[place].end.is_some() || self.tasks[place].held.is_surely(&false) {
                continue;
            }
            self.change(self.tasks[place].id, json!("release"));
            self.tasks[place].held = OneOf::surely(false);
        }
    }
}

/// Tasks in a list that a submission has.
fn ids_of(name: &str, listed: &[Value]) -> Vec<u32> {
    let of_it = |task: &&Value| task["name"].as_str().map(submission_of) == Some(name);
    let ids = listed.iter().filter(of_it);
    ids.map(|task| task["id"].as_u64().expect("a number") as u32).collect()
}
