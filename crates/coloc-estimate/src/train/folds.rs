//! Which fold a row belongs to: by its draw, so that rows of one draw are never split.

/// The fold of a group, the same on every machine and in any order of rows.
pub fn fold_of(group: u64, folds: u64) -> u64 {
    let mut mixed = group.wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (mixed ^ (mixed >> 31)) % folds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folds_are_about_equal() {
        let mut counts = [0; 5];
        (0..1000).for_each(|group| counts[fold_of(group, 5) as usize] += 1);
        assert!(counts.iter().all(|count| (150..250).contains(count)), "{counts:?}");
    }
}
