//! Tasks that others wait for, in Slurm's words.

use coloc_api::spec::{Dependency, DependencyKind};
use coloc_model::{Millis, TaskId};

/// What must be over before a task begins.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Dependencies {
    /// These tasks, each as said.
    pub(crate) tasks: Vec<Dependency>,
    /// One of them is enough.
    pub(crate) any: bool,
    /// Whatever the same user submitted before under the same name.
    pub(crate) singleton: bool,
}

/// The task that its user submitted last, until that is asked for.
pub(crate) const LAST: TaskId = TaskId(u32::MAX);

/// `7`, `7,8`, `last`, `afterok:7:8`, `afterany:7`, `aftercorr:7`, `after:7+30`, `singleton`; all of them have to be met, or with
/// `?` between them any one.
pub(crate) fn dependencies(text: &str) -> Result<Dependencies, String> {
    let fail = || {
        format!(
            "{text:?}: expected task ids such as 7, last, afterok:7:8, afterany:7, afternotok:7, aftercorr:7, after:7+30 or \
             singleton, with commas between them if all count, or ? if one is enough"
        )
    };
    let any = text.contains('?');
    if any && text.contains(',') {
        return Err(format!("{text:?}: commas ask for all and ? for any one: one of them"));
    }
    let mut all = Dependencies { any, ..Dependencies::default() };
    for part in text.split([',', '?']) {
        if part == "singleton" {
            all.singleton = true;
            continue;
        }
        let mut words = part.split(':').peekable();
        let kind = match words.peek() {
            Some(&"afterok") => Some(DependencyKind::AfterOk),
            Some(&"afterany") => Some(DependencyKind::AfterAny),
            Some(&"after") => Some(DependencyKind::After),
            Some(&"afternotok") => Some(DependencyKind::AfterNotOk),
            Some(&"aftercorr") => Some(DependencyKind::AfterCorr),
            _ => None,
        };
        if kind.is_some() {
            words.next();
        }
        let before = all.tasks.len();
        for word in words {
            let when = kind.unwrap_or(DependencyKind::AfterOk);
            all.tasks.push(dependency(word, when).ok_or_else(fail)?);
        }
        if all.tasks.len() == before {
            return Err(fail());
        }
    }
    if any && all.singleton {
        return Err(format!("{text:?}: singleton is not one of several: it always counts"));
    }
    Ok(all)
}

/// `7`, or `7+30` with minutes after its start.
fn dependency(word: &str, when: DependencyKind) -> Option<Dependency> {
    let (task, minutes) = word.split_once('+').map_or((word, None), |(id, min)| (id, Some(min)));
    // A sign would be taken for a part of the number.
    let number = |text: &str| -> Option<u32> {
        text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
    };
    let delay = match minutes {
        None => Millis::ZERO,
        Some(minutes) if when == DependencyKind::After => {
            Millis::from_secs(u64::from(number(minutes)?) * 60)
        }
        Some(_) => return None,
    };
    let task = if task == "last" { LAST } else { TaskId(number(task).filter(|id| *id != LAST.0)?) };
    Some(Dependency { delay, ..Dependency::new(task, when) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use DependencyKind::{After, AfterAny, AfterOk};

    #[test]
    fn dependencies_are_slurms() {
        let all = dependencies("afterok:1:2,singleton,afterany:3,4").unwrap();
        assert!(all.tasks.len() == 4 && all.singleton && !all.any);
        assert_eq!(all.tasks[2], Dependency::new(TaskId(3), AfterAny));
        let any = dependencies("afterok:1?afterany:2").unwrap();
        let (one, two) =
            (Dependency::new(TaskId(1), AfterOk), Dependency::new(TaskId(2), AfterAny));
        assert_eq!((any.tasks, any.any), (vec![one, two], true));
        let late = dependencies("after:1+30:2").unwrap().tasks;
        let delay = Millis::from_secs(1800);
        assert_eq!(late[0], Dependency { delay, ..Dependency::new(TaskId(1), After) });
        assert_eq!(late[1], Dependency::new(TaskId(2), After));
        for wrong in [
            "afterok:",
            "x",
            "",
            "?",
            "afterok:1?afterok:2,3",
            "afterok:1?singleton",
            "singleton:3",
            "afterok:-1",
            "afterok:1+5",
            "after:1+",
            "after:+5",
            "after:1+-5",
            "after:1+5+5",
            "after:1+99999999999",
        ] {
            assert!(dependencies(wrong).is_err(), "{wrong}");
        }
    }
}
