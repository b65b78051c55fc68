//! What can be wrong with what is asked for. Nothing is changed then.

use super::submit::LEAST_MEMORY;
use crate::bounds::{self, BoundsError};
use coloc_api::notify::NotifyError;
use coloc_core::{HostRefusal, RejectedTask};
use coloc_model::{Bytes, Millis, TaskId};

/// What is asked for makes no sense, or cannot be had here.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[expect(missing_docs, reason = "what each is about is what it says")]
pub enum Invalid {
    #[error("no command was given")]
    NoCommand,
    #[error("this daemon runs tasks of {0} only")]
    OtherUser(String),
    #[error("a submission's key has 1 to 200 bytes, and no control characters")]
    Key,
    #[error("this key belongs to task {0}, which runs another command: give another key, or none")]
    KeyOfAnother(TaskId),
    #[error(transparent)]
    Bounds(#[from] BoundsError),
    #[error("a script has at most 2 MiB")]
    LongScript,
    #[error("a script's first line must be #! and a program, such as #!/bin/bash")]
    NoInterpreter,
    #[error("a zero byte cannot be passed to a program")]
    ZeroByte,
    #[error("a task has at most 16 limits, and a mask of at most 777 (octal)")]
    Limits,
    #[error("--notify: {0}")]
    Notify(#[from] NotifyError),
    #[error(
        "--notify: users' webhooks may go to {allowed} here, and {url} is elsewhere; administrators allow hosts with webhook-allow in [notify]"
    )]
    Webhook { url: String, allowed: String },
    #[error("a share of the SMs is from 1 to 100 percent")]
    SmPercent,
    #[error("copies of a task, and their CPUs and GPUs, are from 1 to {}", bounds::COPIES)]
    Copies,
    #[error(
        "the task {0}: it would never start. Ask for less with --cpus-per-task, --ntasks or --mem"
    )]
    Host(HostRefusal),
    #[error("the directory that it was submitted in has more than {} bytes", bounds::PATH)]
    LongSubmitDirectory,
    #[error("the working directory must be an absolute path")]
    RelativeDirectory,
    #[error("an array needs at least one index")]
    EmptyArray,
    #[error("an array has at most {} tasks", bounds::ARRAY)]
    LargeArray,
    #[error("two tasks of an array have the same index")]
    EqualIndices,
    #[error("%0 would never run anything")]
    NoneAtOnce,
    #[error("the signal is to come {} s before a time limit of {} s: give it more time, or the signal less", before.secs(), limit.secs())]
    EarlyWarning { before: Millis, limit: Millis },
    #[error(
        "task {0} has no time limit that could be made longer or shorter: give it one, such as --time 4h"
    )]
    NoTimeLimit(TaskId),
    #[error(
        "task {task} has run for {ran}, and would be over its limit of {limit} at once: `coloc cancel {task}` ends it"
    )]
    TimeLimitPassed { task: TaskId, ran: Millis, limit: Millis },
    #[error("only who waits for the start of a task (after) can wait on for a while")]
    DelayAfterEnd,
    #[error("it is to wait for task {0}, which never was")]
    NoSuchDependency(TaskId),
    #[error("task {0} would wait for itself")]
    WaitsForItself(TaskId),
    #[error(
        "this daemon gives tasks MIG instances, and a process sees one of them: ask for one GPU"
    )]
    GangOnMig,
    #[error("a task names at most {} kinds of GPU, each in {} bytes", bounds::KINDS, bounds::KIND)]
    ManyKinds,
    #[error("GPUs of kind {kinds}: it needs {needs} and there are {has}; here are {here}")]
    FewOfKind { kinds: String, needs: u32, has: usize, here: String },
    #[error(
        "no GPU of kind {kinds} has {needs}: the largest that {gpus} at once have is {largest}"
    )]
    SmallKind { kinds: String, needs: Bytes, gpus: u32, largest: Bytes },
    #[error("there is no pool {name:?}; there are {here}")]
    NoSuchPool { name: String, here: String },
    #[error("this daemon has no pools: leave out --pool, or have its administrator configure some")]
    NoPools,
    #[error("a task names at most {most} pools")]
    ManyPools { most: usize },
    #[error("pools {0} share their GPUs in different ways: name one of them")]
    UnlikePools(String),
    #[error("no pool is open to you: ask an administrator")]
    NoPoolForUser,
    #[error("between 1 and {most} users or groups are to be named, such as ann,@lab")]
    ReservedFor { most: usize },
    #[error("{0}")]
    Who(String),
    #[error("a reservation ends in the future")]
    ReservationPassed,
    #[error("only declared memory can be lent: say how much it needs with --gpu-mem")]
    ReclaimUndeclared,
    #[error(
        "it declares {0} of GPU memory, and a process needs {LEAST_MEMORY} at least to use a GPU; a bare number is MiB, so 12 GiB are 12G"
    )]
    LittleMemory(Bytes),
    #[error("an estimate's bound is not below what it expects")]
    BoundBelowPeak,
    #[error("{}", too_large(*declared, *needs, *gpus, *largest))]
    MuchMemory { declared: bool, needs: Bytes, gpus: u32, largest: Bytes },
    #[error("the task {}", .0.why())]
    Rejected(#[from] RejectedTask),
    #[error("there is no signal {0} that could be sent")]
    NoSuchSignal(i32),
    #[error("a reason is one line of text with at most {most} bytes")]
    Reason { most: usize },
    #[error("between 1 and {most} GPUs are to be named")]
    GpuNames { most: usize },
    #[error("a request names at most {most} tasks (--max-ids): send several")]
    ManyTasks { most: usize },
    #[error("a label has at most {} bytes, and no control characters", bounds::LABEL)]
    Label,
    #[error("a token is good for a second at least, and for 300 years at most")]
    Lifetime,
    #[error("there is no user {0:?}")]
    NoSuchUser(String),
    /// The configuration cannot be had, in the words of its reader.
    #[error("{0}")]
    Configuration(String),
}

/// Where both would be told alike, they are told to the MiB.
fn too_large(declared: bool, needs: Bytes, gpus: u32, largest: Bytes) -> String {
    let what = if declared { "it declares" } else { "it is estimated to need" };
    let at_once = match gpus {
        1 => "the largest GPU here has".to_owned(),
        gpus => format!("{gpus} GPUs at once have"),
    };
    let exact = |bytes: Bytes| format!("{:.1} MiB", bytes.0 as f64 / f64::from(1 << 20));
    let (needs, largest) = match (needs.to_string(), largest.to_string()) {
        (same, has) if same == has => (exact(needs), exact(largest)),
        told => told,
    };
    format!(
        "{what} {needs}, and {at_once} {largest}: it would run out of memory. Ask for less, or submit it with --force"
    )
}
