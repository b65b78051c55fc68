//! NVIDIA's Multi-Process Service: a control daemon for a GPU and a user, and limits for its clients.
//!
//! coloc owns the daemon. It is ready when its limits read back as they were set, not when its pipe answers.

mod cancel;
mod control;
mod executor;
mod layout;
mod protocol;

pub use cancel::{CancelPlan, CancelStep, cancel_plan};
pub use control::{
    ClientLimits, ControlStep, StartPlan, admit_plan, client_environment, client_limit, start_plan,
};
pub use executor::{Control, MpsError, Program};
pub use layout::{DaemonLayout, LayoutError};
pub use protocol::{
    Command, ReplyError, ServerStatus, parse_limit, parse_percentage, parse_pids, parse_status,
};
