//! `coloc whatif`: the daemon's own past under another policy, or on other GPUs.

use crate::args::input::read_fleet;
use crate::args::live::SocketArg;
use crate::args::physics::PhysicsArgs;
use crate::args::policy::{EstimatorFlag, PolicyArgs};
use crate::error::{CliError, UsageError};
use crate::invocation::typed_one;
use crate::output::summary::span;
use crate::output::{Answer, comparison, files, print_text};
use crate::parse::named_policy::{self, NamedPolicy};
use crate::report;
use crate::verbs::compare::{self, PolicyRun, Row};
use crate::without_effect;
use clap::Args;
use coloc_api::client::ClientError;
use coloc_api::moment::Moment;
use coloc_api::past::{Past, Setup};
use coloc_daemon::journal::Journal;
use coloc_daemon::past;
use coloc_daemon::past_trace::{Observed, PastTrace};
use coloc_model::{Fleet, Millis};
use coloc_sim::{Estimator, Simulation, trace};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// What most people want to see their own past beside.
const USUAL: [&str; 3] = ["exclusive", "carma-v2:oracle", "coloc"];

/// Simulate what the daemon ran under other policies or on other GPUs
#[derive(Args, Debug)]
pub(crate) struct Whatif {
    /// Read the journal in a daemon's state directory instead of asking a daemon
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// What was submitted this long ago or later, such as 12h or 30d
    #[arg(long, value_name = "SPAN", default_value = "7d")]
    since: Millis,
    /// Only this user's tasks
    #[arg(short = 'u', long, value_name = "NAME")]
    user: Option<String>,
    /// Other GPUs: 8xA100-40GB, or a TOML file [default: those that there were]
    #[arg(long, value_name = "SPEC")]
    fleet: Option<String>,
    /// Policies beside the one that ran: exclusive, a preset, or QUEUE/PLACE/SHARE [default: exclusive,carma-v2:oracle,coloc unless flags below name one]
    #[arg(long, value_name = "A,B,C", value_delimiter = ',')]
    policies: Vec<String>,
    /// Take run times as they were observed, sharing included
    #[arg(long)]
    as_observed: bool,
    /// Write the trace, in format coloc
    #[arg(short = 'o', long, value_name = "TRACE.csv")]
    output: Option<PathBuf>,
    /// Write a self-contained page with all plots
    #[arg(long, value_name = "OUT.html")]
    html: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    policy: PolicyArgs,
    #[command(flatten)]
    physics: PhysicsArgs,
    #[command(flatten)]
    socket: SocketArg,
}

#[derive(Serialize)]
struct Body<'a> {
    since_s: f64,
    fleet: String,
    observed: &'a Observed,
    assumed: &'a [String],
    predicted: bool,
    policies: Vec<PolicyRow<'a>>,
}

#[derive(Serialize)]
struct PolicyRow<'a> {
    fleet: String,
    #[serde(flatten)]
    row: Row<'a>,
}

/// The same trace on some machines.
struct Played {
    fleet: Fleet,
    runs: Vec<PolicyRun>,
}

impl Whatif {
    pub(crate) fn run(self) -> Result<(), CliError> {
        if let Some(flag) = typed_one(&["--host", "--socket"])
            && self.state.is_some()
        {
            let why = "it names a daemon to ask, and --state files to read: give one of them";
            return Err(UsageError::flag(flag, why).into());
        }
        let policies = self.wanted()?;
        let since = Moment((Moment::now().0).saturating_sub(self.since.0));
        let past = self.past(since)?;
        let other = self.fleet.as_deref().map(read_fleet).transpose()?;
        let there = past.setup.as_ref().map(|setup| Fleet::server(&setup.gpus)).transpose()?;
        let fleet = other.clone().or(there.clone()).ok_or_else(|| {
            UsageError::flag("--fleet", "give it: the journal does not say which GPUs there were")
        })?;
        let told = PastTrace::new(&past, self.as_observed);
        if let Some(file) = &self.output {
            files::write(file, |output| trace::write(&told.trace, output))?;
        }
        let mut played = Vec::new();
        if let (Some(setup), Some(there), Some(_)) = (&past.setup, there, &other) {
            let name = format!("as it ran, on {there}");
            let run = self.as_it_ran(setup, name, &there, &told, false)?;
            played.push(Played { fleet: there, runs: vec![run] });
        }
        let record = self.html.is_some();
        let mut runs = Vec::new();
        if let Some(setup) = &past.setup {
            runs.push(self.as_it_ran(setup, "as it ran".to_owned(), &fleet, &told, record)?);
        }
        let adjust = |simulation: &mut Simulation| self.adjust(simulation, &told);
        runs.extend(compare::play(&policies, &told.trace, &fleet, adjust, record)?);
        without_effect::tell(policies.iter().map(|named| &named.args), &self.physics);
        played.push(Played { fleet: fleet.clone(), runs });
        self.tell(since, &fleet, &told, &played)
    }

    /// What ran, from a daemon or from the files that one left.
    fn past(&self, since: Moment) -> Result<Past, CliError> {
        let user = self.user.as_deref();
        let past = match &self.state {
            Some(state) => read_journal(&state.join("journal.db"), since, user)?,
            None => self.socket.connect()?.past(since.secs(), user)?,
        };
        if past.tasks.is_empty() {
            let whose = user.map_or(String::new(), |user| format!(" of {user}"));
            let why = format!(
                "no task{whose} that was submitted in the last {} has run and ended; try a longer one",
                in_words(self.since)
            );
            return Err(UsageError::flag("--since", why).into());
        }
        Ok(past)
    }

    /// The policies that were asked for.
    fn wanted(&self) -> Result<Vec<NamedPolicy>, CliError> {
        let mut named: Vec<NamedPolicy> =
            self.policies.iter().map(|text| named_policy::parse(text)).collect::<Result<_, _>>()?;
        let args = &self.policy;
        let PolicyArgs { preset, queue, place, share, estimator, .. } = args;
        let asked = preset.is_some()
            || queue.is_some()
            || place.is_some()
            || share.is_some()
            || estimator.is_some();
        if asked {
            let name = format!("as asked ({})", describe(args));
            named.push(NamedPolicy { name, args: args.clone() });
        }
        if named.is_empty() {
            for text in USUAL {
                named.push(named_policy::parse(text)?);
            }
        }
        // What is said of limits, queues, history, costs and accounts holds for all of them.
        for each in &mut named {
            each.args.tuning = args.tuning.clone();
            each.args.service = args.service.clone();
            each.args.accounts = args.accounts.clone();
            // No estimates of these tasks were published; what was known of them then is.
            each.args.estimator.get_or_insert(EstimatorFlag::Recorded);
        }
        Ok(named)
    }

    fn as_it_ran(
        &self,
        setup: &Setup,
        name: String,
        fleet: &Fleet,
        told: &PastTrace,
        record: bool,
    ) -> Result<PolicyRun, CliError> {
        let policy = serde_json::from_value(setup.policy.clone())
            .map_err(|error| ClientError::Garbled(error.to_string()))?;
        let mut simulation = Simulation::new(fleet.clone(), policy, Estimator::Recorded);
        self.adjust(&mut simulation, told)?;
        PolicyRun::play(name, &simulation, &told.trace, record)
    }

    fn adjust(&self, simulation: &mut Simulation, told: &PastTrace) -> Result<(), CliError> {
        self.physics.apply(simulation, &told.trace)?;
        told.keep_kinds(simulation);
        Ok(())
    }

    fn tell(
        &self,
        since: Moment,
        fleet: &Fleet,
        told: &PastTrace,
        played: &[Played],
    ) -> Result<(), CliError> {
        let name = format!("The last {}", in_words(self.since));
        if let (Some(file), Some(here)) = (&self.html, played.last()) {
            let page = compare::page(&name, &told.trace, fleet, &here.runs);
            let page = report::compare_page(&page);
            files::write(file, |output| output.write_all(page.as_bytes()))?;
        }
        if self.json {
            let row = |fleet: &Fleet, run| PolicyRow { fleet: fleet.to_string(), row: row(run) };
            let policies = played.iter().flat_map(|each| {
                each.runs.iter().map(|run| row(&each.fleet, run)).collect::<Vec<_>>()
            });
            let body = Body {
                since_s: since.secs(),
                fleet: fleet.to_string(),
                observed: &told.observed,
                assumed: &told.assumed(fleet),
                predicted: true,
                policies: policies.collect(),
            };
            return Answer { body: &body, wall_s: None }.print();
        }
        print_text(&observed(&told.observed))?;
        for each in played {
            print_text(&comparison::render(&name, &each.fleet, &each.runs))?;
            print_text("")?;
        }
        print_text(&format!("Assumed: {}.", told.assumed(fleet).join("; ")))?;
        for file in [&self.html, &self.output].into_iter().flatten() {
            print_text(&format!("Written: {}", file.display()))?;
        }
        Ok(())
    }
}

/// «7 days» rather than «168 h».
fn in_words(since: Millis) -> String {
    let days = since.secs() / 86_400.0;
    if days >= 2.0 { format!("{days:.0} days") } else { since.to_string() }
}

fn row(run: &PolicyRun) -> Row<'_> {
    Row { name: &run.name, summary: &run.summary }
}

fn read_journal(file: &Path, since: Moment, user: Option<&str>) -> Result<Past, CliError> {
    let read = Journal::open_reader(file).and_then(|journal| past::read(&journal, since, user));
    read.map_err(|error| CliError::Journal { file: file.to_owned(), error })
}

fn observed(seen: &Observed) -> String {
    format!(
        "As it was: {} tasks, {} completed, makespan {}, completion time {} mean and {} p95, wait {}, {} out of memory\n",
        seen.tasks,
        seen.completed,
        span(seen.makespan_s),
        span(seen.jct_mean_s),
        span(seen.jct_p95_s),
        span(seen.wait_mean_s),
        seen.oom_count
    )
}

/// A policy that flags spell out, in short.
fn describe(args: &PolicyArgs) -> String {
    let policy = args.policy();
    format!("{}/{}/{}", name(policy.queue), name(policy.place), policy.share)
}

/// The name of a policy's part, as flags have it.
fn name(part: impl Serialize) -> String {
    let text = serde_json::to_value(part).ok();
    text.as_ref().and_then(|text| text.as_str()).unwrap_or_default().to_owned()
}
