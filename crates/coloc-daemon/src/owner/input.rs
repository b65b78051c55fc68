//! What comes to an owner, and what it is made of.

use super::{About, Caller, Command, IntentFile, Names, Settings, Tables};
use crate::clock::Clock;
use crate::executor::{Counted, End, Executor};
use crate::hardware::Sighting;
use crate::journal::Journal;
use crate::news::News;
use crate::notices::DeliveryError;

use crate::reserve::Reserve;
use crate::retention::Retention;
use crate::series::Series;
use coloc_core::Scheduler;
use coloc_model::{Fleet, TaskId};
use std::sync::{Arc, mpsc};

/// Something for the owner to deal with.
#[derive(Debug)]
pub enum Input {
    /// A caller wants something and waits for the answer.
    Command(Caller, Command),
    /// An attempt has ended.
    Ended {
        /// The task.
        task: TaskId,
        /// Which attempt.
        attempt: u32,
        /// How.
        end: End,
    },
    /// What launches wait for was set up, or will not be.
    SharingReady,
    /// A GPU reported a critical error.
    GpuError,
    /// What these tasks left was removed.
    Removed(Vec<TaskId>),
    /// The monitor looked.
    Seen(Box<Sighting>),
    /// A task's log was looked at, and speaks of training or tells how far it is.
    Sign {
        /// The task.
        task: TaskId,
        /// Which attempt.
        attempt: u32,
        /// What it says of training; another number is another line.
        sign: Option<u64>,
        /// How far it is.
        counted: Option<Counted>,
    },
    /// A hook was told of a notice, or was not.
    Delivered {
        /// The notice.
        id: u64,
        /// What became of it.
        result: Result<(), DeliveryError>,
    },
    /// Stop, leaving tasks alone: they are found again.
    Shutdown,
}

/// What an owner is made of.
pub struct Parts {
    /// The scheduler, which knows of no task yet.
    pub scheduler: Scheduler,
    /// The machine that it was made for.
    pub fleet: Fleet,
    /// What it was made by.
    pub settings: Settings,
    /// Accounts and pools, looked up.
    pub tables: Tables,
    /// Users and kinds of tasks that the scheduler knows.
    pub names: Names,
    /// Its clock.
    pub clock: Clock,
    /// The journal.
    pub journal: Journal,
    /// Starts and stops tasks.
    pub executor: Box<dyn Executor + Send>,
    /// The GPUs by name, in the order of the fleet.
    pub gpu_names: Vec<String>,
    /// Room on the disk that is kept.
    pub(crate) reserve: Reserve,
    /// Written to where the journal has no room.
    pub(crate) intent_file: IntentFile,
    /// Tells for how long what ended tasks leave is kept.
    pub retention: mpsc::Sender<Retention>,
    /// Tells the world of changes.
    pub news: Arc<News>,
    /// What the daemon is.
    pub about: About,
    /// What is measured over time.
    pub series: Arc<Series>,
}
