//! Things that the tests use and a fresh machine lacks.

use crate::run::{cargo, succeeds};

/// A browser for the tests of the pages. Without one those tests say that they were skipped.
pub(crate) fn install_browser() {
    if succeeds("chromium", &["--version"]) {
        return;
    }
    println!("\n=== installing chromium for the tests of the HTML pages");
    let installed = succeeds("apt-get", &["update"])
        && succeeds("apt-get", &["install", "-y", "--no-install-recommends", "chromium"]);
    if !installed {
        println!("SKIPPED: no chromium, and apt-get could not install it; pages stay unseen");
    }
}

/// `cargo deny` for licences, sources and advisories. Without it licences are still checked.
pub(crate) fn install_deny() {
    if !succeeds("cargo-deny", &["--version"])
        && cargo(&["install", "--locked", "--quiet", "cargo-deny"]).is_err()
    {
        println!("SKIPPED: cargo deny could not be installed");
    }
}
