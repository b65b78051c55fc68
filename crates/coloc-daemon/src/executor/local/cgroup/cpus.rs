//! Which CPUs a task is held to: a set of its own, where the kernel's cpuset controller can be had.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// No machine has a CPU with a higher number: a list that names one is not the kernel's.
const MOST: u32 = 1 << 16;

/// Reads `0-3,8`, as the kernel writes it; `None` if it is no such list.
pub(super) fn read(text: &str) -> Option<BTreeSet<u32>> {
    let mut all = BTreeSet::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if first > last || last >= MOST {
            return None;
        }
        all.extend(first..=last);
    }
    Some(all)
}

/// Writes `0-3,8`.
pub(super) fn told(cpus: &BTreeSet<u32>) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for &cpu in cpus {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => ranges.push((cpu, cpu)),
        }
    }
    let one = |&(first, last): &(u32, u32)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    ranges.iter().map(one).collect::<Vec<_>>().join(",")
}

/// So many CPUs below a group that no other group below it has to itself; `None` if there are not so many.
pub(super) fn free_below(base: &Path, count: u32) -> Option<BTreeSet<u32>> {
    let list = |file: &Path| read(&fs::read_to_string(file).ok()?);
    let mut free = list(&base.join("cpuset.cpus.effective"))?;
    for group in fs::read_dir(base).ok()?.flatten() {
        for taken in list(&group.path().join("cpuset.cpus")).unwrap_or_default() {
            free.remove(&taken);
        }
    }
    let chosen: BTreeSet<u32> = free.into_iter().take(count as usize).collect();
    (count > 0 && chosen.len() == count as usize).then_some(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn cpus_that_another_group_has_are_not_given_again() {
        let base = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| {
            let file = base.path().join(name);
            fs::create_dir_all(file.parent().expect("a parent")).expect("a folder");
            fs::write(file, text).expect("written");
        };
        assert_eq!(free_below(base.path(), 1), None, "there is no controller");
        write("cpuset.cpus.effective", "0-5,8\n");
        write("task-1/cpuset.cpus", "0-1\n");
        write("task-2/cpuset.cpus", "\n");
        let free = |count| free_below(base.path(), count).map(|cpus| told(&cpus));
        assert_eq!(free(3).as_deref(), Some("2-4"));
        assert_eq!(free(5).as_deref(), Some("2-5,8"));
        assert_eq!((free(6), free(0)), (None, None));
    }

    proptest! {
        #[test]
        fn lists_are_read_as_they_are_written(cpus in prop::collection::btree_set(0u32..200, 0..20)) {
            prop_assert_eq!(read(&told(&cpus)), Some(cpus));
        }

        #[test]
        fn hostile_lists_are_survived(text in "[0-9,\\- a\\n]{0,30}") {
            let _ = read(&text);
        }
    }
}
