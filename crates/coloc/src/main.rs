//! The `coloc` binary: one file a verb.

mod args;
mod error;
mod live;
mod output;
mod report;
mod verbs;

use clap::{Parser, Subcommand};
use coloc_daemon::owner::Change;
use std::process::ExitCode;

/// Run more deep-learning training on the GPUs you have.
#[derive(Parser)]
#[command(name = "coloc", version)]
struct Cli {
    /// Without a verb, the queue is listed
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Subcommand)]
enum Verb {
    Daemon(Box<verbs::daemon::Daemon>),
    Submit(Box<verbs::submit::Submit>),
    Run(Box<verbs::wait::Run>),
    Queue(verbs::queue::Queue),
    Replay(verbs::replay::ReplayTrace),
    Show(verbs::show::Show),
    Why(verbs::why::Why),
    Logs(verbs::logs::Logs),
    Wait(verbs::wait::Wait),
    /// Make tasks go away, whether they wait or run
    Cancel(verbs::change::ChangeTasks),
    /// Let waiting tasks wait until they are released
    Hold(verbs::change::ChangeTasks),
    /// Let held tasks go on
    Release(verbs::change::ChangeTasks),
    /// Stop running tasks and start them again later
    Requeue(verbs::change::ChangeTasks),
    #[command(hide = true)]
    Shim(verbs::shim::Shim),
    Demo(verbs::demo::Demo),
    Simulate(Box<verbs::simulate::Simulate>),
    Compare(Box<verbs::compare::Compare>),
    Collocate(verbs::collocate::Collocate),
    Trace(verbs::trace::TraceVerb),
    Estimate(Box<verbs::estimate::EstimateArgs>),
    Gpus(verbs::gpus::Gpus),
    Doctor(verbs::doctor::Doctor),
    Emu(verbs::emu::Emu),
}

/// Verbs that are run by the thousand. To describe all verbs takes longer than to submit a task.
#[derive(Parser)]
#[command(name = "coloc", version)]
enum Frequent {
    Submit(Box<verbs::submit::Submit>),
    Queue(verbs::queue::Queue),
    #[command(hide = true)]
    Shim(verbs::shim::Shim),
}

impl Frequent {
    /// The verb on the command line, if it is one of them.
    fn parse_if_meant() -> Option<Verb> {
        let verb = std::env::args_os().nth(1)?;
        if !["submit", "queue", "shim"].iter().any(|frequent| verb == *frequent) {
            return None;
        }
        Some(match Frequent::parse() {
            Frequent::Submit(verb) => Verb::Submit(verb),
            Frequent::Queue(verb) => Verb::Queue(verb),
            Frequent::Shim(verb) => Verb::Shim(verb),
        })
    }
}

/// The binary by the name of a tool of the emulated driver is that tool.
fn as_tool() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().map(|argument| argument.to_string_lossy().into_owned());
    let name = arguments.next()?;
    let name = std::path::Path::new(&name).file_name()?.to_str()?.to_owned();
    coloc_emu_tools::by_name(&name, &arguments.collect::<Vec<_>>())
}

fn main() -> ExitCode {
    if let Some(code) = as_tool() {
        return code;
    }
    let verb = Frequent::parse_if_meant()
        .or_else(|| Cli::parse().verb)
        .unwrap_or(Verb::Queue(verbs::queue::Queue::default()));
    let result = match verb {
        Verb::Daemon(verb) => verb.run(),
        Verb::Submit(verb) => verb.run(),
        Verb::Queue(verb) => verb.run(),
        Verb::Replay(verb) => verb.run(),
        Verb::Show(verb) => verb.run(),
        Verb::Why(verb) => verb.run(),
        Verb::Logs(verb) => verb.run(),
        Verb::Cancel(verb) => verb.run(Change::Cancel),
        Verb::Hold(verb) => verb.run(Change::Hold),
        Verb::Release(verb) => verb.run(Change::Release),
        Verb::Requeue(verb) => verb.run(Change::Requeue),
        Verb::Shim(verb) => verb.run(),
        Verb::Demo(verb) => verb.run(),
        Verb::Simulate(verb) => verb.run(),
        Verb::Compare(verb) => verb.run(),
        Verb::Collocate(verb) => verb.run(),
        Verb::Trace(verb) => verb.run(),
        Verb::Estimate(verb) => verb.run(),
        Verb::Gpus(verb) => verb.run(),
        Verb::Doctor(verb) => verb.run(),
        // Here the exit code is that of another program.
        Verb::Run(verb) => return verb.run().unwrap_or_else(|error| error.report()),
        Verb::Wait(verb) => return verb.run().unwrap_or_else(|error| error.report()),
        Verb::Emu(verb) => return verb.run().unwrap_or_else(|error| error.report()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => error.report(),
    }
}
