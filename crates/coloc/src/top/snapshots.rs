//! What is drawn for fixed data, at many sizes.

use super::app::{App, Connection, Data, Filter, Page, Pane};
use super::edge::text;
use super::fixed::{at, day_clock, log, mock};
use super::paint::{Palette, width};
use super::view::draw;
use coloc_api::view::{GpuView, TaskView};
use coloc_model::TaskState;
use ratatui_core::backend::TestBackend;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::terminal::Terminal;

fn drawn(app: &App, columns: u16, lines: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(columns, lines)).expect("a terminal");
    terminal.draw(|frame| draw(app, Palette::PLAIN, frame.buffer_mut())).expect("drawn");
    let text = text(terminal.backend().buffer(), false);
    for line in text.lines() {
        assert_eq!(width(line), usize::from(columns), "{line:?}\n{text}");
    }
    assert_eq!(text.lines().count(), usize::from(lines));
    text
}

macro_rules! snapshot {
    ($name:literal, $app:expr, $columns:literal, $lines:literal) => {
        insta::assert_snapshot!($name, drawn(&$app, $columns, $lines))
    };
}

#[test]
fn as_the_mocks_have_it() {
    snapshot!("80x24", mock(), 80, 24);
    let mut app = mock();
    app.selected = Some(450);
    app.log = Some(log());
    snapshot!("140x45", mock(), 140, 45);
    snapshot!("140x45_running", app, 140, 45);
}

#[test]
fn between_and_below() {
    snapshot!("100x30", mock(), 100, 30);
    snapshot!("79x23", mock(), 79, 23);
    snapshot!("60x15", mock(), 60, 15);
    snapshot!("50x10", mock(), 50, 10);
}

#[test]
fn every_size_is_drawn_within_its_cells() {
    let mut apps = vec![mock(), App::new(day_clock), crowded()];
    for page in [Page::Task, Page::Timeline, Page::Help] {
        apps.push(App { page, ..mock() });
    }
    apps.push(App { pane: Pane::Log, log: Some(log()), selected: Some(450), ..mock() });
    for app in &apps {
        for columns in [1, 2, 20, 59, 60, 61, 79, 80, 81, 99, 120, 139, 140, 141, 180, 300] {
            for lines in [1, 2, 14, 15, 16, 23, 24, 25, 39, 40, 45, 80] {
                let mut buffer = Buffer::empty(Rect::new(0, 0, columns, lines));
                draw(app, Palette::FULL, &mut buffer);
            }
        }
    }
}

#[test]
fn with_nothing_there() {
    let mut app = App::new(day_clock);
    app.now_s = at(14, 32);
    app.connection = Connection::Live;
    app.data.status.host = "gpu1".to_owned();
    snapshot!("nothing_80x24", app, 80, 24);
    snapshot!("nothing_140x45", app, 140, 45);
}

#[test]
fn long_names_wide_characters_and_escapes_stay_in_their_cells() {
    let mut app = mock();
    let names = [
        "a-name-that-is-much-longer-than-its-column-and-goes-on",
        "日本語のモデル訓練タスク",
        "x\x1b[2J\x1b]0;evil\x07\ny",
        "🤖🤖🤖 emoji",
    ];
    for (task, name) in app.data.tasks.values_mut().zip(names) {
        task.name = name.to_owned();
        task.user = "someone-with-a-long-name".to_owned();
    }
    for (resident, name) in app.data.gpus[0].residents.iter_mut().zip(names) {
        resident.name = name.to_owned();
    }
    snapshot!("names_80x24", app, 80, 24);
    snapshot!("names_140x45", app, 140, 45);
}

/// 64 GPUs and 5,000 tasks.
fn crowded() -> App {
    let mut app = mock();
    let gpu = app.data.gpus[0].clone();
    app.data.gpus = (0..64).map(|index| GpuView { index, ..gpu.clone() }).collect();
    for id in 1000..6000 {
        let name = format!("task-{id}");
        let task = TaskView { id, name, user: "ben".to_owned(), gpus: 1, ..TaskView::default() };
        app.data.tasks.insert(id, task);
    }
    app
}

#[test]
fn very_many() {
    snapshot!("crowded_80x24", crowded(), 80, 24);
    snapshot!("crowded_140x45", crowded(), 140, 45);
    let app = crowded();
    let began = std::time::Instant::now();
    for _ in 0..10 {
        drawn(&app, 140, 45);
    }
    // Four times a second must stay easy, even without optimization.
    assert!(began.elapsed().as_secs_f64() < 10.0 * 0.25, "{:?}", began.elapsed());
}

#[test]
fn stale_is_told_and_not_emptied() {
    let mut app = mock();
    let why = "cannot reach the daemon".to_owned();
    app.connection = Connection::Stale { since_s: at(14, 30), why };
    let text = drawn(&app, 80, 24);
    assert!(text.contains("STALE since 14:30") && text.contains("segformer-b5"), "{text}");
    assert!(text.contains("cannot reach the daemon; tried again every second"), "{text}");
    app.connection = Connection::Live;
    app.paused = Some(Box::new(Data::clone(&app.data)));
    app.data.tasks.clear();
    let text = drawn(&app, 80, 24);
    assert!(text.contains("PAUSED 14:32") && text.contains("segformer-b5"), "{text}");
}

#[test]
fn pages() {
    let mut app = mock();
    app.page = Page::Help;
    snapshot!("help_80x24", app, 80, 24);
    app.page = Page::Timeline;
    app.timeline = Some(super::fixed::timeline());
    snapshot!("timeline_80x24", app, 80, 24);
    let mut app = mock();
    (app.pane, app.selected, app.log) = (Pane::Log, Some(450), Some(log()));
    snapshot!("log_80x24", app, 80, 24);
}

#[test]
fn lists_are_filtered_and_found() {
    let rows = |app: &App| {
        let text = drawn(app, 80, 24);
        let rows = text.lines().skip(8).take_while(|line| !line.starts_with('─'));
        rows.filter_map(|row| row.chars().skip(1).take(4).collect::<String>().trim().parse().ok())
            .collect::<Vec<u32>>()
    };
    let mut app = App { filter: Filter::Yours, ..mock() };
    assert_eq!(rows(&app), [450, 419, 438, 451, 457]);
    app.filter = Filter::Waiting;
    app.find = "qa".to_owned();
    assert_eq!(rows(&app), [459]);
    app.find = "nothing".to_owned();
    assert!(drawn(&app, 80, 24).contains("no task has that in it"));
    app.find.clear();
    app.filter = Filter::Ended;
    let ended =
        TaskView { id: 9, state: TaskState::Failed, name: "was".to_owned(), ..TaskView::default() };
    app.data.ended.insert(9, ended);
    assert!(drawn(&app, 80, 24).contains("was"), "an ended task");
}
