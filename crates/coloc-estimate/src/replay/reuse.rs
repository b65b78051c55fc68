//! Lists that are long, and needed again with the next estimate of the same thread: their memory is kept.
//! Given back to the system each time, it cost an eighth of an estimate to have it mapped again.

use std::cell::Cell;
use std::ops::{Deref, DerefMut};
use std::thread::LocalKey;

/// Longer lists are not kept: they belong to nets that are seldom seen.
const LONGEST: usize = 1 << 15;

/// Where lists of this kind leave their memory.
pub(super) type Shelf<T> = LocalKey<Cell<Vec<Vec<T>>>>;

/// An element of such a list.
pub(super) trait Shelved: Sized + 'static {
    fn shelf() -> &'static Shelf<Self>;
}

/// Says where the lists of some types leave their memory.
macro_rules! shelved {
    ($($element:ty),*) => {$(
        impl $crate::replay::reuse::Shelved for $element {
            fn shelf() -> &'static $crate::replay::reuse::Shelf<Self> {
                thread_local! {
                    static SHELF: std::cell::Cell<Vec<Vec<$element>>> =
                        const { std::cell::Cell::new(Vec::new()) };
                }
                &SHELF
            }
        }
    )*};
}
pub(super) use shelved;

/// A list whose memory is used again.
pub(super) struct Reused<T: Shelved>(Vec<T>);

impl<T: Shelved> Reused<T> {
    /// An empty list with room for so many.
    pub(super) fn with_capacity(capacity: usize) -> Self {
        let mut shelf = T::shelf().take();
        let mut list = shelf.pop().unwrap_or_default();
        T::shelf().set(shelf);
        list.reserve(capacity);
        Reused(list)
    }

    /// A list of so many that are all the same.
    pub(super) fn filled(element: T, count: usize) -> Self
    where
        T: Clone,
    {
        let mut list = Self::with_capacity(count);
        list.resize(count, element);
        list
    }
}

impl<T: Shelved> Drop for Reused<T> {
    fn drop(&mut self) {
        if self.0.capacity() <= LONGEST {
            self.0.clear();
            // A thread that is ending has no shelf any more.
            let _ = T::shelf().try_with(|shelf| {
                let mut lists = shelf.take();
                lists.push(std::mem::take(&mut self.0));
                shelf.set(lists);
            });
        }
    }
}

impl<T: Shelved> Deref for Reused<T> {
    type Target = Vec<T>;

    fn deref(&self) -> &Vec<T> {
        &self.0
    }
}

impl<T: Shelved> DerefMut for Reused<T> {
    fn deref_mut(&mut self) -> &mut Vec<T> {
        &mut self.0
    }
}
