//! `coloc export`: what was measured of tasks, for other tools.

use crate::args::live::{Selection, SocketArg, resolve};
use crate::error::{CliError, UsageError};
use crate::output::mlflow::{Point, Run, Status, Store};
use crate::output::print_text;
use clap::{Args, Subcommand};
use coloc_api::client::Client;
use coloc_api::view::{SeriesView, TaskDetail};
use coloc_model::TaskState;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Write what was measured of tasks for other tools
#[derive(Args, Debug)]
pub(crate) struct Export {
    #[command(subcommand)]
    format: Format,
}

#[derive(Subcommand, Debug)]
enum Format {
    /// A folder that `mlflow ui --backend-store-uri DIR` shows: a run for each task, with what was measured over time
    Mlflow(Mlflow),
}

#[derive(Args, Debug)]
struct Mlflow {
    /// The tasks: 7, 3-9, 1,4-6, 12_3 of an array, last
    #[arg(value_name = "TASKS", required = true)]
    tasks: Vec<Selection>,
    /// The folder: a new or empty one, or one that MLflow has
    #[arg(long, value_name = "DIR", value_parser = crate::args::live::path())]
    to: PathBuf,
    /// The experiment that the runs belong to
    #[arg(long, value_name = "NAME", default_value = "coloc", value_parser = experiment)]
    experiment: String,
    #[command(flatten)]
    socket: SocketArg,
}

/// Tasks of one export: all are read before any is written.
const MOST_TASKS: usize = 64;
/// Values that are asked for of each series.
const POINTS: u32 = 2_000;
/// The longest name of an experiment.
const LONGEST_NAME: usize = 200;

/// Columns of a GPU's series by the names that radT logs them under, and how many of our units one of radT's is.
const AS_RADT: [(&str, &str, f64); 5] = [
    ("smact", "DCGMI - SM Active", 1.0),
    ("smocc", "DCGMI - SM Occupancy", 1.0),
    ("drama", "DCGMI - DRAM Active", 1.0),
    ("power_w", "SMI - Power Draw", 1.0),
    ("memory_bytes", "SMI - Mem Used", (1u64 << 20) as f64),
];

fn experiment(text: &str) -> Result<String, String> {
    let fits = !text.trim().is_empty() && text.len() <= LONGEST_NAME;
    match fits && !text.contains(char::is_control) {
        true => Ok(text.to_owned()),
        false => Err(format!("expected a name of at most {LONGEST_NAME} characters on one line")),
    }
}

impl Export {
    pub(crate) fn run(self) -> Result<(), CliError> {
        let Format::Mlflow(mlflow) = self.format;
        mlflow.run()
    }
}

impl Mlflow {
    fn run(self) -> Result<(), CliError> {
        if self.to.as_os_str().is_empty() {
            return Err(UsageError::flag("--to", "name a folder").into());
        }
        let store = Store::look(&self.to, &self.experiment)?;
        let mut client = self.socket.connect()?;
        let ids = resolve(&mut client, &self.tasks)?;
        if ids.len() > MOST_TASKS {
            let why = format!("at most {MOST_TASKS} at a time, not {}", ids.len());
            return Err(UsageError::flag("TASKS", why).into());
        }
        let mut runs = Vec::new();
        for id in ids {
            let task = client.show(id)?;
            runs.push((id, run_of(&mut client, &task)?));
        }
        for (id, run) in runs {
            let place = store.write(&run)?;
            let values: usize = run.metrics.iter().map(|(_, points)| points.len()).sum();
            let metrics = run.metrics.len();
            print_text(&format!(
                "Task {id}: {metrics} metrics, {values} values in {}",
                place.display()
            ))?;
        }
        Ok(())
    }
}

fn run_of(client: &mut Client, detail: &TaskDetail) -> Result<Run, CliError> {
    let task = &detail.task;
    let unseen = || {
        let why = format!("nothing was measured of task {}: it was not seen on a GPU", task.id);
        UsageError::flag("TASKS", why)
    };
    let first = task.first_started_s.or(task.started_s).ok_or_else(unseen)?;
    let mut metrics = measured(client, detail, first)?;
    if metrics.is_empty() {
        return Err(unseen().into());
    }
    let last = metrics.values().flatten().map(|point| point.at_ms).max();
    let end = task.ended_s.map(millis).or(last).unwrap_or_default();
    let totals = [
        ("energy_j", detail.energy_j),
        ("smact_mean", detail.smact_mean),
        ("peak_bytes", Some(task.peak_bytes as f64)),
        ("attempts", Some(f64::from(task.attempts))),
        ("ooms", Some(f64::from(task.ooms))),
    ];
    for (name, value) in totals {
        let point = value.map(|value| Point { at_ms: end, value, step: 0 });
        metrics.extend(point.map(|point| (format!("coloc/{name}"), vec![point])));
    }
    Ok(Run {
        identity: format!("{} {} {}", task.id, task.submitted_s, task.user),
        name: task.name.clone(),
        user: task.user.clone(),
        status: status(task.state),
        start_ms: millis(first),
        end_ms: task.ended_s.map(millis),
        params: params(detail),
        tags: tags(detail),
        metrics: metrics.into_iter().collect(),
    })
}

/// What was measured of the task, and of its GPUs while it had them.
fn measured(
    client: &mut Client,
    detail: &TaskDetail,
    first: f64,
) -> Result<BTreeMap<String, Vec<Point>>, CliError> {
    let task = &detail.task;
    let mut metrics: BTreeMap<String, Vec<Point>> = BTreeMap::new();
    let mut add = |name: String, points: Vec<Point>| {
        if !points.is_empty() {
            metrics.entry(name).or_default().extend(points);
        }
    };
    // A span ends after what it is asked for: a task may have run for less than a second.
    let until = |end: Option<f64>| end.map_or(f64::from(u32::MAX), |end| end + 1.0);
    let of = [format!("task:{}", task.id)];
    for series in client.series(&of, first - 1.0, until(task.ended_s), POINTS)?.series {
        for name in series.columns.keys() {
            add(format!("coloc/{name}"), points(&series, name, 1.0, first, (first, f64::MAX)));
        }
    }
    for attempt in &detail.attempts_list {
        let Some(began) = attempt.started_s else { continue };
        let span = (began, attempt.ended_s.unwrap_or(f64::MAX));
        let of: Vec<String> = attempt.gpus.iter().map(|gpu| format!("gpu:{gpu}")).collect();
        if of.is_empty() {
            continue;
        }
        for series in client.series(&of, began, until(attempt.ended_s), POINTS)?.series {
            // radT has one GPU a run; of a gang, each is told by its number.
            let which = match &attempt.gpus[..] {
                [_] => String::new(),
                _ => format!(" - {}", series.of.replace(':', " ").to_uppercase()),
            };
            for (column, name, unit) in AS_RADT {
                add(format!("system/{name}{which}"), points(&series, column, unit, first, span));
            }
        }
    }
    Ok(metrics)
}

/// The values of a column in a span; the step is seconds since the task's first start. What was not seen is left out.
fn points(
    series: &SeriesView,
    column: &str,
    unit: f64,
    first: f64,
    (from, to): (f64, f64),
) -> Vec<Point> {
    let values = series.columns.get(column).into_iter().flatten().enumerate();
    let point = |(index, value): (usize, &Option<f64>)| {
        let at = series.start_s + series.step_s * index as f64;
        let inside = at + series.step_s > from && at <= to;
        let step = (at - first).max(0.0).round() as u64;
        value.filter(|_| inside).map(|value| Point { at_ms: millis(at), value: value / unit, step })
    };
    values.filter_map(point).collect()
}

fn params(detail: &TaskDetail) -> Vec<(&'static str, String)> {
    let task = &detail.task;
    let command: Vec<_> = detail.command.iter().map(|word| word.to_string_lossy()).collect();
    let mut params = vec![
        ("command", command.join(" ")),
        ("directory", detail.directory.to_string_lossy().into_owned()),
        ("gpus", task.gpus.to_string()),
    ];
    let bytes = [
        ("gpu_mem_bytes", task.gpu_mem_bytes),
        ("estimate_bytes", task.estimate_bytes),
        ("bound_bytes", task.bound_bytes),
    ];
    params.extend(bytes.into_iter().filter_map(|(name, n)| n.map(|n| (name, n.to_string()))));
    params
}

fn tags(detail: &TaskDetail) -> Vec<(&'static str, String)> {
    let task = &detail.task;
    let gpus: Vec<String> = task.gpu_ids.iter().map(u32::to_string).collect();
    let program = detail.command.first().map(|word| word.to_string_lossy().into_owned());
    let mut tags = vec![
        ("mlflow.runName", task.name.clone()),
        ("mlflow.user", task.user.clone()),
        ("mlflow.source.name", program.unwrap_or_default()),
        ("mlflow.source.type", "LOCAL".to_owned()),
        ("coloc.task", task.id.to_string()),
        ("coloc.state", task.state.to_string()),
        ("coloc.gpus", gpus.join(",")),
    ];
    tags.extend(detail.energy_kind.clone().map(|kind| ("coloc.energy_kind", kind)));
    tags.extend(task.array_id.map(|id| ("coloc.array", id.to_string())));
    tags
}

fn millis(seconds: f64) -> u64 {
    (seconds.max(0.0) * 1000.0) as u64
}

fn status(state: TaskState) -> Status {
    match state {
        TaskState::Completed => Status::Finished,
        TaskState::Cancelled => Status::Killed,
        state if state.is_over() => Status::Failed,
        state if state.is_on_gpus() => Status::Running,
        _ => Status::Scheduled,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_seen_and_what_was_before_and_after_is_left_out() {
        let values = vec![Some(1.0), Some(2.0), None, Some(4.0), Some(5.0)];
        let columns = [("power_w".to_owned(), values)].into_iter().collect();
        let series = SeriesView { step_s: 10.0, start_s: 100.0, columns, ..SeriesView::default() };
        let found = points(&series, "power_w", 2.0, 105.0, (112.0, 130.0));
        let told: Vec<_> = found.iter().map(|p| (p.at_ms, p.value, p.step)).collect();
        assert_eq!(told, [(110_000, 1.0, 5), (130_000, 2.0, 25)]);
        assert_eq!(points(&series, "smact", 1.0, 0.0, (0.0, f64::MAX)), []);
    }

    #[test]
    fn names_of_experiments_have_an_end() {
        assert!(experiment("night runs").is_ok());
        for wrong in ["", "  ", "a\nb", &"x".repeat(LONGEST_NAME + 1)] {
            assert!(experiment(wrong).is_err(), "{wrong:?}");
        }
    }
}
