//! What a task waits for, in a word.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a task waits for. The sentence beside it has the numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReasonCode {
    /// Memory that can be promised.
    Memory,
    /// SMs: the tasks on the GPUs are expected to need them.
    Sm,
    /// GPUs that are less busy.
    Hot,
    /// Another task, which has the GPUs to itself.
    Taken,
    /// An empty GPU.
    Exclusive,
    /// As many GPUs at once as it wants.
    Gpus,
    /// A user who holds it.
    Held,
    /// Its time.
    Begin,
    /// Other tasks, which have to end first.
    Dependency,
    /// Its array, of which so many may run at once.
    ArrayLimit,
    /// Its user's or group's quota.
    Quota,
    /// CPUs or memory of the machine.
    Host,
    /// GPUs that are taken out of service, or the daemon, which starts nothing new.
    Drained,
    /// Its next try, after a failure.
    Retry,
    /// The disk.
    Disk,
    /// Tasks that are asked before it.
    Order,
    /// Tasks that were started a moment ago and are watched.
    Settling,
    /// GPUs that cannot be used.
    LostGpu,
    /// The machine, on which nothing can be launched just now.
    Machine,
    /// Something else: the sentence says it.
    Other,
}

impl ReasonCode {
    /// All of them.
    pub const ALL: [ReasonCode; 20] = [
        ReasonCode::Memory,
        ReasonCode::Sm,
        ReasonCode::Hot,
        ReasonCode::Taken,
        ReasonCode::Exclusive,
        ReasonCode::Gpus,
        ReasonCode::Held,
        ReasonCode::Begin,
        ReasonCode::Dependency,
        ReasonCode::ArrayLimit,
        ReasonCode::Quota,
        ReasonCode::Host,
        ReasonCode::Drained,
        ReasonCode::Retry,
        ReasonCode::Disk,
        ReasonCode::Order,
        ReasonCode::Settling,
        ReasonCode::LostGpu,
        ReasonCode::Machine,
        ReasonCode::Other,
    ];

    /// The word.
    pub const fn name(self) -> &'static str {
        match self {
            ReasonCode::Memory => "memory",
            ReasonCode::Sm => "sm",
            ReasonCode::Hot => "hot",
            ReasonCode::Taken => "taken",
            ReasonCode::Exclusive => "exclusive",
            ReasonCode::Gpus => "gpus",
            ReasonCode::Held => "held",
            ReasonCode::Begin => "begin",
            ReasonCode::Dependency => "dependency",
            ReasonCode::ArrayLimit => "array_limit",
            ReasonCode::Quota => "quota",
            ReasonCode::Host => "host",
            ReasonCode::Drained => "drained",
            ReasonCode::Retry => "retry",
            ReasonCode::Disk => "disk",
            ReasonCode::Order => "order",
            ReasonCode::Settling => "settling",
            ReasonCode::LostGpu => "lost_gpu",
            ReasonCode::Machine => "machine",
            ReasonCode::Other => "other",
        }
    }

    /// The code of a word.
    pub fn named(word: &str) -> Option<Self> {
        ReasonCode::ALL.into_iter().find(|code| code.name() == word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_what_is_on_the_wire() {
        for code in ReasonCode::ALL {
            let json = serde_json::to_string(&code).expect("JSON");
            assert_eq!(json, format!("\"{}\"", code.name()));
            assert_eq!(ReasonCode::named(code.name()), Some(code));
        }
    }
}
