//! The terminal that a task runs on.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The size of a terminal's window, in characters.
#[derive(Clone, Copy, PartialEq, Eq, Debug, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TerminalSize {
    /// Lines.
    pub rows: u16,
    /// Characters in a line.
    pub columns: u16,
}

impl TerminalSize {
    /// What programs take for granted where they are told nothing.
    pub const USUAL: TerminalSize = TerminalSize { rows: 24, columns: 80 };
}
