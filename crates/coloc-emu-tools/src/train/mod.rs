//! The emulated trainer: takes memory as a training script does, works at the speed that the physics allow,
//! and dies of a genuine out-of-memory error.
//!
//! It sleeps between events. How far it is, the fleet accounts for exactly, whatever processes come and go meanwhile.

mod checkpoint;
mod failure;
mod log;
mod memory;
mod work;

pub use checkpoint::{Checkpoint, CheckpointError};
pub use work::{Mix, Work};

use crate::signals::Signals;
use coloc_emu::client::{Client, ClientError};
use coloc_emu::{Emulator, Place, visible_devices, wait_for_change};
use failure::Failure;
use log::Log;
use memory::Memory;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The longest sleep: a stopped clock is looked at this often.
const LONGEST_SLEEP: Duration = Duration::from_secs(5);

/// How to train.
#[derive(Clone, Debug)]
pub struct Training {
    /// What to do.
    pub work: Work,
    /// Where to write how far it got, on SIGUSR1 and SIGTERM.
    pub checkpoint: Option<PathBuf>,
    /// How far an earlier run got.
    pub resume: Option<Checkpoint>,
    /// This task's own time: so many of its seconds pass in one second of the fleet.
    pub time_scale: f64,
}

/// A training could not go on.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    /// The driver refused something other than memory.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// Fewer devices are visible than the task needs.
    #[error("the task needs {needed} GPUs and sees {seen}; check CUDA_VISIBLE_DEVICES")]
    TooFewGpus {
        /// What it needs.
        needed: u32,
        /// What there is.
        seen: usize,
    },
    /// A checkpoint could not be written.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// Signals cannot be received.
    #[error("cannot receive signals: {0}")]
    Signals(io::Error),
    /// The log could not be written.
    #[error("cannot write the log: {0}")]
    Log(#[from] io::Error),
}

impl From<coloc_emu::AttachError> for TrainError {
    fn from(error: coloc_emu::AttachError) -> Self {
        TrainError::Client(error.into())
    }
}

impl From<coloc_emu::DriverError> for TrainError {
    fn from(error: coloc_emu::DriverError) -> Self {
        TrainError::Client(error.into())
    }
}

/// What signals asked for.
#[derive(Default)]
struct Asked {
    checkpoint: AtomicBool,
    stop: AtomicBool,
}

/// What a step led to.
enum Step {
    /// Sleep so long, or until something changes.
    Sleep(Duration),
    /// The training is over, with this exit code.
    Over(u8),
}

impl Training {
    /// Trains. Returns the exit code that a training script would have.
    pub fn run(&self) -> Result<u8, TrainError> {
        let asked = Arc::new(Asked::default());
        let signals = [libc::SIGTERM, libc::SIGINT, libc::SIGUSR1];
        let signals = Signals::hold(&signals).map_err(TrainError::Signals)?;
        let emulator = Arc::new(Emulator::from_environment()?);
        listen(signals, Arc::clone(&asked), Arc::clone(&emulator));
        let places = self.devices(&emulator)?;
        let client = Client::join(Arc::clone(&emulator), &places)?;
        let places = places[..self.work.gpus as usize].to_vec();
        match self.train(&client, &places, &asked) {
            Ok(code) => {
                let (mut state, slot) = client.lock()?;
                state.leave(slot);
                Ok(code)
            }
            Err(Failure::Training(error)) => Err(error),
            Err(Failure::Script(text)) => {
                eprint!("{text}");
                Ok(1)
            }
        }
    }

    fn devices(&self, emulator: &Emulator) -> Result<Vec<Place>, TrainError> {
        let variable = std::env::var("CUDA_VISIBLE_DEVICES").ok();
        let seen = visible_devices(&*emulator.lock()?, variable.as_deref());
        if seen.len() < self.work.gpus as usize {
            return Err(TrainError::TooFewGpus { needed: self.work.gpus, seen: seen.len() });
        }
        Ok(seen.into_iter().map(|device| device.place).collect())
    }

    fn train(&self, client: &Client, places: &[Place], asked: &Asked) -> Result<u8, Failure> {
        let mut log = Log::new(&self.work, self.resume.as_ref());
        log.start(client, places)?;
        let mut memory = Memory::open(client, places, &self.work, self.time_scale)?;
        client.declare(&self.work.profile)?;
        if self.work.phases.load.is_some() {
            log.loading()?;
        }
        loop {
            let seen = client.emulator().changes().load(Ordering::Acquire);
            match self.step(client, &mut memory, &mut log, asked)? {
                Step::Over(code) => return Ok(code),
                Step::Sleep(span) => wait_for_change(client.emulator().changes(), seen, span),
            }
        }
    }

    /// Looks where it stands and does what is due.
    fn step(
        &self,
        client: &Client,
        memory: &mut Memory<'_>,
        log: &mut Log,
        asked: &Asked,
    ) -> Result<Step, Failure> {
        let (state, slot) = client.lock()?;
        let (view, now_ns, clock) = (state.view(slot)?, state.now_ns(), state.clock());
        drop(state);
        if let Some(why) = view.ended {
            return Err(failure::ended(why));
        }
        let stage = memory.stage(now_ns, clock.is_frozen());
        // Loading is part of the run. After a checkpoint it takes its time again and leads no further.
        let before = self.resume.as_ref().map_or(0.0, |checkpoint| checkpoint.work_s);
        let before = before.max(stage.loaded_s);
        let work_s = (before + view.work_s * self.time_scale).min(self.work.seconds);
        // A process that hangs in the driver answers to no signal.
        if !view.hung {
            if asked.checkpoint.swap(false, Ordering::AcqRel) {
                self.save(work_s, log)?;
            }
            if asked.stop.load(Ordering::Acquire) {
                self.save(work_s, log)?;
                return Ok(Step::Over(128 + libc::SIGTERM as u8));
            }
        }
        memory.follow(client, &stage, work_s)?;
        if stage.trains && !view.busy {
            client.set_busy(true)?;
            return Ok(Step::Sleep(Duration::ZERO));
        }
        if work_s >= self.work.seconds - 1e-9 {
            if self.work.prints_oom {
                eprint!("{}", failure::survived());
            }
            log.finish()?;
            return Ok(Step::Over(0));
        }
        // A script that loads has nothing to tell: lines of progress are signs of training.
        let line_in =
            if stage.trains { log.progress(work_s, view.rate)? - work_s } else { f64::MAX };
        // Until the next line or the end, at the speed of this moment; until memory changes, on the clock.
        let line_in = line_in / (view.rate * self.time_scale).max(1e-12);
        let fleet_s = stage.next_in.map_or(line_in, |span| span.min(line_in));
        let host_s = clock.host_span_ns(fleet_s * 1e9).map_or(f64::INFINITY, |ns| ns / 1e9 + 1e-6);
        Ok(Step::Sleep(
            Duration::try_from_secs_f64(host_s).unwrap_or(LONGEST_SLEEP).min(LONGEST_SLEEP),
        ))
    }

    fn save(&self, work_s: f64, log: &mut Log) -> Result<(), TrainError> {
        let Some(file) = &self.checkpoint else { return Ok(()) };
        Checkpoint { task: self.work.name.clone(), work_s }.write(file)?;
        Ok(log.saved(file, work_s)?)
    }
}

/// Turns signals into requests and wakes the trainer.
fn listen(signals: Signals, asked: Arc<Asked>, emulator: Arc<Emulator>) {
    std::thread::spawn(move || {
        loop {
            match signals.wait(None) {
                Some(libc::SIGUSR1) => asked.checkpoint.store(true, Ordering::Release),
                Some(_) => asked.stop.store(true, Ordering::Release),
                None => continue,
            }
            emulator.nudge();
        }
    });
}
