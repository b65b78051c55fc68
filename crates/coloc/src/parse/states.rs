//! The states that a user asks for, in our words or Slurm's.

use coloc_model::TaskState;
use std::str::FromStr;

/// One state, or all of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum StateWish {
    All,
    In(TaskState),
}

impl StateWish {
    /// Whether tasks that have ended are asked for.
    pub(crate) fn names_an_end(wishes: &[StateWish]) -> bool {
        let is_end = |wish: &StateWish| match wish {
            StateWish::All => true,
            StateWish::In(state) => state.is_over(),
        };
        wishes.iter().any(is_end)
    }

    /// Whether a state is among the wanted ones; if none is named, it is.
    pub(crate) fn any(wishes: &[StateWish], state: TaskState) -> bool {
        let is = |wish: &StateWish| matches!(wish, StateWish::All) || *wish == StateWish::In(state);
        wishes.is_empty() || wishes.iter().any(is)
    }
}

impl FromStr for StateWish {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // Words are told apart by their letters: Slurm's have a line between them or not.
        let plain = |text: &str| text.replace(['_', '-'], "").to_ascii_lowercase();
        let wished = plain(text.trim());
        if wished == "all" {
            return Ok(StateWish::All);
        }
        let is = |phase: &TaskState| {
            let mut names = [phase.name(), letters(*phase), slurms(*phase)].into_iter();
            names.any(|name| plain(name) == wished)
        };
        let found = TaskState::ALL.into_iter().find(is).map(StateWish::In);
        found.ok_or_else(|| format!("no such state: expected {} or all", known()))
    }
}

/// Every state, with its letters.
fn known() -> String {
    let each = TaskState::ALL.map(|phase| format!("{} ({})", phase.name(), letters(phase)));
    each.join(", ")
}

/// Slurm's letters.
pub(crate) const fn letters(state: TaskState) -> &'static str {
    match state {
        TaskState::Pending => "PD",
        TaskState::Launching => "CF",
        TaskState::Running => "R",
        TaskState::Preempting => "PR",
        TaskState::Recovering => "RQ",
        TaskState::Completed => "CD",
        TaskState::Failed => "F",
        TaskState::Cancelled => "CA",
        TaskState::TimedOut => "TO",
        TaskState::OutOfMemory => "OOM",
        TaskState::Lost => "NF",
    }
}

/// Slurm's words for the same.
pub(crate) const fn slurms(state: TaskState) -> &'static str {
    match state {
        TaskState::Launching => "CONFIGURING",
        TaskState::Preempting => "PREEMPTED",
        TaskState::Recovering => "REQUEUED",
        TaskState::TimedOut => "TIMEOUT",
        TaskState::Lost => "NODE_FAIL",
        same => same.name(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_go_by_many_names() {
        let state = |text: &str| text.parse::<StateWish>();
        for name in ["timed_out", "TIMEDOUT", "to", "TIMEOUT", " timed-out "] {
            assert_eq!(state(name), Ok(StateWish::In(TaskState::TimedOut)), "{name}");
        }
        for phase in TaskState::ALL {
            assert_eq!(state(phase.name()), Ok(StateWish::In(phase)));
            assert_eq!(state(letters(phase)), Ok(StateWish::In(phase)));
        }
        assert_eq!(state("all"), Ok(StateWish::All));
        for wrong in ["", "penidng", "P", "\u{1b}"] {
            let said = state(wrong).unwrap_err();
            assert!(said.contains("pending (PD)") && said.ends_with("or all"), "{said}");
        }
    }

    #[test]
    fn who_names_an_end_wants_tasks_that_have_ended() {
        let named = |text: &str| StateWish::names_an_end(&[text.parse().expect("a state")]);
        assert!(named("all") && named("CD") && named("failed"));
        assert!(!named("R") && !named("pending") && !StateWish::names_an_end(&[]));
    }

    #[test]
    fn without_a_wish_every_state_will_do() {
        assert!(
            StateWish::any(&[], TaskState::Lost)
                && StateWish::any(&[StateWish::All], TaskState::Lost)
        );
        assert!(!StateWish::any(&[StateWish::In(TaskState::Running)], TaskState::Lost));
    }
}
