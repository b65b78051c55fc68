//! Combinations, for tests that try all of them.

/// Every multiset of `kinds` things with one to `most` of them.
pub(crate) fn multisets(kinds: usize, most: usize) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    let mut begin = 0;
    for _ in 0..most {
        let end = all.len();
        for at in begin..end {
            let least = all[at].last().copied().unwrap_or(0);
            for kind in least..kinds {
                all.push([&all[at][..], &[kind]].concat());
            }
        }
        begin = end;
    }
    all.retain(|set| !set.is_empty());
    all
}
