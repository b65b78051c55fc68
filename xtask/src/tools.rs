//! Things that the tests use and a fresh machine lacks.

use crate::run::{Failed, cargo, succeeds};

/// A browser for the tests of the pages. Without one those tests say that they were skipped.
pub(crate) fn install_browser() {
    if succeeds("chromium", &["--version"]) {
        return;
    }
    println!("\n=== installing chromium for the tests of the HTML pages");
    if !install("chromium") {
        println!("SKIPPED: no chromium, and apt-get could not install it; pages stay unseen");
    }
}

/// A tracer for the tests that stop a daemon at its signals. Without one those tests say that they were skipped.
pub(crate) fn install_strace() {
    if succeeds("strace", &["-V"]) {
        return;
    }
    println!("\n=== installing strace for the tests of signals");
    if !install("strace") {
        println!("SKIPPED: no strace, and apt-get could not install it; signals stay unseen");
    }
}

/// A terminal for the tests of `coloc top`. Without one those tests say that they were skipped.
pub(crate) fn install_tmux() {
    if succeeds("tmux", &["-V"]) {
        return;
    }
    println!("\n=== installing tmux for the tests of coloc top");
    if !install("tmux") {
        println!("SKIPPED: no tmux, and apt-get could not install it; coloc top stays unseen");
    }
}

/// Prometheus and promtool, for the tests of metrics. Without them those tests say that they were skipped.
pub(crate) fn install_prometheus() {
    if succeeds("promtool", &["--version"]) && succeeds("prometheus", &["--version"]) {
        return;
    }
    println!("\n=== installing prometheus for the tests of metrics");
    if !install("prometheus") {
        println!(
            "SKIPPED: no prometheus, and apt-get could not install it; metrics stay unscraped"
        );
    }
}

/// Node and npm for the page. Without them it cannot be made again, and that is no success.
pub(crate) fn install_node() -> Result<(), Failed> {
    if succeeds("npm", &["--version"]) {
        return Ok(());
    }
    println!("\n=== installing npm for the page");
    if install("npm") {
        return Ok(());
    }
    Err(Failed { step: "the page needs Node and npm, and apt-get could not install them".into() })
}

/// A C++ compiler for libFuzzer. Without one nothing is fuzzed, and that is no success.
pub(crate) fn install_cxx() -> Result<(), Failed> {
    if succeeds("c++", &["--version"]) {
        return Ok(());
    }
    println!("\n=== installing g++ for the fuzzers");
    if install("g++") {
        return Ok(());
    }
    Err(Failed { step: "fuzzing needs a C++ compiler, and apt-get could not install g++".into() })
}

fn install(package: &str) -> bool {
    succeeds("apt-get", &["update"])
        && succeeds("apt-get", &["install", "-y", "--no-install-recommends", package])
}

/// `cargo deny` for licences, sources and advisories. Without it licences are still checked.
pub(crate) fn install_deny() {
    if !succeeds("cargo-deny", &["--version"])
        && cargo(&["install", "--locked", "--quiet", "cargo-deny"]).is_err()
    {
        println!("SKIPPED: cargo deny could not be installed");
    }
}
