//! What the memory contract costs: mean completion time and makespan with it and without it, over the published traces
//! and twelve shuffles of each; and how often evidence is wrong where tasks grow late. Prints the tables of
//! `docs/memory.md`.
//!
//! A trace is shuffled by giving its tasks each other's times of submission, as a seed says.

use coloc_core::Policy;
use coloc_core::policy::Contract;
use coloc_core::preset::Preset;
use coloc_model::{Bytes, Fleet, Millis, Time};
use coloc_physics::{Evaluate, LateGrowth};
use coloc_sim::trace::{Format, mix90, read};
use coloc_sim::{
    Declarations, Estimator, Silent, Simulation, Summary, TaskResult, Trace, TraceTask,
};
use std::fs::File;
use std::path::{Path, PathBuf};

const SHUFFLES: u64 = 12;
/// Longer than any of the traces takes.
const PAUSE: Millis = Millis::from_secs(24 * 3600);

/// What the scheduler is told.
#[derive(Clone, Copy)]
struct Setting {
    name: &'static str,
    estimator: Estimator,
    declarations: Declarations,
    /// Tasks of which nothing is known share from the start.
    blind: bool,
}

const fn told(name: &'static str, estimator: Estimator) -> Setting {
    let declarations = Declarations { factor: None, reclaim: false };
    Setting { name, estimator, declarations, blind: false }
}

const fn declared(name: &'static str, factor: f64, reclaim: bool) -> Setting {
    let declarations = Declarations { factor: Some(factor), reclaim };
    Setting { declarations, ..told(name, Estimator::Oracle) }
}

const SETTINGS: [Setting; 10] = [
    told("oracle", Estimator::Oracle),
    told("replay", Estimator::Replay),
    told("GPUMemNet", Estimator::GpuMemNet),
    told("none", Estimator::None),
    Setting { blind: true, ..told("none, `--share-blind`", Estimator::None) },
    declared("declared 1x", 1.0, false),
    declared("declared 1.5x", 1.5, false),
    declared("declared 3x", 3.0, false),
    declared("declared 1.5x, lent", 1.5, true),
    declared("declared 3x, lent", 3.0, true),
];

/// Figures of several runs.
#[derive(Clone, Copy, Default)]
struct Total {
    runs: f64,
    jct: f64,
    makespan: f64,
    ooms: u32,
    failed: usize,
    settled: u64,
    outgrown: u64,
    wronged: u64,
}

impl Total {
    fn add(&mut self, summary: &Summary) {
        self.runs += 1.0;
        self.jct += summary.jct_mean_s / 60.0;
        self.makespan += summary.makespan_s / 60.0;
        self.ooms += summary.oom_count;
        self.failed += summary.failed;
        let figures = summary.contract.unwrap_or_default();
        self.settled += figures.settled;
        self.outgrown += figures.outgrown;
        self.wronged += figures.wronged;
    }
}

/// The tasks of a trace with each other's times of submission.
fn shuffled(trace: &Trace, seed: u64) -> Trace {
    let mut tasks: Vec<TraceTask> = trace.tasks().to_vec();
    let times: Vec<_> = tasks.iter().map(|task| task.submit).collect();
    // Knuth's shuffle with a generator that is the same everywhere.
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    for last in (1..tasks.len()).rev() {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        tasks.swap(last, ((state >> 33) % (last as u64 + 1)) as usize);
    }
    for (task, submit) in tasks.iter_mut().zip(times) {
        task.submit = submit;
    }
    Trace::new(tasks, trace.names().clone(), trace.users().clone())
}

fn run(trace: &Trace, setting: &Setting, contract: bool) -> Summary {
    simulate(trace, setting, contract).0
}

fn simulate(trace: &Trace, setting: &Setting, contract: bool) -> (Summary, Vec<TaskResult>) {
    let fleet: Fleet = "4xA100-40GB".parse().expect("a valid fleet");
    let preset = Preset::Coloc.policy(setting.estimator.knowledge());
    let share_blind = setting.blind;
    let contract = contract.then_some(Contract { share_blind, ..Contract::default() });
    let policy = Policy { contract, ..preset };
    let mut simulation = Simulation::new(fleet, policy, setting.estimator);
    simulation.declarations = setting.declarations;
    simulation.run(trace, &mut Silent).expect("the trace fits the fleet")
}

fn published(name: &str) -> Option<Trace> {
    let file: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../shared/data/traces/carma")
        .join(name)
        .with_extension("csv");
    let input = File::open(&file).ok()?;
    Some(read(&file, input, Format::Carma).expect("a published trace"))
}

/// A trace some of whose tasks need more later: a third evaluate after a tenth of their run and hold a fifth more for it, a
/// third hold a quarter more from the middle of their run on.
fn growing(trace: &Trace) -> Trace {
    let mut tasks: Vec<TraceTask> = trace.tasks().to_vec();
    let most = Bytes::from_mib(39 * 1024);
    for (index, task) in tasks.iter_mut().enumerate() {
        let more = |factor: f64| task.profile.memory.scale(factor).min(most);
        let part = |parts: u64| Millis((task.duration.0 / parts).max(60_000));
        match index % 3 {
            1 => {
                let span = Millis::from_secs(30);
                let evaluate = Evaluate { every: part(10), span, held: more(1.2) };
                task.phases.evaluate = Some(evaluate);
            }
            2 => task.phases.late = Some(LateGrowth { after: part(2), held: more(1.25) }),
            _ => {}
        }
    }
    Trace::new(tasks, trace.names().clone(), trace.users().clone())
}

/// The tasks of a trace, and the same ones again once all kinds were seen.
fn twice(trace: &Trace) -> Trace {
    let mut tasks: Vec<TraceTask> = trace.tasks().to_vec();
    let later = tasks.iter().map(|task| TraceTask { submit: task.submit + PAUSE, ..*task });
    let later: Vec<TraceTask> = later.collect();
    tasks.extend(later);
    Trace::new(tasks, trace.names().clone(), trace.users().clone())
}

/// Mean completion time, in minutes, of the tasks that are submitted after the pause.
fn second_time(trace: &Trace, setting: &Setting, contract: bool) -> f64 {
    let results = simulate(trace, setting, contract).1;
    let later =
        trace.tasks().iter().zip(results).filter(|(task, _)| task.submit >= Time::START + PAUSE);
    let jcts: Vec<f64> = later
        .map(|(task, result)| result.end.expect("it ended").since(task.submit).secs() / 60.0)
        .collect();
    jcts.iter().sum::<f64>() / jcts.len() as f64
}

/// Every trace that is there, and its shuffles.
fn traces() -> Vec<(&'static str, Vec<Trace>)> {
    let all =
        [("mix90", Some(mix90())), ("heavy60", published("heavy60")), ("t1", published("t1"))];
    let there = all.into_iter().filter_map(|(name, trace)| {
        if trace.is_none() {
            eprintln!("SKIPPED: {name} is not there");
        }
        let trace = trace?;
        let shuffles = (1..=SHUFFLES).map(|seed| shuffled(&trace, seed)).collect::<Vec<_>>();
        Some((name, [vec![trace], shuffles].concat()))
    });
    there.collect()
}

fn main() {
    let traces = traces();
    println!(
        "| told | trace | makespan, old rule | contract | | mean JCT, old rule | contract | | OOMs, old rule | contract |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for setting in SETTINGS {
        let mut sums = [Total::default(); 2];
        for (name, shuffles) in &traces {
            let mut totals = [Total::default(); 2];
            for trace in shuffles {
                for (total, contract) in totals.iter_mut().zip([false, true]) {
                    total.add(&run(trace, &setting, contract));
                }
            }
            print_row(setting.name, name, &totals);
            for (sum, total) in sums.iter_mut().zip(totals) {
                sum.runs += 1.0;
                sum.jct += total.jct / total.runs;
                sum.makespan += total.makespan / total.runs;
                sum.ooms += total.ooms;
                sum.failed += total.failed;
            }
        }
        print_row(setting.name, "all", &sums);
    }
    println!("\n| told | mean JCT of kinds that were seen before, old rule | contract | |");
    println!("|---|---|---|---|");
    for setting in SETTINGS.iter().filter(|setting| setting.name == "none") {
        let again: Vec<Trace> = traces.iter().flat_map(|(_, all)| all).map(twice).collect();
        let [old, new] = [false, true].map(|contract| {
            again.iter().map(|trace| second_time(trace, setting, contract)).sum::<f64>()
        });
        let runs = again.len() as f64;
        println!(
            "| {} | {:.1} | {:.1} | {:+.1} % |",
            setting.name,
            old / runs,
            new / runs,
            100.0 * (new / old - 1.0)
        );
    }
    println!(
        "\n| told, of traces that grow late | settled | outgrown | OOMs | of these wronged | OOMs, old rule |"
    );
    println!("|---|---|---|---|---|---|");
    for setting in SETTINGS {
        let (mut old, mut new) = (Total::default(), Total::default());
        for trace in traces.iter().flat_map(|(_, all)| all).map(growing) {
            old.add(&run(&trace, &setting, false));
            new.add(&run(&trace, &setting, true));
        }
        println!(
            "| {} | {} | {} | {} | {} | {} |",
            setting.name, new.settled, new.outgrown, new.ooms, new.wronged, old.ooms
        );
    }
}

fn print_row(setting: &str, trace: &str, [old, new]: &[Total; 2]) {
    let mean = |sum: f64, total: &Total| sum / total.runs;
    let change = |of: fn(&Total) -> f64| 100.0 * (mean(of(new), new) / mean(of(old), old) - 1.0);
    assert_eq!((old.failed, new.failed), (0, 0), "{setting}, {trace}: a task was lost");
    println!(
        "| {setting} | {trace} | {:.0} | {:.0} | {:+.1} % | {:.1} | {:.1} | {:+.1} % | {} | {} |",
        mean(old.makespan, old),
        mean(new.makespan, new),
        change(|total| total.makespan),
        mean(old.jct, old),
        mean(new.jct, new),
        change(|total| total.jct),
        old.ooms,
        new.ooms,
    );
}
