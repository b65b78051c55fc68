//! A progress bar for runs that take long enough to wonder.

use coloc_sim::Observer;
use indicatif::{ProgressBar, ProgressStyle};

/// Below this many tasks a run is over before a bar could be read.
const WORTH_SHOWING: usize = 20_000;

/// Watches a simulation; draws on a terminal only.
pub(crate) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    pub(crate) fn new(tasks: usize) -> Self {
        if tasks < WORTH_SHOWING {
            return Progress { bar: ProgressBar::hidden() };
        }
        let bar = ProgressBar::new(tasks as u64);
        let template = "{wide_bar} {human_pos}/{human_len} tasks, {eta} left";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Progress { bar }
    }

    pub(crate) fn done(&self) {
        self.bar.finish_and_clear();
    }
}

impl Observer for Progress {
    fn progress(&mut self, ended: usize) {
        self.bar.set_position(ended as u64);
    }
}
