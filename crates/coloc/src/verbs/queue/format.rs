//! Lists in a form of one's own, by squeue's letters and names.

use super::clock;
use crate::local_time::LocalTime;
use crate::output::visible::visible;
use crate::parse::states::{letters, slurms};
use coloc_api::view::TaskView;
use coloc_model::TaskState;
use std::cmp::Ordering;
use std::str::FromStr;

/// Something about a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Field {
    Id,
    TaskId,
    ArrayId,
    ArrayIndex,
    Name,
    User,
    State,
    StateWord,
    TimeUsed,
    TimeLimit,
    TimeLeft,
    Nodes,
    Gpus,
    Gres,
    GpuIds,
    Memory,
    Peak,
    Reason,
    Place,
    Partition,
    Priority,
    Submitted,
    Started,
    Ended,
}

/// Each with squeue's letter, its names and its title.
const FIELDS: [(Field, char, &[&str], &str); 24] = [
    (Field::Id, 'i', &["jobid", "id"], "JOBID"),
    (Field::TaskId, 'A', &["jobarrayid", "taskid"], "JOBID"),
    (Field::ArrayId, 'F', &["arrayjobid"], "ARRAY_JOB_ID"),
    (Field::ArrayIndex, 'K', &["arraytaskid"], "ARRAY_TASK_ID"),
    (Field::Name, 'j', &["name"], "NAME"),
    (Field::User, 'u', &["username", "user"], "USER"),
    (Field::State, 't', &["statecompact", "st"], "ST"),
    (Field::StateWord, 'T', &["state"], "STATE"),
    (Field::TimeUsed, 'M', &["timeused", "time"], "TIME"),
    (Field::TimeLimit, 'l', &["timelimit", "limit"], "TIME_LIMIT"),
    (Field::TimeLeft, 'L', &["timeleft"], "TIME_LEFT"),
    (Field::Nodes, 'D', &["numnodes"], "NODES"),
    (Field::Gpus, 'g', &["gpus"], "GPUS"),
    (Field::Gres, 'b', &["gres", "tres-per-node", "tres-per-job"], "TRES_PER_NODE"),
    (Field::GpuIds, 'N', &["nodelist", "gpu-ids"], "GPU_IDS"),
    (Field::Memory, 'm', &["minmemory", "gpu-mem"], "GPU_MEM"),
    (Field::Peak, 'X', &["peak"], "PEAK"),
    (Field::Reason, 'r', &["reason"], "REASON"),
    (Field::Place, 'R', &["reasonlist"], "GPU(REASON)"),
    (Field::Partition, 'P', &["partition"], "PARTITION"),
    (Field::Priority, 'Q', &["prioritylong", "priority"], "PRIORITY"),
    (Field::Submitted, 'V', &["submittime", "submitted"], "SUBMIT_TIME"),
    (Field::Started, 'S', &["starttime", "started"], "START_TIME"),
    (Field::Ended, 'e', &["endtime", "ended"], "END_TIME"),
];

impl Field {
    fn by_letter(letter: char) -> Result<Self, String> {
        let letter = if letter == 'p' { 'Q' } else { letter };
        let found = FIELDS.iter().find(|(_, known, ..)| *known == letter);
        found.map(|(field, ..)| *field).ok_or_else(|| {
            let known: String = FIELDS.iter().map(|(_, letter, ..)| *letter).collect();
            format!("%{letter} is not known here; there are the letters {known}")
        })
    }

    fn by_name(name: &str) -> Result<Self, String> {
        let wanted = name.trim().to_ascii_lowercase();
        let found = FIELDS.iter().find(|(_, _, names, _)| names.contains(&wanted.as_str()));
        found.map(|(field, ..)| *field).ok_or_else(|| {
            let known: Vec<&str> = FIELDS.iter().map(|(_, _, names, _)| names[0]).collect();
            format!("{name:?} is not known here; there are {}", known.join(", "))
        })
    }

    fn title(self) -> &'static str {
        FIELDS.iter().find(|(field, ..)| *field == self).map_or("", |(.., title)| title)
    }

    fn text(self, task: &TaskView, now: f64) -> String {
        let none = || "N/A".to_owned();
        let moment = |at: Option<f64>| {
            at.and_then(|at| LocalTime::of(at as i64)).map_or_else(none, |at| at.to_string())
        };
        let memory = |bytes: u64| format!("{}M", bytes >> 20);
        let gpu_ids = || task.gpu_ids.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        match self {
            Field::Id => match (task.array_id, task.array_index) {
                (Some(array), Some(index)) => format!("{array}_{index}"),
                _ => task.id.to_string(),
            },
            Field::TaskId => task.id.to_string(),
            Field::ArrayId => task.array_id.unwrap_or(task.id).to_string(),
            Field::ArrayIndex => task.array_index.map_or_else(none, |index| index.to_string()),
            Field::Name => visible(&task.name).into_owned(),
            Field::User => visible(&task.user).into_owned(),
            Field::State => letters(task.state).to_owned(),
            Field::StateWord => slurms(task.state).to_uppercase(),
            Field::TimeUsed => clock(used(task, now)),
            Field::TimeLimit => task.time_limit_s.map_or("UNLIMITED".to_owned(), clock),
            Field::TimeLeft => task
                .time_limit_s
                .map_or("UNLIMITED".to_owned(), |limit| clock(limit - used(task, now))),
            Field::Nodes => "1".to_owned(),
            Field::Gpus => task.gpus.to_string(),
            Field::Gres => format!("gres/gpu:{}", task.gpus),
            Field::GpuIds => gpu_ids(),
            Field::Memory => task.gpu_mem_bytes.or(task.estimate_bytes).map_or_else(none, memory),
            Field::Peak => memory(task.peak_bytes),
            Field::Reason => task.reason.as_deref().map_or("None".into(), visible).into_owned(),
            Field::Place if task.state.is_on_gpus() => gpu_ids(),
            Field::Place => format!("({})", visible(task.reason.as_deref().unwrap_or("None"))),
            Field::Partition => "coloc".to_owned(),
            Field::Priority => task.priority.to_string(),
            Field::Submitted => moment(Some(task.submitted_s)),
            Field::Started => moment(task.started_s),
            Field::Ended => moment(task.ended_s),
        }
    }

    /// Numbers go by what they are, the rest by their text.
    fn compare(self, a: &TaskView, b: &TaskView, now: f64) -> Ordering {
        let numbers = |of: &dyn Fn(&TaskView) -> f64| of(a).total_cmp(&of(b));
        match self {
            Field::Id | Field::TaskId => a.id.cmp(&b.id),
            Field::ArrayId => a.array_id.cmp(&b.array_id),
            Field::ArrayIndex => a.array_index.cmp(&b.array_index),
            Field::TimeUsed => numbers(&|task| used(task, now)),
            Field::TimeLimit => numbers(&|task| task.time_limit_s.unwrap_or(f64::INFINITY)),
            Field::TimeLeft => {
                numbers(&|task| task.time_limit_s.unwrap_or(f64::INFINITY) - used(task, now))
            }
            Field::Gpus | Field::Gres => a.gpus.cmp(&b.gpus),
            Field::GpuIds => a.gpu_ids.cmp(&b.gpu_ids),
            Field::Memory => {
                a.gpu_mem_bytes.or(a.estimate_bytes).cmp(&b.gpu_mem_bytes.or(b.estimate_bytes))
            }
            Field::Peak => a.peak_bytes.cmp(&b.peak_bytes),
            Field::Priority => a.priority.cmp(&b.priority),
            Field::Submitted => numbers(&|task| task.submitted_s),
            Field::Started => numbers(&|task| task.started_s.unwrap_or(f64::INFINITY)),
            Field::Ended => numbers(&|task| task.ended_s.unwrap_or(f64::INFINITY)),
            _ => self.text(a, now).cmp(&self.text(b, now)),
        }
    }
}

/// How long it has run, or ran.
fn used(task: &TaskView, now: f64) -> f64 {
    let began = task.started_s.filter(|_| task.state != TaskState::Pending);
    began.map_or(0.0, |began| task.ended_s.unwrap_or(now) - began)
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Part {
    Text(String),
    Cell { field: Field, width: Option<usize>, right: bool },
}

/// A line for each task.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Format(Vec<Part>);

/// The widest column.
const WIDEST: usize = 10_000;

impl Format {
    /// As `squeue -l` has it.
    pub(crate) fn long() -> Self {
        "%.18i %.9P %.8j %.8u %.9T %.10M %.9l %.6D %R".parse().unwrap_or(Format(Vec::new()))
    }

    /// `JobID:10,Name:.20,State`, as `squeue -O` takes it: twenty characters for what says nothing else.
    pub(crate) fn of_names(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        for word in text.split(',') {
            let (name, width) = word.split_once(':').map_or((word, None), |(n, w)| (n, Some(w)));
            let right = width.is_some_and(|width| width.starts_with('.'));
            let width = width.map(|width| width.trim_start_matches('.')).unwrap_or("20");
            let width = width.parse().ok().filter(|&width| width <= WIDEST);
            let width = width.ok_or_else(|| {
                format!("{word:?}: expected a name, or a name and a width such as Name:20")
            })?;
            parts.push(Part::Cell { field: Field::by_name(name)?, width: Some(width), right });
        }
        Ok(Format(parts))
    }

    pub(crate) fn header(&self) -> String {
        self.line(|field| field.title().to_owned())
    }

    pub(crate) fn row(&self, task: &TaskView, now: f64) -> String {
        self.line(|field| field.text(task, now))
    }

    fn line(&self, text: impl Fn(Field) -> String) -> String {
        let mut line = String::new();
        for part in &self.0 {
            match part {
                Part::Text(text) => line.push_str(text),
                Part::Cell { field, width, right } => {
                    let cell: String = match width {
                        Some(width) => text(*field).chars().take(*width).collect(),
                        None => text(*field),
                    };
                    let width = width.unwrap_or(0);
                    line.push_str(&if *right {
                        format!("{cell:>width$}")
                    } else {
                        format!("{cell:<width$}")
                    });
                }
            }
        }
        line
    }
}

impl FromStr for Format {
    type Err = String;

    /// `%.10i %j`: a width cuts and fills, a point before it puts the text to the right.
    fn from_str(text: &str) -> Result<Self, String> {
        let (mut parts, mut plain) = (Vec::new(), String::new());
        let mut chars = text.chars().peekable();
        while let Some(char) = chars.next() {
            if char != '%' {
                plain.push(char);
                continue;
            }
            if chars.next_if_eq(&'%').is_some() {
                plain.push('%');
                continue;
            }
            let right = chars.next_if_eq(&'.').is_some();
            let mut digits = String::new();
            while let Some(digit) = chars.next_if(char::is_ascii_digit) {
                digits.push(digit);
            }
            let width: Option<usize> = digits.parse().ok();
            if width.is_none() != digits.is_empty() || width.is_some_and(|width| width > WIDEST) {
                return Err(format!("%{digits}: a column has at most {WIDEST} characters"));
            }
            let letter = chars.next().ok_or("a % at the end has no letter after it")?;
            if !plain.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut plain)));
            }
            parts.push(Part::Cell { field: Field::by_letter(letter)?, width, right });
        }
        parts.extend((!plain.is_empty()).then_some(Part::Text(plain)));
        Ok(Format(parts))
    }
}

/// An order: letters or names, with `-` before those that fall.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Sort(Vec<(Field, bool)>);

impl FromStr for Sort {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let key = |word: &str| {
            let (word, falls) = match word.trim() {
                word if word.starts_with('-') => (&word[1..], true),
                word => (word.trim_start_matches('+'), false),
            };
            let mut letters = word.chars();
            let field = match (letters.next(), letters.next()) {
                (Some(letter), None) => Field::by_letter(letter),
                _ => Field::by_name(word),
            };
            field.map(|field| (field, falls))
        };
        text.split(',').map(key).collect::<Result<_, _>>().map(Sort)
    }
}

impl Sort {
    pub(crate) fn sort(&self, tasks: &mut [TaskView], now: f64) {
        tasks.sort_by(|a, b| {
            let orders = self.0.iter().map(|&(field, falls)| {
                let order = field.compare(a, b, now);
                if falls { order.reverse() } else { order }
            });
            orders.fold(Ordering::Equal, Ordering::then)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn task(id: u32, priority: i32) -> TaskView {
        TaskView {
            id,
            priority,
            name: "train.py".to_owned(),
            user: "ada".to_owned(),
            state: TaskState::Running,
            started_s: Some(10.0),
            time_limit_s: Some(100.0),
            gpus: 2,
            gpu_ids: vec![0, 3],
            ..TaskView::default()
        }
    }

    #[test]
    fn rows_are_as_squeue_would_write_them() {
        let row =
            |format: &str| format.parse::<Format>().map(|format| format.row(&task(7, 0), 70.0));
        assert_eq!(row("%i|%.4j|%5u|%t %T").unwrap(), "7|trai|ada  |R RUNNING");
        assert_eq!(row("%M %l %L %D %b %R 100%%").unwrap(), "1:00 1:40 0:40 1 gres/gpu:2 0,3 100%");
        assert_eq!("%.6i %j".parse::<Format>().unwrap().header(), " JOBID NAME");
        let named = Format::of_names("JobID:4,UserName:.5,StateCompact:2").unwrap();
        assert_eq!(named.row(&task(7, 0), 70.0), "7     adaR ");
        for wrong in ["%", "%y", "%99999999999999999999i", "%.", "%10001i"] {
            assert!(row(wrong).is_err(), "{wrong}");
        }
        for wrong in ["", "nope", "JobID:x", "JobID:-1", "Name,,"] {
            assert!(Format::of_names(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn tasks_are_put_in_order() {
        let sorted = |sort: &str| {
            let mut tasks = vec![task(1, 0), task(2, 5), task(3, 5), task(10, -1)];
            sort.parse::<Sort>().unwrap().sort(&mut tasks, 70.0);
            tasks.iter().map(|task| task.id).collect::<Vec<_>>()
        };
        assert_eq!(sorted("-priority,id"), [2, 3, 1, 10]);
        assert_eq!(sorted("-i"), [10, 3, 2, 1]);
        assert_eq!(sorted("p"), [10, 1, 2, 3]);
        for wrong in ["", "-", "y", "nope", "i,,"] {
            assert!(wrong.parse::<Sort>().is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn no_format_is_too_strange(text in "[%.0-9a-zA-Z:, ä-]{0,20}") {
            if let Ok(format) = text.parse::<Format>() {
                format.row(&task(1, 0), 0.0);
            }
            let _ = (Format::of_names(&text), text.parse::<Sort>());
        }
    }
}
