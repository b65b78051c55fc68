//! `coloc top`: the GPUs and the tasks, kept up to date.

use crate::args::live::SocketArg;
use crate::error::{CliError, UsageError};
use crate::top::edge;
use clap::Args;
use std::io::IsTerminal as _;

/// The size that is taken where nothing says another.
const USUAL: (u16, u16) = (80, 24);
/// The largest frame that is printed.
const LARGEST: u16 = 1000;

/// Watch the GPUs and the tasks
#[derive(Args, Debug)]
pub(crate) struct Top {
    #[command(flatten)]
    socket: SocketArg,
    /// Print one frame and end
    #[arg(long)]
    once: bool,
    /// Columns of that frame [default: COLUMNS, the terminal's, or 80]
    #[arg(long, value_name = "COLUMNS", requires = "once", value_parser = clap::value_parser!(u16).range(1..=i64::from(LARGEST)))]
    width: Option<u16>,
    /// Lines of that frame [default: LINES, the terminal's, or 24]
    #[arg(long, value_name = "LINES", requires = "once", value_parser = clap::value_parser!(u16).range(1..=i64::from(LARGEST)))]
    height: Option<u16>,
}

/// What is given wins over a variable, that over the terminal.
fn size_of(given: Option<u16>, variable: Option<String>, terminal: Option<u16>, usual: u16) -> u16 {
    let said = variable.and_then(|text| text.trim().parse().ok());
    let all = [given, said, terminal].into_iter().flatten();
    all.into_iter().find(|&size| size > 0).unwrap_or(usual).min(LARGEST)
}

impl Top {
    pub(crate) fn run(self) -> Result<(), CliError> {
        let stdout = std::io::stdout();
        if !self.once {
            if !stdout.is_terminal() || !std::io::stdin().is_terminal() {
                let problem =
                    "it needs a terminal to draw on and to read keys from: --once prints one frame";
                return Err(UsageError::Parser(format!("coloc top: {problem}")).into());
            }
            return edge::run(&self.socket);
        }
        let terminal = rustix::termios::tcgetwinsize(&stdout).ok();
        let variable = |name| std::env::var(name).ok();
        let size = (
            size_of(self.width, variable("COLUMNS"), terminal.map(|size| size.ws_col), USUAL.0),
            size_of(self.height, variable("LINES"), terminal.map(|size| size.ws_row), USUAL.1),
        );
        edge::once(&self.socket, size, stdout.is_terminal())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_wins() {
        let variable = |text: &str| Some(text.to_owned());
        assert_eq!(size_of(Some(120), variable("90"), Some(100), 80), 120);
        assert_eq!(size_of(None, variable("90"), Some(100), 80), 90);
        assert_eq!(size_of(None, variable("wide"), Some(100), 80), 100);
        assert_eq!(size_of(None, None, Some(0), 80), 80, "a terminal that does not know");
        assert_eq!(size_of(None, variable("60000"), None, 80), LARGEST);
    }
}
