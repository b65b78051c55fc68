//! Limits on what a user or a group may hold at once.

use coloc_model::{Bytes, GroupId, UserId};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The most of each resource; without a number there is no limit.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Quota {
    /// GPUs, shared ones counted whole.
    pub gpus: Option<u32>,
    /// GPU memory that is promised.
    pub memory: Option<Bytes>,
}

impl Quota {
    /// No limit.
    pub const NONE: Quota = Quota { gpus: None, memory: None };
}

/// Whose quota it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Whose {
    /// A user's.
    User(UserId),
    /// A group's.
    Group(GroupId),
}

impl fmt::Display for Whose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Whose::User(user) => write!(f, "user {user}"),
            Whose::Group(group) => write!(f, "group {group}"),
        }
    }
}

/// What is limited, with the amounts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "resource", rename_all = "snake_case")]
pub enum Resource {
    /// GPUs at once.
    Gpus {
        /// The limit.
        limit: u32,
        /// In use now.
        held: u32,
        /// What the task asks for.
        wanted: u32,
    },
    /// GPU memory at once.
    Memory {
        /// The limit.
        limit: Bytes,
        /// Promised now.
        held: Bytes,
        /// What the task asks for.
        wanted: Bytes,
    },
}

/// A task that waits for others of its user or group to end, not for GPUs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct OverQuota {
    /// Whose quota.
    pub whose: Whose,
    /// What of.
    #[serde(flatten)]
    pub resource: Resource,
}

impl OverQuota {
    /// The task alone asks for more than the limit: it will never start.
    pub fn is_for_ever(&self) -> bool {
        match self.resource {
            Resource::Gpus { limit, wanted, .. } => wanted > limit,
            Resource::Memory { limit, wanted, .. } => wanted > limit,
        }
    }
}

impl OverQuota {
    /// In a sentence, where users and groups have names.
    pub fn told(&self, whose: &str) -> String {
        match self.resource {
            Resource::Gpus { limit, held, wanted } => {
                format!("the quota of {whose} is {limit} GPUs: {held} in use, {wanted} wanted")
            }
            Resource::Memory { limit, held, wanted } => {
                format!("the quota of {whose} is {limit}: {held} in use, {wanted} wanted")
            }
        }
    }
}

impl fmt::Display for OverQuota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.told(&self.whose.to_string()))
    }
}
