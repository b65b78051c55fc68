//! The page of `coloc compare`: policies over one trace and one fleet, side by side.

use super::frame;
use super::series::Curve;
use coloc_sim::{GpuSeries, Summary};
use serde::{Serialize, Serializer};

/// GPUs that are drawn one by one; the mean curves count all of them.
const GPUS_DRAWN: usize = 16;
/// Points of a curve in the page: more than a wide screen has columns, so that zooming still pays.
const POINTS_A_CURVE: usize = 3000;

/// What the page of a comparison shows.
#[derive(Clone, Debug, Default)]
pub(crate) struct ComparePage {
    /// Heading and window title.
    pub(crate) title: String,
    /// The trace that was replayed.
    pub(crate) trace: String,
    /// The fleet specification.
    pub(crate) fleet: String,
    /// What the numbers are, such as "predicted by the model, not measured".
    pub(crate) note: String,
    /// The devices, in the order that placements number them.
    pub(crate) gpus: Vec<Gpu>,
    /// Names of the task classes; `light`, `medium` and `heavy` have colours of their own.
    pub(crate) classes: Vec<String>,
    /// The policies; differences are against the first.
    pub(crate) runs: Vec<Run>,
}

/// A device of the fleet.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Gpu {
    /// Its name within the fleet, such as `gpu0`.
    pub(crate) name: String,
    /// Its model, such as `A100-40GB`.
    pub(crate) model: String,
    /// Memory that it has.
    pub(crate) memory_mib: f64,
    /// Power that it may draw.
    pub(crate) limit_w: f64,
}

/// A trace under one policy.
#[derive(Clone, Debug, Default)]
pub(crate) struct Run {
    /// The policy.
    pub(crate) name: String,
    /// Its figures.
    pub(crate) summary: Summary,
    /// What became of every task.
    pub(crate) tasks: Vec<TaskRecord>,
    /// What every GPU did, in the order of [`ComparePage::gpus`].
    pub(crate) series: Vec<GpuSeries>,
}

/// What became of a task.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct TaskRecord {
    /// Its id, the same in every run.
    pub(crate) id: u64,
    /// What it trains.
    pub(crate) name: String,
    /// Index into [`ComparePage::classes`].
    pub(crate) class: usize,
    /// When it came.
    #[serde(serialize_with = "milliseconds")]
    pub(crate) submit_s: f64,
    /// When it ended, if it did.
    #[serde(serialize_with = "maybe_milliseconds")]
    pub(crate) end_s: Option<f64>,
    /// Its run time alone on a GPU, where known: what a slow-down is measured against.
    #[serde(serialize_with = "maybe_milliseconds")]
    pub(crate) alone_s: Option<f64>,
    /// Every time that it was started.
    pub(crate) attempts: Vec<Attempt>,
}

/// One start of a task.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Attempt {
    /// When it started.
    #[serde(serialize_with = "milliseconds")]
    pub(crate) start_s: f64,
    /// When it stopped; for one that still runs, the end of the observation.
    #[serde(serialize_with = "milliseconds")]
    pub(crate) end_s: f64,
    /// Indices into [`ComparePage::gpus`].
    pub(crate) gpus: Vec<usize>,
    /// Why it stopped.
    pub(crate) outcome: Outcome,
}

/// Why an attempt stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    /// The task is done.
    Completed,
    /// The GPU had no memory left for it.
    OutOfMemory,
    /// Its GPUs went to another; it goes on later.
    Preempted,
}

/// The page for a comparison, complete.
pub(crate) fn compare_page(data: &ComparePage) -> String {
    let scripts = [
        include_str!("gantt.js"),
        include_str!("timeline.js"),
        include_str!("distribution.js"),
        include_str!("compare.js"),
    ];
    frame::page(&data.title, &Embedded::of(data), &scripts)
}

/// The data as the page carries it: curves thinned, and the GPUs of a large fleet reduced to a mean.
#[derive(Serialize)]
struct Embedded<'a> {
    title: &'a str,
    trace: &'a str,
    fleet: &'a str,
    note: &'a str,
    gpus: &'a [Gpu],
    /// How many of `gpus` are drawn one by one.
    gpus_drawn: usize,
    classes: &'a [String],
    runs: Vec<EmbeddedRun<'a>>,
}

#[derive(Serialize)]
struct EmbeddedRun<'a> {
    name: &'a str,
    summary: &'a Summary,
    tasks: &'a [TaskRecord],
    series: Vec<GpuSeries>,
    mean: GpuSeries,
}

impl<'a> Embedded<'a> {
    fn of(data: &'a ComparePage) -> Self {
        let gpus_drawn = data.gpus.len().min(GPUS_DRAWN);
        let runs = data
            .runs
            .iter()
            .map(|run| EmbeddedRun {
                name: &run.name,
                summary: &run.summary,
                tasks: &run.tasks,
                series: (run.series.iter().take(gpus_drawn))
                    .map(|series| series.thinned(POINTS_A_CURVE))
                    .collect(),
                mean: GpuSeries::mean(&run.series).thinned(POINTS_A_CURVE),
            })
            .collect();
        Embedded {
            title: &data.title,
            trace: &data.trace,
            fleet: &data.fleet,
            note: &data.note,
            gpus: &data.gpus,
            gpus_drawn,
            classes: &data.classes,
            runs,
        }
    }
}

fn milliseconds<S: Serializer>(seconds: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64((seconds * 1e3).round() / 1e3)
}

fn maybe_milliseconds<S: Serializer>(value: &Option<f64>, to: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(seconds) => milliseconds(seconds, to),
        None => to.serialize_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_task_is_written_as_the_page_reads_it() {
        let attempt = Attempt {
            start_s: 1.00049,
            end_s: 2.0,
            gpus: vec![0, 3],
            outcome: Outcome::OutOfMemory,
        };
        let task = TaskRecord { id: 7, attempts: vec![attempt], ..TaskRecord::default() };
        assert_eq!(
            serde_json::to_value(task).unwrap(),
            json!({"id": 7, "name": "", "class": 0, "submit_s": 0.0, "end_s": null, "alone_s": null,
                   "attempts": [{"start_s": 1.0, "end_s": 2.0, "gpus": [0, 3],
                                 "outcome": "out_of_memory"}]})
        );
    }

    #[test]
    fn a_large_fleet_carries_sixteen_gpus_and_the_mean_of_all() {
        let gpu = |sm: f64| GpuSeries {
            t_s: vec![0.0],
            sm: vec![sm],
            memory_mib: vec![0.0],
            power_w: vec![50.0],
        };
        let series = (0..60).map(|index| gpu(if index < 30 { 0.0 } else { 1.0 })).collect();
        let run = Run { series, ..Run::default() };
        let page =
            ComparePage { gpus: vec![Gpu::default(); 60], runs: vec![run], ..Default::default() };
        let embedded = Embedded::of(&page);
        assert_eq!((embedded.gpus_drawn, embedded.runs[0].series.len()), (16, 16));
        assert_eq!(embedded.runs[0].mean.sm, [0.5]);
    }
}
