//! `coloc simulate`: one trace under one policy.

use crate::args::input::InputArgs;
use crate::args::physics::PhysicsArgs;
use crate::args::policy::PolicyArgs;
use crate::args::replay::ReplayArgs;
use crate::error::CliError;
use crate::output::visible::visible;
use crate::output::{Answer, files, progress::Progress, summary};
use crate::without_effect;
use clap::Args;
use coloc_sim::{Estimator, Simulation, Timeline, Trace};
use std::path::PathBuf;
use std::time::Instant;

/// Play a trace against a policy on modelled GPUs
#[derive(Args, Debug)]
pub(crate) struct Simulate {
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    policy: PolicyArgs,
    #[command(flatten)]
    replay: ReplayArgs,
    #[command(flatten)]
    physics: PhysicsArgs,
    /// Write one line a task: id,submit_s,start_s,end_s,gpus,preemptions,ooms; ids count from 0 in the order of submission
    #[arg(long, value_name = "OUT.csv")]
    jobs: Option<PathBuf>,
    /// With a last column, trace_id: what the trace itself calls a task
    #[arg(long, requires = "jobs")]
    trace_ids: bool,
    /// Write everything that happened, for drawing
    #[arg(long, value_name = "OUT.json")]
    timeline: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Simulate {
    pub(crate) fn run(self) -> Result<(), CliError> {
        for file in self.jobs.iter().chain(&self.timeline) {
            files::refuse_to_replace(&self.input.trace, file)?;
        }
        let (trace, fleet) = self.input.load()?;
        let mut simulation = Simulation::new(fleet, self.policy.policy(), self.policy.estimator());
        simulation.surroundings = self.replay.surroundings([simulation.estimator], &trace)?;
        self.physics.apply(&mut simulation, &trace)?;
        self.policy.service.apply(&mut simulation)?;
        self.policy.accounts.apply(&mut simulation, &trace)?;
        let began = Instant::now();
        let mut progress = Progress::new(trace.tasks().len());
        let (summary, results) = match &self.timeline {
            None => simulation.run(&trace, &mut progress)?,
            Some(file) => {
                let mut timeline = Timeline::new(simulation.fleet.len());
                let outcome = simulation.run(&trace, &mut timeline)?;
                files::write_json(file, &timeline)?;
                outcome
            }
        };
        let wall_s = began.elapsed().as_secs_f64();
        progress.done();
        self.input.tell_passed_over(&trace);
        tell_the_unknown(simulation.estimator, &trace);
        without_effect::tell([&self.policy], &self.physics);
        if let Some(file) = &self.jobs {
            files::write_jobs(file, &trace, &results, self.trace_ids)?;
        }
        if self.json {
            Answer { body: &summary, wall_s: Some(wall_s) }.print()
        } else {
            summary::print(&summary, &simulation, wall_s)
        }
    }
}

/// Says how many tasks an estimator knows nothing of: to the scheduler they are tasks without an estimate.
pub(crate) fn tell_the_unknown(estimator: Estimator, trace: &Trace) {
    if let Some((unknown, first)) = estimator.silent_on(trace) {
        let (name, all, first) = (estimator.name(), trace.tasks().len(), visible(first));
        eprintln!(
            "coloc: {name} has no graph of {unknown} of {all} tasks, such as {first}: nothing is known of their memory"
        );
    }
}
