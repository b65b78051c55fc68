//! Changes of tasks as they happen, as the daemon's stream of server-sent events has them.

use super::{Client, ClientError, Lines, broken, garbled};
use crate::view::{SampleFrame, StatusNews, TaskView};
use std::collections::VecDeque;

/// Something that happened.
#[derive(Clone, PartialEq, Debug)]
pub enum Event {
    /// A task is now like this.
    Task(Box<TaskView>),
    /// What the monitor saw.
    Sample(Box<SampleFrame>),
    /// How the daemon is.
    Status(Box<StatusNews>),
    /// The reader was too slow, and has to list anew.
    Missed,
}

/// What happens from now on. It ends with the daemon.
pub struct Events<'a> {
    client: &'a mut Client,
    lines: Lines,
    /// What the event that is being read is called.
    name: String,
    read: VecDeque<Event>,
}

impl Client {
    /// Every change of every task from now on.
    pub fn events(&mut self) -> Result<Events<'_>, ClientError> {
        self.events_of(&["task"])
    }

    /// Events of these kinds from now on: `task`, `sample`, `status`.
    pub fn events_of(&mut self, kinds: &[&str]) -> Result<Events<'_>, ClientError> {
        let path = format!("/v1/events?kinds={}", kinds.join(","));
        self.ask("GET", &path, "text/event-stream", &[])?;
        let (name, read) = (String::new(), VecDeque::new());
        Ok(Events { client: self, lines: Lines::default(), name, read })
    }
}

impl Iterator for Events<'_> {
    type Item = Result<Event, ClientError>;

    fn next(&mut self) -> Option<Self::Item> {
        let Events { client, lines, name, read } = self;
        while read.is_empty() {
            let mut see = |piece: &[u8]| lines.each(piece, |line| event(line, name, read));
            match client.connection.piece(&mut see) {
                Ok(None) => return None,
                Ok(Some(Ok(()))) => {}
                Ok(Some(Err(error))) => return Some(Err(error)),
                Err(error) => return Some(Err(broken(error))),
            }
        }
        read.pop_front().map(Ok)
    }
}

/// Reads a line of the stream: a part of an event, its end, or a comment that says that the daemon is there.
fn event(line: &[u8], name: &mut String, read: &mut VecDeque<Event>) -> Result<(), ClientError> {
    let line = std::str::from_utf8(line).map_err(garbled)?;
    if let Some(said) = line.strip_prefix("event:") {
        *name = said.trim().to_owned();
    } else if let Some(data) = line.strip_prefix("data:") {
        match name.as_str() {
            "task" => read.push_back(Event::Task(serde_json::from_str(data).map_err(garbled)?)),
            "sample" => read.push_back(Event::Sample(serde_json::from_str(data).map_err(garbled)?)),
            "status" => read.push_back(Event::Status(serde_json::from_str(data).map_err(garbled)?)),
            _ => {}
        }
    } else if line.is_empty() && std::mem::take(name) == "missed" {
        read.push_back(Event::Missed);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_however_they_are_cut() {
        let task = TaskView { id: 7, ..TaskView::default() };
        let json = serde_json::to_string(&task).expect("JSON");
        let said =
            format!(":\n\nevent: task\ndata: {json}\n\nevent: missed\n\nevent: new\ndata: 1\n\n");
        for size in [1, 3, said.len()] {
            let (mut lines, mut name, mut read) = Default::default();
            for piece in said.as_bytes().chunks(size) {
                Lines::each(&mut lines, piece, |line| event(line, &mut name, &mut read))
                    .expect("it is right");
            }
            assert_eq!(read, [Event::Task(Box::new(task.clone())), Event::Missed]);
        }
        assert!(event(b"data: x", &mut "task".to_owned(), &mut VecDeque::new()).is_err());
    }
}
