//! Everything that `coloc top` shows.

use coloc_api::request::Change;
use coloc_api::view::{
    Expected, GpuView, SampleFrame, StatusNews, StatusView, TaskDetail, TaskView, TimelineAnswer,
    WhyView,
};
use std::collections::{BTreeMap, VecDeque};

/// How long the little charts of SM activity look back, in seconds.
pub(super) const LOOK_BACK_S: f64 = 1800.0;
/// Lines of a log that are kept.
pub(super) const LOG_LINES: usize = 500;

/// Hours, minutes and seconds of a moment, as the clock on the wall shows it.
pub(super) type Clock = fn(f64) -> (u32, u32, u32);

/// What the daemon told.
#[derive(Clone, Default, Debug)]
pub(super) struct Data {
    pub(super) status: StatusView,
    pub(super) gpus: Vec<GpuView>,
    /// Tasks that have not ended.
    pub(super) tasks: BTreeMap<u32, TaskView>,
    /// Tasks that ended within a day, once they were asked for.
    pub(super) ended: BTreeMap<u32, TaskView>,
    pub(super) expected: BTreeMap<u32, Expected>,
    /// SM activity of each GPU, oldest first.
    pub(super) activity: BTreeMap<u32, VecDeque<(f64, f64)>>,
}

/// Whether what is shown is so now.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Connection {
    /// Nothing was heard yet.
    Connecting,
    /// It is.
    Live,
    /// It was so then.
    Stale { since_s: f64, why: String },
}

/// What tasks are listed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Filter {
    All,
    Yours,
    Running,
    Waiting,
    Ended,
}

impl Filter {
    pub(super) const ALL: [Filter; 5] =
        [Filter::All, Filter::Yours, Filter::Running, Filter::Waiting, Filter::Ended];

    pub(super) fn name(self) -> &'static str {
        match self {
            Filter::All => "all",
            Filter::Yours => "yours",
            Filter::Running => "running",
            Filter::Waiting => "waiting",
            Filter::Ended => "ended",
        }
    }

    pub(super) fn next(self) -> Self {
        let at = Filter::ALL.iter().position(|&one| one == self).unwrap_or(0);
        Filter::ALL[(at + 1) % Filter::ALL.len()]
    }
}

/// In which order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sort {
    /// Running tasks by their expected end, then waiting ones in their order.
    Ends,
    Id,
    Name,
    User,
    /// Most memory first.
    Memory,
    /// Longest first.
    Time,
}

impl Sort {
    const ALL: [Sort; 6] = [Sort::Ends, Sort::Id, Sort::Name, Sort::User, Sort::Memory, Sort::Time];

    pub(super) fn name(self) -> &'static str {
        match self {
            Sort::Ends => "ends ▲",
            Sort::Id => "id ▲",
            Sort::Name => "name ▲",
            Sort::User => "user ▲",
            Sort::Memory => "memory ▼",
            Sort::Time => "time ▼",
        }
    }

    pub(super) fn next(self) -> Self {
        let at = Sort::ALL.iter().position(|&one| one == self).unwrap_or(0);
        Sort::ALL[(at + 1) % Sort::ALL.len()]
    }
}

/// What is below the tasks, where there is room for one pane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Pane {
    None,
    Why,
    Log,
}

/// What takes the whole screen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Page {
    Main,
    Task,
    Timeline,
    Help,
}

/// A task's output.
#[derive(Clone, PartialEq, Default, Debug)]
pub(super) struct Log {
    pub(super) id: u32,
    pub(super) attempt: u32,
    pub(super) lines: Vec<String>,
}

/// Something that waits for a yes.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Asked {
    pub(super) ids: Vec<u32>,
    pub(super) change: Change,
    pub(super) question: String,
}

/// Everything that is shown.
#[derive(Clone, Debug)]
pub(super) struct App {
    pub(super) data: Data,
    /// What was there when the view was paused.
    pub(super) paused: Option<Box<Data>>,
    pub(super) connection: Connection,
    pub(super) now_s: f64,
    pub(super) clock: Clock,
    pub(super) filter: Filter,
    pub(super) sort: Sort,
    /// What names, users or ids are looked for.
    pub(super) find: String,
    pub(super) finding: bool,
    /// The task that the marker is on.
    pub(super) selected: Option<u32>,
    /// The first row of the list that is shown; the view keeps the marker in sight.
    pub(super) first_gpu: usize,
    pub(super) pane: Pane,
    pub(super) page: Page,
    /// Rows of a page that were scrolled past.
    pub(super) scrolled: usize,
    pub(super) asked: Option<Asked>,
    pub(super) message: Option<String>,
    pub(super) why: Option<WhyView>,
    pub(super) log: Option<Log>,
    pub(super) detail: Option<Box<TaskDetail>>,
    pub(super) timeline: Option<TimelineAnswer>,
}

impl App {
    pub(super) fn new(clock: Clock) -> Self {
        App {
            data: Data::default(),
            paused: None,
            connection: Connection::Connecting,
            now_s: 0.0,
            clock,
            filter: Filter::All,
            sort: Sort::Ends,
            find: String::new(),
            finding: false,
            selected: None,
            first_gpu: 0,
            pane: Pane::Why,
            page: Page::Main,
            scrolled: 0,
            asked: None,
            message: None,
            why: None,
            log: None,
            detail: None,
            timeline: None,
        }
    }

    /// What is shown: what there is, or what there was when the view was paused.
    pub(super) fn shown(&self) -> &Data {
        self.paused.as_deref().unwrap_or(&self.data)
    }

    /// The task that the marker is on.
    pub(super) fn task(&self) -> Option<&TaskView> {
        let (data, id) = (self.shown(), self.selected?);
        data.tasks.get(&id).or_else(|| data.ended.get(&id))
    }
}

impl Data {
    /// Takes over what the monitor saw.
    pub(super) fn see(&mut self, frame: &SampleFrame) {
        for seen in &frame.gpus {
            self.note_activity(seen.index, frame.at_s, seen.smact);
            let Some(gpu) = self.gpus.iter_mut().find(|gpu| gpu.index == seen.index) else {
                continue;
            };
            gpu.memory_used_bytes = seen.memory_used_bytes;
            gpu.memory_promised_bytes = seen.memory_promised_bytes;
            (gpu.smact, gpu.smocc, gpu.drama) = (seen.smact, seen.smocc, seen.drama);
            (gpu.power_w, gpu.temperature_c) = (seen.power_w, seen.temperature_c);
            gpu.verdict = seen.verdict.clone();
            for resident in &mut gpu.residents {
                let Some(frame) = seen.residents.iter().find(|frame| frame.id == resident.id)
                else {
                    continue;
                };
                resident.used_bytes = frame.used_bytes;
                resident.promised_bytes = frame.promised_bytes;
                resident.sm_share = frame.sm_share;
                resident.slowdown = frame.slowdown;
                if let Some(task) = self.tasks.get_mut(&frame.id) {
                    task.used_bytes = frame.used_bytes.or(task.used_bytes);
                    task.promised_bytes = Some(frame.promised_bytes);
                }
            }
        }
    }

    /// Whether a frame tells of tasks on GPUs that are not known to be there.
    pub(super) fn is_news(&self, frame: &SampleFrame) -> bool {
        let known = |index: u32| self.gpus.iter().find(|gpu| gpu.index == index);
        frame.gpus.iter().any(|seen| {
            let here = known(seen.index).map(|gpu| gpu.residents.iter().map(|one| one.id));
            !here.is_some_and(|here| here.eq(seen.residents.iter().map(|one| one.id)))
        })
    }

    pub(super) fn note_activity(&mut self, gpu: u32, at_s: f64, smact: f64) {
        let seen = self.activity.entry(gpu).or_default();
        if seen.back().is_none_or(|(last, _)| at_s > last + 0.5) {
            seen.push_back((at_s, smact));
        }
        while seen.front().is_some_and(|(first, _)| *first < at_s - LOOK_BACK_S) {
            seen.pop_front();
        }
    }

    pub(super) fn take_status(&mut self, news: StatusNews) {
        let StatusNews { now_s, tasks, counts, draining, disk_full, trouble, .. } = news;
        let status = &mut self.status;
        (status.now_s, status.tasks, status.counts) = (now_s, tasks, counts);
        (status.draining, status.disk_full, status.trouble) = (draining, disk_full, trouble);
        (status.ooms_today, status.recovered_today) = (news.ooms_today, news.recovered_today);
        (status.energy_today_j, status.faults) = (news.energy_today_j, news.faults);
    }

    /// A task is like this now.
    pub(super) fn take_task(&mut self, task: TaskView) {
        match task.state.is_over() {
            true => {
                self.tasks.remove(&task.id);
                if !self.ended.is_empty() {
                    self.ended.insert(task.id, task);
                }
            }
            false => drop(self.tasks.insert(task.id, task)),
        }
    }
}
