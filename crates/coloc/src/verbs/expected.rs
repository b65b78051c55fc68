//! `coloc queue --expected`: when tasks will start and end.

use crate::error::CliError;
use crate::output::print_text;
use crate::output::table::words;
use crate::verbs::queue::{clock, id_text};
use coloc_api::client::{Client, Wanted};
use coloc_api::moment::Moment;
use coloc_api::view::{Expected, TaskView};
use std::collections::BTreeMap;

/// A table of the tasks that are meant.
pub(crate) fn print(
    client: &mut Client,
    wanted: &Wanted<'_>,
    meant: impl Fn(&TaskView) -> bool,
) -> Result<(), CliError> {
    let foreseen = client.all_expected()?.tasks.into_iter();
    let foreseen: BTreeMap<u32, Expected> = foreseen.map(|each| (each.id, each)).collect();
    let mut tasks: Vec<TaskView> = Vec::new();
    client.each_task(wanted, |task| tasks.push(task.owned()))?;
    tasks.retain(|task| meant(task) && foreseen.contains_key(&task.id));
    let now = Moment::now().secs();
    let row = |task: &TaskView| {
        let expected = &foreseen[&task.id];
        vec![
            id_text(task),
            task.name.clone(),
            task.user.clone(),
            task.state.to_string(),
            when(expected.expected_start_s, now),
            match expected.expected_end_s {
                Some(end) if is_at_its_limit(task, end) => format!("limit {}", clock(end - now)),
                end => when(end, now),
            },
            expected.expected_basis.clone(),
        ]
    };
    let header = ["ID", "NAME", "USER", "STATE", "START", "END", "BASIS"];
    print_text(&words(&header, tasks.iter().map(row), &SPARE))
}

/// On a narrow terminal: the basis, the user, the state.
const SPARE: [usize; 3] = [6, 2, 3];

/// Whether the expected end of a running task is only its time limit: the latest, not the likely.
pub(crate) fn is_at_its_limit(task: &TaskView, end: f64) -> bool {
    let limit = task.started_s.zip(task.time_limit_s).filter(|_| task.state.is_on_gpus());
    limit.is_some_and(|(started, limit)| (started + limit - end).abs() < 1.0)
}

/// How long until then, or since.
fn when(at: Option<f64>, now: f64) -> String {
    match at.map(|at| at - now) {
        None => "unknown".to_owned(),
        Some(left) if left >= 0.0 => format!("in {}", clock(left)),
        Some(past) => format!("{} ago", clock(-past)),
    }
}
