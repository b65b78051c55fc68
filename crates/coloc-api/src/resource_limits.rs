//! What a submitter's shell is held to (`ulimit`), so that a task is held to the same.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A limit on one resource, by the names that Slurm propagates them under.
#[derive(Clone, Copy, PartialEq, Eq, Debug, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResourceLimit {
    /// Which.
    pub resource: ResourceName,
    /// What is in force; nothing is no limit.
    pub soft: Option<u64>,
    /// How far a program may raise that; nothing is no limit.
    pub hard: Option<u64>,
}

/// The resources that a shell can limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ResourceName {
    /// Address space.
    As,
    /// The size of core files.
    Core,
    /// Seconds of CPU time.
    Cpu,
    /// Data segments.
    Data,
    /// The size of files that it writes.
    Fsize,
    /// Locked memory.
    Memlock,
    /// Open files.
    Nofile,
    /// Processes of its user.
    Nproc,
    /// The stack.
    Stack,
}

impl ResourceName {
    const ALL: [ResourceName; 9] = [
        ResourceName::As,
        ResourceName::Core,
        ResourceName::Cpu,
        ResourceName::Data,
        ResourceName::Fsize,
        ResourceName::Memlock,
        ResourceName::Nofile,
        ResourceName::Nproc,
        ResourceName::Stack,
    ];

    fn resource(self) -> Resource {
        match self {
            ResourceName::As => Resource::As,
            ResourceName::Core => Resource::Core,
            ResourceName::Cpu => Resource::Cpu,
            ResourceName::Data => Resource::Data,
            ResourceName::Fsize => Resource::Fsize,
            ResourceName::Memlock => Resource::Memlock,
            ResourceName::Nofile => Resource::Nofile,
            ResourceName::Nproc => Resource::Nproc,
            ResourceName::Stack => Resource::Stack,
        }
    }
}

/// What this process is held to.
pub fn of_this_process() -> Vec<ResourceLimit> {
    let limit = |resource: ResourceName| {
        let Rlimit { current, maximum } = getrlimit(resource.resource());
        ResourceLimit { resource, soft: current, hard: maximum }
    };
    ResourceName::ALL.into_iter().map(limit).collect()
}

/// The mask of new files of this process.
pub fn umask() -> u32 {
    use rustix::fs::Mode;
    // The kernel tells the mask only when it is set. It is set back at once.
    let mask = rustix::process::umask(Mode::from_raw_mode(0o077));
    rustix::process::umask(mask);
    mask.as_raw_mode()
}

impl ResourceLimit {
    /// Holds this process to it, as far as it does not raise what the process may have at most.
    pub fn lower(&self) {
        let resource = self.resource.resource();
        let most = getrlimit(resource).maximum;
        let least = |one: Option<u64>, other: Option<u64>| match (one, other) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        let maximum = least(self.hard, most);
        let limit = Rlimit { current: least(self.soft, maximum), maximum };
        // One that the kernel refuses leaves what was there.
        let _ = setrlimit(resource, limit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_lowered_and_never_raised() {
        let before = getrlimit(Resource::Core);
        let all = ResourceLimit { resource: ResourceName::Core, soft: None, hard: None };
        all.lower();
        assert_eq!(getrlimit(Resource::Core).maximum, before.maximum);
        let half = before.maximum.unwrap_or(1 << 40) / 2;
        ResourceLimit { soft: Some(half + 1), hard: Some(half), ..all }.lower();
        let after = getrlimit(Resource::Core);
        assert_eq!((after.current, after.maximum), (Some(half), Some(half)));
        ResourceLimit { soft: Some(u64::MAX - 1), hard: None, ..all }.lower();
        assert_eq!(getrlimit(Resource::Core).maximum, Some(half));
    }

    #[test]
    fn the_mask_is_told_and_stays() {
        assert_eq!(umask(), umask());
    }
}
