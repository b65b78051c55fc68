//! What a live run looks like while it goes on.

use crate::output::table::bar;
use crate::output::terminal::cut;
use coloc_api::view::{GpuView, TaskView};
use coloc_model::TaskState;
use std::fmt::Write as _;

/// One side of the board.
pub(crate) struct Side<'a> {
    pub(crate) name: &'a str,
    pub(crate) tasks: &'a [TaskView],
    pub(crate) gpus: &'a [GpuView],
    pub(crate) expected: usize,
}

/// Columns of one side, where there is room for it, and between both.
const WIDTH: usize = 41;
const GAP: usize = 4;
/// Dots for tasks on a GPU, at most.
const DOTS: usize = 6;
/// What a line of a GPU has besides its bar: numbers and dots.
const FIGURES: usize = 31;

impl Side<'_> {
    fn count(&self, wanted: impl Fn(TaskState) -> bool) -> usize {
        self.tasks.iter().filter(|task| wanted(task.state)).count()
    }

    /// Its lines, none wider than this.
    fn lines(&self, width: usize) -> Vec<String> {
        let ended = self.count(TaskState::is_over);
        let running = self.count(TaskState::is_on_gpus);
        let waiting = self.tasks.len() - ended - running;
        let share = ended as f64 / self.expected.max(1) as f64;
        let mut lines = vec![
            self.name.to_owned(),
            format!("{:<24} {ended:>2} of {} done", bar(share, 24), self.expected),
            format!("{running} running, {waiting} waiting"),
        ];
        let wide = width.saturating_sub(FIGURES).clamp(1, 10);
        for gpu in self.gpus {
            let used = gpu.memory_used_bytes as f64 / gpu.memory_total_bytes.max(1) as f64;
            let tasks = gpu.tasks.len();
            lines.push(format!(
                "GPU {}  {:<wide$} {:>4.1}G  SM {:>3.0} %  {}",
                gpu.index,
                bar(used, wide),
                gpu.memory_used_bytes as f64 / (1u64 << 30) as f64,
                gpu.smact * 100.0,
                "●".repeat(tasks.min(DOTS))
            ));
        }
        lines.into_iter().map(|line| cut(&line, width).into_owned()).collect()
    }
}

/// Both sides, one beside the other. On a terminal no line is wider than that: one that wraps takes two rows, and a board that is
/// drawn over the last one begins too low.
pub(crate) fn draw(left: &Side<'_>, right: &Side<'_>, terminal: Option<usize>) -> String {
    let room = terminal.map_or(WIDTH, |columns| columns.saturating_sub(GAP) / 2);
    let width = room.min(WIDTH);
    let (left, right) = (left.lines(width), right.lines(width));
    let mut text = String::new();
    for index in 0..left.len().max(right.len()) {
        let cell = |lines: &[String]| lines.get(index).cloned().unwrap_or_default();
        let (left, right) = (cell(&left), cell(&right));
        let gap = width.saturating_sub(left.chars().count()) + GAP;
        let line = format!("{left}{}{right}", " ".repeat(gap));
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_sides_stand_beside_each_other() {
        let gpu = GpuView {
            index: 0,
            uuid: String::new(),
            model: "A100-40GB".to_owned(),
            memory_total_bytes: 40 << 30,
            memory_used_bytes: 20 << 30,
            memory_promised_bytes: 0,
            smact: 0.62,
            tasks: (1..=7).collect(),
            residents: vec![],
            ..GpuView::default()
        };
        let gpus = [gpu];
        let side = |name| Side { name, tasks: &[], gpus: &gpus, expected: 30 };
        let draw = |terminal| draw(&side("one task a GPU"), &side("shared"), terminal);
        insta::assert_snapshot!(draw(None), @r"
        one task a GPU                               shared
                                  0 of 30 done                                 0 of 30 done
        0 running, 0 waiting                         0 running, 0 waiting
        GPU 0  █████      20.0G  SM  62 %  ●●●●●●    GPU 0  █████      20.0G  SM  62 %  ●●●●●●
        ");
        insta::assert_snapshot!(draw(Some(80)), @r"
        one task a GPU                            shared
                                  0 of 30 done                              0 of 30 done
        0 running, 0 waiting                      0 running, 0 waiting
        GPU 0  ███▌    20.0G  SM  62 %  ●●●●●●    GPU 0  ███▌    20.0G  SM  62 %  ●●●●●●
        ");
        for columns in [10, 40, 79, 80, 81, 200] {
            let drawn = draw(Some(columns));
            assert!(
                drawn.lines().all(|line| line.chars().count() <= columns),
                "{columns}: {drawn}"
            );
        }
    }
}
