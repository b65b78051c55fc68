//! Names of signals.

use nix::sys::signal::Signal;

/// The number of a signal: `USR1`, `SIGUSR1`, `usr1` or `10`.
pub fn number(text: &str) -> Option<i32> {
    let name = text.to_ascii_uppercase();
    let name = name.strip_prefix("SIG").unwrap_or(&name);
    let named = format!("SIG{name}").parse::<Signal>().ok();
    let counted = || Signal::try_from(text.parse::<i32>().ok()?).ok();
    named.or_else(counted).map(|signal| signal as i32)
}

/// It can be sent.
pub fn is_known(number: i32) -> bool {
    Signal::try_from(number).is_ok()
}

/// No program hears it.
pub(crate) fn is_unheard(number: i32) -> bool {
    [Signal::SIGSTOP, Signal::SIGCONT, Signal::SIGKILL]
        .iter()
        .any(|&signal| signal as i32 == number)
}

/// What a signal is called.
pub fn name(number: i32) -> String {
    let named = Signal::try_from(number).map(|signal| signal.as_str().to_owned());
    named.unwrap_or_else(|_| format!("signal {number}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_have_names_and_numbers() {
        for text in ["USR1", "SIGUSR1", "usr1", "10"] {
            assert_eq!(number(text), Some(10), "{text}");
        }
        for wrong in ["", "SIG", "0", "-1", "64", "NOPE", "SIGSIGUSR1", "99999999999"] {
            assert_eq!(number(wrong), None, "{wrong}");
        }
        assert_eq!((name(12), name(99)), ("SIGUSR2".to_owned(), "signal 99".to_owned()));
    }
}
