//! `coloc agree`: one trace live and simulated, side by side.

mod side_by_side;

use crate::args::input::{TraceFormat, read_fleet, read_trace};
use crate::args::policy::{PlaceFlag, PolicyArgs, PresetFlag, QueueFlag, ShareFlag};
use crate::error::{CliError, UsageError};
use crate::live::emulated_daemon::EmulatedDaemon;
use crate::live::replay::{Replay, Replayed};
use crate::output::table::table;
use crate::output::{Answer, print_text};
use clap::{Args, ValueEnum};
use coloc_model::Fleet;
use coloc_sim::{Simulation, Summary, Timeline, Trace, trace};
use serde::Serialize;
use side_by_side::{Played, Simulated, Stays};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How often the daemons are looked at.
const LOOK: Duration = Duration::from_millis(500);
/// Memory that is mounted as a file system: how fast a disk is has no part in what is compared.
const IN_MEMORY: &str = "/dev/shm";

/// Play a trace on daemons with emulated GPUs and in the simulator, and compare
#[derive(Args, Debug)]
pub(crate) struct Agree {
    /// The trace to play [default: the 90 tasks of the demo]
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Format of the trace
    #[arg(long, value_enum, default_value = "coloc")]
    format: TraceFormat,
    /// Only the first tasks of it
    #[arg(long, value_name = "N")]
    tasks: Option<usize>,
    /// The emulated machine
    #[arg(long, value_name = "SPEC", default_value = "4xA100-40GB")]
    fleet: String,
    /// With one task a GPU, or collocated as the preset coloc does [default: both]
    #[arg(long, value_enum, value_delimiter = ',')]
    policies: Vec<Which>,
    /// How many seconds pass for tasks in one second
    #[arg(long, value_name = "X", default_value_t = 200.0)]
    time_scale: f64,
    /// The most that makespans may differ, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 5.0)]
    tolerance: f64,
    /// Write when each task started and ended, live and simulated, as CSV
    #[arg(long, value_name = "OUT.csv")]
    jobs: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Which policy.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
enum Which {
    /// One task a GPU, in order of arrival
    Exclusive,
    /// Shared, as the preset coloc does
    Collocated,
}

/// A policy as the daemon and the simulator are told it.
struct Told {
    which: Which,
    name: &'static str,
    flags: &'static [&'static str],
    args: PolicyArgs,
}

#[derive(Serialize)]
struct Body {
    tasks: usize,
    fleet: String,
    time_scale: f64,
    tolerance_percent: f64,
    agrees: bool,
    policies: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    name: &'static str,
    /// Makespan live over makespan simulated, less one.
    makespan_difference: f64,
    jct_difference: f64,
    live: Replayed,
    simulated: Summary,
}

impl Agree {
    pub(crate) fn run(self) -> Result<(), CliError> {
        if !(self.time_scale.is_finite() && (0.01..=1000.0).contains(&self.time_scale)) {
            let given = self.time_scale;
            return Err(UsageError::value("--time-scale", "0.01 to 1000", given).into());
        }
        let (trace, fleet) = (self.load()?, read_fleet(&self.fleet)?);
        let asked = |told: &Told| self.policies.is_empty() || self.policies.contains(&told.which);
        let policies: Vec<Told> = both().into_iter().filter(asked).collect();
        let simulated: Vec<Simulated> =
            policies.iter().map(|told| simulate(told, &trace, &fleet)).collect::<Result<_, _>>()?;
        let in_memory = Path::new(IN_MEMORY).is_dir().then(|| PathBuf::from(IN_MEMORY));
        let place = in_memory.unwrap_or_else(std::env::temp_dir);
        let place = place.join(format!("coloc-agree-{}", std::process::id()));
        let live = self.play(&place, &policies, &trace);
        let _ = std::fs::remove_dir_all(&place);
        let live = live?;
        if let Some(file) = &self.jobs {
            let names = policies.iter().map(|told| told.name);
            side_by_side::write(file, &trace, names.zip(&simulated).zip(&live))?;
        }
        let row = |((told, simulated), live): ((&Told, Simulated), Played)| Row {
            name: told.name,
            makespan_difference: live.sum.makespan_s / simulated.summary.makespan_s - 1.0,
            jct_difference: live.sum.jct_mean_s / simulated.summary.jct_mean_s - 1.0,
            live: live.sum,
            simulated: simulated.summary,
        };
        let rows: Vec<Row> = policies.iter().zip(simulated).zip(live).map(row).collect();
        self.tell(&fleet, rows)
    }

    fn load(&self) -> Result<Trace, CliError> {
        let whole = match &self.trace {
            Some(file) => read_trace(file, self.format)?,
            None => trace::mix90(),
        };
        let most = self.tasks.unwrap_or(usize::MAX).clamp(1, whole.tasks().len());
        let tasks = whole.tasks()[..most].to_vec();
        Ok(Trace::new(tasks, whole.names().clone(), whole.users().clone()))
    }

    /// Plays the trace on a daemon for each policy, all at once: they mostly sleep.
    fn play(
        &self,
        place: &Path,
        policies: &[Told],
        trace: &Trace,
    ) -> Result<Vec<Played>, CliError> {
        let interrupted = Arc::new(AtomicBool::new(false));
        for signal in [2, 15] {
            let _ = crate::signals::note_signal(signal, &interrupted);
        }
        let mut daemons = Vec::new();
        let mut outcome = Ok(Vec::new());
        for told in policies {
            match EmulatedDaemon::open(place, told.name, &self.fleet, self.time_scale, told.flags) {
                Ok(daemon) => daemons.push(daemon),
                Err(error) => outcome = Err(error),
            }
        }
        if outcome.is_ok() {
            outcome = watch(&mut daemons, trace, self.time_scale, &interrupted);
        }
        for daemon in daemons {
            let _ = daemon.close();
        }
        outcome
    }

    fn tell(&self, fleet: &Fleet, rows: Vec<Row>) -> Result<(), CliError> {
        let within = |row: &Row| {
            row.makespan_difference.abs() * 100.0 <= self.tolerance
                && row.live.completed == row.simulated.completed
        };
        let agrees = rows.iter().all(within);
        let (fleet, tasks) = (fleet.to_string(), rows.first().map_or(0, |row| row.live.tasks));
        if self.json {
            let body = Body {
                tasks,
                fleet,
                time_scale: self.time_scale,
                tolerance_percent: self.tolerance,
                agrees,
                policies: rows,
            };
            Answer { body: &body, wall_s: None }.print()?;
        } else {
            print_text(&format!(
                "{tasks} tasks on {fleet}: emulated GPUs and real processes at {} times the speed of life, against the simulator\n\n{}",
                self.time_scale,
                render(&rows)
            ))?;
        }
        if agrees {
            return Ok(());
        }
        Err(CliError::Refused(format!(
            "live and simulated makespans differ by more than {} %, or not all tasks completed",
            self.tolerance
        )))
    }
}

/// One task a GPU, and ours. A daemon without a preset has ours, so that is what the simulator gets too.
fn both() -> [Told; 2] {
    let ours = PolicyArgs { preset: Some(PresetFlag::Coloc), ..PolicyArgs::default() };
    let exclusive = PolicyArgs {
        queue: Some(QueueFlag::Fifo),
        place: Some(PlaceFlag::Exclusive),
        share: Some(ShareFlag::Exclusive),
        ..ours.clone()
    };
    let flags = &["--queue", "fifo", "--place", "exclusive", "--share", "exclusive"];
    [
        Told { which: Which::Exclusive, name: "exclusive", flags, args: exclusive },
        Told {
            which: Which::Collocated,
            name: "collocated",
            flags: &["--preset", "coloc"],
            args: ours,
        },
    ]
}

fn simulate(told: &Told, trace: &Trace, fleet: &Fleet) -> Result<Simulated, CliError> {
    let simulation = Simulation::new(fleet.clone(), told.args.policy(), told.args.estimator());
    let mut timeline = Timeline::new(fleet.len());
    let (summary, _) = simulation.run(trace, &mut timeline)?;
    Ok(Simulated { summary, stays: Stays::of_timeline(trace.tasks().len(), &timeline) })
}

/// Submits what is due on each stage until all tasks have ended.
fn watch(
    daemons: &mut [EmulatedDaemon],
    trace: &Trace,
    time_scale: f64,
    interrupted: &AtomicBool,
) -> Result<Vec<Played>, CliError> {
    let mut replays: Vec<Replay<'_>> =
        daemons.iter().map(|_| Replay::new(trace, time_scale)).collect();
    loop {
        let (mut over, mut pause) = (true, LOOK);
        for (replay, daemon) in replays.iter_mut().zip(&mut *daemons) {
            match replay.step(&mut daemon.client)? {
                Some(wait) => {
                    (over, pause) = (false, pause.min(wait));
                }
                None => over &= daemon.client.status()?.tasks == 0,
            }
        }
        if over {
            break;
        }
        if interrupted.load(Ordering::Relaxed) {
            return Err(CliError::Refused("interrupted; everything was stopped".to_owned()));
        }
        std::thread::sleep(pause);
    }
    let sum_up = |(replay, daemon): (&Replay<'_>, &mut EmulatedDaemon)| {
        let tasks = replay.tasks(&mut daemon.client)?;
        Ok(Played { sum: replay.sum_up(&tasks), stays: Stays::of_replay(replay, &tasks) })
    };
    replays.iter().zip(daemons).map(sum_up).collect()
}

fn render(rows: &[Row]) -> String {
    let header = ["policy", "done", "makespan", "", "", "mean JCT", "", "", "OOMs", ""];
    let names = ["", "", "live", "simulated", "difference", "live", "simulated", "difference"];
    let names = names.iter().chain(&["live", "simulated"]).map(|&name| name.to_owned());
    let minutes = |seconds: f64| format!("{:.1} min", seconds / 60.0);
    let percent = |share: f64| format!("{:+.1} %", share * 100.0);
    let row = |row: &Row| {
        vec![
            row.name.to_owned(),
            format!("{}/{}", row.live.completed, row.live.tasks),
            minutes(row.live.makespan_s),
            minutes(row.simulated.makespan_s),
            percent(row.makespan_difference),
            minutes(row.live.jct_mean_s),
            minutes(row.simulated.jct_mean_s),
            percent(row.jct_difference),
            row.live.oom_count.to_string(),
            row.simulated.oom_count.to_string(),
        ]
    };
    table(&header, std::iter::once(names.collect()).chain(rows.iter().map(row)))
}
