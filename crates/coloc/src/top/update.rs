//! What a key, or news from the daemon, changes; and what is to be asked because of it.

use super::app::{App, Asked, Connection, Data, Filter, Log, Page, Pane};
use super::keys::Key;
use super::rows::{is_listed, rows};
use coloc_api::answer::Changed;
use coloc_api::request::Change;
use coloc_api::view::{
    Expected, GpuView, SampleFrame, StatusNews, StatusView, TaskDetail, TaskView, TimelineAnswer,
    WhyView,
};

/// Rows that PageUp and PageDown go.
const PAGE: usize = 10;
/// What is looked for is no longer than this.
const LONGEST_FIND: usize = 60;

/// Something that happened.
#[derive(Clone, Debug)]
pub(super) enum Msg {
    Key(Key),
    /// The time, about once a second.
    Tick(f64),
    /// Everything anew.
    Snapshot {
        status: Box<StatusView>,
        gpus: Vec<GpuView>,
        tasks: Vec<TaskView>,
    },
    Task(Box<TaskView>),
    Sample(Box<SampleFrame>),
    Status(Box<StatusNews>),
    /// The GPUs anew, with the time.
    Gpus(Vec<GpuView>, f64),
    /// SM activity of before, by GPU.
    Activity(u32, Vec<(f64, f64)>),
    Expected(Vec<Expected>),
    Ended(Vec<TaskView>),
    Why(Box<WhyView>),
    Log(Log),
    Detail(Box<TaskDetail>),
    Timeline(Box<TimelineAnswer>),
    /// What became of a change.
    Changed(Change, Changed),
    /// A question was answered with an error.
    Failed(String),
    /// The daemon is gone.
    Lost(String),
}

/// What is to be done.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Effect {
    Quit,
    AskWhy(u32),
    AskLog(u32),
    AskDetail(u32),
    AskEnded,
    AskTimeline,
    /// The GPUs are not as they were: ask for them anew.
    AskGpus,
    Change(Vec<u32>, Box<Change>),
}

/// Takes note of something that happened.
pub(super) fn update(app: &mut App, msg: Msg) -> Vec<Effect> {
    let before = app.selected;
    let mut effects = match msg {
        Msg::Key(key) => return press(app, key),
        Msg::Tick(now_s) => {
            app.now_s = now_s;
            Vec::new()
        }
        Msg::Failed(why) => {
            app.message = Some(why);
            Vec::new()
        }
        Msg::Lost(why) => {
            if !matches!(app.connection, Connection::Stale { .. }) {
                app.connection = Connection::Stale { since_s: app.now_s, why };
            }
            Vec::new()
        }
        Msg::Changed(change, changed) => {
            app.message = Some(told(&change, &changed));
            Vec::new()
        }
        news => hear(app, news),
    };
    keep_marker(app);
    if app.selected != before {
        effects.extend(look(app));
    }
    effects
}

/// News from the daemon.
fn hear(app: &mut App, news: Msg) -> Vec<Effect> {
    match news {
        Msg::Snapshot { status, gpus, tasks } => {
            let tasks = tasks.into_iter().map(|task| (task.id, task)).collect();
            let now_s = app.now_s;
            let data = &mut app.data;
            *data = Data { status: *status, tasks, ..std::mem::take(data) };
            take_gpus(data, gpus, now_s);
            app.connection = Connection::Live;
        }
        Msg::Task(task) => app.data.take_task(*task),
        Msg::Sample(frame) => {
            let is_news = app.data.is_news(&frame);
            app.data.see(&frame);
            return if is_news { vec![Effect::AskGpus] } else { Vec::new() };
        }
        Msg::Status(news) => app.data.take_status(*news),
        Msg::Gpus(gpus, at_s) => take_gpus(&mut app.data, gpus, at_s),
        Msg::Activity(gpu, seen) => {
            let known = app.data.activity.entry(gpu).or_default();
            let first = known.front().map_or(f64::INFINITY, |(at, _)| *at);
            for past in seen.into_iter().rev().filter(|(at, _)| *at < first) {
                known.push_front(past);
            }
        }
        Msg::Expected(all) => {
            app.data.expected = all.into_iter().map(|one| (one.id, one)).collect();
        }
        Msg::Ended(tasks) => {
            app.data.ended = tasks.into_iter().map(|task| (task.id, task)).collect();
        }
        Msg::Why(why) => app.why = Some(*why).filter(|why| app.selected == Some(why.task.id)),
        Msg::Log(log) => app.log = Some(log).filter(|log| app.selected == Some(log.id)),
        Msg::Detail(detail) => app.detail = Some(detail),
        Msg::Timeline(timeline) => app.timeline = Some(*timeline),
        _ => {}
    }
    Vec::new()
}

fn take_gpus(data: &mut Data, gpus: Vec<GpuView>, at_s: f64) {
    for gpu in &gpus {
        data.note_activity(gpu.index, at_s, gpu.smact);
    }
    data.gpus = gpus;
}

fn told(change: &Change, changed: &Changed) -> String {
    let what = match change {
        Change::Cancel => "cancelled",
        Change::Hold => "held",
        Change::Release => "released",
        Change::Requeue => "requeued",
        _ => "changed",
    };
    match (&changed.done[..], changed.refused.first()) {
        (_, Some(refused)) => refused.message.clone(),
        ([id], None) => format!("task {id} is {what}"),
        (ids, None) => format!("{} tasks are {what}", ids.len()),
    }
}

/// The marker stays on its task; if that is gone, on the first.
fn keep_marker(app: &mut App) {
    if app.task().is_some_and(|task| is_listed(app, task)) {
        return;
    }
    app.selected = rows(app).first().map(|row| row.task.id);
}

/// What is asked of the task that the marker came to.
fn look(app: &App) -> Vec<Effect> {
    let Some(id) = app.selected else { return Vec::new() };
    vec![Effect::AskWhy(id), Effect::AskLog(id)]
}

fn press(app: &mut App, key: Key) -> Vec<Effect> {
    if key == Key::Interrupt {
        return vec![Effect::Quit];
    }
    app.message = None;
    if let Some(asked) = app.asked.take() {
        return match key {
            Key::Char('y' | 'Y') => vec![Effect::Change(asked.ids, Box::new(asked.change))],
            _ => Vec::new(),
        };
    }
    if app.finding {
        return find(app, key);
    }
    match app.page {
        Page::Main => on_main(app, key),
        _ => on_page(app, key),
    }
}

/// Keys while something is looked for.
fn find(app: &mut App, key: Key) -> Vec<Effect> {
    match key {
        Key::Char(c) if app.find.chars().count() < LONGEST_FIND => app.find.push(c),
        Key::Backspace => drop(app.find.pop()),
        Key::Enter => app.finding = false,
        Key::Escape => {
            app.finding = false;
            app.find.clear();
        }
        Key::Up => return go(app, -1),
        Key::Down => return go(app, 1),
        _ => {}
    }
    let before = app.selected;
    keep_marker(app);
    if app.selected == before { Vec::new() } else { look(app) }
}

/// Keys on a page that takes the whole screen.
fn on_page(app: &mut App, key: Key) -> Vec<Effect> {
    match (key, app.page) {
        (Key::Up | Key::Char('k'), _) => app.scrolled = app.scrolled.saturating_sub(1),
        (Key::Down | Key::Char('j'), _) => app.scrolled += 1,
        (Key::PageUp, _) => app.scrolled = app.scrolled.saturating_sub(PAGE),
        (Key::PageDown, _) => app.scrolled += PAGE,
        (Key::Escape | Key::Char('q'), _)
        | (Key::Enter, Page::Task)
        | (Key::Char('t'), Page::Timeline)
        | (Key::Char('?'), Page::Help) => open(app, Page::Main),
        (Key::Char('?'), _) => open(app, Page::Help),
        (Key::Char('c' | 'h' | 'r' | 'p'), Page::Task) => return on_main(app, key),
        _ => {}
    }
    Vec::new()
}

fn open(app: &mut App, page: Page) {
    app.page = page;
    app.scrolled = 0;
}

fn on_main(app: &mut App, key: Key) -> Vec<Effect> {
    match key {
        Key::Char('q') => return vec![Effect::Quit],
        Key::Up | Key::Char('k') => return go(app, -1),
        Key::Down | Key::Char('j') => return go(app, 1),
        Key::PageUp => return go(app, -(PAGE as isize)),
        Key::PageDown => return go(app, PAGE as isize),
        Key::Home => return go(app, isize::MIN),
        Key::End => return go(app, isize::MAX),
        Key::Enter => return show(app),
        Key::Char('/') => app.finding = true,
        Key::Escape => app.find.clear(),
        Key::Char('s') => app.sort = app.sort.next(),
        Key::Char('f') => return filter(app),
        Key::Char('w') => return pane(app, Pane::Why),
        Key::Char('l') => return pane(app, Pane::Log),
        Key::Char('c') => ask(app, Change::Cancel),
        Key::Char('r') => ask(app, Change::Requeue),
        Key::Char('h') => return hold(app),
        Key::Char('t') => {
            open(app, Page::Timeline);
            return vec![Effect::AskTimeline];
        }
        Key::Char('p') => {
            app.paused = match app.paused.take() {
                Some(_) => None,
                None => Some(Box::new(app.data.clone())),
            };
        }
        Key::Char('[') => app.first_gpu = app.first_gpu.saturating_sub(1),
        Key::Char(']') => {
            app.first_gpu = (app.first_gpu + 1).min(app.shown().gpus.len().saturating_sub(1));
        }
        Key::Char('?') => open(app, Page::Help),
        _ => {}
    }
    keep_marker(app);
    Vec::new()
}

/// The marker goes so many rows down.
fn go(app: &mut App, by: isize) -> Vec<Effect> {
    let rows = rows(app);
    let at = rows.iter().position(|row| app.selected.is_some_and(|id| row.ids.contains(&id)));
    let Some(last) = rows.len().checked_sub(1) else { return Vec::new() };
    let to = at.map_or(0, |at| at.saturating_add_signed(by).min(last));
    let chosen = Some(rows[to].task.id);
    if chosen == app.selected {
        return Vec::new();
    }
    (app.selected, app.why, app.log) = (chosen, None, None);
    look(app)
}

fn show(app: &mut App) -> Vec<Effect> {
    let Some(id) = app.selected else { return Vec::new() };
    app.detail = None;
    open(app, Page::Task);
    vec![Effect::AskDetail(id)]
}

fn filter(app: &mut App) -> Vec<Effect> {
    app.filter = app.filter.next();
    keep_marker(app);
    let mut effects = look(app);
    if app.filter == Filter::Ended {
        effects.push(Effect::AskEnded);
    }
    effects
}

fn pane(app: &mut App, pane: Pane) -> Vec<Effect> {
    app.pane = if app.pane == pane { Pane::None } else { pane };
    look(app)
}

/// The tasks of the row with the marker.
fn chosen(app: &App) -> Vec<u32> {
    let rows = rows(app);
    let row = rows.iter().find(|row| app.selected.is_some_and(|id| row.ids.contains(&id)));
    row.map(|row| row.ids.clone()).unwrap_or_default()
}

fn ask(app: &mut App, change: Change) {
    let (ids, name) = (chosen(app), app.task().map_or(String::new(), |task| task.name.clone()));
    let verb = if change == Change::Cancel { "Cancel" } else { "Requeue" };
    let question = match ids[..] {
        [] => return,
        [id] => format!("{verb} {id} {name}? y does, any other key does not"),
        _ => format!("{verb} {} tasks of {name}? y does, any other key does not", ids.len()),
    };
    app.asked = Some(Asked { ids, change, question });
}

fn hold(app: &mut App) -> Vec<Effect> {
    let ids = chosen(app);
    let held = app.task().is_some_and(is_held);
    let change = if held { Change::Release } else { Change::Hold };
    if ids.is_empty() { Vec::new() } else { vec![Effect::Change(ids, Box::new(change))] }
}

/// Whether a user holds a task.
pub(super) fn is_held(task: &TaskView) -> bool {
    use coloc_api::view::ReasonCode;
    let by_words = || task.reason.as_deref().is_some_and(|reason| reason.starts_with("held"));
    task.held_by.is_some() || task.reason_code == Some(ReasonCode::Held) || by_words()
}

#[cfg(test)]
#[path = "update_tests.rs"]
mod tests;
