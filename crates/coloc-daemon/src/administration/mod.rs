//! What the administrator of a server decides, beside how it schedules: settings that change with a reload.

pub mod admins;
mod time_limits;

pub use time_limits::TimeLimits;

/// What the administrator of a server decides.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Administration {
    /// How long tasks may run.
    pub times: TimeLimits,
    /// A group of the system whose members are administrators.
    pub admin_group: Option<String>,
}
