//! Which tasks are listed, and in which order.

use super::app::{App, Data, Filter, Sort};
use coloc_api::view::TaskView;
use coloc_model::TaskState;

/// From so many on, waiting tasks of an array take one row.
const SEVERAL: usize = 3;

/// A row of the list: a task, or waiting tasks of an array.
#[derive(Clone, Debug)]
pub(super) struct Row<'a> {
    /// The task, or the first of them.
    pub(super) task: &'a TaskView,
    /// All of them.
    pub(super) ids: Vec<u32>,
}

/// Whether a task waits.
pub(super) fn waits(task: &TaskView) -> bool {
    !task.state.is_over() && !task.state.is_on_gpus()
}

fn is_shown(app: &App, data: &Data, task: &TaskView) -> bool {
    let fits = match app.filter {
        Filter::All | Filter::Ended => true,
        Filter::Yours => task.user == data.status.user,
        Filter::Running => task.state.is_on_gpus(),
        Filter::Waiting => waits(task),
    };
    fits && is_found(&app.find, task)
}

/// Whether the list has a task.
pub(super) fn is_listed(app: &App, task: &TaskView) -> bool {
    (app.filter == Filter::Ended) == task.state.is_over() && is_shown(app, app.shown(), task)
}

fn is_found(find: &str, task: &TaskView) -> bool {
    let find = find.to_lowercase();
    find.is_empty()
        || task.name.to_lowercase().contains(&find)
        || task.user.to_lowercase().contains(&find)
        || task.id.to_string().starts_with(&find)
        || task.reason_code.is_some_and(|code| code.name() == find)
}

/// How many tasks a filter has.
pub(super) fn count(app: &App, filter: Filter) -> usize {
    let data = app.shown();
    match filter {
        Filter::Ended => data.ended.len(),
        filter => {
            let app = App { filter, find: String::new(), ..App::new(app.clock) };
            data.tasks.values().filter(|task| is_shown(&app, data, task)).count()
        }
    }
}

/// The rows of the list.
pub(super) fn rows(app: &App) -> Vec<Row<'_>> {
    let data = app.shown();
    let tasks = if app.filter == Filter::Ended { &data.ended } else { &data.tasks };
    let mut tasks: Vec<&TaskView> =
        tasks.values().filter(|task| is_shown(app, data, task)).collect();
    sort(app, data, &mut tasks);
    let mut rows: Vec<Row<'_>> = Vec::with_capacity(tasks.len());
    for task in tasks {
        match rows.last_mut() {
            Some(row) if are_alike(row.task, task) => row.ids.push(task.id),
            _ => rows.push(Row { task, ids: vec![task.id] }),
        }
    }
    spread(rows, data)
}

/// Waiting tasks of one array that wait for the same.
fn are_alike(a: &TaskView, b: &TaskView) -> bool {
    let waiting = |task: &TaskView| task.state == TaskState::Pending && task.attempts == 0;
    a.array_id.is_some()
        && a.array_id == b.array_id
        && a.reason == b.reason
        && waiting(a)
        && waiting(b)
}

/// Gives the tasks of small groups a row each.
fn spread<'a>(rows: Vec<Row<'a>>, data: &'a Data) -> Vec<Row<'a>> {
    let mut all = Vec::with_capacity(rows.len());
    for row in rows {
        if row.ids.len() >= SEVERAL || row.ids.len() == 1 {
            all.push(row);
            continue;
        }
        let tasks = row.ids.iter().filter_map(|id| data.tasks.get(id));
        all.extend(tasks.map(|task| Row { task, ids: vec![task.id] }));
    }
    all
}

fn sort(app: &App, data: &Data, tasks: &mut [&TaskView]) {
    let end = |task: &TaskView| {
        let expected = data.expected.get(&task.id).and_then(|expected| expected.expected_end_s);
        expected.filter(|_| task.state.is_on_gpus()).unwrap_or(f64::INFINITY)
    };
    let since = |task: &TaskView| task.started_s.unwrap_or(task.submitted_s);
    let memory = |task: &TaskView| task.used_bytes.or(task.promised_bytes).or(task.gpu_mem_bytes);
    match app.sort {
        Sort::Ends if app.filter == Filter::Ended => {
            tasks.sort_by(|a, b| b.ended_s.unwrap_or(0.0).total_cmp(&a.ended_s.unwrap_or(0.0)));
        }
        // Waiting tasks follow in the order in which they are asked.
        Sort::Ends => tasks.sort_by(|a, b| {
            let place = |task: &TaskView| (waits(task), task.position.unwrap_or(u32::MAX));
            let by_end = || end(a).total_cmp(&end(b));
            waits(a).cmp(&waits(b)).then_with(by_end).then(place(a).cmp(&place(b)))
        }),
        Sort::Id => {}
        Sort::Name => tasks.sort_by(|a, b| a.name.cmp(&b.name)),
        Sort::User => tasks.sort_by(|a, b| a.user.cmp(&b.user)),
        Sort::Memory => tasks.sort_by_key(|task| std::cmp::Reverse(memory(task))),
        Sort::Time => tasks.sort_by(|a, b| since(a).total_cmp(&since(b))),
    }
}
