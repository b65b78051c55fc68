//! A long list, page by page: the owner writes each page as text and sees to others in between, and nobody ever holds
//! the whole list.

use super::view::{TaskView, task_view};
use super::{Live, Owner, json, lines};
use crate::record::Uid;
use coloc_model::TaskId;

/// Tasks that are looked at for one page.
const LONGEST_PAGE: usize = 4096;

/// How rows are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// JSON, with commas between rows.
    Json,
    /// Tab-separated values, with a header.
    Lines,
}

impl Form {
    /// Bytes that most rows fit into.
    const fn usual_row(self) -> usize {
        match self {
            Form::Json => 400,
            Form::Lines => 128,
        }
    }
}

/// What a page is to have.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PageRequest {
    /// From this task on.
    pub from: TaskId,
    /// Only this user's.
    pub user: Option<String>,
    /// How.
    pub form: Form,
    /// Rows were written before.
    pub begun: bool,
}

/// A part of a list.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Page {
    /// The rows.
    pub text: Vec<u8>,
    /// The list goes on here.
    pub next: Option<TaskId>,
}

impl Owner {
    /// A page of the tasks that have not ended, by id.
    pub(super) fn page(&self, request: &PageRequest) -> Page {
        let mut rows = Rows::new(request.form, request.begun);
        let mut user = (Uid(u32::MAX), crate::users::name(Uid(u32::MAX)));
        let mut tasks = self.tasks.range(request.from..);
        for (_, Live { record, spec, .. }) in tasks.by_ref().take(LONGEST_PAGE) {
            if user.0 != record.owner {
                user = (record.owner, crate::users::name(record.owner));
            }
            if request.user.as_ref().is_none_or(|only| *only == user.1) {
                rows.push(&task_view(record, spec, &user.1));
            }
        }
        Page { text: rows.text, next: tasks.next().map(|(task, _)| *task) }
    }
}

/// Rows as text.
pub(crate) struct Rows {
    form: Form,
    begun: bool,
    text: Vec<u8>,
}

impl Rows {
    fn new(form: Form, begun: bool) -> Self {
        let mut text = Vec::with_capacity(LONGEST_PAGE * form.usual_row());
        if form == Form::Lines && !begun {
            text.extend_from_slice(lines::HEADER.as_bytes());
            text.push(b'\n');
        }
        Rows { form, begun, text }
    }

    /// All of these.
    pub(crate) fn of(form: Form, views: &[TaskView]) -> Vec<u8> {
        let mut rows = Rows::new(form, false);
        views.iter().for_each(|view| rows.push(view));
        rows.text
    }

    fn push<T: AsRef<str>>(&mut self, view: &TaskView<T>) {
        let text = &mut self.text;
        match self.form {
            Form::Json => {
                text.extend_from_slice(if self.begun { b",\n" } else { b"" });
                json::write(text, view);
            }
            Form::Lines => lines::write(text, view),
        }
        self.begun = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_say_the_same() {
        let plain = TaskView {
            reason: Some(super::super::view::WAITING.to_owned()),
            ..TaskView::default()
        };
        let rich = TaskView {
            id: 7,
            reason: Some("held\n\"so\"".to_owned()),
            gpu_ids: vec![0, 3],
            array_id: Some(1),
            array_index: Some(0),
            started_s: Some(0.0),
            priority: -3,
            peak_bytes: 5,
            exit_code: Some(0),
            ..TaskView::default()
        };
        let all = [plain, rich];
        let json = String::from_utf8(Rows::of(Form::Json, &all)).unwrap();
        let read: Vec<TaskView> = serde_json::from_str(&format!("[{json}]")).unwrap();
        assert_eq!(read, all);
        let text = String::from_utf8(Rows::of(Form::Lines, &all)).unwrap();
        let rows = text.lines().skip(1);
        let read: Vec<TaskView> =
            rows.map(|line| lines::read(line.as_bytes()).unwrap().owned()).collect();
        assert_eq!(read, all);
        assert!(text.len() < json.len() / 2, "{text}");
    }
}
