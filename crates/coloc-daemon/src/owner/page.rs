//! A long list, page by page: the owner writes each page as text and sees to others in between, and nobody ever holds
//! the whole list.

use super::view::{TaskView, task_view};
use super::{Live, Owner};
use crate::record::Uid;
use coloc_model::TaskId;
use serde::Serialize;
use serde::ser::SerializeMap as _;

/// Tasks that are looked at for one page.
const LONGEST_PAGE: usize = 1024;
/// Most pages fit without growing.
const USUAL_ROW: usize = 384;

/// How rows are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// All fields, with commas between rows.
    Full,
    /// A line each; what is null, zero or empty is left out.
    Brief,
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
                rows.push(&task_view(record, spec, user.1.clone()));
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
        Rows { form, begun, text: Vec::with_capacity(LONGEST_PAGE * USUAL_ROW) }
    }

    /// All of these.
    pub(crate) fn of(form: Form, views: &[TaskView]) -> Vec<u8> {
        let mut rows = Rows::new(form, false);
        views.iter().for_each(|view| rows.push(view));
        rows.text
    }

    fn push(&mut self, view: &TaskView) {
        let text = &mut self.text;
        let written = match self.form {
            Form::Full => {
                text.extend_from_slice(if self.begun { b",\n" } else { b"" });
                serde_json::to_writer(&mut *text, view)
            }
            Form::Brief => {
                let written = serde_json::to_writer(&mut *text, &Brief(view));
                text.push(b'\n');
                written
            }
        };
        written.expect("a view is written into memory, and its keys are strings");
        self.begun = true;
    }
}

/// A task without what is null, zero or empty.
struct Brief<'a>(&'a TaskView);

impl Serialize for Brief<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let TaskView {
            id,
            name,
            user,
            state,
            reason,
            gpus,
            gpu_ids,
            array_id,
            array_index,
            submitted_s,
            started_s,
            ended_s,
            priority,
            time_limit_s,
            gpu_mem_bytes,
            estimate_bytes,
            peak_bytes,
            attempts,
            ooms,
            preemptions,
            exit_code,
        } = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", id)?;
        map.serialize_entry("name", name)?;
        map.serialize_entry("user", user)?;
        map.serialize_entry("state", state)?;
        map.serialize_entry("gpus", gpus)?;
        map.serialize_entry("submitted_s", submitted_s)?;
        macro_rules! unless {
            ($empty:expr => $($field:ident)*) => {
                $(if *$field != $empty {
                    map.serialize_entry(stringify!($field), $field)?;
                })*
            };
        }
        unless!(None => reason array_id array_index started_s ended_s);
        unless!(None => time_limit_s gpu_mem_bytes estimate_bytes exit_code);
        unless!(0 => priority peak_bytes attempts ooms preemptions);
        unless!(Vec::<u32>::new() => gpu_ids);
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_say_the_same() {
        let plain = TaskView::default();
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
        let full = String::from_utf8(Rows::of(Form::Full, &all)).unwrap();
        let read: Vec<TaskView> = serde_json::from_str(&format!("[{full}]")).unwrap();
        assert_eq!(read, all);
        let brief = String::from_utf8(Rows::of(Form::Brief, &all)).unwrap();
        let read: Vec<TaskView> =
            brief.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(read, all);
        assert!(brief.len() < full.len() * 2 / 3, "{brief}");
    }
}
