//! `cargo xtask test`: everything that is checked, in the order in which a mistake is cheapest to find.

mod agreement;
mod clients;
mod fuzz;
mod licences;
mod reproduce;
mod run;
mod tools;
mod walls;

use run::Failed;
use std::num::NonZeroU32;
use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask COMMAND

  test    everything: format, lints, walls, licences, tests, fuzzing, docs, demo
  lint    format, lints, walls and licences only
  clients nvidia-ml-py, gpustat, nvitop, zeus, codecarbon and cuda-bindings on emulated GPUs
  agree   the 90-task trace live, up to 200 times as fast as in life, against the simulator: makespans within 5 %
  fuzz [SECONDS]  coverage-guided fuzzing of the estimators' readers, so long for each of six: 600 if not said
  bench   the benchmarks behind docs/performance.md
  reproduce [--check]  docs/reproduction.md, from the published traces if they are there";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match arguments[..] {
        ["test"] => test(),
        ["lint"] => lint(),
        ["clients"] => clients::check(),
        ["fuzz"] => fuzz(600),
        ["fuzz", seconds] => match seconds.parse::<NonZeroU32>() {
            Ok(seconds) => fuzz(seconds.get()),
            Err(_) => return usage(),
        },
        ["reproduce"] => reproduce::run(false),
        ["reproduce", "--check"] => reproduce::run(true),
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
    run::cargo(&["fmt", "--all", "--check"])?;
    run::cargo(&["fmt", "--manifest-path", &fuzz::manifest(), "--check"])?;
    run::cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])?;
    walls::check()?;
    licences::check()
}

fn fuzz(seconds: u32) -> Result<(), Failed> {
    tools::install_cxx()?;
    fuzz::check(seconds)
}

fn test() -> Result<(), Failed> {
    tools::install_browser();
    tools::install_deny();
    lint()?;
    // Hostile arguments for the emulated driver, hostile input for the readers.
    let longer = [("COLOC_FUZZ_SECONDS", "10")];
    run::cargo_with(&["test", "--workspace", "--no-fail-fast"], &longer)?;
    fuzz(10)?;
    run::cargo_with(&["doc", "--workspace", "--no-deps"], &[("RUSTDOCFLAGS", "-D warnings")])?;
    clients::check()?;
    demo()?;
    agreement::check()?;
    reproduce::run(true)?;
    println!("\nxtask: all checks passed");
    Ok(())
}

/// The README's first command, as a stranger runs it.
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
