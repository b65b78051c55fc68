//! Values that people write on the command line and in scripts, each with an error that says what was expected.

pub(crate) mod begin_time;
pub(crate) mod dependencies;
pub(crate) mod named_policy;
pub(crate) mod since;
pub(crate) mod slurm;
pub(crate) mod states;
