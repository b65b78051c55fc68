//! How a task ended: what its exit says, and what its last words say of GPU memory.

use crate::cgroup::HostMemory;
use crate::record::Exit;
use crate::run::{Ended, Stopped};
use coloc_model::Bytes;

/// What became of an attempt.
#[derive(Clone, PartialEq, Debug)]
pub enum Verdict {
    /// It did its work.
    Completed,
    /// Its GPU had no room; this much was asked for on top of what it held, if it said so.
    GpuOutOfMemory {
        /// The allocation that failed.
        asked: Option<Bytes>,
        /// What the process held by its own account.
        held: Option<Bytes>,
        /// The words that tell.
        evidence: String,
    },
    /// The machine, or its limit, had no room: the kernel killed it, or it could not allocate. What the kernel says of
    /// it, where it was in a control group.
    HostOutOfMemory(Option<HostMemory>),
    /// The shim stopped it at its time limit.
    TimedOut,
    /// The shim stopped it because somebody asked.
    Stopped,
    /// It could not be started, for this reason.
    Unstarted(String),
    /// Its MPS server has let it down, in these words.
    MpsTrouble(String),
    /// It failed by itself.
    Failed,
}

/// Nobody reads more than this of a reason.
const LONGEST_REASON: usize = 400;
const SIGKILL: i32 = 9;
const SIGABRT: i32 = 6;

/// Judges by the words that the log ends with, never by the exit code alone: an uncaught error of any kind
/// is 1, and a kill by the kernel for want of host memory is no business of the GPU's.
pub fn judge(ended: &Ended, last_words: &[u8]) -> Verdict {
    match (ended.stopped, ended.exit) {
        // Whoever saves a checkpoint when told to go often says 0, and has not done its work.
        (Some(Stopped::TimeLimit), _) => Verdict::TimedOut,
        (Some(Stopped::Asked), _) => Verdict::Stopped,
        (None, Exit::Code(0)) => Verdict::Completed,
        (None, exit) => {
            if let Some(why) = &ended.unstarted {
                // Its user could have written anything.
                return Verdict::Unstarted(why.chars().take(LONGEST_REASON).collect());
            }
            let words = String::from_utf8_lossy(last_words);
            match find_gpu_oom(&words) {
                Some(line) => Verdict::GpuOutOfMemory {
                    asked: size_after(line, &ASKED),
                    held: size_after(line, &HELD),
                    evidence: shortened(line),
                },
                None if is_host_oom(exit, &words, ended.host_memory) => {
                    Verdict::HostOutOfMemory(ended.host_memory)
                }
                None => match find_mps_trouble(&words) {
                    Some(line) => Verdict::MpsTrouble(shortened(line)),
                    None => Verdict::Failed,
                },
            }
        }
    }
}

fn shortened(line: &str) -> String {
    line.trim().chars().take(LONGEST_REASON).collect()
}

/// What CUDA says when a client's server or control daemon is gone, not ready, full, or has ended it: errors 805 to 810.
const MPS_TROUBLE: [&str; 9] = [
    "CUDA_ERROR_MPS_",
    "cudaErrorMps",
    "MPS client failed to connect",
    "MPS client has been terminated",
    "MPS server is not ready",
    "required to create MPS client",
    "required to support device connections",
    "MPS RPC server",
    "terminated by MPS",
];

fn find_mps_trouble(words: &str) -> Option<&str> {
    words.lines().rev().find(|line| MPS_TROUBLE.iter().any(|said| line.contains(said)))
}

/// What frameworks say when a GPU has no room. A pattern is a set of words that one line must have, and
/// words that it must not have.
const PATTERNS: [(&[&str], &[&str]); 11] = [
    // PyTorch, in all its spellings.
    (&["CUDA out of memory"], &[]),
    (&["OutOfMemoryError", "CUDA"], &[]),
    (&["CUDA error: out of memory"], &[]),
    (&["HIP out of memory"], &[]),
    (&["CUBLAS_STATUS_ALLOC_FAILED"], &[]),
    (&["CUDNN_STATUS_ALLOC_FAILED"], &[]),
    // TensorFlow: the host's allocator says the same words.
    (&["OOM when allocating tensor"], &["device:CPU", "allocator cpu", "by allocator mklcpu"]),
    // JAX.
    (&["RESOURCE_EXHAUSTED", "ut of memory"], &["device:CPU", "CPU_0"]),
    (&["RESOURCE_EXHAUSTED", "Failed to allocate request"], &["device:CPU", "CPU_0"]),
    // Raw CUDA.
    (&["cudaErrorMemoryAllocation"], &[]),
    (&["CUDA_ERROR_OUT_OF_MEMORY"], &[]),
];

fn find_gpu_oom(words: &str) -> Option<&str> {
    let matches = |line: &&str| {
        PATTERNS.iter().any(|(all, none)| {
            all.iter().all(|word| line.contains(word))
                && !none.iter().any(|word| line.contains(word))
        })
    };
    words.lines().rev().find(matches)
}

fn is_host_oom(exit: Exit, words: &str, told: Option<HostMemory>) -> bool {
    let said = ["MemoryError", "std::bad_alloc", "Cannot allocate memory", "oom-kill", "oom_kill"];
    if told.is_some_and(|told| told.kills > 0) {
        return true;
    }
    match exit {
        // Nobody here sent it: the kernel's killer is the usual suspect, unless the kernel says that it was not.
        Exit::Signal(SIGKILL) | Exit::Code(137) => told.is_none(),
        Exit::Signal(SIGABRT) | Exit::Code(_) => {
            words.lines().rev().take(40).any(|line| said.iter().any(|word| line.contains(word)))
        }
        Exit::Signal(_) => false,
    }
}

/// What comes before the size of an allocation that failed.
const ASKED: [&str; 3] = ["ried to allocate ", "rying to allocate ", "request for "];
/// What comes before the size that a process has, PyTorch's words.
const HELD: [&str; 1] = ["this process has "];

/// The size in «Tried to allocate 1.50 GiB», «trying to allocate 123 bytes» and their like.
fn size_after(line: &str, after: &[&str]) -> Option<Bytes> {
    let rest = after.iter().find_map(|words| line.split_once(words).map(|(_, rest)| rest))?;
    let mut parts = rest.split([' ', ',', ';']).filter(|part| !part.is_empty());
    let number = parts.next()?.trim_end_matches('.');
    // «2.00GiB» is written without a space by some.
    let digits = number.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &number[digits.len()..] {
        "" => parts.next()?.trim_end_matches(['.', ',', ')']),
        unit => unit,
    };
    let scale = match unit {
        "bytes" | "B" | "byte" => 1.0,
        "KiB" | "KB" => 1024.0,
        "MiB" | "MB" => 1024.0 * 1024.0,
        "GiB" | "GB" => 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    let number: f64 = digits.parse().ok()?;
    (number.is_finite() && (0.0..1e9).contains(&(number * scale / 1e9)))
        .then_some(Bytes((number * scale) as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Moment;
    use proptest::prelude::*;

    fn ended(exit: Exit) -> Ended {
        Ended { exit, at: Moment(0), stopped: None, host_memory: None, unstarted: None }
    }

    fn verdict(exit: Exit, words: &str) -> Verdict {
        judge(&ended(exit), words.as_bytes())
    }

    fn asked(words: &str) -> Option<Bytes> {
        match verdict(Exit::Code(1), words) {
            Verdict::GpuOutOfMemory { asked, .. } => asked,
            other => panic!("{words}: {other:?}"),
        }
    }

    #[test]
    fn trouble_with_mps_is_told_from_failures_of_ones_own() {
        for words in [
            "RuntimeError: CUDA error: the MPS server is not ready to accept new MPS client requests",
            "cudaErrorMpsRpcFailure: the remote procedural call failed",
            "step 3\nCUDA_ERROR_MPS_CLIENT_TERMINATED\nTraceback",
            "MPS client failed to connect to the MPS control daemon or the MPS server",
            "CUDA error: the hardware resources required to create MPS client have been exhausted",
            "the hardware resources required to support device connections have been exhausted",
            "MPS client has been terminated by the server. Either a client fault or a request",
            "failed to communicate with the MPS RPC server",
        ] {
            let told = verdict(Exit::Code(1), words);
            assert!(matches!(told, Verdict::MpsTrouble(_)), "{words}: {told:?}");
        }
        for own in [
            "RuntimeError: MPS backend out of shapes",
            "starting the MPS server\nAssertionError: no MPS client here",
            "see how to start the MPS control daemon",
        ] {
            assert_eq!(verdict(Exit::Code(1), own), Verdict::Failed, "{own}");
        }
        assert_eq!(verdict(Exit::Code(0), "MPS server"), Verdict::Completed);
    }

    #[test]
    fn every_framework_is_understood() {
        let gib = |gib: f64| Some(Bytes((gib * (1u64 << 30) as f64) as u64));
        let torch = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB. GPU 0 has \
                     a total capacity of 40.00 GiB of which 1.02 GiB is free.";
        assert_eq!(asked(torch), gib(1.5));
        let new = format!(
            "{torch} Including non-PyTorch memory, this process has 9.50 GiB memory in use."
        );
        let Verdict::GpuOutOfMemory { held, .. } = verdict(Exit::Code(1), &new) else { panic!() };
        assert_eq!(held, gib(9.5));
        let old =
            "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 2.00 GiB total";
        assert_eq!(asked(old), Some(Bytes::from_mib(20)));
        let typo = "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 \
                    has a total capacty of 79.15 GiB";
        assert_eq!(asked(typo), gib(2.0));
        let jax = "XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate \
                   12884901888 bytes.";
        assert_eq!(asked(jax), gib(12.0));
        let jax = "XlaRuntimeError: RESOURCE_EXHAUSTED: Failed to allocate request for 2.00GiB (2147483648B)";
        assert_eq!(asked(jax), gib(2.0));
        let tf = "ResourceExhaustedError: OOM when allocating tensor with shape[64,256] and type float \
                  on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc";
        assert_eq!(asked(tf), None);
        assert_eq!(asked("CUDA_ERROR_OUT_OF_MEMORY"), None);
        assert_eq!(
            asked("RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling"),
            None
        );
    }

    #[test]
    fn the_kernels_word_on_host_memory_counts() {
        let told = |kills| Some(HostMemory { kills, peak: None, limit: Some(Bytes::from_mib(48)) });
        let verdict =
            |exit, host_memory| judge(&Ended { host_memory, ..ended(exit) }, b"epoch 3\n");
        let killed = Exit::Signal(SIGKILL);
        assert_eq!(verdict(killed, told(1)), Verdict::HostOutOfMemory(told(1)));
        // One of its processes was killed, and the program made an ordinary failure of it.
        assert_eq!(verdict(Exit::Code(1), told(1)), Verdict::HostOutOfMemory(told(1)));
        assert_eq!(verdict(killed, told(0)), Verdict::Failed, "somebody killed it");
        assert_eq!(verdict(killed, None), Verdict::HostOutOfMemory(None), "nobody knows better");
        assert_eq!(verdict(Exit::Code(0), told(1)), Verdict::Completed);
    }

    #[test]
    fn other_failures_are_not_taken_for_it() {
        let host_tensor =
            "OOM when allocating tensor with shape[9] on /device:CPU:0 by allocator cpu";
        assert_eq!(verdict(Exit::Code(1), host_tensor), Verdict::Failed);
        assert_eq!(verdict(Exit::Code(1), "SyntaxError: invalid syntax"), Verdict::Failed);
        assert_eq!(verdict(Exit::Code(1), "MemoryError"), Verdict::HostOutOfMemory(None));
        assert_eq!(verdict(Exit::Signal(SIGKILL), "epoch 3"), Verdict::HostOutOfMemory(None));
        assert_eq!(verdict(Exit::Signal(11), "epoch 3"), Verdict::Failed);
        // Caught and survived.
        assert_eq!(verdict(Exit::Code(0), "CUDA out of memory, smaller batch"), Verdict::Completed);
    }

    #[test]
    fn whoever_could_not_be_started_says_why() {
        let unstarted = Some("cannot start trian.py: No such file".to_owned());
        let ended = Ended { unstarted: unstarted.clone(), ..ended(Exit::Code(127)) };
        assert_eq!(Some(judge(&ended, b"")), unstarted.map(Verdict::Unstarted));
    }

    #[test]
    fn who_was_stopped_neither_failed_nor_finished() {
        for exit in [Exit::Signal(15), Exit::Code(143), Exit::Code(0)] {
            let ended = |stopped| Ended { stopped, ..ended(exit) };
            assert_eq!(judge(&ended(Some(Stopped::TimeLimit)), b""), Verdict::TimedOut);
            assert_eq!(
                judge(&ended(Some(Stopped::Asked)), b"CUDA out of memory"),
                Verdict::Stopped
            );
        }
    }

    proptest! {
        #[test]
        fn no_last_words_confuse_it(words in prop::collection::vec(any::<u8>(), 0..300), code in -5i32..300) {
            let mut line = b"Tried to allocate ".to_vec();
            line.extend(&words);
            line.extend(b" CUDA out of memory");
            judge(&ended(Exit::Code(code)), &line);
        }
    }
}
