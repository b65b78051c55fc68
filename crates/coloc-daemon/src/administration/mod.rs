//! What the administrator of a server decides, beside how it schedules: settings that change with a reload.

pub mod admins;
pub mod hooks;
pub mod pools;
mod time_limits;
pub mod trusted_path;
pub mod who;

pub use hooks::Hooks;
pub use pools::{Pool, PoolTable};
pub use time_limits::TimeLimits;
pub use who::Who;

/// What the administrator of a server decides.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Administration {
    /// How long tasks may run.
    pub times: TimeLimits,
    /// A group of the system whose members are administrators.
    pub admin_group: Option<String>,
    /// Pools of GPUs, the preferred first; without any, tasks may have all GPUs.
    pub pools: Vec<Pool>,
    /// Programs that run before and after each attempt.
    pub hooks: Hooks,
    /// What is done about processes on GPUs that are not tasks.
    pub foreign: ForeignPolicy,
}

/// What is done about processes on GPUs that are not tasks. Their memory is never promised to tasks, whatever this says.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum ForeignPolicy {
    /// Nothing more.
    Tolerate,
    /// The log, `doctor` and `queue` tell of them.
    #[default]
    Warn,
    /// The same, and what they do of a GPU's work is not expected of it for tasks.
    Count,
}
