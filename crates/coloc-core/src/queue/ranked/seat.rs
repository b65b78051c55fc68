//! A place in the order of all tasks, running or waiting.

/// What a discipline says of a task; lower goes first. One number, because a pass compares many.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub(crate) struct Rank(u128);

/// Bits of what decides among equals of a level: a time, and thirty years of milliseconds need no more.
const THEN: u32 = 40;
/// Bits below the class of the priority.
const CLASS: u32 = 8 + 64 + THEN;

impl Rank {
    /// Nobody goes before this.
    pub(crate) const FIRST: Rank = Rank(0);

    /// The level decides, then the key, then the time.
    pub(crate) fn new(level: usize, key: u64, then: u64) -> Self {
        debug_assert!(level <= usize::from(u8::MAX));
        let then = then.min((1 << THEN) - 1);
        Rank((level as u128) << (64 + THEN) | u128::from(key) << THEN | u128::from(then))
    }

    /// The same within a class of priority: whoever is of a higher class goes first, whatever else is said of them.
    #[inline]
    pub(crate) fn in_class(self, class: u16) -> Self {
        Rank(u128::from(class) << CLASS | (self.0 & ((1 << CLASS) - 1)))
    }

    pub(crate) fn by(key: u64) -> Self {
        Rank::new(0, key, 0)
    }

    /// Larger values go first. Values are not negative, so their bits compare as they do.
    pub(crate) fn falling(level: usize, value: f64, then: u64) -> Self {
        Rank::new(level, 0, then).with_falling(value)
    }

    /// A rank whose key is zero, with a value as its key of which larger ones go first.
    #[inline]
    pub(crate) fn with_falling(self, value: f64) -> Self {
        debug_assert!(value >= 0.0);
        Rank(self.0 | u128::from(!value.to_bits()) << THEN)
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
