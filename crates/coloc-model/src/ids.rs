//! Typed ids. An id is an index, never a quantity: it cannot be added or mixed up with another.

use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! define_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u32);

        impl $name {
            /// The id as an index into a table that is laid out in id order.
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl From<usize> for $name {
            fn from(index: usize) -> Self {
                $name(u32::try_from(index).expect("fewer than 2^32 of anything"))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }
    };
}

define_id!(
    /// A task, unique for the life of a scheduler.
    TaskId
);
define_id!(
    /// A GPU: its position in the fleet.
    GpuId
);
define_id!(
    /// A server: its position in the fleet.
    NodeId
);
define_id!(
    /// The user who submitted a task.
    UserId
);
define_id!(
    /// Users who share a quota.
    GroupId
);
define_id!(
    /// What a task runs. Tasks with one signature are expected to behave alike.
    SignatureId
);
