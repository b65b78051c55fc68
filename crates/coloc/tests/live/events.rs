//! Changes of tasks as they happen, read with the client.

use super::home::Home;
use coloc_api::client::{Client, Event};
use coloc_model::TaskState;

#[test]
fn a_client_reads_changes_as_they_happen() {
    let home = Home::new(&["--emulate", "1xA100-40GB"]);
    let mut client = Client::connect(&home.socket()).expect("a daemon");
    let events = client.events().expect("a stream");
    let id = home.submit(&["--", "true"]);
    let mut states = Vec::new();
    for event in events {
        let Event::Task(task) = event.expect("an event") else { continue };
        if task.id == id && states.last() != Some(&task.state) {
            states.push(task.state);
        }
        if task.state.is_over() {
            break;
        }
    }
    assert!(states.contains(&TaskState::Running), "{states:?}");
    assert_eq!(states.last(), Some(&TaskState::Completed));
    // A stream that was left in the middle does not spoil the next question.
    assert_eq!(client.show(id).expect("a task").task.state, TaskState::Completed);
}
