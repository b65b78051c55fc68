//! MIG instances for tasks. The scheduler decides where on a board an instance lies; here it is made, or taken over
//! from a task that no longer needs it. Instances that no task wants any more are destroyed after a while.

use super::notes::{Note, Notes};
use coloc_gpu::device::Uuid;
use coloc_gpu::driver::{Driver, DriverError, Guarded};
use coloc_gpu::health::Condition;
use coloc_gpu::mig::{self, Applied, ApplyError, Place, Want};
use coloc_model::mig::Instance;
use coloc_model::{GpuId, Millis, TaskId, Time};
use rustc_hash::FxHashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// An instance is kept this long for the next one of its size.
const KEPT_UNUSED: Millis = Millis::from_secs(60);
/// A process that has ended may be on the driver's list for a moment.
const TIMEOUT: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(20);

/// A task that did not get its instance.
#[derive(Debug, thiserror::Error)]
pub enum PartitionError {
    /// The planner or the driver says no.
    #[error("{gpu}: {source}")]
    Mig {
        /// The GPU.
        gpu: Uuid,
        /// Why.
        source: ApplyError,
    },
    /// The scheduler knows no slices of this GPU.
    #[error("{gpu} cannot be partitioned")]
    NoSlices {
        /// The GPU.
        gpu: Uuid,
    },
    /// CUDA shows a process one instance, however many it was given.
    #[error("a task on {gpus} GPUs cannot run on MIG instances: a process sees one of them")]
    Several {
        /// How many.
        gpus: usize,
    },
    /// It is in use in parts and wanted as a whole.
    #[error("{gpu} is still partitioned and in use; it is made whole when those tasks have ended")]
    StillPartitioned {
        /// The GPU.
        gpu: Uuid,
    },
    /// What is to be made could not be written down, so it was not made.
    #[error("{}: {source}", file.display())]
    Notes {
        /// Where.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl PartitionError {
    /// It may work later, and the task is not to blame.
    pub fn may_pass(&self) -> bool {
        use DriverError::{Hung, InUse, InsufficientResources, Lost, TimedOut};
        match self {
            PartitionError::Mig { source, .. } => match source {
                ApplyError::Refused(refusal) => {
                    !matches!(refusal, mig::MigRefusal::NoSuchPlace { .. })
                }
                ApplyError::NotIdle { .. } => true,
                ApplyError::AfterReset => false,
                ApplyError::Driver(error) => matches!(
                    error,
                    Hung | InUse { .. } | InsufficientResources { .. } | Lost | TimedOut { .. }
                ),
            },
            PartitionError::StillPartitioned { .. } => true,
            _ => false,
        }
    }
}

/// The partitioned GPUs.
#[derive(Debug)]
pub struct Partitions {
    driver: Guarded,
    notes: Notes,
    /// Since when no task wants an instance of ours.
    unused: FxHashMap<(Uuid, Place), Time>,
}

impl Partitions {
    /// Knows what an earlier daemon with this state made.
    pub fn new(state: &Path, driver: Guarded) -> Self {
        Partitions { driver, notes: Notes::load(state), unused: FxHashMap::default() }
    }

    /// Nothing of ours is on any GPU.
    pub fn is_empty(&self) -> bool {
        self.notes.is_empty()
    }

    /// The device of the instance that was decided on. What lies at the places `kept` belongs to other tasks.
    pub fn give(
        &mut self,
        task: TaskId,
        gpu: &Uuid,
        instance: Instance,
        kept: &[Place],
    ) -> Result<Uuid, PartitionError> {
        let place = place_of(instance);
        let ours = self.notes.of(gpu).is_some_and(|note| note.places.contains(&place));
        self.turn_on(gpu)?;
        self.note(gpu, |note| note.places.extend([place]))?;
        let (want, kept) = (Want::placed(task, instance.compute, place), kept.to_vec());
        let applied: Applied = self.patiently(gpu, move |driver, index| {
            mig::apply(driver, index, std::slice::from_ref(&want), &kept)
        })?;
        let reused = applied.plan.assignments.iter().any(|given| given.reused.is_some());
        self.note(gpu, |note| {
            // What another program made, and was found there, stays its own.
            if reused && !ours {
                note.places.remove(&place);
            }
            note.places.retain(|&other| other == place || !overlap(other, place));
        })?;
        let given = applied.given.into_iter().next();
        given.map(|given| given.device).ok_or_else(|| PartitionError::NoSlices { gpu: gpu.clone() })
    }

    /// A GPU that a task wants as a whole: what is left of our instances goes.
    pub fn make_whole(&mut self, gpu: &Uuid) -> Result<(), PartitionError> {
        let Some(Note { turned_on, places }) = self.notes.of(gpu).cloned() else { return Ok(()) };
        for place in places {
            self.remove(gpu, place)?;
        }
        if self.notes.of(gpu).is_some_and(|note| !note.places.is_empty()) {
            return Err(PartitionError::StillPartitioned { gpu: gpu.clone() });
        }
        if turned_on {
            self.ask(gpu, |driver, index| match driver.mig_board(index)?.instances.is_empty() {
                true => mig::disable(driver, index),
                // Another program uses what we turned on.
                false => Ok(()),
            })?;
            self.note(gpu, |note| note.turned_on = false)?;
        }
        Ok(())
    }

    /// The driver says that a GPU cannot be used. A driver that does not answer says nothing.
    pub fn is_gone(&self, gpu: &Uuid, at: GpuId) -> bool {
        let uuid = gpu.clone();
        let found = self.driver.ask(move |driver| {
            let mut silent = None;
            for index in 0..driver.count()? {
                match driver.identity(index) {
                    Ok(identity) if identity.uuid == uuid => return Ok(false),
                    Ok(_) => {}
                    // A lost one does not tell its name: it is the one that had this number.
                    Err(error) if index == at.0 => silent = Some(error.is_device_loss()),
                    Err(_) => {}
                }
            }
            Ok(silent.unwrap_or(true))
        });
        match found {
            Ok(gone) => gone,
            Err(error) => error.is_device_loss() || error.wants_reconnect(),
        }
    }

    /// How the memory of a GPU is; `None` if the driver does not tell.
    pub fn condition(&self, gpu: &Uuid) -> Option<Condition> {
        let condition = |driver: &mut dyn Driver, index| Ok(driver.vitals(index)?.condition);
        self.ask(gpu, condition).ok()
    }

    /// Destroys what no task has wanted for a while. `kept` are the instances of tasks.
    pub fn sweep(&mut self, now: Time, kept: &[(Uuid, Place)]) {
        if self.notes.is_empty() {
            return;
        }
        let made = self.notes.all().into_iter();
        let made =
            made.flat_map(|(gpu, note)| note.places.into_iter().map(move |p| (gpu.clone(), p)));
        let unwanted: Vec<(Uuid, Place)> = made.filter(|made| !kept.contains(made)).collect();
        self.unused.retain(|known, _| unwanted.contains(known));
        for (gpu, place) in unwanted {
            let since = *self.unused.entry((gpu.clone(), place)).or_insert(now);
            if now.since(since) >= KEPT_UNUSED {
                // What cannot be destroyed now is tried again at the next look.
                let _ = self.remove(&gpu, place);
            }
        }
    }

    /// Leaves the GPUs as they were found. Only for when no task runs.
    pub fn tear_down(&mut self) {
        for (gpu, _) in self.notes.all() {
            if let Err(error) = self.make_whole(&gpu) {
                tracing::warn!("{error}");
            }
        }
    }

    fn remove(&mut self, gpu: &Uuid, place: Place) -> Result<(), PartitionError> {
        let gone = self.ask(gpu, move |driver, index| match driver.vitals(index)?.mig.is_on() {
            true => mig::remove(driver, index, place),
            // A reset took it.
            false => Ok(true),
        })?;
        if gone {
            self.unused.remove(&(gpu.clone(), place));
            self.note(gpu, |note| note.places.retain(|&known| known != place))?;
        }
        Ok(())
    }

    fn turn_on(&mut self, gpu: &Uuid) -> Result<(), PartitionError> {
        let on = self.ask(gpu, |driver, index| Ok(driver.vitals(index)?.mig.is_on()))?;
        if on {
            return Ok(());
        }
        self.note(gpu, |note| note.turned_on = true)?;
        let turned = self.patiently(gpu, mig::enable);
        if turned.is_err() {
            self.note(gpu, |note| note.turned_on = false)?;
        }
        turned
    }

    fn note(&mut self, gpu: &Uuid, change: impl FnOnce(&mut Note)) -> Result<(), PartitionError> {
        let file = self.notes.file().to_owned();
        let noted = self.notes.change(gpu, change);
        noted.map_err(|source| PartitionError::Notes { file, source })
    }

    /// Asks until processes that have just ended are off the driver's list.
    fn patiently<T: Send + 'static>(
        &self,
        gpu: &Uuid,
        question: impl Fn(&mut dyn Driver, u32) -> Result<T, ApplyError> + Clone + Send + 'static,
    ) -> Result<T, PartitionError> {
        let began = Instant::now();
        loop {
            let answer = self.ask(gpu, question.clone());
            match answer {
                Err(error) if error.may_pass() && began.elapsed() < TIMEOUT => {
                    std::thread::sleep(PAUSE);
                }
                answer => return answer,
            }
        }
    }

    fn ask<T: Send + 'static>(
        &self,
        gpu: &Uuid,
        question: impl FnOnce(&mut dyn Driver, u32) -> Result<T, ApplyError> + Send + 'static,
    ) -> Result<T, PartitionError> {
        let uuid = gpu.clone();
        let answer = self.driver.ask(move |driver| {
            let answer = index_of(driver, &uuid).map_err(ApplyError::from);
            // What the driver says is told as such: it may have to be connected to anew.
            match answer.and_then(|index| question(driver, index)) {
                Err(ApplyError::Driver(error)) => Err(error),
                answer => Ok(answer),
            }
        });
        let answer = answer.map_err(ApplyError::from).and_then(|answer| answer);
        answer.map_err(|source| PartitionError::Mig { gpu: gpu.clone(), source })
    }
}

/// Where a scheduler's instance lies.
pub fn place_of(instance: Instance) -> Place {
    Place { start: instance.start, span: instance.span }
}

fn overlap(one: Place, other: Place) -> bool {
    one.start < other.start + other.span && other.start < one.start + one.span
}

/// The driver's number for a GPU, which may have changed.
fn index_of(driver: &mut dyn Driver, gpu: &Uuid) -> Result<u32, DriverError> {
    let count = driver.count()?;
    let is_it = |index: &u32| driver.identity(*index).is_ok_and(|found| found.uuid == *gpu);
    let found = (0..count).find(is_it);
    found.ok_or(DriverError::NotFound { what: "the GPU of a task" })
}
