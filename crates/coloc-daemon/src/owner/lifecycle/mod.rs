//! A task from eligible to ended: what the scheduler wants is carried out, ends are judged, a restart picks up.

pub(in crate::owner) mod deadlines;
pub(in crate::owner) mod effects;
pub(in crate::owner) mod eligibility;
pub(in crate::owner) mod ends;
pub(in crate::owner) mod hooks;
pub(in crate::owner) mod intent;
pub(in crate::owner) mod machine_faults;
pub(in crate::owner) mod notices;
pub(in crate::owner) mod out_of_memory;
pub(in crate::owner) mod promises;
pub(in crate::owner) mod restore;
