//! The one thread that plays the past. Questions wait in line, each user has few of them, and answers are kept while the journal stays as it was.

use super::policies::NamedPolicy;
use super::savings::savings;
use super::whatif;
use crate::journal::Journal;
use crate::past;
use crate::record::Uid;
use coloc_api::moment::Moment;
use coloc_api::view::{SavingsAnswer, WhatifAnswer};
use coloc_model::Fleet;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Answers that are kept.
const MOST_KEPT: usize = 16;
/// An answer is good for so long, whatever happens meanwhile.
const GOOD_FOR: Duration = Duration::from_secs(60);
/// Questions of one user that wait or are being worked on.
const OF_ONE_USER: usize = 2;
/// And of all users.
const MOST_WAITING: usize = 16;

/// What is asked.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Question {
    /// Other policies or GPUs.
    Whatif {
        /// What was submitted since.
        since_s: f64,
        /// Only this user's.
        user: Option<String>,
        /// Other GPUs.
        fleet: Option<Fleet>,
        /// The policies.
        policies: Vec<NamedPolicy>,
    },
    /// What sharing saved.
    Savings {
        /// What was submitted since.
        since_s: f64,
    },
}

/// An answer.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Outcome {
    /// To what would have been.
    Whatif(Arc<WhatifAnswer>),
    /// To what sharing saved.
    Savings(Arc<SavingsAnswer>),
    /// There is none, for this reason.
    Failed(String),
}

/// How a question stands.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Standing {
    /// It is being worked on, or waits: runs that are done, and all.
    Working(u32, u32),
    /// It is answered.
    Done(Outcome),
}

#[derive(Debug)]
struct Job {
    id: u32,
    uid: Uid,
    question: Question,
    /// How much had happened when it was asked.
    position: u64,
    standing: Standing,
    /// When it was answered.
    done: Option<Instant>,
}

impl Job {
    /// Its answer, or that it is being worked on, is good enough for the same question.
    fn is_fresh(&self, position: u64, now: Instant) -> bool {
        let young = |done: Instant| now.saturating_duration_since(done) < GOOD_FOR;
        self.position == position || self.done.is_none_or(young)
    }
}

#[derive(Default, Debug)]
struct Jobs {
    last: u32,
    all: VecDeque<Job>,
}

impl Jobs {
    fn next(&mut self) -> Option<(u32, Question)> {
        let waits = |job: &&Job| matches!(job.standing, Standing::Working(..));
        self.all.iter().find(waits).map(|job| (job.id, job.question.clone()))
    }

    fn set(&mut self, id: u32, standing: Standing) {
        if let Some(job) = self.all.iter_mut().find(|job| job.id == id) {
            job.done = matches!(standing, Standing::Done(_)).then(Instant::now);
            job.standing = standing;
        }
    }
}

/// Plays the past on a thread of its own.
#[derive(Debug)]
pub struct Worker {
    jobs: Mutex<Jobs>,
    more: Condvar,
}

impl Worker {
    /// Begins, with the journal of this file.
    pub fn start(journal: PathBuf) -> std::io::Result<Arc<Self>> {
        let worker = Arc::new(Worker { jobs: Mutex::default(), more: Condvar::new() });
        let works = worker.clone();
        let work = move || works.work(&journal);
        std::thread::Builder::new().name("whatif".to_owned()).spawn(work)?;
        Ok(worker)
    }

    fn jobs(&self) -> MutexGuard<'_, Jobs> {
        // No thread leaves them half changed.
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self, journal: &Path) {
        loop {
            let (id, question) = {
                let mut jobs = self.jobs();
                loop {
                    if let Some(next) = jobs.next() {
                        break next;
                    }
                    jobs = self.more.wait(jobs).unwrap_or_else(PoisonError::into_inner);
                }
            };
            let progress = |done, of| self.jobs().set(id, Standing::Working(done, of));
            let outcome = answer(journal, question, progress);
            self.jobs().set(id, Standing::Done(outcome.unwrap_or_else(Outcome::Failed)));
        }
    }

    /// Asks, or finds that it was asked: how it stands. `None` if the user, or all of them, have too much in line.
    pub(crate) fn ask(
        &self,
        uid: Uid,
        question: Question,
        position: u64,
    ) -> Option<(u32, Standing)> {
        let mut jobs = self.jobs();
        let now = Instant::now();
        let same = |job: &&Job| job.question == question && job.is_fresh(position, now);
        if let Some(job) = jobs.all.iter().find(same) {
            return Some((job.id, job.standing.clone()));
        }
        let works = |job: &&Job| matches!(job.standing, Standing::Working(..));
        let theirs = jobs.all.iter().filter(works).filter(|job| job.uid == uid).count();
        if theirs >= OF_ONE_USER || jobs.all.iter().filter(works).count() >= MOST_WAITING {
            return None;
        }
        jobs.last += 1;
        let (id, standing) = (jobs.last, Standing::Working(0, 0));
        jobs.all.push_back(Job {
            id,
            uid,
            question,
            position,
            standing: standing.clone(),
            done: None,
        });
        while jobs.all.len() > MOST_KEPT + MOST_WAITING {
            let done = |job: &Job| matches!(job.standing, Standing::Done(_));
            let Some(oldest) = jobs.all.iter().position(done) else { break };
            jobs.all.remove(oldest);
        }
        self.more.notify_one();
        Some((id, standing))
    }

    /// How a question about other policies stands; `None` if there is none such. What sharing saved is asked for in the same words again.
    pub(crate) fn standing(&self, id: u32) -> Option<Standing> {
        let is_it = |job: &&Job| job.id == id && matches!(job.question, Question::Whatif { .. });
        self.jobs().all.iter().find(is_it).map(|job| job.standing.clone())
    }
}

fn answer(
    journal: &Path,
    question: Question,
    progress: impl Fn(u32, u32),
) -> Result<Outcome, String> {
    let (since_s, user) = match &question {
        Question::Whatif { since_s, user, .. } => (*since_s, user.as_deref()),
        Question::Savings { since_s } => (*since_s, None),
    };
    let since = Moment((since_s.clamp(0.0, 1e12) * 1000.0) as u64);
    let read = Journal::open_reader(journal).and_then(|journal| past::read(&journal, since, user));
    let past = read.map_err(|error| error.to_string())?;
    match question {
        Question::Whatif { fleet, policies, .. } => {
            let answer = whatif(&past, since_s, fleet.as_ref(), &policies, progress)?;
            Ok(Outcome::Whatif(Arc::new(answer)))
        }
        Question::Savings { .. } => {
            Ok(Outcome::Savings(Arc::new(savings(&past, since_s, progress)?)))
        }
    }
}
