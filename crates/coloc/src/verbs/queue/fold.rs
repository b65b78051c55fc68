//! Arrays in a queue: tasks of one array that follow each other are one line.

use super::rows::Rows;
use crate::args::live::in_ranges;
use crate::parse::states::letters;
use coloc_api::moment::Moment;
use coloc_api::view::{Progress, TaskView};
use coloc_model::TaskState;

/// Tasks of an array, as one line shows them.
pub(super) struct Folded {
    /// The first of them, with what all have in common.
    pub(super) first: TaskView,
    ids: Vec<u32>,
    indices: Vec<u32>,
    /// How many are in each state.
    states: Vec<(TaskState, usize)>,
    /// GPUs of those that run.
    pub(super) gpus: Vec<u32>,
    /// Why those wait that wait, each reason with how many have it.
    reasons: Vec<(String, usize)>,
    /// The most memory that one of them held.
    pub(super) peak_bytes: u64,
    /// When the first of those began that run.
    pub(super) began: Option<f64>,
    /// Those of which progress is known: how many, the sum of their parts, and the latest end.
    progress: (usize, f64, Option<f64>),
}

impl Folded {
    fn new<T: AsRef<str> + Clone>(task: &TaskView<T>) -> Self {
        let mut folded = Folded {
            first: with_own_texts(task),
            ids: Vec::new(),
            indices: Vec::new(),
            states: Vec::new(),
            gpus: Vec::new(),
            reasons: Vec::new(),
            peak_bytes: 0,
            began: None,
            progress: (0, 0.0, None),
        };
        folded.add(task);
        folded
    }

    fn add<T: AsRef<str>>(&mut self, task: &TaskView<T>) {
        self.ids.push(task.id);
        self.indices.extend(task.array_index);
        match self.states.iter_mut().find(|(state, _)| *state == task.state) {
            Some((_, count)) => *count += 1,
            None => self.states.push((task.state, 1)),
        }
        self.peak_bytes = self.peak_bytes.max(task.peak_bytes);
        if task.state.is_on_gpus() {
            self.gpus.extend(&task.gpu_ids);
            self.began = [self.began, task.started_s].into_iter().flatten().reduce(f64::min);
        }
        if let (TaskState::Pending | TaskState::Recovering, Some(why)) = (task.state, &task.reason)
        {
            let known = self.reasons.iter_mut().find(|(known, _)| known == why.as_ref());
            match known {
                Some((_, count)) => *count += 1,
                None => self.reasons.push((why.as_ref().to_owned(), 1)),
            }
        }
        if let Some((progress, part)) = task.progress.as_ref().and_then(|p| Some((p, p.part()?))) {
            let (count, parts, latest) = &mut self.progress;
            (*count, *parts) = (*count + 1, *parts + part);
            *latest = [*latest, progress.eta_s].into_iter().flatten().reduce(f64::max);
        }
    }

    /// `8-107 [1-100]`: what commands take, and the numbers in the array.
    pub(super) fn id(&self) -> String {
        let compact = |numbers: &[u32]| in_ranges(numbers).replace(", ", ",");
        format!("{} [{}]", compact(&self.ids), compact(&self.indices))
    }

    /// `8 R, 92 PD`, or the letters alone where all are in one state.
    pub(super) fn states(&self) -> String {
        let mut states = self.states.clone();
        // Those that run come first.
        states.sort_by_key(|(state, _)| !state.is_on_gpus());
        match states.as_slice() {
            [(state, _)] => letters(*state).to_owned(),
            several => {
                let each =
                    several.iter().map(|(state, many)| format!("{many} {}", letters(*state)));
                each.collect::<Vec<_>>().join(", ")
            }
        }
    }

    /// Why most of those that wait do so.
    pub(super) fn reason(&self) -> Option<&str> {
        let most = self.reasons.iter().max_by_key(|(_, count)| *count)?;
        Some(&most.0)
    }

    /// How far those are that run, together.
    pub(super) fn progress(&self) -> Option<Progress> {
        let (count, parts, eta_s) = self.progress;
        let done = (parts / count.max(1) as f64 * 1000.0) as u64;
        let all = Progress { done, total: Some(1000), unit: String::new(), rate: None, eta_s };
        (count > 0).then_some(all)
    }
}

fn with_own_texts<T: AsRef<str> + Clone>(task: &TaskView<T>) -> TaskView {
    TaskView {
        id: task.id,
        name: task.name.as_ref().to_owned(),
        user: task.user.as_ref().to_owned(),
        gpus: task.gpus,
        array_id: task.array_id,
        time_limit_s: task.time_limit_s,
        gpu_mem_bytes: task.gpu_mem_bytes,
        estimate_bytes: task.estimate_bytes,
        ..TaskView::default()
    }
}

/// Rows of a table into which tasks are folded as they come.
pub(super) struct Folding {
    rows: Rows,
    now: Moment,
    /// Each task has its own line.
    unfold: bool,
    /// The array that may go on.
    open: Option<Open>,
}

/// One task of an array is a line as always; from the second on they are folded.
struct Open {
    array: u32,
    alone: Option<TaskView>,
    folded: Folded,
}

impl Folding {
    pub(super) fn new(rows: Rows, now: Moment, unfold: bool) -> Self {
        Folding { rows, now, unfold, open: None }
    }

    pub(super) fn push<T: AsRef<str> + Clone + Into<String>>(&mut self, task: &TaskView<T>) {
        let Some(array) = task.array_id.filter(|_| !self.unfold) else {
            self.close();
            return self.rows.push(task, self.now);
        };
        match &mut self.open {
            Some(open) if open.array == array => {
                open.alone = None;
                open.folded.add(task);
            }
            _ => {
                self.close();
                let alone = Some(task.clone().owned());
                self.open = Some(Open { array, alone, folded: Folded::new(task) });
            }
        }
    }

    fn close(&mut self) {
        match self.open.take() {
            Some(Open { alone: Some(task), .. }) => self.rows.push(&task, self.now),
            Some(Open { folded, .. }) => self.rows.push_folded(&folded, self.now),
            None => {}
        }
    }

    /// The table with all that came.
    pub(super) fn rows(mut self) -> Rows {
        self.close();
        self.rows
    }
}
