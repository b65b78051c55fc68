//! Telling files on a disk from what the kernel only shows as files.
//!
//! Files of /proc and its like do something when they are written, and many of them look at who writes rather than at who opened
//! them. No output of a task goes there, and none is read there.

use std::fs::File;
use std::io;

/// The kernel's marks of file systems that are no place for data.
const PSEUDO: [u32; 16] = [
    0x0000_9fa0, // proc
    0x6265_6572, // sysfs
    0x0027_e0eb, // cgroup
    0x6367_7270, // cgroup2
    0x6462_6720, // debugfs
    0x7472_6163, // tracefs
    0x7363_6673, // securityfs
    0xcafe_4a11, // bpf
    0x6265_6570, // configfs
    0xf97c_ff8c, // selinuxfs
    0x4341_5d53, // smackfs
    0x6165_676c, // pstore
    0xde5e_81e4, // efivarfs
    0x4249_4e4d, // binfmt_misc
    0x6e73_6673, // nsfs
    0x6573_5543, // fusectl
];

/// Whether an open file lies where data are kept.
pub(crate) fn is_on_disk(file: &File) -> io::Result<bool> {
    let kind = rustix::fs::fstatfs(file)?.f_type as u32;
    Ok(!PSEUDO.contains(&kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_own_files_are_told_apart() {
        assert!(!is_on_disk(&File::open("/proc/self/status").unwrap()).unwrap());
        assert!(!is_on_disk(&File::open("/proc/self/timerslack_ns").unwrap()).unwrap());
        if let Ok(file) = File::open("/sys/kernel/mm/transparent_hugepage/enabled") {
            assert!(!is_on_disk(&file).unwrap());
        }
        assert!(is_on_disk(&tempfile::tempfile().unwrap()).unwrap());
    }
}
