//! The last rung: ending a task that is seen above its promise.

use coloc_model::{Bytes, Millis, TaskId, Time};
use std::collections::BTreeMap;

/// What to do with a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It keeps its promise.
    Fine,
    /// It is above its promise, and not yet for long.
    Over {
        /// By how much.
        by: Bytes,
    },
    /// It must go.
    End {
        /// By how much it is over.
        by: Bytes,
    },
}

/// Watches tasks, and lets them be over for a moment: allocators overshoot and give back.
#[derive(Clone, Debug)]
pub struct Watchdog {
    timeout: Millis,
    slack: Bytes,
    over_since: BTreeMap<TaskId, Time>,
}

impl Watchdog {
    /// Ends a task that is more than `slack` above its promise for `timeout`.
    pub fn new(timeout: Millis, slack: Bytes) -> Self {
        Watchdog { timeout, slack, over_since: BTreeMap::new() }
    }

    /// A task was seen.
    pub fn observe(&mut self, now: Time, task: TaskId, promised: Bytes, used: Bytes) -> Verdict {
        if used <= promised + self.slack {
            self.over_since.remove(&task);
            return Verdict::Fine;
        }
        let by = used.saturating_sub(promised);
        let since = *self.over_since.entry(task).or_insert(now);
        if now.since(since) >= self.timeout { Verdict::End { by } } else { Verdict::Over { by } }
    }

    /// A task is gone.
    pub fn forget(&mut self, task: TaskId) {
        self.over_since.remove(&task);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: Bytes = Bytes(1 << 30);

    #[test]
    fn a_task_is_ended_only_after_it_was_over_for_a_while() {
        let mut dog = Watchdog::new(Millis(500), Bytes::from_mib(64));
        let over = Bytes::from_mib(1200);
        let by = Bytes::from_mib(176);
        let mut see = |at, used| dog.observe(Time(at), TaskId(1), GIB, used);
        assert_eq!(see(0, Bytes::from_mib(1080)), Verdict::Fine, "within the slack");
        assert_eq!(see(100, over), Verdict::Over { by });
        assert_eq!(see(599, over), Verdict::Over { by });
        assert_eq!(see(600, over), Verdict::End { by });
    }

    #[test]
    fn giving_memory_back_is_forgiven() {
        let mut dog = Watchdog::new(Millis(500), Bytes::ZERO);
        let over = Bytes::from_mib(2048);
        assert!(matches!(dog.observe(Time(0), TaskId(1), GIB, over), Verdict::Over { .. }));
        assert_eq!(dog.observe(Time(400), TaskId(1), GIB, GIB), Verdict::Fine);
        assert!(matches!(dog.observe(Time(600), TaskId(1), GIB, over), Verdict::Over { .. }));
        dog.forget(TaskId(1));
        assert!(matches!(dog.observe(Time(9000), TaskId(1), GIB, over), Verdict::Over { .. }));
    }
}
