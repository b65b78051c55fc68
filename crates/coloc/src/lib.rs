//! The `coloc` command: one file a verb.
//!
//! A library of its own, and the binary a few lines, so that a build need not wait for the daemon's machine code to begin with it.

mod args;
mod config;
mod error;
mod estimating;
mod help;
mod invocation;
mod live;
mod local_time;
mod output;
mod parse;
mod report;
mod signals;
mod slurm;
mod submission;
mod tables;
mod terminal;
mod top;
mod verbs;
mod without_effect;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use coloc_api::request::Change;
use std::ffi::OsString;
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
    Shell(Box<verbs::shell::Shell>),
    Attach(verbs::attach::Attach),
    Exec(verbs::exec::Exec),
    Sweep(Box<verbs::sweep::Sweep>),
    Queue(Box<verbs::queue::Queue>),
    Replay(verbs::replay::ReplayTrace),
    Agree(verbs::agree::Agree),
    History(verbs::history::History),
    Report(verbs::report::ReportVerb),
    Export(verbs::export::Export),
    Show(verbs::show::Show),
    Why(verbs::why::Why),
    Top(verbs::top::Top),
    Logs(verbs::logs::Logs),
    Wait(verbs::wait::Wait),
    Cancel(verbs::cancel::Cancel),
    /// Let waiting tasks wait until they are released
    Hold(verbs::change::ChangeTasks),
    /// Let held tasks go on
    Release(verbs::change::ChangeTasks),
    /// Stop running tasks and start them again later
    Requeue(verbs::change::ChangeTasks),
    Update(verbs::update::Update),
    Drain(verbs::drain::Drain),
    Resume(verbs::drain::Resume),
    Reserve(verbs::reserve::Reserve),
    Return(verbs::reserve::Return),
    Config(verbs::config::ConfigVerb),
    Token(verbs::token::Token),
    Web(verbs::web::Web),
    State(verbs::state::State),
    Api(verbs::api::Api),
    Init(verbs::init::Init),
    Completions(verbs::completions::Completions),
    Man(verbs::man::Man),
    #[command(hide = true)]
    Shim(verbs::shim::Shim),
    #[command(hide = true)]
    Deliver(verbs::deliver::Deliver),
    #[command(hide = true)]
    Slurm(verbs::slurm::SlurmTool),
    #[command(hide = true)]
    Experiment(verbs::experiment::Experiment),
    Demo(verbs::demo::Demo),
    Simulate(Box<verbs::simulate::Simulate>),
    Compare(Box<verbs::compare::Compare>),
    Collocate(Box<verbs::collocate::Collocate>),
    Whatif(Box<verbs::whatif::Whatif>),
    Trace(verbs::trace::TraceVerb),
    Estimate(Box<verbs::estimate::EstimateArgs>),
    Gpus(verbs::gpus::Gpus),
    Doctor(verbs::doctor::Doctor),
    Emu(verbs::emu::Emu),
}

/// Verbs that are run by the thousand, each by itself: to describe all verbs takes longer than to submit a task.
#[derive(Parser)]
#[command(name = "coloc", version)]
enum Submitting {
    Submit(Box<verbs::submit::Submit>),
}

#[derive(Parser)]
#[command(name = "coloc", version)]
enum Listing {
    Queue(Box<verbs::queue::Queue>),
}

#[derive(Parser)]
#[command(name = "coloc", version)]
enum Keeping {
    #[command(hide = true)]
    Shim(verbs::shim::Shim),
}

impl Cli {
    /// Reads words, of which the second is the verb.
    fn read(words: &[OsString]) -> Result<Self, clap::Error> {
        let verb = match words.get(1).and_then(|verb| verb.to_str()) {
            // Help tells more than these know.
            _ if help::is_asked(words) => return Cli::read_by_all_verbs(words),
            Some("submit") => {
                Submitting::try_parse_from(words).map(|Submitting::Submit(verb)| Verb::Submit(verb))
            }
            Some("queue") => {
                Listing::try_parse_from(words).map(|Listing::Queue(verb)| Verb::Queue(verb))
            }
            Some("shim") => {
                Keeping::try_parse_from(words).map(|Keeping::Shim(verb)| Verb::Shim(verb))
            }
            _ => return Cli::read_by_all_verbs(words),
        };
        verb.map(|verb| Cli { verb: Some(verb) })
    }

    fn read_by_all_verbs(words: &[OsString]) -> Result<Self, clap::Error> {
        let mut program = help::arranged(Cli::command());
        let mut matches = program.try_get_matches_from_mut(words)?;
        Cli::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut program))
    }
}

/// The binary by the name of a tool of the emulated driver is that tool.
fn as_tool() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().map(|argument| argument.to_string_lossy().into_owned());
    let name = arguments.next()?;
    let name = std::path::Path::new(&name).file_name()?.to_str()?.to_owned();
    coloc_emu_tools::by_name(&name, &arguments.collect::<Vec<_>>())
}

/// What the binary does, from its arguments to its exit code.
pub fn main() -> ExitCode {
    if let Some(code) = as_tool() {
        return code;
    }
    let words: Vec<OsString> = std::env::args_os().collect();
    let json = invocation::asks_for_json(&words);
    let verb = match invocation::read(words) {
        Ok(cli) => cli.verb.unwrap_or_else(|| Verb::Queue(Box::default())),
        Err(error) => return error.report(json),
    };
    run(verb, json)
}

fn run(verb: Verb, json: bool) -> ExitCode {
    let result = match verb {
        Verb::Daemon(verb) => verb.run(),
        Verb::Sweep(verb) => verb.run(),
        Verb::Queue(verb) => verb.run(),
        Verb::Replay(verb) => verb.run(),
        Verb::Agree(verb) => verb.run(),
        Verb::History(verb) => verb.run(),
        Verb::Report(verb) => verb.run(),
        Verb::Export(verb) => verb.run(),
        Verb::Show(verb) => verb.run(),
        Verb::Why(verb) => verb.run(),
        Verb::Top(verb) => verb.run(),
        Verb::Logs(verb) => verb.run(),
        Verb::Cancel(verb) => verb.run(),
        Verb::Hold(verb) => verb.run(Change::Hold),
        Verb::Release(verb) => verb.run(Change::Release),
        Verb::Requeue(verb) => verb.run(Change::Requeue),
        Verb::Update(verb) => verb.run(),
        Verb::Drain(verb) => verb.run(),
        Verb::Resume(verb) => verb.run(),
        Verb::Reserve(verb) => verb.run(),
        Verb::Return(verb) => verb.run(),
        Verb::Config(verb) => verb.run(),
        Verb::Token(verb) => verb.run(),
        Verb::Web(verb) => verb.run(),
        Verb::State(verb) => verb.run(),
        Verb::Api(verb) => verb.run(),
        Verb::Init(verb) => verb.run(),
        Verb::Completions(verb) => verb.run(),
        Verb::Man(verb) => verb.run(),
        Verb::Shim(verb) => verb.run(),
        Verb::Experiment(verb) => verb.run(),
        Verb::Demo(verb) => verb.run(),
        Verb::Simulate(verb) => verb.run(),
        Verb::Compare(verb) => verb.run(),
        Verb::Collocate(verb) => verb.run(),
        Verb::Whatif(verb) => verb.run(),
        Verb::Trace(verb) => verb.run(),
        Verb::Estimate(verb) => verb.run(),
        Verb::Gpus(verb) => verb.run(),
        Verb::Doctor(verb) => verb.run(),
        // Here the exit code may be that of a task or of another program.
        Verb::Submit(verb) => return verb.run().unwrap_or_else(|error| error.report(json)),
        Verb::Deliver(verb) => return verb.run(),
        Verb::Run(verb) => return verb.run().unwrap_or_else(|error| error.report(json)),
        Verb::Shell(verb) => return verb.run().unwrap_or_else(|error| error.report(json)),
        Verb::Attach(verb) => return verb.run().unwrap_or_else(|error| error.report(json)),
        Verb::Exec(verb) => return verb.run().unwrap_or_else(|error| error.report(json)),
        Verb::Wait(verb) => return verb.run().unwrap_or_else(|error| error.report(json)),
        Verb::Slurm(verb) => return verb.run().unwrap_or_else(|error| error.report(json)),
        Verb::Emu(verb) => return verb.run().unwrap_or_else(|error| error.report(json)),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => error.report(json),
    }
}
