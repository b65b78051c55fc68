//! What was measured of GPUs and tasks over time. The owner adds what the monitor saw, requests read it, and it is written to the state
//! directory now and then, so that a restart goes on with it.

mod file;
mod tiers;

pub use file::keep;

use crate::hardware::Sighting;
use coloc_api::moment::Moment;
use coloc_api::view::{GpuView, SeriesView, TimelineForeign};
use coloc_gpu::process::Owner as ProcessOwner;
use coloc_model::TaskId;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tiers::{GAP, Tiers};

/// Tasks that are measured at a time; more run without a series.
const MOST_TASKS: usize = 2048;
/// Foreign processes that are remembered.
const MOST_FOREIGN: usize = 2048;
/// Values of each column that are kept of a task that has ended.
const KEPT_OF_TASK: usize = 240;
/// What one step of memory is.
const MEMORY_STEP: f64 = (8u64 << 20) as f64;
/// What one step of power is, in watts.
const POWER_STEP: f64 = 0.1;
/// Steps of a share.
const SHARE_STEPS: f64 = 65_534.0;

/// A column: its name, and what one step of it is.
type Column = (&'static str, f64);

const GPU: [Column; 6] = [
    ("memory_bytes", MEMORY_STEP),
    ("promised_bytes", MEMORY_STEP),
    ("smact", 1.0 / SHARE_STEPS),
    ("smocc", 1.0 / SHARE_STEPS),
    ("drama", 1.0 / SHARE_STEPS),
    ("power_w", POWER_STEP),
];
const TASK: [Column; 3] = [
    ("memory_bytes", MEMORY_STEP),
    ("promised_bytes", MEMORY_STEP),
    ("sm_share", 1.0 / SHARE_STEPS),
];

fn steps(value: Option<f64>, (_, step): Column) -> u16 {
    value.map_or(GAP, |value| (value / step).round().clamp(0.0, SHARE_STEPS) as u16)
}

/// What is kept, by GPU and by task.
#[derive(Default, Debug)]
pub struct Series(Mutex<Kept>);

#[derive(Default, Debug, Serialize, Deserialize)]
struct Kept {
    /// The GPUs by name: their numbers may change with a restart.
    gpus: BTreeMap<String, Tiers>,
    /// Their names in their order.
    #[serde(skip)]
    order: Vec<String>,
    tasks: BTreeMap<TaskId, Tiers>,
    foreign: VecDeque<TimelineForeign>,
}

fn view(
    of: String,
    columns: &[Column],
    tiers: &Tiers,
    from: u64,
    to: u64,
    points: usize,
) -> Option<SeriesView> {
    let cut = tiers.cut(from, to, points)?;
    let named = |all: Vec<Vec<Option<f64>>>| {
        let scaled = all.into_iter().zip(columns).map(|(values, (name, step))| {
            let values = values.into_iter().map(|value| value.map(|value| value * step));
            ((*name).to_owned(), values.collect())
        });
        scaled.collect()
    };
    Some(SeriesView {
        of,
        step_s: cut.step as f64,
        start_s: cut.start as f64,
        columns: named(cut.mean),
        max: named(cut.max),
    })
}

impl Series {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        // No thread leaves it half changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds what the monitor saw, and what was promised then.
    pub(crate) fn add(&self, now: Moment, gpus: &[GpuView], sighting: &Sighting) {
        let second = now.0 / 1000;
        let mut kept = self.kept();
        kept.order = gpus.iter().map(|gpu| gpu.uuid.clone()).collect();
        let mut tasks: BTreeMap<u32, [Option<f64>; 3]> = BTreeMap::new();
        for gpu in gpus {
            let seen = gpu.source.is_some() || gpu.power_w.is_some();
            let values = [
                seen.then_some(gpu.memory_used_bytes as f64),
                Some(gpu.memory_promised_bytes as f64),
                seen.then_some(gpu.smact),
                gpu.smocc,
                gpu.drama,
                gpu.power_w,
            ];
            let values: Vec<u16> = values.into_iter().zip(GPU).map(|(v, c)| steps(v, c)).collect();
            let tiers = kept.gpus.entry(gpu.uuid.clone()).or_insert_with(|| Tiers::new(GPU.len()));
            tiers.add(second, &values);
            for resident in &gpu.residents {
                // Of a gang, the GPU where it holds most.
                let values = tasks.entry(resident.id).or_default();
                let max = |a: Option<f64>, b: Option<f64>| a.into_iter().chain(b).reduce(f64::max);
                values[0] = max(values[0], resident.used_bytes.map(|used| used as f64));
                values[1] = max(values[1], Some(resident.promised_bytes as f64));
                values[2] = max(values[2], resident.sm_share);
            }
        }
        for (task, values) in tasks {
            let room = kept.tasks.len() < MOST_TASKS;
            if let Some(tiers) = match kept.tasks.get_mut(&TaskId(task)) {
                None if room => {
                    Some(kept.tasks.entry(TaskId(task)).or_insert(Tiers::new(TASK.len())))
                }
                known => known,
            } {
                let values: Vec<u16> =
                    values.into_iter().zip(TASK).map(|(v, c)| steps(v, c)).collect();
                tiers.add(second, &values);
            }
        }
        kept.see_foreign(now, sighting);
    }

    /// A task has ended: what is kept of it for good, if it was ever seen.
    pub(crate) fn finish(&self, task: TaskId) -> Option<SeriesView> {
        let tiers = self.kept().tasks.remove(&task)?;
        view(format!("task:{task}"), &TASK, &tiers, 0, u64::MAX, KEPT_OF_TASK)
    }

    /// At most so many values of a GPU between two times.
    pub(crate) fn gpu(&self, gpu: usize, from: u64, to: u64, points: usize) -> Option<SeriesView> {
        let kept = self.kept();
        let tiers = kept.order.get(gpu).and_then(|uuid| kept.gpus.get(uuid))?;
        view(format!("gpu:{gpu}"), &GPU, tiers, from, to, points)
    }

    /// The same of a task that has not ended.
    pub(crate) fn task(
        &self,
        task: TaskId,
        from: u64,
        to: u64,
        points: usize,
    ) -> Option<SeriesView> {
        let kept = self.kept();
        view(format!("task:{task}"), &TASK, kept.tasks.get(&task)?, from, to, points)
    }

    /// Processes that are not tasks, in a span of time.
    pub(crate) fn foreign(&self, from: f64, to: f64) -> Vec<TimelineForeign> {
        let kept = self.kept();
        let inside = |span: &&TimelineForeign| {
            span.from_s <= to && span.to_s.is_none_or(|ended| ended >= from)
        };
        kept.foreign.iter().filter(inside).cloned().collect()
    }
}

impl Kept {
    /// Notes which processes that are not tasks came and went.
    fn see_foreign(&mut self, now: Moment, sighting: &Sighting) {
        let mut there = Vec::new();
        for sample in &sighting.samples {
            let foreign = sample.processes.iter();
            for process in foreign.filter(|p| p.attributed.owner == ProcessOwner::Foreign) {
                there.push((sample.id.0, process.process.pid, process.attributed.user.clone()));
            }
        }
        for span in self.foreign.iter_mut().filter(|span| span.to_s.is_none()) {
            match there.iter().position(|(gpu, pid, _)| *gpu == span.gpu && *pid == span.pid) {
                Some(known) => drop(there.swap_remove(known)),
                None => span.to_s = Some(now.secs()),
            }
        }
        for (gpu, pid, user) in there {
            let from_s = now.secs();
            self.foreign.push_back(TimelineForeign { gpu, user, pid, from_s, to_s: None });
        }
        while self.foreign.len() > MOST_FOREIGN {
            self.foreign.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use coloc_api::view::ResidentView;

    fn gpu(used: u64) -> GpuView {
        let resident = ResidentView {
            id: 7,
            used_bytes: Some(used / 2),
            promised_bytes: used,
            sm_share: Some(0.25),
            ..ResidentView::default()
        };
        GpuView {
            uuid: "GPU-a".to_owned(),
            memory_used_bytes: used,
            smact: 0.5,
            power_w: Some(250.3),
            residents: vec![resident],
            ..GpuView::default()
        }
    }

    #[test]
    fn what_is_seen_is_read_back_and_a_tasks_end_takes_it_along() {
        let series = Series::default();
        for second in 0..10 {
            series.add(
                Moment(1_800_000_000_000 + second * 1000),
                &[gpu(8 << 30)],
                &Sighting::default(),
            );
        }
        let seen = series.gpu(0, 0, u64::MAX, 600).unwrap();
        assert_eq!(
            (seen.of.as_str(), seen.columns["memory_bytes"][0]),
            ("gpu:0", Some((8u64 << 30) as f64))
        );
        let close = |value: Option<f64>, to: f64| {
            value.is_some_and(|value| (value - to).abs() < 1e-4 * to.max(1.0))
        };
        assert!(close(seen.columns["smact"][0], 0.5) && close(seen.max["power_w"][0], 250.3));
        assert_eq!(seen.columns["smocc"][0], None, "nothing told it");
        assert_eq!(series.gpu(1, 0, u64::MAX, 600), None);
        let ended = series.finish(TaskId(7)).unwrap();
        assert!(close(ended.columns["sm_share"][0], 0.25), "{ended:?}");
        assert!(ended.columns["memory_bytes"].len() <= KEPT_OF_TASK);
        assert_eq!(series.task(TaskId(7), 0, u64::MAX, 600), None);
    }
}
