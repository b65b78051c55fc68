//! The memory behind device pointers: host pages that cost nothing until they are touched.

use std::ptr;

/// Reserves so many bytes at an address that no other memory of this process has.
pub(crate) fn map(length: usize) -> Option<usize> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new anonymous mapping at an address that the kernel chooses touches nothing that exists.
    let address = unsafe { libc::mmap(ptr::null_mut(), length, protection, flags, -1, 0) };
    (address != libc::MAP_FAILED).then(|| address.addr())
}

/// Gives back what `map` returned.
pub(crate) fn unmap(address: usize, length: usize) {
    // SAFETY: only addresses and lengths of our own table get here, and each is taken out of it first.
    unsafe { libc::munmap(ptr::with_exposed_provenance_mut(address), length) };
}
