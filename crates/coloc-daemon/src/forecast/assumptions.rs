//! What a forecast rests on, for people.

use super::Basis;
use coloc_model::{TaskId, Time};
use rustc_hash::FxHashMap;

/// What was assumed for one task and for the others, or why it cannot be told.
pub(super) fn basis(
    task: TaskId,
    start: Option<Time>,
    end: Option<Time>,
    cut_short: bool,
    all: &FxHashMap<TaskId, Basis>,
) -> String {
    let own = all.get(&task).copied().unwrap_or(Basis::Unknown);
    let others = || all.iter().filter(|(other, _)| **other != task).map(|(_, basis)| *basis);
    if start.is_none() {
        return format!("unknown: {}", why_no_start(task, cut_short, all));
    }
    let own = match own {
        Basis::Progress => "as fast as its log tells that it gets on".to_owned(),
        Basis::History(1) => "run time as of 1 earlier run".to_owned(),
        Basis::History(runs) => format!("run time is the median of {runs} earlier runs"),
        Basis::Limit => "run time is the time limit, the most it can be".to_owned(),
        Basis::Outlasted => {
            "it has run longer than any of its kind, and may end any moment".to_owned()
        }
        Basis::Unknown => "end unknown: no time limit and no history".to_owned(),
    };
    let count = |of: fn(&Basis) -> bool| others().filter(of).count();
    let counts = [
        (count(|b| *b == Basis::Progress), "by progress"),
        (count(|b| matches!(b, Basis::History(_) | Basis::Outlasted)), "by history"),
        (count(|b| *b == Basis::Limit), "by time limit"),
        (count(|b| *b == Basis::Unknown), "of unknown length, taken to go on"),
    ];
    let others: Vec<String> = counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, how)| format!("{count} {how}"))
        .collect();
    let cut = if cut_short && end.is_none() { "; too far ahead to see its end" } else { "" };
    match others.is_empty() {
        true => format!("{own}{cut}"),
        false => format!("{own}; other tasks: {}{cut}", others.join(", ")),
    }
}

/// The same for a task that shares a GPU as soon as another was seen to train.
pub(super) fn with_the_first(basis: String, first: Option<TaskId>) -> String {
    match first {
        Some(first) => format!(
            "{basis}; starts beside others once task {first}, the first of its kind, is seen to train"
        ),
        None => basis,
    }
}

fn why_no_start(task: TaskId, cut_short: bool, all: &FxHashMap<TaskId, Basis>) -> String {
    if cut_short {
        return "too far ahead to see".to_owned();
    }
    let mut unknown: Vec<TaskId> = all
        .iter()
        .filter(|(other, basis)| **other != task && **basis == Basis::Unknown)
        .map(|(other, _)| *other)
        .collect();
    unknown.sort_unstable();
    match unknown[..] {
        [] => "nothing that is foreseen lets it start; `coloc why` says what is short".to_owned(),
        [only] => format!("task {only} has no time limit and no history"),
        [first, second] => format!("tasks {first} and {second} have no time limit and no history"),
        [first, ref rest @ ..] => {
            format!("task {first} and {} others have no time limit and no history", rest.len())
        }
    }
}
