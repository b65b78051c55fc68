//! Clients that come to a running task: to its terminal, with a command, or with its input.

use crate::administration::admins;
use crate::owner::commands::invalid::Invalid;
use crate::owner::{Caller, Owner, Refused};
use coloc_api::request::{ExecRequest, MOST_WORDS};
use coloc_model::{TaskId, TaskState};

/// The longest command that is run beside a program, in bytes: below what the kernel takes.
const LONGEST_COMMAND: usize = 96 << 10;
/// The longest name of a kind of terminal.
const LONGEST_TERM: usize = 64;
/// So much of a command is told in its task's story.
const TOLD: usize = 200;

/// What a client comes for.
#[derive(Debug)]
pub enum Visit {
    /// The terminal.
    Attach,
    /// To have a command run beside the program.
    Exec(Box<ExecRequest>),
    /// To send the program's input.
    Input,
}

impl Owner {
    /// Whether a client may come to a task; says to which attempt. What it runs is in the task's story before it begins.
    pub(in crate::owner) fn visit(
        &mut self,
        caller: Caller,
        task: TaskId,
        visit: &Visit,
    ) -> Result<u32, Refused> {
        let live = self.tasks.get(&task).ok_or_else(|| self.is_not_there(task))?;
        let is_owner = live.record.owner == caller.uid;
        // Who types into a terminal has its user's rights: that is more than to be an administrator.
        if !is_owner && !admins::is_superuser(caller.uid) {
            return Err(Refused::NotYours(task));
        }
        match visit {
            Visit::Attach if live.spec.terminal.is_none() => return Err(Refused::NoTerminal(task)),
            Visit::Input if !live.spec.input => return Err(Refused::NoInput(task)),
            Visit::Exec(request) => check_exec(request)?,
            Visit::Attach | Visit::Input => {}
        }
        let (phase, attempt) = (live.record.phase, live.record.attempt);
        if !matches!(phase, TaskState::Running | TaskState::Preempting) {
            let advice = "clients can come to it while it runs";
            return Err(Refused::WrongPhase { task, phase, advice });
        }
        let told = match visit {
            Visit::Exec(request) => Some(format!("a command runs beside it: {}", words(request))),
            Visit::Attach => Some("a client came to its terminal".to_owned()).filter(|_| !is_owner),
            Visit::Input => None,
        };
        if told.is_some() {
            self.asked_by = Some(caller.uid);
            self.changed(task, told);
            self.asked_by = None;
        }
        Ok(attempt)
    }
}

fn check_exec(request: &ExecRequest) -> Result<(), Invalid> {
    let ExecRequest { command, terminal: _, term } = request;
    if command.is_empty() {
        return Err(Invalid::NoCommand);
    }
    let length: usize = command.iter().map(|word| word.as_bytes().len() + 1).sum();
    if command.len() > MOST_WORDS || length > LONGEST_COMMAND {
        return Err(Invalid::LongCommand { words: MOST_WORDS, bytes: LONGEST_COMMAND });
    }
    if command.iter().any(|word| word.as_bytes().contains(&0)) {
        return Err(Invalid::ZeroByte);
    }
    let is_odd =
        |term: &str| term.len() > LONGEST_TERM || term.contains(|c: char| !c.is_ascii_graphic());
    match term.as_deref().is_some_and(is_odd) {
        true => Err(Invalid::Term),
        false => Ok(()),
    }
}

/// A command for people, in one line.
fn words(request: &ExecRequest) -> String {
    let words = request.command.iter().map(|word| word.to_string_lossy());
    let line = words.collect::<Vec<_>>().join(" ").replace(char::is_control, " ");
    match line.char_indices().nth(TOLD) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exec(command: &[&str], term: Option<&str>) -> ExecRequest {
        let command = command.iter().map(|&word| word.into()).collect();
        ExecRequest { command, terminal: None, term: term.map(str::to_owned) }
    }

    #[test]
    fn commands_have_a_length_and_one_line() {
        assert_eq!(check_exec(&exec(&["nvidia-smi", "-L"], Some("xterm-256color"))), Ok(()));
        assert_eq!(check_exec(&exec(&[], None)), Err(Invalid::NoCommand));
        assert_eq!(check_exec(&exec(&["a\0b"], None)), Err(Invalid::ZeroByte));
        assert_eq!(check_exec(&exec(&["a"], Some("x\ny"))), Err(Invalid::Term));
        let long = "x".repeat(LONGEST_COMMAND);
        assert!(matches!(check_exec(&exec(&[&long], None)), Err(Invalid::LongCommand { .. })));
        let many = vec!["a"; MOST_WORDS + 1];
        assert!(matches!(check_exec(&exec(&many, None)), Err(Invalid::LongCommand { .. })));
        assert_eq!(words(&exec(&["sh", "-c", "a\nb"], None)), "sh -c a b");
        assert_eq!(words(&exec(&[&"é".repeat(999)], None)).chars().count(), TOLD + 1);
    }
}
