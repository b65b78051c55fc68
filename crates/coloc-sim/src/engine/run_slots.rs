//! The tasks that are on their GPUs, in run slots that are used again: what is hot stays together, however
//! many tasks a trace has.

use coloc_model::{GpuId, Millis, Placement, TaskId, Time};

/// Where a running task is kept.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub(super) struct RunSlot(u32);

/// A number that a run slot never gives out twice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub(super) struct Stamp(u32);

/// How far a running task is. It changes whenever a neighbour comes or goes, so it has a cache line to
/// itself.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct Progress {
    pub(super) task: TaskId,
    /// Its GPU, if it has only one.
    pub(super) only_gpu: Option<GpuId>,
    /// Milliseconds of work left, at the speed of running alone.
    pub(super) left: f64,
    pub(super) rate: f64,
    /// Factor by which this run is faster or slower than its profile.
    pub(super) luck: f64,
    /// When it had that much left; later than now while its state is being restored.
    pub(super) as_of: Time,
    /// When the finish that is in the agenda is due: never after the task's end.
    pub(super) queued: Time,
}

impl Progress {
    /// When it will be done, at its present speed.
    pub(super) fn end(&self) -> Time {
        let millis = (self.left.max(0.0) / self.rate - 1e-6).ceil().max(0.0);
        self.as_of + Millis(millis as u64)
    }

    /// From now on it has this speed.
    pub(super) fn turn(&mut self, now: Time, rate: f64) {
        self.left = self.left_at(now);
        self.as_of = self.as_of.max(now);
        self.rate = rate;
    }

    pub(super) fn left_at(&self, now: Time) -> f64 {
        self.left - self.rate * now.since(self.as_of).0 as f64
    }
}

/// The rest of what there is to know of a running task.
#[derive(Clone, Debug)]
pub(super) struct Stay {
    pub(super) placement: Placement,
    pub(super) started: Time,
    /// How long after its launch its memory last changed; `None` where that is of no interest.
    pub(super) growth: Option<Millis>,
}

/// Which entries of the agenda are valid for a run slot.
#[derive(Clone, Copy, Default, Debug)]
struct Stamps {
    /// That of the occupant's launch: its memory steps carry it.
    launch: Stamp,
    /// The newest: the one finish that is valid carries it.
    newest: Stamp,
}

/// Every running task.
#[derive(Clone, Default, Debug)]
pub(super) struct RunSlots {
    progress: Vec<Progress>,
    stays: Vec<Option<Stay>>,
    stamps: Vec<Stamps>,
    free: Vec<RunSlot>,
    /// Where each task was last.
    of_task: Vec<RunSlot>,
}

impl RunSlots {
    /// Gives a task a run slot; the stamp is that of its launch.
    pub(super) fn take(&mut self, progress: Progress, stay: Stay) -> (RunSlot, Stamp) {
        let run_slot = self.free.pop().unwrap_or_else(|| {
            self.progress.push(progress);
            self.stays.push(None);
            self.stamps.push(Stamps::default());
            RunSlot(self.stays.len() as u32 - 1)
        });
        let task = progress.task.index();
        if self.of_task.len() <= task {
            self.of_task.resize(task + 1, RunSlot::default());
        }
        self.of_task[task] = run_slot;
        self.progress[run_slot.0 as usize] = progress;
        self.stays[run_slot.0 as usize] = Some(stay);
        let launch = self.stamp(run_slot);
        self.stamps[run_slot.0 as usize].launch = launch;
        (run_slot, launch)
    }

    /// Frees the run slot of a task.
    pub(super) fn leave(&mut self, run_slot: RunSlot) -> Option<(TaskId, Stay)> {
        let stay = self.stays[run_slot.0 as usize].take()?;
        let task = self.progress[run_slot.0 as usize].task;
        self.stamp(run_slot);
        self.free.push(run_slot);
        Some((task, stay))
    }

    /// A new stamp, which makes the finish that was due before invalid.
    pub(super) fn stamp(&mut self, run_slot: RunSlot) -> Stamp {
        let newest = &mut self.stamps[run_slot.0 as usize].newest;
        newest.0 += 1;
        *newest
    }

    pub(super) fn progress(&mut self, run_slot: RunSlot) -> &mut Progress {
        &mut self.progress[run_slot.0 as usize]
    }

    /// The stay of a task that runs.
    pub(super) fn stay(&self, run_slot: RunSlot) -> &Stay {
        let stay = self.stays[run_slot.0 as usize].as_ref();
        stay.expect("a guest of a device has a seat")
    }

    /// The task that was launched with this stamp and still runs.
    pub(super) fn launched(&mut self, run_slot: RunSlot, stamp: Stamp) -> Option<&mut Stay> {
        let stamps = self.stamps[run_slot.0 as usize];
        self.stays[run_slot.0 as usize].as_mut().filter(|_| stamps.launch == stamp)
    }

    /// Whether a finish with this stamp is the valid one.
    pub(super) fn finishes(&self, run_slot: RunSlot, stamp: Stamp) -> bool {
        self.stamps[run_slot.0 as usize].newest == stamp
    }

    /// The run slot of a task that runs.
    pub(super) fn of(&self, task: TaskId) -> Option<RunSlot> {
        let run_slot = *self.of_task.get(task.index())?;
        let holds = self.stays[run_slot.0 as usize].is_some();
        (holds && self.progress[run_slot.0 as usize].task == task).then_some(run_slot)
    }

    pub(super) fn len(&self) -> usize {
        self.progress.len() - self.free.len()
    }
}
