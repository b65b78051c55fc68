//! A full record of a run, for drawing.

use crate::engine::Observer;
use coloc_model::{GpuSignal, Slot, TaskId, Time};
use serde::Serialize;

/// How one attempt at a task ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptEnd {
    /// It finished its work.
    Completed,
    /// The device had no room.
    OutOfMemory,
    /// It was preempted and will go on later.
    Preempted,
}

/// One attempt at a task.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Attempt {
    /// The task.
    pub task: TaskId,
    /// Launched at, in seconds.
    pub start_s: f64,
    /// Ended at, in seconds.
    pub end_s: f64,
    /// On these GPUs.
    pub gpus: Vec<u32>,
    /// How it ended.
    pub outcome: AttemptEnd,
}

/// One GPU over time: each value holds from its time until the next.
#[derive(Clone, PartialEq, Default, Debug, Serialize)]
pub struct GpuSeries {
    /// When the values changed, in seconds.
    pub t_s: Vec<f64>,
    /// SM activity.
    pub sm: Vec<f64>,
    /// Memory in use.
    pub memory_mib: Vec<f64>,
    /// Power draw.
    pub power_w: Vec<f64>,
}

/// Everything that happened in a run.
#[derive(Clone, PartialEq, Default, Debug, Serialize)]
pub struct Timeline {
    /// Attempts in the order in which they ended.
    pub attempts: Vec<Attempt>,
    /// One series a GPU.
    pub gpus: Vec<GpuSeries>,
}

impl Timeline {
    /// An empty record for a fleet of this size.
    pub fn new(gpus: usize) -> Self {
        Timeline { attempts: Vec::new(), gpus: vec![GpuSeries::default(); gpus] }
    }
}

impl Observer for Timeline {
    fn sees_gpus(&self) -> bool {
        true
    }

    fn gpu_changed(&mut self, now: Time, gpu: usize, signal: &GpuSignal, watts: f64) {
        let series = &mut self.gpus[gpu];
        let values = (signal.activity.sm.get(), signal.used.mib(), watts);
        if series.t_s.last() == Some(&now.secs()) {
            // Several changes at one moment: the last one is what holds.
            series.t_s.pop();
            series.sm.pop();
            series.memory_mib.pop();
            series.power_w.pop();
        }
        series.t_s.push(now.secs());
        series.sm.push(values.0);
        series.memory_mib.push(values.1);
        series.power_w.push(values.2);
    }

    fn attempt_ended(
        &mut self,
        task: TaskId,
        started: Time,
        now: Time,
        slots: &[Slot],
        outcome: AttemptEnd,
    ) {
        self.attempts.push(Attempt {
            task,
            start_s: started.secs(),
            end_s: now.secs(),
            gpus: slots.iter().map(|slot| slot.gpu.0).collect(),
            outcome,
        });
    }
}
