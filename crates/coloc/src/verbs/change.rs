//! `coloc cancel`, `hold`, `release` and `requeue`: one change for some tasks.

use crate::args::live::{Selection, SocketArg, in_ranges, resolve_of};
use crate::error::CliError;
use crate::output::{Answer, print_text};
use crate::parse::states::StateWish;
use clap::Args;
use coloc_api::answer::{RefusedTask, code};
use coloc_api::client::{Client, Wanted, Whose};
use coloc_api::request::Change;
use coloc_api::view::TaskView;
use std::collections::HashSet;

/// Tasks to change
#[derive(Args, Debug)]
pub(crate) struct ChangeTasks {
    /// The tasks: 7, 3-9, last or all; the last two are among those of whoever asks, unless --user or --all-users says otherwise
    #[arg(required_unless_present_any = ["user", "me", "name", "state"], value_name = "TASK")]
    tasks: Vec<Selection>,
    /// Only this user's; without TASK, all of them
    #[arg(short = 'u', long, value_name = "NAME")]
    user: Option<String>,
    /// Only mine
    #[arg(long, conflicts_with = "user")]
    me: bool,
    /// Everybody's, for administrators
    #[arg(long, conflicts_with_all = ["user", "me"])]
    all_users: bool,
    /// Only tasks of this name
    #[arg(short = 'J', long, visible_alias = "job-name", value_name = "NAME")]
    name: Option<String>,
    /// Only tasks in these states, such as pending
    #[arg(long, value_name = "STATE", value_delimiter = ',')]
    state: Vec<StateWish>,
    /// As scancel: the id of an array means all of it
    #[arg(long, hide = true)]
    slurm: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    socket: SocketArg,
}

impl ChangeTasks {
    pub(crate) fn run(self, change: Change) -> Result<(), CliError> {
        let mut client = self.socket.connect()?;
        let ids = self.chosen(&mut client)?;
        apply(&mut client, &ids, &self.tasks, change, self.json)
    }

    fn chosen(&self, client: &mut Client) -> Result<Vec<u32>, CliError> {
        let whose = match &self.user {
            Some(user) => Whose::User(user),
            None if self.all_users => Whose::Everybody,
            None => Whose::Mine,
        };
        let by_user = self.user.is_some() || self.me;
        let filters = by_user || self.name.is_some() || !self.state.is_empty();
        let named = resolve_of(client, &self.tasks, whose)?;
        if !filters && !self.slurm {
            return Ok(named);
        }
        // A user who names no task means their own; one who names a task means that one, whichever user's it is.
        let whose = if by_user || self.tasks.is_empty() { whose } else { Whose::Everybody };
        let tasks = client.list_of(&Wanted { all: false, since_s: 0.0, whose })?;
        let names: HashSet<u32> = named.iter().copied().collect();
        let is_named = |task: &TaskView| {
            let whole_array = |array: u32| self.slurm && names.contains(&array);
            self.tasks.is_empty()
                || names.contains(&task.id)
                || task.array_id.is_some_and(whole_array)
        };
        let passes = |task: &&TaskView| {
            is_named(task)
                && self.name.as_ref().is_none_or(|name| task.name == *name)
                && StateWish::any(&self.state, task.state)
        };
        let mut ids: Vec<u32> = tasks.iter().filter(passes).map(|task| task.id).collect();
        if !filters {
            // A user who names a task that is not there is told so.
            let there: HashSet<u32> = tasks.iter().map(|task| task.id).collect();
            ids.extend(named.into_iter().filter(|id| !there.contains(id)));
        }
        Ok(ids)
    }
}

/// Has the daemon change tasks, and says what became of it. A user who asks for all, or for a range, means tasks that
/// have not ended.
pub(crate) fn apply(
    client: &mut Client,
    ids: &[u32],
    wish: &[Selection],
    change: Change,
    json: bool,
) -> Result<(), CliError> {
    let verb = match change {
        Change::Cancel => "Cancelled",
        Change::Hold => "Held",
        Change::Release => "Released",
        Change::Requeue => "Requeued",
        Change::Update(_) => "Updated",
        Change::Signal(_) => "Signalled",
    };
    let mut changed = client.change(ids, change)?;
    let named = |id: u32| wish.iter().any(|selection| selection.names(id));
    let beside = [code::NO_SUCH_TASK, code::NOT_HELD, code::NOT_RUNNING];
    changed.refused.retain(|refused| named(refused.id) || !beside.contains(&refused.code.as_str()));
    if json {
        // The daemon's answer has the version already.
        #[derive(serde::Serialize)]
        struct Body<'a> {
            done: &'a [u32],
            refused: &'a [RefusedTask],
        }
        let body = Body { done: &changed.done, refused: &changed.refused };
        Answer { body: &body, wall_s: None }.print()?;
    } else if !changed.done.is_empty() {
        print_text(&format!("{verb} {}", in_ranges(&changed.done)))?;
    } else if changed.refused.is_empty() {
        eprintln!(
            "coloc: nothing matched: no such task of yours, or all of them have ended; \
             --user NAME and --all-users are for those of others"
        );
    }
    match changed.refused.as_slice() {
        [] => Ok(()),
        refused => {
            let why: Vec<&str> = refused.iter().map(|one| one.message.as_str()).collect();
            Err(CliError::Refused(why.join("\n")))
        }
    }
}
