//! The one owner of everything that changes: the scheduler, the tasks, the journal.
//!
//! It is a plain thread with an inbox. Whatever lies in the inbox is one batch: commands are obeyed,
//! written down and their callers answered, then the scheduler decides about all that happened, the
//! decisions are written down, and only then are they carried out. So an answer is a promise, and a
//! batch of a thousand submissions waits for the disk twice, not a thousand times. What takes long, to start processes
//! and to find out how they ended, is done for a moment at a time: no client waits until a thousand tasks have been
//! started.

mod commands;
mod deciding;
mod history;
mod input;
mod kinds;
#[cfg(test)]
mod kit;
mod lifecycle;
mod live;
mod monitor;
mod names;
mod reply;
mod shared_texts;
mod start;
mod telling;
mod today;
mod unwritten;
mod user_usage;
mod waiting;
mod writing;

pub(crate) use commands::gpus::{Slowed, slowed};
pub use commands::list::{Page, PageRequest};
pub use commands::metrics::Metrics;
pub(crate) use commands::metrics::{GpuNumbers, TaskNumbers};
pub(crate) use commands::reconfigure::scheduler;
pub use commands::reconfigure::{SetupError, Tables};
pub use commands::snapshot::{Snapshot, TaskSnapshot};
pub use commands::status::About;
pub use commands::view::Shown;
pub(crate) use commands::view::{memory_view, whole_view};
pub use commands::{Caller, Changed, Command, GpusServed, Invalid, Refused, Submitted, Visit};
pub(crate) use deciding::running_attempt;
pub use input::{Input, Parts};
pub(crate) use lifecycle::eligibility::{ended, user};
pub use names::Names;
pub use reply::Reply;
pub(crate) use shared_texts::SharedTexts;

use crate::administration::PoolTable;
use crate::clock::Clock;
use crate::executor::{Executor, StopRequest};
use crate::hardware::Sighting;
use crate::intent_file::IntentFile;
use crate::journal::{Entry, Journal, Trouble};
use crate::metrics::counters::Counters;
use crate::news::News;
use crate::quotas::AccountTable;
use crate::record::Uid;
use crate::reserve::Reserve;
use crate::retention::Retention;
use crate::series::Series;
use crate::settings::Settings;
use coloc_api::moment::Moment;
use coloc_api::request::SignalRequest;
use coloc_core::eligibility::Eligibility;
use coloc_core::{Effect, Event, Scheduler};
use coloc_model::{Bytes, Fleet, GpuId, TaskId, Time};
use live::{Ending, Live};
use reply::{Flushed, PendingAnswer};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};
use writing::removed;

/// A batch is answered at the latest when it has this many inputs.
const LARGEST_BATCH: usize = 4096;
/// Ends of tasks are looked into, and tasks are started, for so long before others have their turn.
const TURN: Duration = Duration::from_millis(10);
/// The owner looks at the clock at least this often.
const LONGEST_SLEEP: Duration = Duration::from_secs(60);

/// Everything that changes.
pub struct Owner {
    scheduler: Scheduler,
    clock: Clock,
    journal: Journal,
    executor: Box<dyn Executor + Send>,
    tasks: BTreeMap<TaskId, Live>,
    /// Tasks among them that have, or may have, a process.
    on_gpus: BTreeSet<TaskId>,
    eligibility: Eligibility,
    names: Names,
    fleet: Fleet,
    /// The GPUs by name, in the same order.
    gpu_names: Vec<String>,
    settings: Settings,
    account_table: AccountTable,
    pool_table: PoolTable,
    user_usage: user_usage::UserUsage,
    shared_texts: shared_texts::SharedTexts,
    /// The last submission that was changed, and what it became.
    updated: Option<commands::update::Updated>,
    next_task: u32,
    next_spec: u32,
    /// Work on many tasks that is under way.
    bulk: Option<commands::bulk::Bulk>,
    bulk_queue: commands::bulk::BulkQueue,
    /// Not all tasks that may be eligible had their turn.
    more_to_look_at: bool,
    /// Attempts of tasks that are told to go as soon as the reason is on the disk.
    to_stop: Vec<(TaskId, u32, StopRequest)>,
    /// Signals that users send, likewise.
    to_signal: Vec<(TaskId, u32, SignalRequest)>,
    /// Attempts whose shims are to hear of another time limit, likewise.
    to_limit: Vec<(TaskId, u32)>,
    /// How often the administrator's hooks failed in a row.
    hook_failures: lifecycle::hooks::HookFailures,
    /// When attempts are killed that should be gone by then.
    overdue: lifecycle::deadlines::Deadlines,
    /// When attempts are looked at again of which the machine could not tell how they are.
    unclear: lifecycle::deadlines::Deadlines,
    /// The machine cannot launch anything just now.
    pause: Option<lifecycle::machine_faults::Pause>,
    /// How many launches worked, and which tasks met faults of the machine since how many.
    launches: u64,
    faults: FxHashMap<TaskId, (u32, u64)>,
    /// Launches that wait until another task is off their GPUs.
    deferred: Vec<Effect>,
    /// Launches that are on the disk, and whose turn will come.
    to_launch: VecDeque<TaskId>,
    /// Launches among them for which the sharing of GPUs is being set up.
    for_sharing: Vec<TaskId>,
    wake_at: Time,
    /// Entries of this batch.
    pending: Vec<Entry>,
    /// The user who asked for the change that is being made.
    asked_by: Option<Uid>,
    /// Room on the disk for what is wanted of running tasks.
    reserve: Reserve,
    /// What is wanted of them when there is none.
    intent_file: IntentFile,
    /// The disk is full, or the journal cannot be written: nothing new is taken or started.
    disk_full: bool,
    /// What kept the journal from being written, until it is written again.
    trouble: Option<Trouble>,
    draining: bool,
    retention: mpsc::Sender<Retention>,
    roots_changed: bool,
    last_seen: Sighting,
    /// What running attempts use.
    bookkeeping: monitor::usage::Bookkeeping,
    outbox: lifecycle::notices::Outbox,
    /// When the monitor last told anything.
    heard_at: Instant,
    seen_at: monitor::departures::LastSeen,
    /// GPUs that cannot be used, since when.
    away: FxHashMap<GpuId, Time>,
    service: monitor::drained_gpus::Service,
    foreign_seen: monitor::foreign::ForeignSeen,
    idle: monitor::idle::IdleSince,
    memory_watchdog: monitor::memory_watchdog::MemoryWatchdog,
    signs: monitor::progress::Signs,
    /// What tasks of each kind held when they ran before.
    history: coloc_estimate::history::History,
    news: Arc<News>,
    untold: telling::Untold,
    series: Arc<Series>,
    /// The most that each running attempt was seen with.
    attempt_peaks: FxHashMap<TaskId, Bytes>,
    waiting: waiting::Waiting,
    today: today::Today,
    about: About,
    /// When the daemon started.
    started: Moment,
    counters: Counters,
    stop: bool,
}

impl Owner {
    /// Works until told to stop or until all senders are gone.
    pub fn run(mut self, inbox: &mpsc::Receiver<Input>) {
        let mut batch = Vec::new();
        while !self.stop {
            let timeout = if batch.is_empty() { self.timeout() } else { Duration::ZERO };
            match inbox.recv_timeout(timeout) {
                Ok(input) => batch.push(input),
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => return,
            }
            batch.extend(inbox.try_iter().take(LARGEST_BATCH));
            self.batch(&mut batch);
        }
        if self.on_gpus.is_empty() {
            self.executor.tear_down();
        }
    }

    /// How long there is nothing to do, if nothing comes.
    fn timeout(&self) -> Duration {
        let timeout = match self.wake_at {
            _ if self.has_more_to_do() => Duration::ZERO,
            Time::NEVER => LONGEST_SLEEP,
            at => self.clock.until(at).min(LONGEST_SLEEP),
        };
        timeout.min(self.until_next_deadline()).min(self.until_news().unwrap_or(LONGEST_SLEEP))
    }

    /// There is work for the next turn already.
    fn has_more_to_do(&self) -> bool {
        !self.to_launch.is_empty() || self.bulk.is_some() || self.more_to_look_at
    }

    /// Others are to have their turn, after what takes long was done since then.
    fn has_had_its_turn(&self, began: Instant) -> bool {
        self.clock.instant().saturating_duration_since(began) > TURN
    }

    /// How long until an attempt or the machine is to be looked at.
    fn until_next_deadline(&self) -> Duration {
        let notices = self.outbox.next_due().filter(|_| !self.disk_full);
        let all = [self.overdue.next(), self.unclear.next(), self.pause_ends(), notices];
        let next = all.into_iter().flatten().min();
        next.map_or(LONGEST_SLEEP, |at| at.saturating_duration_since(self.clock.instant()))
    }

    /// Deals with inputs. Ends that there is no time for now stay among them.
    fn batch(&mut self, inputs: &mut Vec<Input>) {
        let (now, began) = (self.clock.now(), self.clock.instant());
        let mut later = Vec::new();
        let mut effects = Vec::new();
        // With nothing left to write, only the next attempt can tell whether there is room again.
        self.disk_full &= !self.pending.is_empty();
        let mut answers: Vec<_> = self.go_on_with_bulk(now, &mut effects).into_iter().collect();
        let next_bulk = self.bulk.is_none().then(|| self.bulk_queue.next(inputs)).flatten();
        let mut batch_budget = commands::batch_budget::BatchBudget::default();
        for input in inputs.drain(..) {
            match input {
                Input::Command(caller, ref command)
                    if (commands::bulk::is_bulk(command)
                        && (self.bulk.is_some() || next_bulk != Some(caller.uid)))
                        || !batch_budget.has_room(caller, command, self.tasks.len()) =>
                {
                    later.push(input);
                }
                Input::Command(caller, command) => {
                    answers.extend(self.obey(now, caller, command, &mut effects));
                }
                Input::Ended { .. } if self.has_had_its_turn(began) => later.push(input),
                Input::Ended { task, attempt, end } => {
                    self.attempt_ended(now, task, attempt, end, &mut effects);
                }
                Input::SharingReady => self.to_launch.extend(self.for_sharing.drain(..)),
                Input::GpuError => self.hear_gpu_errors(now, &mut effects),
                Input::Removed(tasks) => {
                    let at = self.clock.world_now();
                    let gone = |task: &TaskId| [Entry::NoSeries(*task), removed(*task, at)];
                    self.pending.extend(tasks.iter().flat_map(gone));
                }
                Input::Seen(sighting) => self.seen(now, *sighting, &mut effects),
                Input::Sign { task, attempt, sign, counted } => {
                    self.log_seen(now, (task, attempt), sign, counted, &mut effects);
                }
                Input::Delivered { id, result } => self.notice_sent(id, result),
                Input::Shutdown => self.stop = true,
            }
        }
        *inputs = later;
        self.look_again_at_the_unclear(now, &mut effects);
        self.kill_the_overdue();
        self.write_and_answer(answers);
        if self.wake_at <= now {
            self.wake_at = Time::NEVER;
            self.mind_a_silent_monitor(now, &mut effects);
            self.end_reservations(now, &mut effects);
            self.scheduler.note(now, Event::Wake, &mut effects);
        }
        self.decide_and_carry_out(now, effects);
        self.send_notices();
        if std::mem::take(&mut self.roots_changed) {
            self.executor.attribute_to(&mut self.on_gpus.iter().copied());
        }
        self.tell_news(now);
        let took = self.clock.instant().saturating_duration_since(began);
        self.counters.batches.observe(took.as_secs_f64());
    }

    /// Whatever people want is on the disk before they are answered, before the scheduler decides, and before a task
    /// hears of it.
    fn write_and_answer(&mut self, answers: Vec<PendingAnswer>) {
        #[cfg(test)]
        let answers = kit::answer_unwritten_if_sabotaged(answers);
        let written = self.flush();
        self.send_signals(written);
        let unwritten = (!written).then(|| self.why_unwritten());
        let flushed = Flushed { unwritten, is_noted: &|task| self.is_noted(task) };
        answers.into_iter().for_each(|answer| answer.give(&flushed));
    }

    /// Decides and carries out until no other task becomes eligible because of it.
    fn decide_and_carry_out(&mut self, now: Time, mut effects: Vec<Effect>) {
        loop {
            self.more_to_look_at = false;
            if self.flush() && !self.draining && !self.is_paused() && self.bulk.is_none() {
                // Nothing is decided until all are in: the task that comes last may go first.
                match self.submit_eligible(now, &mut effects) {
                    true => {
                        self.scheduler.decide(now, &mut effects);
                        self.keep_decisions();
                    }
                    false => self.more_to_look_at = true,
                }
            }
            self.keep_promises();
            self.carry_out(now, std::mem::take(&mut effects));
            // Tasks to launch have the next turn: each launch may make others eligible.
            let busy = self.disk_full || self.draining || self.is_paused() || self.has_more_to_do();
            if busy || !self.eligibility.has_more() {
                return;
            }
        }
    }

    /// Tasks that have, or may have, a process.
    fn at_work(&self) -> impl Iterator<Item = &Live> + '_ {
        self.on_gpus.iter().filter_map(|task| self.tasks.get(task))
    }
}
