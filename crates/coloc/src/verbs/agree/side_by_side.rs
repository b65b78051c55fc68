//! When and where each task ran, live and simulated: the first difference explains the later ones.

use crate::error::CliError;
use crate::live::replay::{Replay, Replayed};
use crate::output::files;
use coloc_api::view::TaskView;
use coloc_sim::{Attempt, Summary, Timeline, Trace};
use std::path::Path;

/// A trace as the simulator played it.
pub(super) struct Simulated {
    pub(super) summary: Summary,
    pub(super) stays: Stays,
}

/// A trace as a daemon played it.
pub(super) struct Played {
    pub(super) sum: Replayed,
    pub(super) stays: Stays,
}

/// A task's last attempt, in seconds since the first submission.
#[derive(Clone, Default)]
struct Stay {
    start_s: f64,
    end_s: f64,
    gpus: Vec<u32>,
}

/// The last attempts of all tasks of a trace.
pub(super) struct Stays(Vec<Option<Stay>>);

impl Stays {
    /// Of a simulated trace with so many tasks.
    pub(super) fn of_timeline(tasks: usize, timeline: &Timeline) -> Self {
        let mut stays = vec![None; tasks];
        for Attempt { task, start_s, end_s, gpus, .. } in &timeline.attempts {
            let (start_s, end_s, gpus) = (*start_s, *end_s, gpus.clone());
            stays[task.index()] = Some(Stay { start_s, end_s, gpus });
        }
        Stays(stays)
    }

    pub(super) fn of_replay(replay: &Replay<'_>, tasks: &[TaskView]) -> Self {
        let stay = |id: &u32| {
            let task = tasks.iter().find(|task| task.id == *id)?;
            let since = |moment: Option<f64>| Some(replay.since_first(moment?));
            Some(Stay {
                start_s: since(task.started_s)?,
                end_s: since(task.ended_s)?,
                gpus: task.gpu_ids.clone(),
            })
        };
        Stays(replay.ids().iter().map(stay).collect())
    }
}

const HEADER: [&str; 10] = [
    "policy",
    "id",
    "task",
    "submit_s",
    "live_start_s",
    "live_end_s",
    "live_gpus",
    "simulated_start_s",
    "simulated_end_s",
    "simulated_gpus",
];

/// Writes one line a task and policy.
pub(super) fn write<'a>(
    file: &Path,
    trace: &Trace,
    policies: impl Iterator<Item = ((&'static str, &'a Simulated), &'a Played)>,
) -> Result<(), CliError> {
    files::write(file, |output| {
        let mut table = csv::Writer::from_writer(output);
        table.write_record(HEADER)?;
        for ((name, simulated), live) in policies {
            let stays = live.stays.0.iter().zip(&simulated.stays.0);
            for (id, (task, (live, simulated))) in trace.tasks().iter().zip(stays).enumerate() {
                let what = [name.to_owned(), id.to_string(), trace.name(task).to_owned()];
                let submit = [seconds(task.submit.secs())];
                let ran = [live, simulated].map(|stay| cells(stay.as_ref())).concat();
                table.write_record(what.into_iter().chain(submit).chain(ran))?;
            }
        }
        table.flush()
    })
}

fn cells(stay: Option<&Stay>) -> Vec<String> {
    let Some(Stay { start_s, end_s, gpus }) = stay else { return vec![String::new(); 3] };
    let gpus: Vec<String> = gpus.iter().map(u32::to_string).collect();
    vec![seconds(*start_s), seconds(*end_s), gpus.join(" ")]
}

fn seconds(seconds: f64) -> String {
    format!("{seconds:.3}")
}
