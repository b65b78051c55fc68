//! `coloc history`: tasks that have ended.

use crate::args::live::SocketArg;
use crate::error::CliError;
use crate::output::table::listing;
use crate::output::{Answer, print_text};
use crate::verbs::queue::{clock, id_text};
use clap::Args;
use coloc_api::moment::Moment;
use coloc_api::view::TaskView;
use coloc_model::Millis;

/// List tasks that have ended, the last one last
#[derive(Args, Debug)]
pub(crate) struct History {
    #[command(flatten)]
    socket: SocketArg,
    /// Only what ended this long ago or later, such as 12h or 2d
    #[arg(long, value_name = "SPAN")]
    since: Option<Millis>,
    /// Only this user's
    #[arg(short = 'u', long, value_name = "NAME")]
    user: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl History {
    pub(crate) fn run(self) -> Result<(), CliError> {
        let now = Moment::now();
        let since = self.since.map_or(0.0, |span| (now.secs() - span.secs()).max(0.0));
        let mut tasks = self.socket.connect()?.list(true, since)?.tasks;
        let wanted = |task: &TaskView| {
            task.state.is_over() && self.user.as_ref().is_none_or(|user| task.user == *user)
        };
        tasks.retain(wanted);
        let ended = |task: &TaskView| task.ended_s.unwrap_or(0.0);
        tasks.sort_by(|a, b| ended(a).total_cmp(&ended(b)).then(a.id.cmp(&b.id)));
        if self.json {
            #[derive(serde::Serialize)]
            struct Body<'a> {
                tasks: &'a [TaskView],
            }
            return Answer { body: &Body { tasks: &tasks }, wall_s: None }.print();
        }
        print_text(&render(&tasks, now))
    }
}

/// On a narrow terminal: tries, how long it waited, its peak, its GPUs, its user, and when it ended.
const SPARE: [usize; 6] = [8, 4, 7, 6, 2, 10];

fn render(tasks: &[TaskView], now: Moment) -> String {
    let header =
        ["ID", "NAME", "USER", "STATE", "WAITED", "RAN", "GPUS", "PEAK", "TRIES", "EXIT", "ENDED"];
    let dash = || "-".to_owned();
    let row = |task: &TaskView| {
        let ended = task.ended_s.unwrap_or(now.secs());
        let began = task.started_s;
        vec![
            id_text(task),
            task.name.clone(),
            task.user.clone(),
            task.state.to_string(),
            clock(began.unwrap_or(ended) - task.submitted_s),
            began.map_or_else(dash, |began| clock(ended - began)),
            task.gpus.to_string(),
            format!("{:.1}G", task.peak_bytes as f64 / (1u64 << 30) as f64),
            task.attempts.to_string(),
            task.exit_code.map_or_else(dash, |code| code.to_string()),
            format!("{} ago", clock(now.secs() - ended)),
        ]
    };
    listing(&header, tasks.iter().map(row), &SPARE)
}
