//! Signals, to others and to us.

use nix::sys::signal::Signal;

/// The number of a signal: `USR1`, `SIGUSR1`, `usr1` or `10`.
pub fn number(text: &str) -> Option<i32> {
    let name = text.to_ascii_uppercase();
    let name = name.strip_prefix("SIG").unwrap_or(&name);
    let named = format!("SIG{name}").parse::<Signal>().ok();
    let counted = || Signal::try_from(text.parse::<i32>().ok()?).ok();
    named.or_else(counted).map(|signal| signal as i32)
}

/// What a signal is called.
pub(crate) fn name(number: i32) -> String {
    let named = Signal::try_from(number).map(|signal| signal.as_str().to_owned());
    named.unwrap_or_else(|_| format!("signal {number}"))
}

/// Asks a process that we started, and have not waited for, to end.
pub fn ask_to_end(pid: u32) {
    if let Some(pid) = rustix::process::Pid::from_raw(pid as i32) {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
}

/// Ends a process group that we started: politely, or for good.
pub fn end_group(leader: u32, kill: bool) {
    use rustix::process::Signal;
    let signal = if kill { Signal::KILL } else { Signal::TERM };
    if let Some(leader) = rustix::process::Pid::from_raw(leader as i32) {
        let _ = rustix::process::kill_process_group(leader, signal);
    }
}

/// Sets a flag when a signal comes, instead of ending.
pub fn note_signal(
    signal: i32,
    flag: &std::sync::Arc<std::sync::atomic::AtomicBool>,
) -> std::io::Result<()> {
    signal_hook::flag::register(signal, flag.clone()).map(|_| ())
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
