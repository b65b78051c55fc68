//! `coloc compare`: one trace under several policies.

use crate::args::accounts::AccountArgs;
use crate::args::input::InputArgs;
use crate::args::physics::PhysicsArgs;
use crate::args::replay::ReplayArgs;
use crate::args::service::ServiceArgs;
use crate::args::tuning::TuningArgs;
use crate::error::CliError;
use crate::output::{Answer, comparison, files, print_text, progress::Progress};
use crate::parse::named_policy::{self, NamedPolicy};
use crate::report;
use crate::verbs::simulate::tell_the_unknown;
use crate::without_effect;
use clap::Args;
use coloc_model::{Fleet, GpuId};
use coloc_sim::{Attempt, AttemptEnd, Estimator, Simulation, Summary, Timeline, Trace};
use serde::Serialize;
use std::path::PathBuf;

/// Compare policies on one trace: a row each, with plots
#[derive(Args, Debug)]
pub(crate) struct Compare {
    #[command(flatten)]
    input: InputArgs,
    /// Policies: exclusive, a preset, or QUEUE/PLACE/SHARE, each with :ESTIMATOR if you like
    #[arg(long, value_name = "A,B,C", value_delimiter = ',', required = true)]
    policies: Vec<String>,
    #[command(flatten)]
    replay: ReplayArgs,
    #[command(flatten)]
    tuning: TuningArgs,
    #[command(flatten)]
    service: ServiceArgs,
    #[command(flatten)]
    accounts: AccountArgs,
    #[command(flatten)]
    physics: PhysicsArgs,
    /// Write a self-contained page with all plots
    #[arg(long, value_name = "OUT.html")]
    html: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// One policy's run.
pub(crate) struct PolicyRun {
    pub(crate) name: String,
    pub(crate) summary: Summary,
    timeline: Timeline,
}

#[derive(Serialize)]
struct Comparison<'a> {
    trace: String,
    fleet: String,
    policies: Vec<Row<'a>>,
}

/// A policy's row of a JSON answer.
#[derive(Serialize)]
pub(crate) struct Row<'a> {
    pub(crate) name: &'a str,
    #[serde(flatten)]
    pub(crate) summary: &'a Summary,
}

impl Compare {
    pub(crate) fn run(self) -> Result<(), CliError> {
        let mut policies: Vec<NamedPolicy> =
            self.policies.iter().map(|text| named_policy::parse(text)).collect::<Result<_, _>>()?;
        // What is said of limits, queues, history, costs and accounts holds for all of them.
        for named in &mut policies {
            named.args.tuning = self.tuning.clone();
            named.args.service = self.service.clone();
            named.args.accounts = self.accounts.clone();
        }
        let (trace, fleet) = self.input.load()?;
        let estimators = policies.iter().map(|named| named.args.estimator());
        let surroundings = self.replay.surroundings(estimators, &trace)?;
        let adjust = |simulation: &mut Simulation| {
            simulation.surroundings.clone_from(&surroundings);
            self.physics.apply(simulation, &trace)
        };
        let runs = play(&policies, &trace, &fleet, adjust, self.html.is_some())?;
        self.input.tell_passed_over(&trace);
        if let Some(named) =
            policies.iter().find(|named| named.args.estimator() == Estimator::Replay)
        {
            tell_the_unknown(named.args.estimator(), &trace);
        }
        without_effect::tell(policies.iter().map(|named| &named.args), &self.physics);
        let name = self.input.trace.display().to_string();
        if let Some(file) = &self.html {
            let page = report::compare_page(&page(&name, &trace, &fleet, &runs));
            files::write(file, |output| output.write_all(page.as_bytes()))?;
        }
        if self.json {
            let policies =
                runs.iter().map(|run| Row { name: &run.name, summary: &run.summary }).collect();
            let body = Comparison { trace: name, fleet: fleet.to_string(), policies };
            return Answer { body: &body, wall_s: None }.print();
        }
        print_text(&comparison::render(&name, &fleet, &runs))?;
        match &self.html {
            Some(file) => print_text(&format!("Plots are in {}", file.display())),
            None => Ok(()),
        }
    }
}

/// Plays the trace under each policy, on machines that are as `adjust` has them.
pub(crate) fn play(
    policies: &[NamedPolicy],
    trace: &Trace,
    fleet: &Fleet,
    adjust: impl Fn(&mut Simulation) -> Result<(), CliError>,
    record: bool,
) -> Result<Vec<PolicyRun>, CliError> {
    let play_one = |named: &NamedPolicy| {
        let mut simulation =
            Simulation::new(fleet.clone(), named.args.policy(), named.args.estimator());
        adjust(&mut simulation)?;
        named.args.service.apply(&mut simulation)?;
        named.args.accounts.apply(&mut simulation, trace)?;
        PolicyRun::play(named.name.clone(), &simulation, trace, record)
    };
    policies.iter().map(play_one).collect()
}

impl PolicyRun {
    /// Plays one simulation, with everything that happened if it is to be drawn.
    pub(crate) fn play(
        name: String,
        simulation: &Simulation,
        trace: &Trace,
        record: bool,
    ) -> Result<Self, CliError> {
        let mut timeline = Timeline::default();
        let (summary, _) = if record {
            timeline = Timeline::new(simulation.fleet.len());
            simulation.run(trace, &mut timeline)?
        } else {
            let mut progress = Progress::new(trace.tasks().len());
            let outcome = simulation.run(trace, &mut progress)?;
            progress.done();
            outcome
        };
        Ok(PolicyRun { name, summary, timeline })
    }
}

/// The data of the HTML page.
pub(crate) fn page(
    name: &str,
    trace: &Trace,
    fleet: &Fleet,
    runs: &[PolicyRun],
) -> report::ComparePage {
    let gpu = |id: GpuId| {
        let model = fleet.gpu(id).model;
        report::Gpu {
            name: format!("gpu{id}"),
            model: model.name().to_owned(),
            memory_mib: model.memory().mib(),
            limit_w: model.limit_watts(),
        }
    };
    report::ComparePage {
        title: format!("{} policies on {}", runs.len(), fleet),
        trace: format!("{name}, {} tasks", trace.tasks().len()),
        fleet: fleet.to_string(),
        note: "Predicted by the model, not measured".to_owned(),
        gpus: fleet.ids().map(gpu).collect(),
        classes: CLASSES.map(str::to_owned).to_vec(),
        runs: runs.iter().map(|run| page_run(trace, run)).collect(),
    }
}

const CLASSES: [&str; 3] = ["light", "medium", "heavy"];

fn page_run(trace: &Trace, run: &PolicyRun) -> report::Run {
    let mut tasks: Vec<report::TaskRecord> = trace
        .tasks()
        .iter()
        .enumerate()
        .map(|(index, task)| {
            let class = trace.class(task).to_string();
            report::TaskRecord {
                id: index as u64,
                name: trace.name(task).to_owned(),
                class: CLASSES.iter().position(|&name| name == class).unwrap_or(0),
                submit_s: task.submit.secs(),
                end_s: None,
                alone_s: Some(task.duration.secs()),
                attempts: Vec::new(),
            }
        })
        .collect();
    for attempt in &run.timeline.attempts {
        let record = &mut tasks[attempt.task.index()];
        if attempt.outcome == AttemptEnd::Completed {
            record.end_s = Some(attempt.end_s);
        }
        record.attempts.push(page_attempt(attempt));
    }
    report::Run {
        name: run.name.clone(),
        summary: run.summary.clone(),
        tasks,
        series: run.timeline.gpus.clone(),
    }
}

fn page_attempt(attempt: &Attempt) -> report::Attempt {
    report::Attempt {
        start_s: attempt.start_s,
        end_s: attempt.end_s,
        gpus: attempt.gpus.iter().map(|&gpu| gpu as usize).collect(),
        outcome: match attempt.outcome {
            AttemptEnd::Completed => report::Outcome::Completed,
            AttemptEnd::OutOfMemory => report::Outcome::OutOfMemory,
            AttemptEnd::Preempted => report::Outcome::Preempted,
        },
    }
}
