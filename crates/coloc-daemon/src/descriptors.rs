//! File descriptors that a process was started with.
//!
//! `unsafe` because the C library's call is used as it is: no crate here has it.
#![allow(unsafe_code)]

use nix::libc;

/// What the process was given beside its standard streams is closed when it starts another program.
pub(crate) fn inherit_none() {
    let flags = libc::CLOSE_RANGE_CLOEXEC as libc::c_int;
    // SAFETY: no descriptor is closed or changed for this process; only what a later program inherits.
    let done = unsafe { libc::close_range(3, libc::c_uint::MAX, flags) };
    if done != 0 {
        // Before Linux 5.11 one by one.
        for entry in std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten() {
            let number = entry.file_name().to_str().and_then(|name| name.parse().ok());
            if let Some(number @ 3..) = number {
                // SAFETY: as above; a number that is not open is refused.
                unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd as _;

    #[test]
    fn nothing_is_passed_on() {
        let file = tempfile::tempfile().unwrap();
        let passed_on = rustix::io::FdFlags::empty();
        rustix::io::fcntl_setfd(&file, passed_on).unwrap();
        super::inherit_none();
        let after = rustix::io::fcntl_getfd(&file).unwrap();
        assert!(after.contains(rustix::io::FdFlags::CLOEXEC), "{}", file.as_raw_fd());
    }
}
