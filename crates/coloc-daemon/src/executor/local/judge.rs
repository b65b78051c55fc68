//! How a task ended: what its exit says, and what its last words say of GPU memory.

use super::run::{Ended, Stopped};
use crate::executor::outcome::{FailedAllocation, HostMemory, Verdict};
use crate::record::Exit;

/// No reason is kept longer than this.
const LONGEST_REASON: usize = 400;
const SIGKILL: i32 = 9;
const SIGABRT: i32 = 6;

/// Judges by the words that the log ends with, never by the exit code alone: an uncaught error of any kind
/// is 1, and a kill by the kernel for want of host memory is no business of the GPU's.
pub(super) fn judge(ended: &Ended, last_words: &[u8]) -> Verdict {
    match (ended.stopped, ended.exit) {
        // A program that saves a checkpoint when told to go often exits with 0, and has not done its work.
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
                Some((line, from_there)) => Verdict::GpuOutOfMemory {
                    said: FailedAllocation::read(from_there),
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
const PATTERNS: [(&[&str], &[&str]); 13] = [
    // PyTorch, in all its spellings.
    (&["CUDA out of memory"], &[]),
    (&["OutOfMemoryError", "CUDA"], &[]),
    (&["CUDA error: out of memory"], &[]),
    (&["cuda runtime error (2) : out of memory"], &[]),
    (&["HIP out of memory"], &[]),
    (&["CUBLAS_STATUS_ALLOC_FAILED"], &[]),
    (&["CUDNN_STATUS_ALLOC_FAILED"], &[]),
    // TensorFlow: the host's allocator says the same words.
    (&["OOM when allocating tensor"], &["device:CPU", "allocator cpu", "by allocator mklcpu"]),
    // JAX.
    (&["RESOURCE_EXHAUSTED", "ut of memory"], &["device:CPU", "CPU_0"]),
    (&["RESOURCE_EXHAUSTED", "Failed to allocate request"], &["device:CPU", "CPU_0"]),
    (&["cupy", "OutOfMemoryError"], &[]),
    // Raw CUDA.
    (&["cudaErrorMemoryAllocation"], &[]),
    (&["CUDA_ERROR_OUT_OF_MEMORY"], &[]),
];

/// The last line that says so, and the text from there on.
fn find_gpu_oom(words: &str) -> Option<(&str, &str)> {
    let matches = |line: &str| {
        PATTERNS.iter().any(|(all, none)| {
            all.iter().all(|word| line.contains(word))
                && !none.iter().any(|word| line.contains(word))
        })
    };
    let mut at = words.len();
    for line in words.split_inclusive('\n').rev() {
        at -= line.len();
        if matches(line) {
            return Some((line, &words[at..]));
        }
    }
    None
}

fn is_host_oom(exit: Exit, words: &str, told: Option<HostMemory>) -> bool {
    let said = ["MemoryError", "std::bad_alloc", "Cannot allocate memory", "oom-kill", "oom_kill"];
    if told.is_some_and(|told| told.kills > 0) {
        return true;
    }
    match exit {
        // The shim did not send it: the kernel's killer is the usual suspect, unless the kernel says that it was not.
        Exit::Signal(SIGKILL) | Exit::Code(137) => told.is_none(),
        Exit::Signal(SIGABRT) | Exit::Code(_) => {
            words.lines().rev().take(40).any(|line| said.iter().any(|word| line.contains(word)))
        }
        Exit::Signal(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use coloc_api::moment::Moment;
    use coloc_model::Bytes;
    use proptest::prelude::*;

    fn ended(exit: Exit) -> Ended {
        let (stopped, host_memory, unstarted, prolog, epilog) = (None, None, None, None, None);
        Ended { exit, at: Moment(0), stopped, host_memory, unstarted, prolog, epilog }
    }

    fn verdict(exit: Exit, words: &str) -> Verdict {
        judge(&ended(exit), words.as_bytes())
    }

    fn said(words: &str) -> FailedAllocation {
        match verdict(Exit::Code(1), words) {
            Verdict::GpuOutOfMemory { said, .. } => said,
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
        for words in [
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of",
            "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 2.00 GiB total capacity;",
            "XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 20971520 bytes.",
            "XlaRuntimeError: RESOURCE_EXHAUSTED: Failed to allocate request for 20.00MiB (20971520B)",
            "ResourceExhaustedError: OOM when allocating tensor with shape[64,81920] and type float on \
             /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc",
            "cupy.cuda.memory.OutOfMemoryError: Out of memory allocating 20,971,520 bytes",
        ] {
            assert_eq!(said(words).asked, Some(Bytes::from_mib(20)), "{words}");
        }
        for words in [
            "CUDA_ERROR_OUT_OF_MEMORY",
            "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling",
            "RuntimeError: cuda runtime error (2) : out of memory at THCStorage.cu:58",
        ] {
            assert_eq!(said(words), FailedAllocation::default(), "{words}");
        }
    }

    #[test]
    fn the_last_error_counts_with_the_lines_that_belong_to_it() {
        let words = "CUDA out of memory. Tried to allocate 1.00 GiB, smaller batch\n\
                     step 7\n[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to\n\
                     [rank0]: see above\nCUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total\n\
                     capacity of 40.00 GiB of which 1.02 GiB is free.\nbye\n";
        let said = said(words);
        assert_eq!(said.asked, Some(Bytes::from_mib(20)));
        assert_eq!(said.total, Some(Bytes::from_mib(40_960)));
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
