//! What the administrator of a server decides, beside how it schedules: settings that change with a reload.

pub mod admins;
pub mod pools;
mod time_limits;
pub mod who;

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
}
