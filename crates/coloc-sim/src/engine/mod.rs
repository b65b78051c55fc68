//! Simulation runs: a trace and modelled devices around the real scheduler.

mod crowd;
mod device;
mod due;
mod life;
mod run;
mod run_slots;
mod sm_error;
mod undisturbed;

pub use sm_error::SmError;

use crate::estimator::{Estimates, Estimator, NoEstimate, Surroundings};
use crate::metrics::{Summary, TaskResult};
use crate::timeline::AttemptEnd;
use crate::trace::{Checkpoint, Place, Trace, TraceTask};
use coloc_core::accounts::Accounts;
use coloc_core::service::GpuTime;
use coloc_core::{Policy, RejectedTask, Scheduler};
use coloc_model::{
    Bytes, Fleet, GpuSignal, HostNeed, Memory, Millis, Share, SignatureId, Slot, SpeedTable, Task,
    TaskId, Time,
};
use coloc_physics::{Noise, PowerModel, SharedGpu, skew};

/// An observer of a run as it happens.
pub trait Observer {
    /// Wants to hear of every change of a GPU, memory that grows included.
    fn sees_gpus(&self) -> bool {
        false
    }
    /// A GPU's state changed and holds from `now` on. An observer that [sees GPUs](Observer::sees_gpus) hears
    /// of every change, others need not.
    fn gpu_changed(&mut self, _now: Time, _gpu: usize, _signal: &GpuSignal, _watts: f64) {}
    /// A task left its GPUs.
    fn attempt_ended(
        &mut self,
        _task: TaskId,
        _started: Time,
        _now: Time,
        _slots: &[Slot],
        _outcome: AttemptEnd,
    ) {
    }
    /// This many tasks have ended so far.
    fn progress(&mut self, _ended: usize) {}
}

/// An observer that looks away.
#[derive(Clone, Copy, Default, Debug)]
pub struct Silent;

impl Observer for Silent {}

/// A run that cannot be started.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum SimulationError {
    /// A row of the trace asks for what cannot be had.
    #[error("{place}: {error}")]
    At {
        /// The row.
        place: Place,
        /// What is wrong.
        error: Box<SimulationError>,
    },
    /// A task can never run on this fleet.
    #[error("{0}")]
    Rejected(#[from] RejectedTask),
    /// A task can never run on this fleet.
    #[error(
        "task {task} ({name}) needs {need} on each of its GPUs, the largest it can get has {largest}"
    )]
    TooLarge {
        /// The task.
        task: TaskId,
        /// What it runs.
        name: String,
        /// What it needs.
        need: Bytes,
        /// What there is.
        largest: Bytes,
    },
    /// The estimator has no number for a task.
    #[error(transparent)]
    NoEstimate(#[from] NoEstimate),
    /// Restoring tasks takes all of the time that they get.
    #[error(
        "from {} s on tasks are preempted before they are restored, so that none gets any further; let \
         preemption cost less, or queues have longer quanta and limits",
        at.secs()
    )]
    NoProgress {
        /// When that was found.
        at: Time,
    },
    /// The fleet has GPUs without MIG.
    #[error("--share mig needs GPUs that can be partitioned; {model} cannot")]
    NoMig {
        /// The model.
        model: coloc_model::GpuModel,
    },
}

/// What it costs a task to be preempted: saving its state and restoring it later.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct PreemptionCost {
    /// Seconds for any task.
    pub fixed_s: f64,
    /// Seconds for each GiB that it holds on a GPU.
    pub per_gib_s: f64,
}

impl PreemptionCost {
    /// What a task with this much memory loses.
    pub fn cost(&self, memory: Bytes) -> Millis {
        Millis::from_secs_f64(self.fixed_s + self.per_gib_s * memory.gib())
    }
}

/// A simulation: machines, a policy, what the scheduler is told, and how devices behave.
#[derive(Clone, Debug)]
pub struct Simulation {
    /// The machines.
    pub fleet: Fleet,
    /// The policy.
    pub policy: Policy,
    /// What the scheduler is told of memory.
    pub estimator: Estimator,
    /// Where replayed tasks run; else each where its memory was measured.
    pub surroundings: Option<Surroundings>,
    /// How devices slow tasks down.
    pub physics: SharedGpu,
    /// What devices draw.
    pub power: PowerModel,
    /// Run-to-run variation, if any.
    pub noise: Option<Noise>,
    /// What preemption costs.
    pub preemption: PreemptionCost,
    /// What Gittins indices are computed from; without it, from the tasks that end.
    pub history: Option<Vec<GpuTime>>,
    /// How fast tasks run on each kind of device; the scheduler knows it too.
    pub speeds: SpeedTable,
    /// Speed of a gang that is spread over nodes against one that is not, where it was not measured.
    pub spread_speed: f64,
    /// Weights and quotas of users and groups.
    pub accounts: Accounts,
    /// What tasks declare whose trace does not say.
    pub declarations: Declarations,
    /// Tasks keep their work when they are preempted, unless the trace says otherwise.
    pub checkpoints: bool,
    /// The monitor tells the activity of each client of MPS, which NVML does not.
    pub tells_mps_clients: bool,
    /// How wrong a monitor is that tells what each process does.
    pub sm_error: SmError,
}

/// What the users of a trace declare.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Declarations {
    /// So many times what a task truly needs; without it, nothing.
    pub factor: Option<f64>,
    /// What they declare and do not use is lent, and they borrow what others lend.
    pub reclaim: bool,
}

impl Simulation {
    /// A simulation with the default physics and no noise.
    pub fn new(fleet: Fleet, policy: Policy, estimator: Estimator) -> Self {
        let (physics, power) = (SharedGpu::default(), PowerModel::default());
        Simulation {
            fleet,
            policy,
            estimator,
            surroundings: None,
            physics,
            power,
            noise: None,
            preemption: PreemptionCost::default(),
            history: None,
            speeds: SpeedTable::default(),
            spread_speed: 1.0,
            accounts: Accounts::default(),
            declarations: Declarations::default(),
            // Only preset coloc asks whether a task can save before it preempts.
            checkpoints: policy.preemption.is_none(),
            tells_mps_clients: false,
            sm_error: SmError::default(),
        }
    }

    /// Plays a trace to its end.
    pub fn run(
        &self,
        trace: &Trace,
        observer: &mut impl Observer,
    ) -> Result<(Summary, Vec<TaskResult>), SimulationError> {
        let mut scheduler =
            Scheduler::new(&self.fleet, self.policy).with_speeds(self.speeds.clone());
        let known = |number: u32| Some((SignatureId(number), skew(trace.names().name(number))?));
        scheduler = scheduler.with_skews((0..trace.names().len() as u32).filter_map(known));
        if self.accounts != Accounts::default() {
            scheduler = scheduler.with_accounts(self.accounts.clone());
        }
        if let Some(samples) = &self.history {
            scheduler = scheduler.with_history(samples.clone());
        }
        let submissions = self.submissions(trace, &scheduler)?;
        run::Run::new(self, trace, submissions, scheduler, observer).play()
    }

    /// How often a task saves its work; zero if it can do so at any time.
    fn checkpoint(&self, task: &TraceTask) -> Option<Millis> {
        match task.checkpoint {
            Some(Checkpoint::Never) => None,
            Some(Checkpoint::Every(every)) => Some(every),
            None => self.checkpoints.then_some(Millis::ZERO),
        }
    }

    /// What the scheduler will be told of each task; refuses what could never run.
    fn submissions(
        &self,
        trace: &Trace,
        scheduler: &Scheduler,
    ) -> Result<Vec<Task>, SimulationError> {
        let models = self.fleet.gpus().iter().map(|gpu| gpu.model);
        if self.policy.share == Share::Mig
            && let Some(model) = models.into_iter().find(|model| model.mig().is_none())
        {
            return Err(SimulationError::NoMig { model });
        }
        let mut estimates = Estimates::new(self.estimator, self.surroundings.as_ref());
        let Declarations { factor, reclaim } = self.declarations;
        let mut submission = |id: TaskId, task: &TraceTask| {
            let peak = task.memory_curve().peak();
            let estimate = estimates.of(trace, task)?;
            let declared = task.declared.or(factor.map(|factor| peak.scale(factor)));
            let submission = Task {
                id,
                signature: task.signature,
                user: task.user,
                gpus: task.gpus,
                exclusive: task.exclusive,
                models: None,
                pools: None,
                memory: match declared {
                    Some(bytes) => Memory::Declared { bytes, reclaim },
                    None => estimate.into(),
                },
                sm: estimate.and_then(|estimate| estimate.sm),
                borrows: reclaim,
                checkpoint: self.checkpoint(task),
                host: HostNeed::NONE,
                duration: Some(task.duration),
                priority: task.priority,
            };
            scheduler.check(&submission)?;
            let (need, largest) = (peak, scheduler.most_memory(task.gpus));
            if need > largest {
                let name = trace.name(task).to_owned();
                return Err(SimulationError::TooLarge { task: id, name, need, largest });
            }
            Ok(submission)
        };
        let tasks = trace.tasks().iter().enumerate().map(|(index, task)| {
            let id = TaskId::from(index);
            submission(id, task).map_err(|error| match trace.place(id) {
                Some(place) => SimulationError::At { place, error: Box::new(error) },
                None => error,
            })
        });
        tasks.collect()
    }
}
