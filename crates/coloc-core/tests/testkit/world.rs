use super::{TaskBuilder, task};
use coloc_core::accounts::Accounts;
use coloc_core::{Effect, Event, HostCapacity, Policy, Refusal, Scheduler};
use coloc_model::{
    Activity, Bytes, Fleet, Fraction, GpuId, GpuSignal, Millis, Outcome, Placement, Task, TaskId,
    TaskState, Time,
};
use std::collections::{BTreeMap, BTreeSet};

/// The scheduler and a world that does what it says: launches succeed, wake-ups come on time, and
/// nothing else happens unless the scenario says so.
pub(crate) struct World {
    pub(crate) scheduler: Scheduler,
    pub(crate) now: Time,
    running: BTreeMap<TaskId, Placement>,
    ended: BTreeMap<TaskId, TaskState>,
    stopping: BTreeSet<TaskId>,
    wakes: BTreeSet<Time>,
    /// Everything that was launched, with its time.
    pub(crate) launches: Vec<(Time, TaskId)>,
    submitted: u32,
    /// Everything that was submitted.
    tasks: Vec<Task>,
    fleet: Fleet,
}

/// How much a new scheduler is told of what the old one knew.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Restart {
    /// As after a crash with an old journal: what runs, and nothing of promises.
    Bare,
    /// As after a crash: what was promised was written down.
    Journal,
    /// As after a reload: the old one is there.
    Reload,
}

impl World {
    pub(crate) fn new(fleet: &str, policy: Policy) -> Self {
        let fleet: Fleet = fleet.parse().expect("a valid fleet");
        World {
            scheduler: Scheduler::new(&fleet, policy),
            tasks: Vec::new(),
            fleet,
            now: Time::START,
            running: BTreeMap::new(),
            ended: BTreeMap::new(),
            stopping: BTreeSet::new(),
            wakes: BTreeSet::new(),
            launches: Vec::new(),
            submitted: 0,
        }
    }

    /// With weights and quotas, said before anything is submitted.
    pub(crate) fn with_accounts(self, accounts: Accounts) -> Self {
        World { scheduler: self.scheduler.with_accounts(accounts), ..self }
    }

    /// With CPUs and memory that are counted, said before anything is submitted.
    pub(crate) fn with_host(self, capacity: HostCapacity) -> Self {
        World { scheduler: self.scheduler.with_host(capacity), ..self }
    }

    /// A server of A100s with one of these tasks on each GPU, whatever the policy prefers: everything
    /// else is plugged while a task is submitted.
    pub(crate) fn filled<const N: usize>(policy: Policy, tasks: [TaskBuilder; N]) -> Self {
        World::filled_nodes(&format!("{N}xA100-40GB"), policy, tasks)
    }

    /// The same on several nodes.
    pub(crate) fn filled_nodes<const N: usize>(
        fleet: &str,
        policy: Policy,
        tasks: [TaskBuilder; N],
    ) -> Self {
        let mut world = World::new(fleet, policy);
        let mut plugs = tasks.map(|_| world.submit(task().gib(40))).to_vec();
        plugs.sort_unstable_by_key(|&plug| world.gpus(plug));
        for (gpu, filler) in tasks.into_iter().enumerate() {
            world.finish(plugs[gpu]);
            let id = world.submit(filler);
            assert_eq!(world.gpus(id), [gpu as u32], "all other GPUs are full");
            let left = world.scheduler.gpus().available(GpuId::from(gpu));
            plugs[gpu] = world.submit(task().mib(left.mib() as u64));
        }
        for plug in plugs {
            world.finish(plug);
        }
        world
    }

    /// Something happens now. Returns what the scheduler wants, which is done.
    pub(crate) fn tell(&mut self, event: Event) -> Vec<Effect> {
        let effects = self.scheduler.on_event(self.now, event);
        self.scheduler.sanity_check();
        for effect in &effects {
            self.carry_out(effect);
        }
        effects
    }

    fn carry_out(&mut self, effect: &Effect) {
        match effect {
            Effect::Launch { task, placement } => {
                assert!(!self.ended.contains_key(task), "task {task} has ended");
                let before = self.running.insert(*task, placement.clone());
                assert!(before.is_none(), "task {task} runs twice");
                self.launches.push((self.now, *task));
            }
            Effect::Preempt(task) => {
                let before = self.running.remove(task);
                assert!(before.is_some(), "task {task} does not run");
            }
            Effect::Stop(task) => {
                assert!(self.running.contains_key(task), "task {task} does not run");
                self.stopping.insert(*task);
            }
            Effect::Retire { task, state } => {
                assert!(!self.running.contains_key(task), "task {task} still runs");
                let before = self.ended.insert(*task, *state);
                assert!(before.is_none(), "task {task} ends twice");
            }
            Effect::WakeAt(at) => {
                self.wakes.insert(*at);
            }
        }
    }

    pub(crate) fn submit(&mut self, task: TaskBuilder) -> TaskId {
        let task = task.build(self.submitted);
        self.submitted += 1;
        let id = task.id;
        self.tasks.push(task.clone());
        self.tell(Event::Submitted(task));
        id
    }

    pub(crate) fn submit_all<const N: usize>(&mut self, tasks: [TaskBuilder; N]) -> [TaskId; N] {
        tasks.map(|task| self.submit(task))
    }

    fn leave(&mut self, task: TaskId, event: Event) {
        self.running.remove(&task).expect("only a running task can end");
        self.stopping.remove(&task);
        self.tell(event);
    }

    fn end(&mut self, task: TaskId, outcome: Outcome) {
        self.leave(task, Event::Ended { task, outcome });
    }

    pub(crate) fn finish(&mut self, task: TaskId) {
        self.end(task, Outcome::Completed);
    }

    /// It fails by its own fault.
    pub(crate) fn fail(&mut self, task: TaskId) {
        self.end(task, Outcome::Failed);
    }

    /// It runs out of memory, having wanted this much.
    pub(crate) fn oom(&mut self, task: TaskId, wanted: Bytes) {
        self.end(task, Outcome::OutOfMemory { wanted });
    }

    pub(crate) fn cancel(&mut self, task: TaskId) {
        self.tell(Event::StopRequested(task));
    }

    /// A task that was to be stopped is off its GPUs.
    pub(crate) fn stopped(&mut self, task: TaskId) {
        assert!(self.stopping.contains(&task), "nobody asked to stop task {task}");
        self.leave(task, Event::Stopped(task));
    }

    /// The monitor sees a task hold this much.
    pub(crate) fn observe(&mut self, task: TaskId, used: Bytes) {
        self.tell(Event::TaskSeen { task, used, activity: None });
    }

    /// The monitor sees a task hold this much, and how busy it keeps its GPUs.
    pub(crate) fn observe_at_work(&mut self, task: TaskId, used: Bytes, sm: f64) {
        let activity = Some(Fraction::new(sm));
        self.tell(Event::TaskSeen { task, used, activity });
    }

    /// The monitor sees a GPU this busy, with this much memory in use. Occupancy is half of the SM
    /// activity and DRAM activity a quarter.
    pub(crate) fn observe_gpu(&mut self, gpu: u32, sm: f64, used: Bytes) {
        let part = |share: f64| Fraction::new(sm * share);
        let activity =
            Activity { gpu: part(1.0), sm: part(1.0), occupancy: part(0.5), dram: part(0.25) };
        self.tell(Event::GpuSeen { gpu: GpuId(gpu), signal: GpuSignal { activity, used } });
    }

    /// Another scheduler takes the place of this one; it hears of running tasks forwards or backwards.
    pub(crate) fn restart(&mut self, restart: Restart, backwards: bool) {
        self.restart_with(*self.scheduler.policy(), restart, backwards);
    }

    /// The policy is changed while tasks run.
    pub(crate) fn reload(&mut self, policy: Policy) {
        self.restart_with(policy, Restart::Reload, false);
    }

    fn restart_with(&mut self, policy: Policy, restart: Restart, backwards: bool) {
        let mut new = Scheduler::new(&self.fleet, policy);
        if restart == Restart::Reload {
            new.remember(self.now, &self.scheduler);
        }
        let mut live: Vec<TaskId> = self.running.keys().copied().collect();
        if backwards {
            live.reverse();
        }
        live.extend(self.scheduler.waiting());
        let old = std::mem::replace(&mut self.scheduler, new);
        for id in live {
            let task = self.tasks[id.index()].clone();
            let event = match self.running.get(&id) {
                Some(placement) => Event::Adopted {
                    task,
                    placement: placement.clone(),
                    started: Time::START,
                    promised: old.promised(id).filter(|_| restart == Restart::Journal),
                },
                None => Event::Submitted(task),
            };
            if let Some(attempts) = old.attempts(id).filter(|_| restart == Restart::Journal) {
                self.scheduler.recall_attempts(id, attempts);
            }
            let mut effects = Vec::new();
            self.scheduler.note(self.now, event, &mut effects);
            if self.stopping.contains(&id) {
                self.scheduler.note(self.now, Event::StopRequested(id), &mut effects);
                effects.retain(|effect| !matches!(effect, Effect::Stop(_)));
            }
            self.scheduler.sanity_check();
            effects.iter().for_each(|effect| self.carry_out(effect));
        }
        self.tell(Event::Wake);
    }

    /// A task that was submitted.
    pub(crate) fn task(&self, id: TaskId) -> &Task {
        &self.tasks[id.index()]
    }

    /// Time passes; wake-ups that were asked for come.
    pub(crate) fn advance(&mut self, span: Millis) {
        let until = self.now + span;
        while let Some(&due) = self.wakes.first()
            && due <= until
        {
            self.wakes.remove(&due);
            self.now = self.now.max(due);
            self.tell(Event::Wake);
        }
        self.now = until;
    }

    /// When the scheduler next wants to be woken.
    pub(crate) fn next_wake(&self) -> Option<Time> {
        self.wakes.first().copied()
    }

    pub(crate) fn runs(&self, task: TaskId) -> bool {
        self.running.contains_key(&task)
    }

    pub(crate) fn waits(&self, task: TaskId) -> bool {
        self.scheduler.waiting().any(|waiting| waiting == task)
    }

    pub(crate) fn is_stopping(&self, task: TaskId) -> bool {
        self.stopping.contains(&task)
    }

    pub(crate) fn running(&self) -> impl Iterator<Item = TaskId> + '_ {
        self.running.keys().copied()
    }

    pub(crate) fn submitted(&self) -> u32 {
        self.submitted
    }

    /// The GPUs that a running task is on, in the order in which they were given.
    pub(crate) fn gpus(&self, task: TaskId) -> Vec<u32> {
        self.placement(task).gpus().map(|gpu| gpu.0).collect()
    }

    pub(crate) fn placement(&self, task: TaskId) -> &Placement {
        self.running.get(&task).expect("the task runs")
    }

    /// Where a task stands, ended ones included.
    pub(crate) fn state(&self, task: TaskId) -> TaskState {
        let live = self.scheduler.state(task);
        live.or_else(|| self.ended.get(&task).copied()).expect("a task that was submitted")
    }

    /// What one GPU says to a waiting task.
    pub(crate) fn refusals(&self, task: TaskId, gpu: u32) -> Vec<Refusal> {
        let explanation = self.scheduler.explain(self.now, task).expect("the task waits");
        explanation.verdicts[gpu as usize].refusals.clone()
    }

    /// Memory promised on a GPU.
    pub(crate) fn booked(&self, gpu: u32) -> Bytes {
        self.scheduler.gpus().get(GpuId(gpu)).booked()
    }
}
