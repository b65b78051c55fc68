//! `cargo xtask test`: everything that is checked, in the order in which a mistake is cheapest to find.

mod agreement;
mod clients;
mod deployed;
mod fuzz;
mod launchers;
mod licences;
mod reproduce;
mod run;
mod sizes;
mod tools;
mod unused;
mod walls;
mod web;

use run::Failed;
use std::num::NonZeroU32;
use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask COMMAND

  test [--long]  everything: format, lints, walls, licences, tests, 60 kills of the daemon, fuzzing, docs, demo;
          with --long also what is too long for every run: ignored tests, launchers with torch, 2,000 kills, an hour of
          fuzzing, 50,000 seeds of the daemon's simulation
  check   what is quick: format, lints, walls, unit tests and the scenarios of the core; three minutes after a build
  lint    format, lints, walls and licences only
  clients nvidia-ml-py, gpustat, nvitop, zeus, codecarbon and cuda-bindings on emulated GPUs
  agree   the 90-task trace live, up to 200 times as fast as in life, against the simulator: makespans within 5 %
  torture [KILLS]  kills a daemon at work at random moments, under every way of sharing: 2,000 times if not said;
          COLOC_CRASH_SEED, COLOC_CRASH_SETUPS and COLOC_CRASH_KINDS repeat or narrow it (docs/live.md)
  fuzz [SECONDS]  coverage-guided fuzzing of the estimators' readers, so long for each of six: 600 if not said
  web [--check]  the page of the daemon, from web/ with Node's packages of the lock file; with --check it is built
          again and compared with what is embedded, and its own tests run
  browse  the page in Chromium, against daemons on emulated GPUs
  bench   the benchmarks behind docs/performance.md
  reproduce [--check]  docs/reproduction.md, from the published traces if they are there";

/// Kills of the daemon in the long form.
const KILLS: u32 = 2000;
/// Seeds of the daemon's simulation in the long form.
const SEEDS: &str = "50000";
/// Seconds for each of the fuzzers in the long form.
const FUZZING: u32 = 600;

/// How much is tested.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Length {
    /// What every change has to pass.
    Usual,
    /// Everything.
    Long,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match arguments[..] {
        ["test"] => test(Length::Usual),
        ["test", "--long"] => test(Length::Long),
        ["check"] => check(),
        ["lint"] => lint(),
        ["clients"] => clients::check(),
        ["torture"] => torture(KILLS),
        ["torture", kills] => match kills.parse::<NonZeroU32>() {
            Ok(kills) => torture(kills.get()),
            Err(_) => return usage(),
        },
        ["fuzz"] => fuzz(FUZZING),
        ["fuzz", seconds] => match seconds.parse::<NonZeroU32>() {
            Ok(seconds) => fuzz(seconds.get()),
            Err(_) => return usage(),
        },
        ["reproduce"] => reproduce::run(false),
        ["reproduce", "--check"] => reproduce::run(true),
        ["web"] => web::build(),
        ["web", "--check"] => web::check(),
        ["browse"] => web::browse(),
        ["agree"] => agreement::check(),
        ["bench"] => run::cargo(&["bench", "--workspace"]),
        _ => return usage(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failed { step }) => {
            eprintln!("\nxtask: failed: {step}");
            ExitCode::FAILURE
        }
    }
}

fn usage() -> ExitCode {
    eprintln!("{USAGE}");
    ExitCode::from(2)
}

fn lint() -> Result<(), Failed> {
    style()?;
    licences::check()
}

fn style() -> Result<(), Failed> {
    run::cargo(&["fmt", "--all", "--check"])?;
    run::cargo(&["fmt", "--manifest-path", &fuzz::manifest(), "--check"])?;
    run::cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])?;
    walls::check()?;
    sizes::check()
}

/// What a change can be tried with again and again: no process is started, no fleet emulated.
fn check() -> Result<(), Failed> {
    style()?;
    let few = [("COLOC_SIMULATION_SEEDS", "200")];
    run::cargo_with(&["test", "--workspace", "--lib", "--bins"], &few)?;
    run::cargo(&["test", "--package", "coloc-core", "--tests"])
}

fn fuzz(seconds: u32) -> Result<(), Failed> {
    tools::install_cxx()?;
    fuzz::check(seconds)
}

/// The daemon is killed and killed. Seeds, setups and kinds of commands come from the environment.
fn torture(kills: u32) -> Result<(), Failed> {
    tools::install_strace();
    let kills = [("COLOC_CRASH_KILLS", kills.to_string())];
    let kills = kills.each_ref().map(|(name, value)| (*name, value.as_str()));
    run::cargo_with(&["test", "--package", "coloc", "--test", "crash", "--", "--nocapture"], &kills)
}

fn test(length: Length) -> Result<(), Failed> {
    tools::install_browser();
    tools::install_deny();
    tools::install_strace();
    tools::install_prometheus();
    tools::install_tmux();
    lint()?;
    deployed::check()?;
    // Hostile arguments for the emulated driver, hostile input for the readers.
    let longer = [("COLOC_FUZZ_SECONDS", "10")];
    let tests = ["test", "--workspace", "--no-fail-fast"];
    match length {
        Length::Usual => {
            run::cargo_with(&tests, &longer)?;
            fuzz(10)?;
        }
        Length::Long => {
            let longer = [longer[0], ("COLOC_SIMULATION_SEEDS", SEEDS)];
            run::cargo_with(&[&tests[..], &["--", "--include-ignored"]].concat(), &longer)?;
            torture(KILLS)?;
            fuzz(FUZZING)?;
            launchers::check()?;
        }
    }
    run::cargo_with(&["doc", "--workspace", "--no-deps"], &[("RUSTDOCFLAGS", "-D warnings")])?;
    clients::check()?;
    web::check()?;
    web::browse()?;
    demo()?;
    agreement::check()?;
    match reproduce::has_data() {
        true => reproduce::run(true)?,
        false => {
            eprintln!("SKIPPED: the published traces are not there, so nothing can be reproduced")
        }
    }
    println!("\nxtask: all checks passed");
    Ok(())
}

/// The README's first command, as a new user runs it.
fn demo() -> Result<(), Failed> {
    let page = std::env::temp_dir().join(format!("coloc-demo-{}.html", std::process::id()));
    let page = page.to_string_lossy().into_owned();
    let outcome = run::cargo(&["run", "--release", "--", "demo", "--html", &page]);
    let written = std::fs::metadata(&page).is_ok_and(|meta| meta.len() > 10_000);
    // Nothing is left behind, whatever came of it.
    let _ = std::fs::remove_file(&page);
    outcome?;
    if written { Ok(()) } else { Err(Failed { step: "the demo wrote no page".into() }) }
}
