//! What a live run looks like while it goes on.

use crate::output::table::bar;
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

const WIDTH: usize = 38;

impl Side<'_> {
    fn count(&self, wanted: impl Fn(TaskState) -> bool) -> usize {
        self.tasks.iter().filter(|task| wanted(task.state)).count()
    }

    /// Its lines, all of one width.
    fn lines(&self) -> Vec<String> {
        let ended = self.count(TaskState::is_over);
        let running = self.count(TaskState::is_on_gpus);
        let waiting = self.tasks.len() - ended - running;
        let share = ended as f64 / self.expected.max(1) as f64;
        let mut lines = vec![
            self.name.to_owned(),
            format!("{:<24} {ended:>2} of {} done", bar(share, 24), self.expected),
            format!("{running} running, {waiting} waiting"),
        ];
        for gpu in self.gpus {
            let used = gpu.memory_used_bytes as f64 / gpu.memory_total_bytes.max(1) as f64;
            let tasks = gpu.tasks.len();
            lines.push(format!(
                "GPU {}  {:<10} {:>4.1}G  SM {:>3.0} %  {}",
                gpu.index,
                bar(used, 10),
                gpu.memory_used_bytes as f64 / (1u64 << 30) as f64,
                gpu.smact * 100.0,
                "●".repeat(tasks.min(6))
            ));
        }
        lines
    }
}

/// Both sides, one beside the other.
pub(crate) fn draw(left: &Side<'_>, right: &Side<'_>) -> String {
    let (left, right) = (left.lines(), right.lines());
    let mut text = String::new();
    for index in 0..left.len().max(right.len()) {
        let cell = |lines: &[String]| lines.get(index).cloned().unwrap_or_default();
        let (left, right) = (cell(&left), cell(&right));
        let gap = WIDTH.saturating_sub(left.chars().count()) + 4;
        let _ = writeln!(text, "{left}{}{right}", " ".repeat(gap));
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
            tasks: vec![1, 2],
            residents: vec![],
            ..GpuView::default()
        };
        let gpus = [gpu];
        let side = |name| Side { name, tasks: &[], gpus: &gpus, expected: 30 };
        insta::assert_snapshot!(draw(&side("one task a GPU"), &side("shared")), @r"
        one task a GPU                            shared
                                  0 of 30 done                              0 of 30 done
        0 running, 0 waiting                      0 running, 0 waiting
        GPU 0  █████      20.0G  SM  62 %  ●●     GPU 0  █████      20.0G  SM  62 %  ●●
        ");
    }
}
