//! The scheduler's state and the one door into it: [`Scheduler::on_event`].

use crate::belief::Beliefs;
use crate::demand::Demand;
use crate::event::{Effect, Event};
use crate::gpus::{Gpus, Reservation};
use crate::pass::PassCounts;
use crate::place::{Preference, Question, Search, Searcher};
use crate::policy::{Place, Policy, Queue};
use crate::queue::ranked::{self, Ranked};
use crate::queue::{Ticket, Waiting, allox, backfill, best_effort, fifo};
use crate::recovery::RecoveryQueue;
use crate::screen::next_look;
use crate::service::GpuTime;
use crate::tasks::{Record, Run, Tasks};
use crate::watch::Watch;
use coloc_model::mig::Layout;
use coloc_model::{
    Bytes, Fleet, GpuId, Millis, Outcome, Placement, Share, Slot, SpeedTable, Task, TaskId,
    TaskState, Time,
};

/// A task that no GPU of this fleet can ever run.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("task {task} needs {wanted} GPUs {scope} at most {available}; {advice}")]
pub struct RejectedTask {
    /// The task.
    pub task: TaskId,
    /// GPUs it asked for.
    pub wanted: u32,
    /// GPUs that could ever be given to it.
    pub available: u32,
    scope: &'static str,
    advice: &'static str,
}

/// Everything the scheduler knows. Queue disciplines work on it.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) policy: Policy,
    pub(crate) tasks: Tasks,
    pub(crate) waiting: Waiting,
    pub(crate) ranked: Ranked,
    pub(crate) speeds: SpeedTable,
    pub(crate) recovery: RecoveryQueue,
    pub(crate) gpus: Gpus,
    pub(crate) beliefs: Beliefs,
    pub(crate) watch: Watch,
    /// GPUs that improved before this pass: a buffer, kept for its memory.
    pub(crate) improved: Vec<GpuId>,
    /// The head of the queue, once it was refused by every GPU.
    pub(crate) blocked_head: Option<TaskId>,
    searcher: Searcher,
    fleet: Fleet,
    /// The most memory that a gang of each size can have on each of its GPUs.
    largest: Vec<Bytes>,
    widest: u32,
    cursor: u32,
    /// The task that GPUs are kept free for.
    pub(crate) reserved: Option<TaskId>,
}

/// For each number of GPUs the memory of the smallest of the largest ones that a task can get at once.
fn largest_by_gang(fleet: &Fleet, policy: &Policy) -> Vec<Bytes> {
    let memory = |gpu| match (policy.share, fleet.gpu(gpu).model.mig()) {
        (Share::Mig, Some(table)) => Layout::default().largest_memory(table),
        _ => fleet.gpu(gpu).model.memory(),
    };
    let groups: Vec<Vec<Bytes>> = match policy.place {
        Place::Any => vec![fleet.ids().map(memory).collect()],
        _ => fleet.nodes().iter().map(|node| node.gpus().map(memory).collect()).collect(),
    };
    let mut largest: Vec<Bytes> = Vec::new();
    for mut group in groups {
        group.sort_unstable_by(|a, b| b.cmp(a));
        largest.resize(largest.len().max(group.len()), Bytes::ZERO);
        largest.iter_mut().zip(group).for_each(|(most, memory)| *most = memory.max(*most));
    }
    largest
}

/// One scheduling pass: its time, what it decided, and whether it may go on.
pub(crate) struct Turn {
    pub(crate) now: Time,
    pub(crate) effects: Vec<Effect>,
    pub(crate) counts: PassCounts,
    /// No further decision before this time.
    pub(crate) next_decision: Time,
}

impl Turn {
    /// The policy's pace forbids another decision now.
    pub(crate) fn is_over(&self) -> bool {
        self.next_decision > self.now
    }
}

/// Beyond this many GPUs a search by list is slower than one by index.
const LONG_LIST: usize = 256;

/// The scheduler: a pure state machine.
#[derive(Clone, Debug)]
pub struct Scheduler {
    pub(crate) world: World,
    next_ticket: u64,
    next_decision: Time,
    /// Something was noted that a pass must look at.
    undecided: bool,
    counts: PassCounts,
}

impl Scheduler {
    /// A scheduler for an empty fleet of machines.
    pub fn new(fleet: &Fleet, policy: Policy) -> Self {
        let world = World {
            gpus: Gpus::new(fleet, &policy),
            tasks: Tasks::default(),
            waiting: Waiting::new(policy.same_user),
            ranked: Ranked::new(&policy),
            speeds: SpeedTable::default(),
            recovery: RecoveryQueue::default(),
            beliefs: Beliefs::default(),
            watch: Watch::default(),
            improved: Vec::new(),
            blocked_head: None,
            searcher: Searcher::default(),
            fleet: fleet.clone(),
            largest: largest_by_gang(fleet, &policy),
            widest: match policy.place {
                Place::Any => fleet.len() as u32,
                _ => fleet.widest_node() as u32,
            },
            cursor: 0,
            reserved: None,
            policy,
        };
        Scheduler {
            world,
            next_ticket: 0,
            next_decision: Time::START,
            undecided: false,
            counts: PassCounts::default(),
        }
    }

    /// What Gittins indices are computed from, instead of the tasks that end here.
    #[must_use]
    pub fn with_history(mut self, samples: Vec<GpuTime>) -> Self {
        self.world.ranked.history.fix(samples);
        self
    }

    /// How fast tasks run on each kind of device.
    #[must_use]
    pub fn with_speeds(mut self, speeds: SpeedTable) -> Self {
        self.world.speeds = speeds;
        self
    }

    /// The policy in force.
    pub fn policy(&self) -> &Policy {
        &self.world.policy
    }

    /// The GPUs as the scheduler sees them.
    pub fn gpus(&self) -> &Gpus {
        &self.world.gpus
    }

    /// What has been learned of tasks.
    pub fn beliefs(&self) -> &Beliefs {
        &self.world.beliefs
    }

    /// Tasks that are waiting, recovered ones first.
    pub fn waiting(&self) -> impl Iterator<Item = TaskId> + '_ {
        self.world.recovery.iter().chain(self.world.waiting.iter())
    }

    /// Where a task stands; `None` once it has ended.
    pub fn state(&self, task: TaskId) -> Option<TaskState> {
        self.world.tasks.get(task).map(Record::state)
    }

    /// How the last pass went.
    pub fn last_pass(&self) -> &PassCounts {
        &self.counts
    }

    /// Whether this fleet could ever run a task, if it were empty.
    pub fn check(&self, task: &Task) -> Result<(), RejectedTask> {
        let larger = "give the simulation a larger node";
        let (available, scope, advice) = match (self.world.policy.queue, self.world.policy.place) {
            (Queue::Allox, _) => (1, "at once, allox gives a task", "gangs need another queue"),
            (_, Place::Any) => (self.world.widest, "at once, the fleet has", larger),
            _ => (self.world.widest, "on one node, the fleet has", larger),
        };
        if (1..=available).contains(&task.gpus) {
            return Ok(());
        }
        Err(RejectedTask { task: task.id, wanted: task.gpus, available, scope, advice })
    }

    /// The most memory that a task with so many GPUs can have on each of them; none if it has too many.
    pub fn most_memory(&self, gpus: u32) -> Bytes {
        let rank = (gpus as usize).checked_sub(1);
        rank.and_then(|rank| self.world.largest.get(rank)).copied().unwrap_or(Bytes::ZERO)
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
        let ranked = self.world.policy.queue.is_ranked();
        if std::mem::take(&mut self.undecided) && (ranked || self.world.anyone_waits()) {
            self.pass(now, effects);
        }
        if let Some(at) = self.world.ranked.look_at {
            effects.push(Effect::WakeAt(at));
        }
        if let Some(due) = self.world.watch.next_due() {
            effects.push(Effect::WakeAt(due));
        }
    }

    /// Updates the state; says whether a pass might start something.
    fn take_note(&mut self, now: Time, event: Event, effects: &mut Vec<Effect>) -> bool {
        let world = &mut self.world;
        match event {
            Event::Submitted(task) => {
                // Whoever sends an id twice means the task that is already here.
                if self.world.tasks.get(task.id).is_some() {
                    return false;
                }
                if self.check(&task).is_err() {
                    effects.push(Effect::Retire { task: task.id, state: TaskState::Failed });
                    return false;
                }
                let ticket = Ticket { submitted: now, number: self.next_ticket };
                self.next_ticket += 1;
                self.world.waiting.insert(ticket, &task);
                let mut record = Record::new(task, ticket);
                if self.world.policy.queue.is_ranked() {
                    self.world.ranked.arrive(now, &self.world.policy, &mut record);
                }
                self.world.tasks.insert(record);
                true
            }
            Event::Ended { task, outcome } => world.ended(now, task, outcome, effects),
            Event::CancelRequested(task) => world.cancel(task, effects),
            Event::Stopped(task) => world.stopped(now, task, effects),
            Event::GpuSeen { gpu, signal } => {
                world.gpus.see(now, gpu, signal);
                // A pass asks for the signals itself; but one that cools down may be worth another look.
                if self.world.anyone_waits()
                    && let Some(at) = next_look(&self.world.policy, self.world.gpus.get(gpu), now)
                {
                    effects.push(Effect::WakeAt(at));
                }
                false
            }
            Event::TaskSeen { task, used } => {
                world.seen(task, used);
                false
            }
            Event::Wake => {
                world.look_at_settled(now);
                // Ranks are looked at when they change, not when they would have changed.
                let early = world.ranked.look_at.is_none_or(|at| now < at);
                !(world.policy.queue.is_ranked() && early && !world.policy.time_matters())
            }
        }
    }

    fn pass(&mut self, now: Time, effects: &mut Vec<Effect>) {
        let mut turn = Turn {
            now,
            effects: std::mem::take(effects),
            counts: PassCounts::default(),
            next_decision: self.next_decision,
        };
        if !turn.is_over() {
            self.world.run_queues(&mut turn);
        }
        self.next_decision = turn.next_decision;
        self.counts = turn.counts;
        *effects = turn.effects;
        if self.world.anyone_waits()
            && let Some(at) = self.world.next_look(now, self.next_decision)
        {
            effects.push(Effect::WakeAt(at));
        }
    }
}

impl World {
    fn anyone_waits(&self) -> bool {
        !self.waiting.is_empty() || !self.recovery.is_empty()
    }

    fn run_queues(&mut self, turn: &mut Turn) {
        self.run_recovery(turn);
        if turn.is_over() || (self.policy.recovery.stops_others && !self.recovery.is_empty()) {
            return;
        }
        match self.policy.queue {
            Queue::Fifo => fifo::run(self, turn),
            Queue::BestEffort => best_effort::run(self, turn),
            Queue::Backfill => backfill::run(self, turn),
            Queue::Allox => allox::run(self, turn),
            Queue::Sjf | Queue::Srtf | Queue::Srsf | Queue::Las2d | Queue::Gittins2d => {
                ranked::run(self, turn);
            }
        }
        self.keep_room_for_the_patient(turn.now);
    }

    /// Tasks ask for something else now than what they were refused.
    pub(crate) fn forget_refusals(&mut self) {
        self.waiting.unblock_all();
        self.blocked_head = None;
    }

    pub(crate) fn demand(&self, task: TaskId) -> Demand {
        let record = self.tasks.live(task);
        let largest = self.largest[record.task.gpus as usize - 1];
        Demand::of(record, &self.policy, &self.beliefs, largest)
    }

    /// When a task that runs, or starts now, is expected to leave its GPUs: by what was seen of its kind, else as declared.
    /// One that overran may end any moment.
    pub(crate) fn expected_end(&self, task: TaskId, now: Time) -> Time {
        let record = self.tasks.live(task);
        let seen = self.beliefs.run_time(record.task.signature).filter(|_| self.policy.learn);
        let span = seen.or(record.task.duration.filter(|_| !self.policy.learn));
        let started = record.run.as_ref().map_or(now, |run| run.started);
        span.map_or(Time::NEVER, |span| (started + span).max(now + Millis(1)))
    }

    pub(crate) fn try_start(&mut self, turn: &mut Turn, task: TaskId, search: Search<'_>) -> bool {
        match self.find(turn, task, search) {
            Some(gpus) => {
                self.start(turn, task, gpus);
                true
            }
            None => false,
        }
    }

    /// GPUs for a task: idle ones first where the policy says so, then by its placement.
    pub(crate) fn find(
        &mut self,
        turn: &mut Turn,
        task: TaskId,
        search: Search<'_>,
    ) -> Option<Vec<GpuId>> {
        let demand = self.demand(task);
        if self.policy.idle_first {
            let found = self.search(turn, &demand.on_idle(), Place::FirstFit, search);
            if found.is_some() || demand.idle_only {
                return found;
            }
        }
        self.search(turn, &demand, self.policy.place, search)
    }

    fn search(
        &mut self,
        turn: &mut Turn,
        demand: &Demand,
        place: Place,
        search: Search<'_>,
    ) -> Option<Vec<GpuId>> {
        let mut searcher = std::mem::take(&mut self.searcher);
        let question = Question {
            policy: &self.policy,
            gpus: &self.gpus,
            now: turn.now,
            demand,
            preference: Preference { place, cursor: self.cursor, demand },
        };
        let found = match search {
            // A gang that did not fit may now take an improved GPU together with others.
            Search::Only(improved) if demand.gpus > 1 => {
                let nodes = self.gpus_of_their_nodes(improved);
                // Of a great many, the index finds the best faster than a list does.
                let search = match nodes.len() {
                    0..=LONG_LIST => Search::Only(&nodes),
                    _ => Search::Everywhere,
                };
                searcher.find(&question, search, &mut turn.counts)
            }
            search => searcher.find(&question, search, &mut turn.counts),
        };
        self.searcher = searcher;
        found
    }

    fn gpus_of_their_nodes(&self, gpus: &[GpuId]) -> Vec<GpuId> {
        if self.policy.place == Place::Any {
            return self.fleet.ids().collect();
        }
        let mut nodes: Vec<_> = gpus.iter().map(|&gpu| self.gpus.get(gpu).node).collect();
        nodes.dedup();
        nodes.iter().flat_map(|&node| self.fleet.node(node).gpus()).collect()
    }

    /// The commit stage: books the GPUs and has the task launched.
    pub(crate) fn start(&mut self, turn: &mut Turn, task: TaskId, gpus: Vec<GpuId>) {
        let now = turn.now;
        let demand = self.demand(task);
        let beside_others = gpus.iter().any(|&gpu| !self.gpus.get(gpu).is_idle());
        let slots: Vec<Slot> = gpus.iter().map(|&gpu| self.slot(gpu, &demand)).collect();
        for slot in &slots {
            self.book(now, *slot, &demand);
        }
        self.cursor = gpus.last().map_or(0, |gpu| (gpu.0 + 1) % self.gpus.len() as u32);
        let share = self.policy.share;
        let placement = Placement { slots, share };
        turn.effects.push(Effect::Launch { task, placement: placement.clone() });
        turn.counts.started += 1;
        let pace = self.policy.pace;
        turn.next_decision = now + if beside_others { pace.shared } else { pace.idle };
        self.leave_queue(task);
        let run = Run { placement, started: now, seen: Bytes::ZERO, settled: false };
        if let Some(record) = self.tasks.get_mut(task) {
            record.run = Some(run);
            record.standing.starts(now);
        }
        if self.policy.learn {
            self.watch.launched(now, task);
        }
        if self.reserved == Some(task) {
            self.reserve_for(Time::START, None);
        }
    }

    fn book(&mut self, now: Time, slot: Slot, demand: &Demand) {
        let booking = self.gpus.get(slot.gpu).booking(demand, slot.instance);
        self.gpus.book(now, slot.gpu, booking);
        if let Some(settle) = self.policy.settle {
            self.gpus.hold_until(slot.gpu, now + settle);
        }
    }

    /// The part of a GPU that a task gets.
    pub(crate) fn slot(&self, gpu: GpuId, demand: &Demand) -> Slot {
        let partitioned = self.policy.share == Share::Mig;
        let state = self.gpus.get(gpu);
        Slot { gpu, instance: if partitioned { state.instance_for(demand) } else { None } }
    }

    fn leave_queue(&mut self, task: TaskId) {
        let record = self.tasks.live(task);
        let (ticket, in_recovery) = (record.ticket, record.ooms > 0);
        if in_recovery {
            self.recovery.remove(task);
        } else {
            self.waiting.remove(ticket, &record.task);
            if self.policy.queue.is_ranked() {
                self.ranked.remove(&self.policy, record);
            }
        }
    }

    /// Takes a task off its GPUs.
    pub(crate) fn vacate(&mut self, now: Time, task: TaskId) -> Option<Run> {
        let run = self.tasks.get_mut(task)?.run.take()?;
        for gpu in run.placement.gpus() {
            self.gpus.release(now, gpu, task);
        }
        self.ranked.forget_running(task);
        Some(run)
    }

    fn ended(
        &mut self,
        now: Time,
        task: TaskId,
        outcome: Outcome,
        effects: &mut Vec<Effect>,
    ) -> bool {
        self.learn_from(now, task);
        let Some(run) = self.vacate(now, task) else {
            return self.ended_while_leaving(task, outcome, effects);
        };
        self.close_books(now, task, outcome);
        if self.policy.learn && outcome == Outcome::Completed {
            let signature = self.tasks.live(task).task.signature;
            self.beliefs.learn_run_time(signature, now.since(run.started));
        }
        let cancelled = self.tasks.live(task).cancelled;
        let state = match outcome {
            Outcome::Completed => TaskState::Completed,
            _ if cancelled => TaskState::Cancelled,
            Outcome::Failed => TaskState::Failed,
            Outcome::OutOfMemory { wanted } => {
                if self.recover(task, wanted) {
                    return true;
                }
                TaskState::OutOfMemory
            }
        };
        self.retire(task, state, effects);
        true
    }

    /// A task ended before it could be preempted: there is nothing left to launch again.
    fn ended_while_leaving(
        &mut self,
        task: TaskId,
        outcome: Outcome,
        effects: &mut Vec<Effect>,
    ) -> bool {
        let preempted = |record: &Record| record.standing.first_start.is_some() && record.ooms == 0;
        let leaving = self.tasks.get(task).is_some_and(preempted);
        if leaving && outcome == Outcome::Completed {
            self.leave_queue(task);
            self.retire(task, TaskState::Completed, effects);
        }
        leaving
    }

    /// A run is over: service was attained, and history has one more sample.
    fn close_books(&mut self, now: Time, task: TaskId, outcome: Outcome) {
        let Some(record) = self.tasks.get_mut(task) else { return };
        match outcome {
            Outcome::Completed | Outcome::Failed => record.standing.preempted(now),
            Outcome::OutOfMemory { .. } => record.standing.died(now),
        }
        let service = GpuTime::of(record.standing.done, record.task.gpus);
        if self.policy.queue == Queue::Gittins2d
            && outcome == Outcome::Completed
            && self.ranked.history.ended(service)
        {
            self.reseat_all(now);
        }
    }

    fn cancel(&mut self, task: TaskId, effects: &mut Vec<Effect>) -> bool {
        let Some(record) = self.tasks.get_mut(task) else { return false };
        if record.run.is_some() {
            if !std::mem::replace(&mut record.cancelled, true) {
                effects.push(Effect::Stop(task));
            }
            return false;
        }
        self.leave_queue(task);
        self.retire(task, TaskState::Cancelled, effects);
        true
    }

    fn stopped(&mut self, now: Time, task: TaskId, effects: &mut Vec<Effect>) -> bool {
        if self.vacate(now, task).is_none() {
            return false;
        }
        self.retire(task, TaskState::Cancelled, effects);
        true
    }

    fn retire(&mut self, task: TaskId, state: TaskState, effects: &mut Vec<Effect>) {
        self.tasks.remove(task);
        if self.reserved == Some(task) {
            self.reserve_for(Time::START, None);
        }
        effects.push(Effect::Retire { task, state });
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

    /// Keeps GPUs of one node free for the longest waiting task once it has waited too long.
    fn keep_room_for_the_patient(&mut self, now: Time) {
        let Some(patience) = self.policy.patience else { return };
        let Some(head) = self.waiting.head() else { return };
        if self.reserved.is_some() || now.since(self.tasks.live(head).ticket.submitted) < patience {
            return;
        }
        self.reserve_for(now, Some(head));
    }

    pub(crate) fn reserve_for(&mut self, now: Time, task: Option<TaskId>) {
        let Some(task) = task else {
            let kept: Vec<GpuId> = self
                .gpus
                .iter()
                .filter(|(_, state)| state.reserved.is_some())
                .map(|(gpu, _)| gpu)
                .collect();
            kept.into_iter().for_each(|gpu| self.gpus.reserve(gpu, None));
            self.reserved = None;
            return;
        };
        let demand = self.demand(task);
        for gpu in self.roomiest(&demand) {
            let until = backfill::free_at(self, gpu, now, &demand, None);
            self.gpus.reserve(gpu, Some(Reservation { keeper: task, until }));
        }
        self.reserved = Some(task);
    }

    /// The GPUs of one node, each large enough, that are closest to being free.
    fn roomiest(&self, demand: &Demand) -> Vec<GpuId> {
        let wanted = demand.gpus as usize;
        let by_room = |gpu: &GpuId| {
            let state = self.gpus.get(*gpu);
            (state.residents().len(), std::cmp::Reverse(self.gpus.available(*gpu)), *gpu)
        };
        let groups: Vec<Vec<GpuId>> = match self.policy.place {
            Place::Any => vec![self.fleet.ids().collect()],
            _ => self.fleet.nodes().iter().map(|node| node.gpus().collect()).collect(),
        };
        let large_enough = |gpu: &GpuId| self.gpus.get(*gpu).capacity >= demand.need;
        groups
            .into_iter()
            .map(|gpus| gpus.into_iter().filter(large_enough).collect())
            .filter(|gpus: &Vec<GpuId>| gpus.len() >= wanted)
            .map(|mut gpus| {
                gpus.sort_unstable_by_key(by_room);
                gpus.truncate(wanted);
                gpus
            })
            .min_by_key(|gpus| gpus.last().map(by_room))
            .unwrap_or_default()
    }
}
