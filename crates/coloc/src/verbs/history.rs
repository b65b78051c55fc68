//! `coloc history`: tasks that have ended.

use crate::args::live::{Selection, SocketArg, in_ranges, resolve_of};
use crate::error::{CliError, UsageError};
use crate::output::summary::energy;
use crate::output::table::listing;
use crate::output::{Answer, print_text};
use crate::parse::since::past_moment;
use crate::verbs::queue::{clock, id_text};
use clap::Args;
use coloc_api::client::Whose;
use coloc_api::moment::Moment;
use coloc_api::report::{EndedTask, HistoryRequest};

/// List tasks that have ended, with what each used, the last one last
#[derive(Args, Debug)]
pub(crate) struct History {
    /// These tasks alone: 7, 3-9, 1,4-6, 12_3 of an array, last
    #[arg(value_name = "TASKS")]
    tasks: Vec<Selection>,
    /// Only what ended since: 12h or 2d ago, today, yesterday, 2027-01-20
    #[arg(short = 'S', long, value_name = "WHEN", value_parser = past_moment)]
    since: Option<Moment>,
    /// Only what ended before, in the same forms
    #[arg(short = 'E', long, value_name = "WHEN", value_parser = past_moment)]
    until: Option<Moment>,
    /// At most so many, the newest
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    lines: Option<u32>,
    /// Only this user's
    #[arg(short = 'u', long, value_name = "NAME")]
    user: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    socket: SocketArg,
}

impl History {
    pub(crate) fn run(self) -> Result<(), CliError> {
        let now = Moment::now();
        if let (Some(since), Some(until)) = (self.since, self.until)
            && until <= since
        {
            let why = "nothing ends before --since: give a later one";
            return Err(UsageError::flag("--until", why).into());
        }
        let mut client = self.socket.connect()?;
        let ids = match self.tasks.is_empty() {
            true => None,
            false => Some(resolve_of(&mut client, &self.tasks, Whose::Everybody)?),
        };
        let request = HistoryRequest {
            since_s: self.since.map_or(0.0, Moment::secs),
            until_s: self.until.map(Moment::secs),
            user: self.user,
            ids: ids.as_ref().map(|ids| in_ranges(ids).replace(' ', "")),
            limit: self.lines,
        };
        let told = client.history(&request)?;
        // A task that was named is expected to be there.
        let is_there = |id: u32| told.tasks.iter().any(|ended| ended.task.id == id);
        let is_named = |id: u32| self.tasks.iter().any(|wish| wish.names(id));
        let missing = ids.iter().flatten().find(|&&id| is_named(id) && !is_there(id));
        if let Some(id) = missing.filter(|_| request.limit.is_none()) {
            let why = format!("{id} has not ended, or not in that time: coloc show {id}");
            return Err(UsageError::flag("TASKS", why).into());
        }
        if self.json {
            #[derive(serde::Serialize)]
            struct Body<'a> {
                tasks: &'a [EndedTask],
                truncated: bool,
            }
            let body = Body { tasks: &told.tasks, truncated: told.truncated };
            return Answer { body: &body, wall_s: None }.print();
        }
        match told.tasks.is_empty() {
            true => print_text("No task has ended in that time."),
            false => print_text(&render(&told.tasks, now)),
        }
    }
}

/// On a narrow terminal: tries, its peak, its GPUs, how long it waited, its exit code, its user, and when it ended.
const SPARE: [usize; 7] = [10, 9, 6, 4, 11, 2, 12];

fn render(tasks: &[EndedTask], now: Moment) -> String {
    let header = [
        "ID", "NAME", "USER", "STATE", "WAITED", "RAN", "GPUS", "ENERGY", "SMACT", "PEAK", "TRIES",
        "EXIT", "ENDED",
    ];
    let dash = || "-".to_owned();
    let row = |ended: &EndedTask| {
        let EndedTask { task, waited_s, ran_s, usage } = ended;
        let end = task.ended_s.unwrap_or(now.secs());
        vec![
            id_text(task),
            task.name.clone(),
            task.user.clone(),
            task.state.to_string(),
            clock(*waited_s),
            ran_s.map_or_else(dash, clock),
            task.gpus.to_string(),
            usage.energy_j.map_or_else(dash, energy),
            usage.smact_mean.map_or_else(dash, |smact| format!("{smact:.2}")),
            format!("{:.1}G", task.peak_bytes as f64 / (1u64 << 30) as f64),
            task.attempts.to_string(),
            task.exit_code.map_or_else(dash, |code| code.to_string()),
            format!("{} ago", clock(now.secs() - end)),
        ]
    };
    listing(&header, tasks.iter().map(row), &SPARE)
}
