//! Coverage-guided fuzzing of the readers. The crate is laid out as `cargo fuzz` wants it; what that would add is
//! a handful of compiler flags, and those need neither an installation nor a nightly compiler.

use crate::run::{Failed, cargo_with, output};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const FOLDER: &str = "crates/coloc-estimate/fuzz";
/// Where the build goes, and what the fuzzers find: the next run begins where this one ends.
const RESULTS: &str = "target/fuzz";
const TARGETS: [&str; 6] =
    ["torchsummary", "module_tree", "torchinfo", "graph_text", "hf_config", "measured_rows"];

/// Counters on every branch and a look at every comparison. No sanitizer: the readers have no unsafe code.
const FLAGS: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares";

/// An input that takes this many seconds hangs, on a busy machine too.
const LONGEST_SECONDS: u32 = 30;
/// An input that takes this many MiB asks for too much.
const MOST_MIB: u32 = 1024;

/// So many seconds for each reader.
pub(crate) fn check(seconds: u32) -> Result<(), Failed> {
    let programs = build()?;
    for target in TARGETS {
        run(&programs, target, seconds)?;
    }
    Ok(())
}

/// The manifest of the fuzzers: a workspace of its own.
pub(crate) fn manifest() -> String {
    format!("{FOLDER}/Cargo.toml")
}

/// Builds every fuzzer; returns where they are.
fn build() -> Result<PathBuf, Failed> {
    let host = output("rustc", &["--print", "host-tuple"])
        .ok_or_else(|| Failed { step: "rustc --print host-tuple".into() })?;
    let host = host.trim();
    let manifest = manifest();
    // Naming the target, even if it is this machine, keeps the flags away from build scripts.
    let arguments = ["build", "--release", "--manifest-path", &manifest];
    let places = ["--target-dir", RESULTS, "--target", host];
    cargo_with(&[&arguments[..], &places[..]].concat(), &[("RUSTFLAGS", FLAGS)])?;
    Ok(Path::new(RESULTS).join(host).join("release"))
}

fn run(programs: &Path, target: &str, seconds: u32) -> Result<(), Failed> {
    println!("\n=== fuzzing {target} for {seconds} s");
    let corpus = format!("{RESULTS}/corpus/{target}");
    let artifacts = format!("{RESULTS}/artifacts/{target}/");
    for folder in [&corpus, &artifacts] {
        let failed = |error| Failed { step: format!("making {folder}: {error}") };
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    let finished = Command::new(programs.join(target))
        .args([corpus, format!("{FOLDER}/seeds/{target}")])
        .arg(format!("-dict={FOLDER}/dictionaries/{target}.dict"))
        .arg(format!("-artifact_prefix={artifacts}"))
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-timeout={LONGEST_SECONDS}"))
        .arg(format!("-rss_limit_mb={MOST_MIB}"))
        .stdin(Stdio::null())
        .output();
    let step = format!("fuzzing {target}; what it found is in {artifacts}");
    let finished = finished.map_err(|error| Failed { step: format!("{target}: {error}") })?;
    let said = String::from_utf8_lossy(&finished.stderr);
    if finished.status.success() {
        println!("{}", summary(&said));
        return Ok(());
    }
    eprintln!("{}", complaint(&said));
    Err(Failed { step })
}

/// The line with which a fuzzer ends: inputs, branches reached, corpus, speed.
fn summary(said: &str) -> &str {
    said.lines().rfind(|line| line.contains("DONE")).unwrap_or("ended without a summary")
}

/// Everything from the first sign of trouble on; before it there is only progress.
fn complaint(said: &str) -> &str {
    let signs = ["panicked at", "ERROR: libFuzzer", "ALARM:"];
    let start = signs.iter().filter_map(|sign| said.find(sign)).min().unwrap_or(0);
    &said[said[..start].rfind('\n').map_or(0, |end| end + 1)..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_is_told_without_the_progress_before_it() {
        let said = "#2 INITED cov: 3\n#9 NEW cov: 4\nthread panicked at src/x.rs:1\nboo\n";
        assert_eq!(complaint(said), "thread panicked at src/x.rs:1\nboo\n");
        assert_eq!(complaint("no such file"), "no such file");
        assert_eq!(summary("#2 INITED cov: 3\n#9 DONE cov: 4\nrest\n"), "#9 DONE cov: 4");
    }

    #[test]
    fn every_target_has_seeds_and_a_dictionary() {
        let folder = Path::new("..").join(FOLDER);
        for target in TARGETS {
            assert!(folder.join(format!("fuzz_targets/{target}.rs")).exists(), "{target}");
            assert!(folder.join(format!("dictionaries/{target}.dict")).exists(), "{target}");
            let seeds = std::fs::read_dir(folder.join("seeds").join(target)).unwrap();
            assert!(seeds.count() > 0, "{target}");
        }
        let written = std::fs::read_dir(folder.join("fuzz_targets")).unwrap().count();
        assert_eq!(written, TARGETS.len(), "a target that nobody runs");
    }
}
