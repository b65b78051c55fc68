//! What is assumed of a past to play it again, for people.

use coloc_api::past::{Past, PastTask};
use coloc_model::Basis;

/// What was assumed, one thing each.
pub(super) fn assumed(past: &Past, as_observed: bool, usual: f64) -> Vec<String> {
    let tasks = &past.tasks;
    let count = |of: fn(&PastTask) -> bool| tasks.iter().filter(|task| of(task)).count();
    let shared = count(|task| task.shared || task.slowdown > 1.0);
    let guessed = count(|task| task.slowdown_guessed);
    let mut said = vec!["memory is what was seen at most".to_owned(), told(tasks)];
    said.push(match (as_observed, shared) {
        (true, 0) | (false, 0) => "run times are as observed; no task shared a GPU".to_owned(),
        (true, shared) => {
            format!("run times are as observed, although {} shared GPUs", tasks_of(shared))
        }
        (false, shared) => format!(
            "run times are those alone, those of {} that shared GPUs shortened by what the scheduler believed of sharing",
            tasks_of(shared)
        ),
    });
    if guessed > 0 && !as_observed {
        said.push(format!(
            "how much {guessed} of them were slowed is predicted: nothing was known of tasks beside them"
        ));
    }
    let unseen = count(|task| task.activity.is_none());
    if unseen > 0 {
        said.push(format!("{}, never seen at work, count as SM {usual:.2}", tasks_of(unseen)));
    }
    let unknown = count(|task| task.memory_bytes.is_none());
    if unknown > 0 {
        said.push(format!(
            "{}, never seen with GPU memory, count as without any",
            tasks_of(unknown)
        ));
    }
    let again = count(|task| task.preemptions > 0 || task.ooms > 0);
    if again > 0 {
        said.push(format!("of {} that ran more than once, the last run counts", tasks_of(again)));
    }
    if past.never_ran > 0 {
        let never = tasks_of(past.never_ran);
        said.push(format!("{never} that ended without having run are left out"));
    }
    said
}

/// A number of tasks in words.
fn tasks_of(count: usize) -> String {
    format!("{count} {}", if count == 1 { "task" } else { "tasks" })
}

/// What schedulers are told of memory, unless another estimator is named.
fn told(tasks: &[PastTask]) -> String {
    let count = |basis: Option<Basis>| tasks.iter().filter(|task| task.basis == basis).count();
    let bases = [Basis::Declared, Basis::Estimated, Basis::History, Basis::Unknown];
    let known = bases.map(|basis| (count(Some(basis)), basis.name()));
    let known = known.into_iter().filter(|(count, _)| *count > 0);
    let mut each: Vec<String> = known.map(|(count, name)| format!("{count} {name}")).collect();
    match count(None) {
        0 => {}
        old => each.push(format!("{old} what they held, because that is not recorded")),
    }
    format!("schedulers are told of it what was known at submission: {}", each.join(", "))
}

#[cfg(test)]
mod tests {
    use super::super::tests::task;
    use super::*;

    #[test]
    fn tasks_that_shared_are_told_of_and_so_is_what_is_predicted_of_them() {
        let guessed = PastTask { shared: true, slowdown_guessed: true, ..task(1, 0.0, 1.0) };
        let tasks = vec![guessed, task(2, 0.0, 1.0)];
        let past = Past { schema: 1, tasks, setup: None, never_ran: 0 };
        let said = assumed(&past, false, 0.5).join("; ");
        assert!(said.contains("those of 1 task that shared GPUs shortened"), "{said}");
        assert!(said.contains("how much 1 of them were slowed is predicted"), "{said}");
        assert!(!assumed(&past, true, 0.5).join("; ").contains("no task shared"));
    }

    #[test]
    fn what_schedulers_are_told_is_said() {
        let declared = PastTask { basis: Some(Basis::Declared), ..task(1, 0.0, 1.0) };
        let said = told(&[declared, task(2, 0.0, 1.0)]);
        assert!(
            said.ends_with("1 declared, 1 what they held, because that is not recorded"),
            "{said}"
        );
    }
}
