//! Lists in a form of one's own, by squeue's letters and names.

use super::fields::{Field, Listed};
use coloc_api::view::{TaskDetail, TaskView};
use std::cmp::Ordering;
use std::str::FromStr;

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
    /// As `squeue` has it.
    pub(crate) fn usual() -> Self {
        "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R"
            .parse()
            .unwrap_or(Format(Vec::new()))
            .in_slurms_words()
    }

    /// The same with nodes and reasons in Slurm's words, which have no blanks: scripts count columns.
    fn in_slurms_words(mut self) -> Self {
        for part in &mut self.0 {
            if let Part::Cell { field: field @ Field::Place, .. } = part {
                *field = Field::NodesOrReason;
            }
        }
        self
    }

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

    /// A task's line; with `more` where a field [is told of it alone](Self::asks_each).
    pub(crate) fn row(&self, task: &TaskView, more: Option<&TaskDetail>, now: f64) -> String {
        self.line(|field| field.text(Listed { task, more }, now))
    }

    /// Whether lists do not tell a field, so that tasks are asked one by one.
    pub(crate) fn asks_each(&self) -> bool {
        self.0.iter().any(|part| matches!(part, Part::Cell { field, .. } if field.asks_each()))
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
    use coloc_model::TaskState;
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
        let row = |format: &str| {
            format.parse::<Format>().map(|format| format.row(&task(7, 0), None, 70.0))
        };
        assert_eq!(row("%i|%.4j|%5u|%t %T").unwrap(), "7|trai|ada  |R RUNNING");
        assert_eq!(row("%M %l %L %D %b %R 100%%").unwrap(), "1:00 1:40 0:40 1 gres/gpu:2 0,3 100%");
        assert_eq!("%.6i %j".parse::<Format>().unwrap().header(), " JOBID NAME");
        let named = Format::of_names("JobID:4,UserName:.5,StateCompact:2").unwrap();
        assert_eq!(named.row(&task(7, 0), None, 70.0), "7     adaR ");
        for wrong in ["%", "%s", "%99999999999999999999i", "%.", "%10001i"] {
            assert!(row(wrong).is_err(), "{wrong}");
        }
        for wrong in ["", "nope", "JobID:x", "JobID:-1", "Name,,"] {
            assert!(Format::of_names(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_slurm_knows_and_coloc_has_not_is_not_available() {
        let row = |format: Format| format.row(&task(7, 0), None, 70.0);
        assert_eq!(row("%q|%E|%C|%a".parse().unwrap()), "N/A|N/A|1|ada");
        let named = Format::of_names("JobID:3,tres-alloc:27,QOS:4,RestartCnt:1").unwrap();
        assert_eq!(row(named), "7  cpu=1,node=1,gres/gpu=2    N/A 0");
        assert_eq!(
            Format::usual().header(),
            "             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)"
        );
        let waits = TaskView {
            state: TaskState::Pending,
            array_id: Some(7),
            array_index: Some(0),
            ..task(7, 0)
        };
        let line = Format::usual().row(&waits, None, 70.0);
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(words, ["7_0", "coloc", "train.py", "ada", "PD", "0:00", "1", "(Resources)"]);
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
        for wrong in ["", "-", "s", "nope", "i,,"] {
            assert!(wrong.parse::<Sort>().is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn no_format_is_too_strange(text in "[%.0-9a-zA-Z:, ä-]{0,20}") {
            if let Ok(format) = text.parse::<Format>() {
                format.row(&task(1, 0), None, 0.0);
            }
            let _ = (Format::of_names(&text), text.parse::<Sort>());
        }
    }
}
