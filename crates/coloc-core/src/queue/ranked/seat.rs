//! A place in the order of all tasks, running or waiting.

/// What a discipline says of a task; lower goes first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub(crate) struct Rank {
    /// The queue, below the priority's class.
    pub(crate) level: usize,
    pub(crate) key: u64,
    pub(crate) then: u64,
}

impl Rank {
    /// The same within a class of priority: whoever is of a higher class goes first, whatever else is said of them.
    #[inline]
    pub(crate) fn in_class(self, class: u32) -> Self {
        Rank { level: (class as usize) << 32 | (self.level & 0xffff_ffff), ..self }
    }

    pub(crate) fn by(key: u64) -> Self {
        Rank { level: 0, key, then: 0 }
    }

    /// Larger values go first. Values are not negative, so their bits compare as they do.
    pub(crate) fn falling(level: usize, value: f64, then: u64) -> Self {
        debug_assert!(value >= 0.0);
        Rank { level, key: u64::MAX - value.to_bits(), then }
    }
}

/// Who goes first among equals: the order of a list that persists from pass to pass and is sorted
/// stably, told without keeping that list. A task that waits has not moved since the pass in which it
/// last ran or arrived.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub(crate) struct Tie {
    /// The pass; negative for those at the head of the list.
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
pub(crate) type Seat = (Rank, Tie);
