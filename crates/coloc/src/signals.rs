//! Signals, to processes that we started and to us.

/// Asks a process that we started, and have not waited for, to end.
pub(crate) fn ask_to_end(pid: u32) {
    if let Some(pid) = rustix::process::Pid::from_raw(pid as i32) {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
}

/// Ends a process group that we started: politely, or for good.
pub(crate) fn end_group(leader: u32, kill: bool) {
    use rustix::process::Signal;
    let signal = if kill { Signal::KILL } else { Signal::TERM };
    if let Some(leader) = rustix::process::Pid::from_raw(leader as i32) {
        let _ = rustix::process::kill_process_group(leader, signal);
    }
}

/// Sets a flag when a signal comes, instead of ending.
pub(crate) fn note_signal(
    signal: i32,
    flag: &std::sync::Arc<std::sync::atomic::AtomicBool>,
) -> std::io::Result<()> {
    signal_hook::flag::register(signal, flag.clone()).map(|_| ())
}
