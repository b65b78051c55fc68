//! A long list, page by page: the owner writes each page as lines (`coloc_api::lines`) and sees to others in between.
//! The whole list is never held at once.

use crate::owner::commands::view::task_view;
use crate::owner::{Live, Owner, Shown};
use crate::record::Uid;
use coloc_api::lines;
use coloc_api::view::TaskView;
use coloc_model::{TaskId, TaskState, Time};

/// Rows of one page.
const LONGEST_PAGE: usize = 2048;
/// Tasks that are looked at for one page: most may be of users who are not asked for.
const MOST_LOOKED_AT: usize = 32_768;

/// Bytes that most rows fit into.
const USUAL_ROW: usize = 128;

/// What a page is to have.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PageRequest {
    /// From this task on.
    pub from: TaskId,
    /// Only this user's.
    pub user: Option<String>,
    /// Only tasks in these states.
    pub states: Option<Vec<TaskState>>,
    /// At most so many.
    pub most: usize,
}

/// A part of a list.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Page {
    /// The rows.
    pub rows: Vec<u8>,
    /// The list goes on here.
    pub next: Option<TaskId>,
    /// How many rows there are.
    pub written: usize,
}

impl Owner {
    /// All tasks that the journal does not know to have ended, with what they wait for now.
    pub(in crate::owner) fn fresh_list(&mut self, now: Time) -> Vec<TaskView> {
        self.look_at_waiting(now);
        let live = self.tasks.values().map(|live| self.view(live));
        live.chain(self.unwritten_views()).collect()
    }

    /// A page of them, with what they wait for now.
    pub(in crate::owner) fn fresh_page(&mut self, now: Time, request: &PageRequest) -> Page {
        self.look_at_waiting(now);
        self.page(request)
    }

    /// A task, with what it waits for now.
    pub(in crate::owner) fn shown(&mut self, now: Time, task: TaskId) -> Option<Shown> {
        self.look_at_waiting(now);
        self.find_codes(now, std::iter::once(task));
        self.detail(task).or_else(|| self.shown_unwritten(task))
    }

    /// A page of the tasks that have not ended, by id.
    fn page(&self, request: &PageRequest) -> Page {
        let mut rows = Vec::with_capacity(LONGEST_PAGE * USUAL_ROW);
        let mut user = (Uid(u32::MAX), crate::users::name(Uid(u32::MAX)));
        let (mut tasks, awaited) = (self.tasks.range(request.from..), self.awaited());
        let (mut written, mut is_theirs) = (0, request.user.is_none());
        for (_, live) in tasks.by_ref().take(MOST_LOOKED_AT) {
            let Live { record, spec, .. } = live;
            if user.0 != record.owner {
                user = (record.owner, crate::users::name(record.owner));
                is_theirs = request.user.as_ref().is_none_or(|only| *only == user.1);
            }
            let has_state = |states: &Vec<TaskState>| states.contains(&record.phase);
            if is_theirs && request.states.as_ref().is_none_or(has_state) {
                let holder = record.held_by.map(crate::users::name);
                let own = self.awaited_by(live, &user.1);
                let view = task_view(record, spec, &user.1, own.as_deref().unwrap_or(&awaited));
                let view = TaskView { held_by: holder.as_deref(), ..view };
                lines::write(&mut rows, &self.with_what_is_seen(record, view));
                written += 1;
            }
            if written == LONGEST_PAGE.min(request.most) {
                break;
            }
        }
        let next = tasks.next().filter(|_| written < request.most);
        Page { rows, next: next.map(|(task, _)| *task), written }
    }
}
