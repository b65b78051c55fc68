//! A place in the order of all tasks, running or waiting.

/// What a discipline says of a task; lower goes first, and what is named first decides first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub(crate) struct Rank {
    /// Of the priority.
    class: u16,
    level: usize,
    key: u64,
    /// A time, mostly.
    then: u64,
}

impl Rank {
    /// The level decides, then the key, then the time.
    pub(crate) fn new(level: usize, key: u64, then: u64) -> Self {
        Rank { class: 0, level, key, then }
    }

    /// The same within a class of priority: a task of a higher class goes first, whatever else is said of it.
    pub(crate) fn in_class(self, class: u16) -> Self {
        Rank { class, ..self }
    }

    pub(crate) fn by(key: u64) -> Self {
        Rank::new(0, key, 0)
    }

    /// Larger values go first. Values are not negative, so their bits compare as they do.
    pub(crate) fn falling(level: usize, value: f64, then: u64) -> Self {
        debug_assert!(value >= 0.0);
        Rank::new(level, !value.to_bits(), then)
    }
}
/// Which task goes first among equals: the order of a list that persists from pass to pass and is sorted
/// stably, told without keeping that list. A task that waits has not moved since the pass in which it
/// last ran or arrived.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub(crate) struct TieBreak {
    /// The pass; negative for tasks at the head of the list.
    pub(crate) epoch: i64,
    pub(crate) group: Group,
    pub(crate) index: u32,
}

/// How a task came to its place in a pass.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub(crate) enum Group {
    /// It was running.
    #[default]
    Ran,
    /// It arrived.
    Arrived,
    /// It was moved to the tail of a queue.
    Moved,
}

/// A place in the order.
pub(crate) type OrderKey = (Rank, TieBreak);
