//! The scheduler's state and the way into it: [`Scheduler::note`] for each event, then [`Scheduler::decide`];
//! [`Scheduler::on_event`] is both.

use crate::accounts::{Account, Accounts, Holdings};
use crate::admission::LargestMemory;
use crate::belief::Beliefs;
use crate::contract::{Overtaking, Settling, SettlingCounts};
use crate::decided::Decided;
use crate::event::{Effect, Event};
use crate::gate::next_look;
use crate::gpus::Gpus;
use crate::host::HostAccount;
use crate::inherit::Past;
use crate::models::Models;
use crate::pass::{PassCounts, PassTotals};
use crate::policy::{Policy, Queue};
use crate::pools::Pools;
use crate::queue::ranked::{self, Ranked};
use crate::queue::{Waiting, allox, backfill, best_effort, fifo};
use crate::recovery::RecoveryQueue;
use crate::service::GpuTime;
use crate::speeds_seen::SpeedsSeen;
use crate::tasks::{Record, Tasks};
use crate::watch::Watch;
use coloc_model::{Fleet, GpuId, Millis, SignatureId, SpeedTable, TaskId, TaskState, Time, UserId};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Everything the scheduler knows. Queue disciplines work on it.
#[derive(Clone, Debug)]
pub(crate) struct SchedulerState {
    pub(crate) policy: Policy,
    pub(crate) tasks: Tasks,
    pub(crate) waiting: Waiting,
    pub(crate) ranked: Ranked,
    pub(crate) speeds: SpeedTable,
    pub(crate) models: Models,
    pub(crate) pools: Pools,
    pub(crate) speeds_seen: SpeedsSeen,
    /// How large the largest tensor of a model is, as a part of the model.
    pub(crate) skews: BTreeMap<SignatureId, f64>,
    pub(crate) recovery: RecoveryQueue,
    pub(crate) holdings: Holdings,
    pub(crate) host: HostAccount,
    pub(crate) gpus: Gpus,
    pub(crate) beliefs: Beliefs,
    pub(crate) watch: Watch,
    pub(crate) settling: Settling,
    pub(crate) overtaking: Overtaking,
    /// Before then no task is preempted for shorter ones.
    pub(crate) preempts_at: Time,
    /// GPUs that improved before this pass: a buffer, kept for its memory.
    pub(crate) improved: Vec<GpuId>,
    /// The head of the queue, once it was refused by every GPU.
    pub(crate) blocked_head: Option<TaskId>,
    pub(crate) fleet: Fleet,
    pub(crate) largest: LargestMemory,
    pub(crate) widest: u32,
    /// The most GPUs that a node has.
    pub(crate) widest_node: u32,
    pub(crate) cursor: u32,
    /// The task that GPUs are kept free for.
    pub(crate) reserved: Option<TaskId>,
    /// What tasks had under another scheduler, until they are submitted here.
    pub(crate) past: FxHashMap<TaskId, Past>,
}

/// One scheduling pass: its time, what it decided, and whether it may go on.
#[derive(Clone, Default, Debug)]
pub(crate) struct Pass {
    pub(crate) now: Time,
    pub(crate) effects: Vec<Effect>,
    pub(crate) counts: PassCounts,
    /// No further decision before this time.
    pub(crate) next_decision: Time,
    /// What GPUs said to tasks that were started, if that is to be kept.
    pub(crate) decided: Option<Vec<Decided>>,
}

impl Pass {
    /// The policy's pace forbids another decision now.
    pub(crate) fn is_over(&self) -> bool {
        self.next_decision > self.now
    }
}

/// The scheduler: a pure state machine.
#[derive(Clone, Debug)]
pub struct Scheduler {
    pub(crate) state: SchedulerState,
    pub(crate) next_ticket: u64,
    /// Something was noted that a pass must look at.
    undecided: bool,
    /// The last pass; what it wanted was handed over.
    pass: Pass,
    /// All passes so far.
    pub(crate) totals: PassTotals,
}

impl Scheduler {
    /// A scheduler for an empty fleet of machines.
    pub fn new(fleet: &Fleet, policy: Policy) -> Self {
        let gpus = Gpus::new(fleet, &policy);
        let state = SchedulerState {
            largest: LargestMemory::of(&gpus, fleet, &policy),
            gpus,
            models: Models::of(fleet),
            pools: Pools::default(),
            tasks: Tasks::default(),
            waiting: Waiting::new(&policy, false),
            ranked: Ranked::new(&policy),
            speeds: SpeedTable::default(),
            speeds_seen: SpeedsSeen::default(),
            skews: BTreeMap::new(),
            recovery: RecoveryQueue::default(),
            holdings: Holdings::of(Accounts::default(), &policy),
            host: HostAccount::default(),
            beliefs: Beliefs::default(),
            watch: Watch::default(),
            settling: Settling::default(),
            overtaking: Overtaking::default(),
            preempts_at: Time::START,
            improved: Vec::new(),
            blocked_head: None,
            fleet: fleet.clone(),
            widest: match policy.spans_nodes() {
                true => fleet.len() as u32,
                false => fleet.widest_node() as u32,
            },
            widest_node: fleet.widest_node() as u32,
            cursor: 0,
            reserved: None,
            past: FxHashMap::default(),
            policy,
        };
        Scheduler {
            state,
            next_ticket: 0,
            undecided: false,
            pass: Pass::default(),
            totals: PassTotals::default(),
        }
    }

    /// What Gittins indices are computed from, instead of the tasks that end here.
    #[must_use]
    pub fn with_history(mut self, samples: Vec<GpuTime>) -> Self {
        self.state.ranked.history.fix(samples);
        self
    }

    /// How fast tasks run on each kind of device.
    #[must_use]
    pub fn with_speeds(mut self, speeds: SpeedTable) -> Self {
        self.state.models.learn(&speeds);
        self.state.speeds = speeds;
        self
    }

    /// How large the largest tensor of what runs is, as a part of the model.
    #[must_use]
    pub fn with_skews(mut self, skews: impl IntoIterator<Item = (SignatureId, f64)>) -> Self {
        self.state.skews.extend(skews);
        self
    }

    /// Weights and quotas. Must be said before anything is submitted.
    #[must_use]
    pub fn with_accounts(mut self, accounts: Accounts) -> Self {
        let policy = self.state.policy;
        self.state.holdings = Holdings::of(accounts, &policy);
        self.state.waiting = Waiting::new(&policy, self.state.holdings.are_limited());
        self
    }

    /// Agrees something with a user of whom no task was seen yet.
    pub fn agree(&mut self, user: UserId, account: Account) {
        self.state.holdings.agree(user, account);
    }

    /// The policy in force.
    pub fn policy(&self) -> &Policy {
        &self.state.policy
    }

    /// The GPUs as the scheduler sees them.
    pub fn gpus(&self) -> &Gpus {
        &self.state.gpus
    }

    /// How often tasks settled, and what came of it.
    pub fn settling(&self) -> SettlingCounts {
        self.state.settling.counts
    }

    /// What has been learned of tasks.
    pub fn beliefs(&self) -> &Beliefs {
        &self.state.beliefs
    }

    /// Whether the SM demand that is expected of a task was seen or estimated, and is not what tasks are like in general.
    pub fn knows_load(&self, task: TaskId) -> bool {
        let task = self.state.tasks.get(task).map(|record| &record.task);
        task.is_some_and(|task| task.sm.is_some() || self.beliefs().knows(task.signature))
    }

    /// Whether any decision depends on [`Event::GpuSeen`].
    pub fn watches_gpus(&self) -> bool {
        let policy = &self.state.policy;
        policy.learn || policy.contract.is_some() || self.state.gpus.read_signals()
    }

    /// Whether any decision depends on [`Event::TaskSeen`]: a task that has whole GPUs may hold what it likes.
    pub fn watches_tasks(&self) -> bool {
        let policy = &self.state.policy;
        policy.learn || policy.contract.is_some() || !policy.needs_idle()
    }

    /// The waiting tasks: recovered ones first, then the others by ticket or rank.
    pub fn waiting(&self) -> impl Iterator<Item = TaskId> + '_ {
        let SchedulerState { policy, recovery, waiting, ranked, .. } = &self.state;
        let by_ticket = (!policy.queue.is_ranked()).then(|| waiting.iter());
        recovery.iter().chain(by_ticket.into_iter().flatten()).chain(ranked.waiting())
    }

    /// Where a task stands; `None` once it has ended.
    pub fn state(&self, task: TaskId) -> Option<TaskState> {
        self.state.tasks.get(task).map(Record::state)
    }

    /// Keeps from now on what each GPU said to tasks that are started.
    pub fn keep_decisions(&mut self) {
        self.pass.decided = Some(Vec::new());
    }

    /// What was kept of decisions since the last time: of very many at once, the first ones.
    pub fn take_decisions(&mut self) -> Vec<Decided> {
        self.pass.decided.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// How the last pass went.
    pub fn last_pass(&self) -> &PassCounts {
        &self.pass.counts
    }

    /// What all passes came to.
    pub fn pass_totals(&self) -> &PassTotals {
        &self.totals
    }

    /// Takes note of an event and decides what to do. The answer depends on nothing but the events so
    /// far. Times must not go backwards.
    pub fn on_event(&mut self, now: Time, event: Event) -> Vec<Effect> {
        let mut effects = Vec::new();
        self.note(now, event, &mut effects);
        self.decide(now, &mut effects);
        effects
    }

    /// Takes note of one of several events of a moment; [`Scheduler::decide`] follows the last of them.
    pub fn note(&mut self, now: Time, event: Event, effects: &mut Vec<Effect>) {
        self.undecided |= self.take_note(now, event, effects);
    }

    /// Decides what to do about everything that was noted.
    pub fn decide(&mut self, now: Time, effects: &mut Vec<Effect>) {
        let ranked = self.state.policy.queue.is_ranked();
        if std::mem::take(&mut self.undecided) && (ranked || self.state.anyone_waits()) {
            self.pass(now, effects);
        }
        // Where no task waits and none runs by rank, there is nothing to look at.
        if !ranked && !self.state.anyone_waits() {
            self.state.ranked.look_at = None;
        }
        if let Some(at) = self.state.ranked.look_at {
            effects.push(Effect::WakeAt(at));
        }
        if self.state.preempts_at > now && !self.state.waiting.is_empty() {
            effects.push(Effect::WakeAt(self.state.preempts_at));
        }
        let due = self.state.watch.next_due();
        if let Some(due) = due.into_iter().chain(self.state.settling.next_due()).min() {
            effects.push(Effect::WakeAt(due));
        }
    }

    fn pass(&mut self, now: Time, effects: &mut Vec<Effect>) {
        let pass = &mut self.pass;
        pass.now = now;
        pass.counts = PassCounts::default();
        std::mem::swap(&mut pass.effects, effects);
        if !pass.is_over() {
            self.state.run_queues(pass);
        }
        std::mem::swap(&mut pass.effects, effects);
        self.totals.add(&pass.counts);
        if self.state.anyone_waits()
            && let Some(at) = self.state.next_look(now, pass.next_decision)
        {
            effects.push(Effect::WakeAt(at));
        }
    }
}

impl SchedulerState {
    pub(crate) fn anyone_waits(&self) -> bool {
        !self.waiting.is_empty() || !self.recovery.is_empty()
    }

    fn run_queues(&mut self, pass: &mut Pass) {
        self.run_recovery(pass);
        if pass.is_over() || (self.policy.recovery.stops_others && !self.recovery.is_empty()) {
            return;
        }
        self.start_reserved(pass);
        if pass.is_over() {
            return;
        }
        match self.policy.queue {
            Queue::Fifo => fifo::run(self, pass),
            Queue::BestEffort | Queue::Fair | Queue::LeastWork => best_effort::run(self, pass),
            Queue::Backfill => backfill::run(self, pass),
            Queue::Allox => allox::run(self, pass),
            Queue::Sjf | Queue::Srtf | Queue::Srsf | Queue::Las2d | Queue::Gittins2d => {
                ranked::run(self, pass);
            }
        }
        let least_work = self.policy.queue == Queue::LeastWork;
        if let Some(preemption) = self.policy.preemption.filter(|_| least_work && !pass.is_over()) {
            self.preempt_longer_ones(pass, preemption);
        }
        if self.policy.contract.is_some() {
            self.bound_overtaking(pass.now);
        }
        self.reserve_for_the_starving(pass.now);
        self.keep_host_for_the_starving(pass.now);
    }

    /// The first waiting task that neither a quota nor the machine keeps from starting.
    pub(crate) fn head(&self) -> Option<TaskId> {
        if !self.bars_some() {
            return self.waiting.head();
        }
        self.waiting.iter().find(|&task| !self.is_barred(task))
    }

    /// Tasks ask for something else now than what they were refused.
    pub(crate) fn forget_refusals(&mut self) {
        self.waiting.unblock_all();
        self.blocked_head = None;
    }

    /// When to look again although nothing happened: a pace, a settle time or a window runs out.
    fn next_look(&self, now: Time, next_decision: Time) -> Option<Time> {
        let paced = (next_decision > now).then_some(next_decision);
        if !self.policy.time_matters() {
            return paced;
        }
        let looks = self.gpus.iter().filter_map(|(_, gpu)| next_look(&self.policy, gpu, now));
        looks.chain(paced).min().map(|at| at.max(now + Millis(1)))
    }
}
