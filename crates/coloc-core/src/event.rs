//! What the world tells the scheduler, and what the scheduler wants done.

use crate::contract::Promised;
use coloc_model::mig::Layout;
use coloc_model::{
    Bytes, Fraction, GpuId, GpuSignal, Lesson, Outcome, Placement, SignatureId, Task, TaskId,
    TaskState, Time, UserId,
};
use std::sync::Arc;

/// Something happened.
#[derive(Clone, PartialEq, Debug)]
pub enum Event {
    /// A user submitted a task.
    Submitted(Task),
    /// A task's process ended by itself.
    Ended {
        /// The task.
        task: TaskId,
        /// How.
        outcome: Outcome,
    },
    /// A user changed a task. A waiting task keeps its place among tasks of its priority; of a running task only the
    /// priority changes, for when it waits again.
    Changed(Task),
    /// A user or the daemon wants a task stopped.
    StopRequested(TaskId),
    /// A task that the scheduler wanted stopped is off its GPUs.
    Stopped(TaskId),
    /// The monitor saw a GPU change.
    GpuSeen {
        /// The GPU.
        gpu: GpuId,
        /// Its state from now on.
        signal: GpuSignal,
    },
    /// The monitor could not see a GPU: what tasks do on it is not known until it is seen again.
    GpuUnseen(GpuId),
    /// The monitor saw a task's memory change.
    TaskSeen {
        /// The task.
        task: TaskId,
        /// The most that it holds on any of its GPUs.
        used: Bytes,
        /// SM activity that is its own, where the monitor can tell: per process, or of its MIG instance. It holds until
        /// the next sighting. Without it, what GPUs do counts as the doing of a task that is alone on them.
        activity: Option<Fraction>,
    },
    /// A task's log shows that it got further in its training.
    Progressed(TaskId),
    /// The monitor saw memory of processes that are not tasks.
    ForeignSeen {
        /// The GPU.
        gpu: GpuId,
        /// What they hold on it.
        used: Bytes,
    },
    /// What processes that are not tasks do of a GPU's work, where that is to count.
    ForeignBusy {
        /// The GPU.
        gpu: GpuId,
        /// Their SM activity.
        busy: f64,
    },
    /// The monitor saw clients of MPS.
    ClientsSeen {
        /// The GPU.
        gpu: GpuId,
        /// How many there are beside one of each task: other processes of tasks, and those that are not tasks.
        beside: u32,
        /// How many the GPU takes.
        limit: u32,
    },
    /// Others hold slices of a GPU that is partitioned, or keep it from being partitioned at all.
    SlicesSeen {
        /// The GPU.
        gpu: GpuId,
        /// What no instance can be made of.
        taken: Layout,
    },
    /// A GPU is lost, or is back.
    GpuThere {
        /// The GPU.
        gpu: GpuId,
        /// It is back.
        there: bool,
    },
    /// A GPU takes nothing new though it is there, or takes tasks again. Tasks on it go on.
    GpuDrained {
        /// The GPU.
        gpu: GpuId,
        /// It takes nothing.
        drained: bool,
    },
    /// A GPU takes new tasks of these users only, or of all. Tasks on it go on.
    GpuKept {
        /// The GPU.
        gpu: GpuId,
        /// The users; `None` is all.
        users: Option<Arc<[UserId]>>,
    },
    /// A task was launched before this scheduler was made, and still runs.
    Adopted {
        /// The task.
        task: Task,
        /// Where it runs.
        placement: Placement,
        /// Since when.
        started: Time,
        /// What it was promised then, if that is known.
        promised: Option<Promised>,
    },
    /// A launch could not be carried out: the task waits again.
    NotLaunched(TaskId),
    /// What tasks of a kind do was measured.
    Taught {
        /// Which.
        signature: SignatureId,
        /// What was found.
        lesson: Lesson,
    },
    /// A time that the scheduler asked for has come.
    Wake,
}

/// Something is to be done.
#[derive(Clone, PartialEq, Debug)]
pub enum Effect {
    /// Start a task.
    Launch {
        /// The task.
        task: TaskId,
        /// Where, and how it shares.
        placement: Placement,
    },
    /// Take a running task off its GPUs but keep its work: it will be launched again. Launches that follow
    /// may need its GPUs, so they wait until it is gone.
    Preempt(TaskId),
    /// Take a running task off its GPUs, then say so with [`Event::Stopped`].
    Stop(TaskId),
    /// A task will not run again.
    Retire {
        /// The task.
        task: TaskId,
        /// Its last state.
        state: TaskState,
    },
    /// Send [`Event::Wake`] at this time or before. Of several times that were asked for, the earliest is
    /// enough: whatever is still to be waited for is asked for again then.
    WakeAt(Time),
}
