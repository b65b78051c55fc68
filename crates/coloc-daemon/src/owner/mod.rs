//! The one owner of everything that changes: the scheduler, the tasks, the journal.
//!
//! It is a plain thread with an inbox. Whatever lies in the inbox is one batch: commands are written
//! down first and the callers answered, then the scheduler hears of all that happened and decides, the
//! decisions are written down, and only then are they carried out. So an answer is a promise, and a
//! batch of a thousand submissions waits for the disk twice, not a thousand times. What takes long, to
//! start processes and to find out how they ended, is done for a moment at a time: nobody who asks
//! waits until a thousand tasks have been started.

mod beside;
mod command;
mod decide;
mod dependencies;
mod gates;
mod greedy;
mod happen;
mod history;
mod idle;
mod json;
mod kinds;
mod leaving;
pub mod lines;
mod loss;
mod names;
mod page;
mod reconfigure;
mod restore;
mod signal;
mod snapshot;
mod submit;
mod teach;
mod texts;
mod update;
mod usage;
mod view;

pub use command::{Answer, Caller, Change, Command, Refused};
pub use names::Names;
pub(crate) use page::Rows;
pub use page::{Form, Page, PageRequest};
pub(crate) use reconfigure::scheduler;
pub use signal::SignalRequest;
pub use snapshot::{Snapshot, Standing};
pub use submit::{ArrayRequest, Submission};
pub use teach::Teaching;
pub(crate) use view::task_view;
pub use view::{GpuView, ResidentView, StatusView, TaskDetail, TaskView, WhyView};

use crate::agreements::Book;
use crate::clock::Clock;
use crate::hardware::Sighting;
use crate::journal::{Entry, Journal, JournalError, StoryLine};
use crate::launch::Launcher;
use crate::record::{Moment, Phase, Record};
use crate::retention::Retention;
use crate::settings::Settings;
use crate::spec::TaskSpec;
use coloc_core::{Effect, Event, Scheduler};
use coloc_gpu::process::TaskRoots;
use coloc_model::{Fleet, GpuId, SpeedTable, TaskId, Time};
use gates::Gates;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

/// A batch is answered at the latest when it has this many inputs.
const LARGEST_BATCH: usize = 4096;
/// Ends of tasks are looked into, and tasks are started, for so long before others have their turn.
const TURN: Duration = Duration::from_millis(10);
/// Somebody looks at the clock at least this often.
const LONGEST_SLEEP: Duration = Duration::from_secs(60);

/// Something for the owner to deal with.
#[derive(Debug)]
pub enum Input {
    /// Somebody wants something and waits for the answer.
    Command(Caller, Command, Reply),
    /// The shim of an attempt is gone.
    ShimGone {
        /// The task.
        task: TaskId,
        /// Which attempt.
        attempt: u32,
    },
    /// A control daemon of MPS has answered, or will not.
    MpsAnswered,
    /// What these tasks left was removed.
    Removed(Vec<TaskId>),
    /// The monitor looked.
    Seen(Box<Sighting>),
    /// Stop, leaving tasks alone: they are found again.
    Shutdown,
}

type Reply = tokio::sync::oneshot::Sender<Answer>;

/// Answers those who asked, once what they want is written down, or is not.
fn answer(answers: Vec<(Reply, Answer)>, written: bool) {
    for (reply, answer) in answers {
        let answer = match answer {
            Answer::Submitted { .. } | Answer::Taught if !written => {
                Answer::Refused(Refused::DiskFull)
            }
            Answer::Changed(wishes) if !written && wishes.iter().any(|(_, done)| done.is_ok()) => {
                Answer::Refused(Refused::NotKept)
            }
            kept => kept,
        };
        let _ = reply.send(answer);
    }
}

/// The last line of a story.
fn removed(task: TaskId) -> Entry {
    let what = "what it left, its log among it, was removed".to_owned();
    Entry::Story(task, StoryLine { at: Moment::now(), what })
}

/// A task that has not ended.
#[derive(Clone, Debug)]
struct Live {
    record: Record,
    spec: Arc<TaskSpec>,
    /// The scheduler knows it.
    in_core: bool,
    /// What its end will be called, once the scheduler lets go of it.
    ending: Option<Ending>,
}

/// What becomes of a task when the scheduler lets go of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ending {
    /// It is over.
    Over(Phase),
    /// It is submitted again.
    Again,
}

/// Everything that changes.
pub struct Owner {
    scheduler: Scheduler,
    clock: Clock,
    journal: Journal,
    launcher: Launcher,
    tasks: BTreeMap<TaskId, Live>,
    /// Those of them that have, or may have, a process.
    on_gpus: BTreeSet<TaskId>,
    gates: Gates,
    names: Names,
    /// What may not run on which kind of GPU.
    barred: SpeedTable,
    fleet: Fleet,
    settings: Settings,
    book: Book,
    texts: texts::Texts,
    next_task: u32,
    next_spec: u32,
    /// Launches that wait until somebody is off their GPUs.
    deferred: Vec<Effect>,
    /// Launches that are on the disk, and whose turn will come.
    to_launch: VecDeque<TaskId>,
    /// Those among them whose MPS server is being set up.
    for_mps: Vec<TaskId>,
    wake_at: Time,
    /// Entries of this batch.
    pending: Vec<Entry>,
    /// The disk is full: nothing new is taken or started.
    disk_full: bool,
    draining: bool,
    roots: mpsc::Sender<Vec<TaskRoots>>,
    retention: mpsc::Sender<Retention>,
    roots_changed: bool,
    last_seen: Sighting,
    last_look: Time,
    seen_at: leaving::LastSeen,
    /// GPUs that cannot be used, since when.
    away: FxHashMap<GpuId, Time>,
    idle: idle::IdleSince,
    greedy: greedy::Greedy,
    /// What tasks of each kind held when they ran before.
    history: coloc_estimate::history::History,
    news: tokio::sync::broadcast::Sender<Arc<TaskView>>,
    stop: bool,
}

/// What an owner is made of.
pub struct Parts {
    /// The scheduler, which knows of no task yet.
    pub scheduler: Scheduler,
    /// The machine that it was made for.
    pub fleet: Fleet,
    /// What it was made by.
    pub settings: Settings,
    /// What is agreed with people.
    pub book: Book,
    /// Those whom the scheduler knows.
    pub names: Names,
    /// Its clock.
    pub clock: Clock,
    /// The journal.
    pub journal: Journal,
    /// Starts and stops tasks.
    pub launcher: Launcher,
    /// Tells the monitor which tasks run.
    pub roots: mpsc::Sender<Vec<TaskRoots>>,
    /// Tells for how long what ended tasks leave is kept.
    pub retention: mpsc::Sender<Retention>,
    /// Tells the world of changes.
    pub news: tokio::sync::broadcast::Sender<Arc<TaskView>>,
}

impl Owner {
    /// An owner that has picked up where the last one left off.
    pub fn new(parts: Parts, saved: crate::journal::Saved) -> Result<Self, JournalError> {
        let mut owner = Owner {
            scheduler: parts.scheduler,
            clock: parts.clock,
            journal: parts.journal,
            launcher: parts.launcher,
            tasks: BTreeMap::new(),
            on_gpus: BTreeSet::new(),
            gates: Gates::default(),
            names: parts.names,
            barred: SpeedTable::default(),
            fleet: parts.fleet,
            settings: parts.settings,
            book: parts.book,
            texts: texts::Texts::default(),
            next_task: saved.next_task,
            next_spec: saved.next_spec,
            deferred: Vec::new(),
            to_launch: VecDeque::new(),
            for_mps: Vec::new(),
            wake_at: Time::NEVER,
            pending: Vec::new(),
            disk_full: false,
            draining: false,
            roots: parts.roots,
            retention: parts.retention,
            roots_changed: true,
            last_seen: Sighting::default(),
            last_look: Time::NEVER,
            seen_at: leaving::LastSeen::default(),
            away: FxHashMap::default(),
            idle: idle::IdleSince::default(),
            greedy: greedy::Greedy::default(),
            history: coloc_estimate::history::History::default(),
            news: parts.news,
            stop: false,
        };
        let _ = owner.retention.send(owner.settings.retention);
        owner.remember(saved.lessons);
        owner.read_history()?;
        owner.restore(saved.live)?;
        Ok(owner)
    }

    /// Works until told to stop or until nobody can tell anything any more.
    pub fn run(mut self, inbox: &mpsc::Receiver<Input>) {
        let mut batch = Vec::new();
        while !self.stop {
            let patience = match self.wake_at {
                _ if !batch.is_empty() || !self.to_launch.is_empty() => Duration::ZERO,
                Time::NEVER => LONGEST_SLEEP,
                at => self.clock.until(at).min(LONGEST_SLEEP),
            };
            match inbox.recv_timeout(patience) {
                Ok(input) => batch.push(input),
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => return,
            }
            batch.extend(inbox.try_iter().take(LARGEST_BATCH));
            self.batch(&mut batch);
        }
        if self.on_gpus.is_empty() {
            self.launcher.sharing.tear_down();
            if let Ok(groups) = &self.launcher.groups {
                groups.leave();
            }
        }
    }

    /// Deals with inputs. Ends that there is no time for now stay among them.
    fn batch(&mut self, inputs: &mut Vec<Input>) {
        let (now, began) = (self.clock.now(), Instant::now());
        let mut later = Vec::new();
        let mut answers = Vec::new();
        let mut wishes = Vec::new();
        // With nothing left to write, only the next attempt can tell whether there is room again.
        self.disk_full &= !self.pending.is_empty();
        for input in inputs.drain(..) {
            match input {
                Input::Command(caller, command, reply) => {
                    let answer = self.obey(now, caller, command, &mut wishes);
                    answers.push((reply, answer));
                }
                Input::ShimGone { .. } if began.elapsed() > TURN => later.push(input),
                Input::ShimGone { task, attempt } => {
                    self.shim_gone(now, task, attempt, &mut wishes);
                }
                Input::MpsAnswered => self.to_launch.extend(self.for_mps.drain(..)),
                Input::Removed(tasks) => self.pending.extend(tasks.into_iter().map(removed)),
                Input::Seen(sighting) => self.seen(now, *sighting, &mut wishes),
                Input::Shutdown => self.stop = true,
            }
        }
        *inputs = later;
        // Whatever people want is on the disk before the scheduler hears of it.
        let written = self.flush();
        answer(answers, written);
        if self.wake_at <= now {
            self.wake_at = Time::NEVER;
            self.scheduler.note(now, Event::Wake, &mut wishes);
        }
        self.settle(now, wishes);
        if std::mem::take(&mut self.roots_changed) {
            let _ = self.roots.send(self.task_roots());
        }
    }

    /// Decides and carries out until nobody is waiting at a gate because of it.
    fn settle(&mut self, now: Time, mut wishes: Vec<Effect>) {
        loop {
            if self.flush() && !self.draining {
                self.let_in(now, &mut wishes);
                self.scheduler.decide(now, &mut wishes);
            }
            self.carry_out(now, std::mem::take(&mut wishes));
            // Who waits to be launched has its next turn first: each launch may let somebody knock.
            let busy = self.disk_full || self.draining || !self.to_launch.is_empty();
            if busy || !self.gates.anyone_knocks() {
                return;
            }
        }
    }

    /// Puts what is pending on the disk. What cannot be written stays pending; says whether all is well.
    fn flush(&mut self) -> bool {
        if self.pending.is_empty() && !self.disk_full {
            return true;
        }
        let written = match self.pending.is_empty() {
            // Somebody has to find out that there is room again.
            true => self.journal.try_to_write(),
            false => self.journal.write(&self.pending),
        };
        match written {
            Ok(()) => {
                self.pending.clear();
                if std::mem::take(&mut self.disk_full) {
                    eprintln!("coloc daemon: there is room on the disk again");
                }
                true
            }
            Err(error) => {
                // Said once: a log on the same disk must not fill what room there is.
                if !std::mem::replace(&mut self.disk_full, true) {
                    eprintln!("coloc daemon: {error}");
                }
                self.forget_unwritten_submissions();
                false
            }
        }
    }

    /// A task changed: it is written down, told, and its story gets a line.
    fn changed(&mut self, task: TaskId, what: Option<String>) {
        let Some(live) = self.tasks.get(&task) else { return };
        match live.record.phase.is_on_gpus() {
            true => self.on_gpus.insert(task),
            false => self.on_gpus.remove(&task),
        };
        self.pending.push(Entry::Task(Box::new(live.record.clone())));
        if let Some(what) = what {
            self.pending.push(Entry::Story(task, StoryLine { at: Moment::now(), what }));
        }
        if self.news.receiver_count() > 0 {
            let _ = self.news.send(Arc::new(self.view(live)));
        }
    }

    /// Tasks that have, or may have, a process.
    fn at_work(&self) -> impl Iterator<Item = &Live> + '_ {
        self.on_gpus.iter().filter_map(|task| self.tasks.get(task))
    }

    fn task_roots(&self) -> Vec<TaskRoots> {
        self.at_work()
            .filter_map(|live| self.launcher.known.get(&live.record.id).cloned())
            .collect()
    }
}
