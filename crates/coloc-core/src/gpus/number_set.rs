//! A set of small numbers, a bit each: to take the first few, a word or two is read.

#[derive(Clone, Debug)]
pub(super) struct NumberSet {
    words: Vec<u64>,
    count: u32,
}

impl NumberSet {
    /// Nothing, of so many.
    pub(super) fn new(numbers: usize) -> Self {
        NumberSet { words: vec![0; numbers.div_ceil(64)], count: 0 }
    }

    /// Whether that changed anything.
    pub(super) fn set(&mut self, number: usize, there: bool) -> bool {
        let (word, bit) = (&mut self.words[number / 64], 1 << (number % 64));
        let changes = (*word & bit != 0) != there;
        if changes {
            *word ^= bit;
            if there { self.count += 1 } else { self.count -= 1 }
        }
        changes
    }

    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// The lowest of them.
    pub(super) fn first(&self, mut count: usize, mut take: impl FnMut(usize)) {
        for (index, &word) in self.words.iter().enumerate() {
            let mut left = word;
            while left != 0 {
                if count == 0 {
                    return;
                }
                count -= 1;
                take(64 * index + left.trailing_zeros() as usize);
                left &= left - 1;
            }
        }
    }

    /// In rising order.
    pub(super) fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.words.iter().enumerate().flat_map(|(index, &word)| {
            let next = |&left: &u64| Some(left & (left - 1)).filter(|&left| left != 0);
            let left = std::iter::successors(Some(word).filter(|&word| word != 0), next);
            left.map(move |left| 64 * index + left.trailing_zeros() as usize)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_in_order() {
        let mut set = NumberSet::new(200);
        for number in [199, 64, 3, 63, 0] {
            assert!(set.set(number, true));
        }
        assert!(!set.set(3, true), "it is there");
        assert!(set.set(63, false));
        assert!(!set.set(100, false), "it is not there");
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 3, 64, 199]);
        assert_eq!(set.count(), 4);
        for count in 0..6 {
            let mut first = Vec::new();
            set.first(count, |number| first.push(number));
            assert!(first.into_iter().eq(set.iter().take(count)));
        }
    }
}
