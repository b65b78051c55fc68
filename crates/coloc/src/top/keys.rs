//! Keys, and what they do.

/// A key that was pressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Key {
    Char(char),
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
    End,
    Enter,
    Escape,
    Backspace,
    /// Ctrl-C.
    Interrupt,
}

/// What help says of each.
pub(super) const HELP: [(&str, &str); 21] = [
    ("↑ ↓  j k", "the task above or below; PageUp, PageDown, Home and End go further"),
    ("↵", "everything about the task; again, or Esc: back"),
    ("/", "find tasks by name, user or id; Esc forgets it"),
    ("s", "sort: by end, id, name, user, memory, time"),
    ("f", "filter: all, yours, running, waiting, ended within a day"),
    ("w", "why the task waits, or where it runs"),
    ("l", "its output, as it grows"),
    ("c", "cancel it; asks first"),
    ("h", "hold it, or release it if it is held"),
    ("r", "requeue it: stop it and start it again later; asks first"),
    ("t", "timeline: what ran where, and what is expected"),
    ("p", "pause: nothing moves until p is pressed again"),
    ("[ ]", "GPUs before or after those that are shown"),
    ("?", "this help"),
    ("q", "quit; Ctrl-C too"),
    ("", ""),
    ("█ ▓", "memory that tasks hold; a colour is a user, blue is you"),
    ("░", "memory that is promised to them and not in use"),
    ("╱", "memory of processes that coloc did not start"),
    ("│ ╳", "the end of a MIG instance; what no instance can reach"),
    ("→16:05", "predicted, as are ends of tasks that run or wait; – is unknown"),
];
