//! What a machine can do for its GPUs, what is enforced and by what, and what to type to get further.

mod diagnose;
mod facts;

pub use diagnose::{Finding, Health, diagnose};
pub use facts::{Dcgmi, Facts, Places};
