//! Traces: what was submitted when, and how each task truly behaves.

mod alibaba;
mod described;
mod error;
mod gavel;
mod generate;
mod lines;
mod mix90;
mod origin;
mod read;
mod sacct;
mod sampled;
mod table;
mod tiresias;
mod write;

pub use error::{TraceError, TraceErrorKind};
pub use gavel::published_speeds;
pub use generate::{GenerateError, Generator};
pub use mix90::mix90;
pub use origin::{PassedOver, Place, UnknownColumns};
pub use read::{Format, read, read_column};
pub use sampled::Sampled;
pub use write::write;

use crate::Names;
use coloc_model::{Bytes, Estimate, GroupId, Millis, SignatureId, TaskId, Time, UserId};
use coloc_physics::catalogue::{self, Class};
use coloc_physics::{MemoryCurve, Phases, Profile};
use origin::Source;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// One submission.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TraceTask {
    /// When it is submitted.
    pub submit: Time,
    /// What it runs.
    pub signature: SignatureId,
    /// Whose it is.
    pub user: UserId,
    /// GPUs it needs.
    pub gpus: u32,
    /// Run time when alone.
    pub duration: Millis,
    /// True behaviour.
    pub profile: Profile,
    /// The user asked to be alone.
    pub exclusive: bool,
    /// Higher goes first.
    pub priority: i32,
    /// What it does beside warming up and training.
    pub phases: Phases,
    /// What its user says that it needs on each GPU.
    pub declared: Option<Bytes>,
    /// What was estimated when it was submitted, for [`crate::Estimator::Recorded`].
    pub recorded: Option<Recorded>,
    /// Whether it saves its work, where the trace says so.
    pub checkpoint: Option<Checkpoint>,
}

/// Whether a task saves its work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Checkpoint {
    /// It starts anew whenever it is interrupted.
    Never,
    /// It goes on from the last time it saved: so often, or whenever it is told to (zero).
    Every(Millis),
}

/// An estimate that came with a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Recorded {
    /// What the task was expected to hold on each GPU.
    pub peak: Bytes,
    /// What it would stay below with high confidence.
    pub bound: Bytes,
}

impl From<Recorded> for Estimate {
    fn from(Recorded { peak, bound }: Recorded) -> Self {
        Estimate { peak, bound, sm: None }
    }
}

impl TraceTask {
    /// What its memory does over a run.
    pub fn memory_curve(&self) -> MemoryCurve {
        MemoryCurve { plateau: self.profile.memory, phases: self.phases }
    }
}

/// A workload over time, ordered by submission.
#[derive(Clone, Default, Debug)]
pub struct Trace {
    tasks: Vec<TraceTask>,
    names: Names,
    users: Names,
    groups: Names,
    /// The group of each user who has one.
    memberships: Vec<Option<GroupId>>,
    /// Where it was read.
    source: Option<Source>,
}

/// Where a trace was read is not a part of it.
impl PartialEq for Trace {
    fn eq(&self, other: &Self) -> bool {
        let Trace { tasks, names, users, groups, memberships, source: _ } = self;
        (tasks, names, users) == (&other.tasks, &other.names, &other.users)
            && (groups, memberships) == (&other.groups, &other.memberships)
    }
}

impl Trace {
    /// A trace of these tasks; tasks submitted at one time keep their order.
    pub fn new(mut tasks: Vec<TraceTask>, names: Names, users: Names) -> Self {
        tasks.sort_by_key(|task| task.submit);
        let (groups, memberships) = (Names::default(), Vec::new());
        Trace { tasks, names, users, groups, memberships, source: None }
    }

    /// Where a task was read, if it was.
    pub fn place(&self, task: TaskId) -> Option<Place> {
        let source = self.source.as_ref()?;
        let line = source.origins.get(task.index())?.line;
        Some(Place { file: source.file.clone(), line })
    }

    /// The id that a task has in its file, if it has one there.
    pub fn own_id(&self, task: TaskId) -> Option<&str> {
        self.source.as_ref()?.origins.get(task.index())?.id.as_deref()
    }

    /// Rows of its file that became no task.
    pub fn passed_over(&self) -> PassedOver {
        self.source.as_ref().map(|source| source.passed_over.clone()).unwrap_or_default()
    }

    /// Columns of its file that are of no use.
    pub fn unknown_columns(&self) -> Option<&UnknownColumns> {
        self.source.as_ref()?.columns.as_ref()
    }

    /// The same tasks dealt to the same arrivals anew: one trace alone says little of a policy, since a small change of one
    /// decision changes all that follow.
    #[must_use]
    pub fn shuffled(&self, seed: u64) -> Trace {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let arrivals: Vec<Time> = self.tasks.iter().map(|task| task.submit).collect();
        let mut tasks = self.tasks.clone();
        for last in (1..tasks.len()).rev() {
            tasks.swap(last, rng.random_range(0..=last));
        }
        for (task, submit) in tasks.iter_mut().zip(arrivals) {
            task.submit = submit;
        }
        Trace { tasks, source: None, ..self.clone() }
    }

    /// Says which users belong to which groups.
    #[must_use]
    pub fn with_groups(self, groups: Names, memberships: Vec<Option<GroupId>>) -> Self {
        Trace { groups, memberships, ..self }
    }

    /// Names of groups.
    pub fn groups(&self) -> &Names {
        &self.groups
    }

    /// The group of a user.
    pub fn group_of(&self, user: UserId) -> Option<GroupId> {
        self.memberships.get(user.index()).copied().flatten()
    }

    /// The tasks in order of submission. A task's id is its position.
    pub fn tasks(&self) -> &[TraceTask] {
        &self.tasks
    }

    /// What a task runs.
    pub fn name(&self, task: &TraceTask) -> &str {
        self.names.name(task.signature.0)
    }

    /// Whose task it is.
    pub fn user(&self, task: &TraceTask) -> &str {
        self.users.name(task.user.0)
    }

    /// For which group it is.
    pub fn group(&self, task: &TraceTask) -> Option<&str> {
        self.group_of(task.user).map(|group| self.groups.name(group.0))
    }

    /// Names of what runs.
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// Names of users.
    pub fn users(&self) -> &Names {
        &self.users
    }

    /// How large a task is: the catalogue's class, or one that its memory and demand suggest.
    pub fn class(&self, task: &TraceTask) -> Class {
        if let Some(workload) = catalogue::find(self.name(task)) {
            return workload.class;
        }
        match (task.profile.memory.gib(), task.profile.activity.sm.get()) {
            (gib, sm) if gib < 3.0 && sm < 0.45 => Class::Light,
            (gib, _) if gib < 12.0 => Class::Medium,
            _ => Class::Heavy,
        }
    }
}
