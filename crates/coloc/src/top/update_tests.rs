//! What each key does.

use super::super::app::{App, Connection, Filter, Page, Pane, Sort};
use super::super::fixed::mock;
use super::super::keys::{HELP, Key};
use super::*;
use coloc_api::view::{GpuFrame, ResidentFrame};
use coloc_model::TaskState;

fn press(app: &mut App, keys: &str) -> Vec<Effect> {
    let pressed = keys.chars().map(|key| update(app, Msg::Key(Key::Char(key))));
    pressed.flatten().collect()
}

#[test]
fn the_marker_goes_up_and_down_and_asks_about_its_task() {
    let mut app = mock();
    assert_eq!(press(&mut app, "j"), [Effect::AskWhy(452), Effect::AskLog(452)]);
    assert_eq!((app.selected, app.why.is_none()), (Some(452), true));
    press(&mut app, "k");
    update(&mut app, Msg::Key(Key::Up));
    assert_eq!(app.selected, Some(425), "the last that runs");
    update(&mut app, Msg::Key(Key::Home));
    assert_eq!(app.selected, Some(449));
    assert_eq!(update(&mut app, Msg::Key(Key::Up)), [], "it stays at the first");
    update(&mut app, Msg::Key(Key::End));
    assert_eq!(app.selected, Some(457), "what is held is asked last");
    update(&mut app, Msg::Key(Key::PageUp));
    update(&mut app, Msg::Key(Key::PageDown));
    update(&mut app, Msg::Key(Key::Down));
    assert_eq!(app.selected, Some(457));
}

#[test]
fn enter_shows_the_task_and_goes_back() {
    let mut app = mock();
    assert_eq!(update(&mut app, Msg::Key(Key::Enter)), [Effect::AskDetail(451)]);
    assert_eq!(app.page, Page::Task);
    press(&mut app, "jj");
    assert_eq!(app.scrolled, 2);
    update(&mut app, Msg::Key(Key::Enter));
    assert_eq!((app.page, app.scrolled), (Page::Main, 0));
}

#[test]
fn slash_finds() {
    let mut app = mock();
    press(&mut app, "/GPT2");
    assert!(app.finding);
    assert_eq!(app.selected, Some(425), "by name, whatever its case");
    update(&mut app, Msg::Key(Key::Backspace));
    assert_eq!(app.find, "GPT");
    update(&mut app, Msg::Key(Key::Enter));
    assert!(!app.finding);
    assert_eq!(press(&mut app, "q"), [Effect::Quit], "letters are keys again");
    update(&mut app, Msg::Key(Key::Escape));
    assert_eq!(app.find, "");
    press(&mut app, "/");
    press(&mut app, &"x".repeat(500));
    assert_eq!(app.find.len(), LONGEST_FIND);
    update(&mut app, Msg::Key(Key::Escape));
    assert!(!app.finding && app.find.is_empty() && app.selected.is_some());
}

#[test]
fn s_sorts_and_f_filters_all_round() {
    let mut app = mock();
    let mut sorts = Vec::new();
    for _ in 0..6 {
        press(&mut app, "s");
        sorts.push(app.sort);
    }
    assert_eq!(sorts, [Sort::Id, Sort::Name, Sort::User, Sort::Memory, Sort::Time, Sort::Ends]);
    press(&mut app, "f");
    assert_eq!(app.filter, Filter::Yours);
    press(&mut app, "f");
    assert_eq!((app.filter, app.selected), (Filter::Running, Some(449)), "451 is not there");
    let asked = press(&mut app, "ff");
    assert_eq!(app.filter, Filter::Ended);
    assert!(asked.contains(&Effect::AskEnded), "{asked:?}");
    press(&mut app, "f");
    assert_eq!(app.filter, Filter::All);
}

#[test]
fn w_and_l_open_and_close_their_pane() {
    let mut app = mock();
    press(&mut app, "w");
    assert_eq!(app.pane, Pane::None);
    assert_eq!(press(&mut app, "l"), [Effect::AskWhy(451), Effect::AskLog(451)]);
    assert_eq!(app.pane, Pane::Log);
    press(&mut app, "w");
    assert_eq!(app.pane, Pane::Why);
}

#[test]
fn c_and_r_ask_first() {
    for (key, change) in [("c", Change::Cancel), ("r", Change::Requeue)] {
        let mut app = mock();
        assert_eq!(press(&mut app, key), []);
        let question = app.asked.as_ref().expect("a question").question.clone();
        assert!(question.contains("451 segformer-b5?"), "{question}");
        assert_eq!(press(&mut app, "n"), [], "any other key does not");
        assert!(app.asked.is_none());
        press(&mut app, key);
        assert_eq!(press(&mut app, "y"), [Effect::Change(vec![451], Box::new(change))]);
    }
    let mut app = mock();
    app.selected = Some(461);
    press(&mut app, "c");
    let asked = app.asked.expect("a question");
    assert_eq!(asked.ids.len(), 14, "all that the row stands for: {}", asked.question);
}

#[test]
fn h_holds_what_is_not_held() {
    let mut app = mock();
    assert_eq!(press(&mut app, "h"), [Effect::Change(vec![451], Box::new(Change::Hold))]);
    app.selected = Some(457);
    assert_eq!(press(&mut app, "h"), [Effect::Change(vec![457], Box::new(Change::Release))]);
}

#[test]
fn t_p_help_brackets_and_q() {
    let mut app = mock();
    assert_eq!(press(&mut app, "t"), [Effect::AskTimeline]);
    assert_eq!(app.page, Page::Timeline);
    press(&mut app, "t");
    press(&mut app, "p");
    app.data.tasks.clear();
    assert_eq!(app.shown().tasks.len(), 35, "nothing moves");
    press(&mut app, "p");
    assert!(app.shown().tasks.is_empty());
    press(&mut app, "]]]]]]]");
    assert_eq!(app.first_gpu, 3);
    press(&mut app, "[");
    assert_eq!(app.first_gpu, 2);
    press(&mut app, "?");
    assert_eq!(app.page, Page::Help);
    assert_eq!(press(&mut app, "q"), [], "back");
    assert_eq!((app.page, press(&mut app, "q")), (Page::Main, vec![Effect::Quit]));
    assert_eq!(update(&mut app, Msg::Key(Key::Interrupt)), [Effect::Quit]);
}

#[test]
fn every_key_is_in_the_help() {
    let told: String = HELP.iter().map(|(key, _)| *key).collect();
    for key in "jk/sfwlchrtp[]?q".chars() {
        assert!(told.contains(key), "{key}");
    }
}

#[test]
fn nothing_happens_where_there_is_no_task() {
    let mut app = App::new(|_| (0, 0, 0));
    assert_eq!(press(&mut app, "jkchrw/x"), []);
    update(&mut app, Msg::Key(Key::Escape));
    assert_eq!(update(&mut app, Msg::Key(Key::Enter)), []);
    assert!(app.asked.is_none());
}

#[test]
fn what_the_monitor_saw_is_taken_over() {
    let mut app = mock();
    let resident =
        ResidentFrame { id: 412, used_bytes: Some(7), promised_bytes: 9, ..Default::default() };
    let gpu = GpuFrame { index: 0, smact: 0.5, residents: vec![resident], ..Default::default() };
    let frame = SampleFrame { at_s: app.now_s + 1.0, gpus: vec![gpu] };
    let asked = update(&mut app, Msg::Sample(Box::new(frame.clone())));
    assert_eq!(asked, [Effect::AskGpus], "the others are gone");
    assert_eq!((app.data.gpus[0].smact, app.data.tasks[&412].used_bytes), (0.5, Some(7)));
    app.data.gpus[0].residents.retain(|one| one.id == 412);
    let asked = update(&mut app, Msg::Sample(Box::new(frame)));
    assert_eq!(asked, []);
}

#[test]
fn a_task_that_ends_leaves_and_the_marker_goes_on() {
    let mut app = mock();
    let mut task = app.data.tasks[&451].clone();
    task.state = TaskState::Completed;
    let asked = update(&mut app, Msg::Task(Box::new(task)));
    assert!(!app.data.tasks.contains_key(&451));
    assert_eq!((app.selected, asked.len()), (Some(449), 2));
}

#[test]
fn a_daemon_that_is_gone_makes_it_stale_since_then() {
    let mut app = mock();
    let since_s = app.now_s;
    update(&mut app, Msg::Lost("gone".to_owned()));
    update(&mut app, Msg::Tick(since_s + 5.0));
    update(&mut app, Msg::Lost("still".to_owned()));
    assert_eq!(app.connection, Connection::Stale { since_s, why: "gone".to_owned() });
    let status = Box::new(app.data.status.clone());
    update(&mut app, Msg::Snapshot { status, gpus: Vec::new(), tasks: Vec::new() });
    assert_eq!((app.connection, app.selected), (Connection::Live, None));
}

#[test]
fn what_became_of_a_change_is_told() {
    use coloc_api::answer::RefusedTask;
    let mut app = mock();
    let done = Changed { schema: 1, done: vec![451], refused: Vec::new() };
    update(&mut app, Msg::Changed(Change::Hold, done));
    assert_eq!(app.message.as_deref(), Some("task 451 is held"));
    let (id, code) = (451, "not_yours".to_owned());
    let message = "task 451 belongs to another user".to_owned();
    let refused = vec![RefusedTask { id, code, message }];
    update(
        &mut app,
        Msg::Changed(Change::Cancel, Changed { schema: 1, done: Vec::new(), refused }),
    );
    assert_eq!(app.message.as_deref(), Some("task 451 belongs to another user"));
    press(&mut app, "j");
    assert_eq!(app.message, None, "until the next key");
}
