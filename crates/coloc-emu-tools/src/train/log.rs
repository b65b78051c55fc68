//! The training log, as a script prints it.

use super::TrainError;
use super::checkpoint::Checkpoint;
use super::work::Work;
use coloc_emu::Place;
use coloc_emu::client::Client;
use std::io::{self, Write};
use std::path::Path;

/// The most lines of progress that a run prints.
const MOST_LINES: u64 = 100;

/// What was printed so far.
pub(super) struct Log {
    name: String,
    seconds: f64,
    iterations: u64,
    epochs: u32,
    batch: u32,
    gpus: u32,
    /// Lines of the whole run, and how many of them are done.
    lines: u64,
    printed: u64,
    rate: f64,
    /// Share that was done before this run.
    begun: f64,
}

impl Log {
    pub(super) fn new(work: &Work, resumed: Option<&Checkpoint>) -> Self {
        let done = resumed.map_or(0.0, |checkpoint| checkpoint.work_s / work.seconds);
        let lines = work.iterations().min(MOST_LINES);
        Log {
            name: work.name.clone(),
            seconds: work.seconds,
            iterations: work.iterations(),
            epochs: work.epochs.max(1),
            batch: work.batch,
            gpus: work.gpus,
            lines,
            printed: (done * lines as f64).floor() as u64,
            rate: 1.0,
            begun: done,
        }
    }

    /// Says what runs where.
    pub(super) fn start(&self, client: &Client, places: &[Place]) -> Result<(), TrainError> {
        let (state, slot) = client.lock()?;
        let mut names = Vec::new();
        for place in places {
            let gpu = state.live_gpu(place.gpu)?;
            names.push(match place.mig {
                Some(mig) => format!("{} {}", gpu.board().name, gpu.mig_name(mig)?),
                None => format!("{} ({})", gpu.board().name, gpu.uuid()),
            });
        }
        let mps = if state.view(slot)?.mps { " under MPS" } else { "" };
        drop(state);
        let Log { name, iterations, epochs, batch, .. } = self;
        Ok(line(&format!(
            "training {name} (emulated) on {}{mps}: {epochs} epochs, {iterations} iterations, batch {batch}, \
             from {:.1} %",
            names.join(", "),
            self.begun * 100.0,
        ))?)
    }

    /// Says that it does not train yet.
    pub(super) fn loading(&self) -> io::Result<()> {
        line("loading data")
    }

    /// Prints the line that is due, if one is. Returns the work at which the next one comes.
    pub(super) fn progress(&mut self, work_s: f64, rate: f64) -> io::Result<f64> {
        let share = (work_s / self.seconds).clamp(0.0, 1.0);
        // Waking a hair early must not cost a line.
        let due = (share * self.lines as f64 + 1e-9).floor() as u64;
        self.rate = rate;
        if due > self.printed {
            self.printed = due;
            line(&self.describe(share))?;
        }
        Ok(((due + 1) as f64 / self.lines as f64).min(1.0) * self.seconds)
    }

    fn describe(&self, share: f64) -> String {
        let done = (share * self.iterations as f64).floor() as u64;
        let epoch = ((share * f64::from(self.epochs)).floor() as u32 + 1).min(self.epochs);
        let speed =
            self.rate * self.iterations as f64 / self.seconds * f64::from(self.batch * self.gpus);
        format!(
            "epoch {epoch}/{} iter {done}/{} loss {:.4} {speed:.1} samples/s progress {:.0}%",
            self.epochs,
            self.iterations,
            loss(share),
            share * 100.0
        )
    }

    /// Says that it is over.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        if self.printed < self.lines {
            self.printed = self.lines;
            line(&self.describe(1.0))?;
        }
        line(&format!("training {} done", self.name))
    }

    /// Says where the checkpoint is.
    pub(super) fn saved(&self, file: &Path, work_s: f64) -> io::Result<()> {
        let share = work_s / self.seconds * 100.0;
        line(&format!("checkpoint {} at {share:.1} %", file.display()))
    }
}

/// A curve like any other: nothing is learned here.
fn loss(share: f64) -> f64 {
    0.4 + 6.5 * libm::exp(-4.0 * share)
}

/// One line, at once: a user who follows the log sees it now.
fn line(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}")?;
    out.flush()
}
