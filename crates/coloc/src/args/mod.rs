//! Flags that several verbs share.

pub(crate) mod accounts;
pub(crate) mod batch;
pub(crate) mod dependencies;
pub(crate) mod environment;
pub(crate) mod input;
pub(crate) mod live;
pub(crate) mod named_policy;
pub(crate) mod physics;
pub(crate) mod policy;
pub(crate) mod replay;
pub(crate) mod script;
pub(crate) mod service;
pub(crate) mod slurm;
pub(crate) mod speeds;
pub(crate) mod states;
pub(crate) mod table;
pub(crate) mod task;
pub(crate) mod training;
pub(crate) mod tuning;
pub(crate) mod when;
pub(crate) mod without_effect;
