//! The page: made from `web/` with Node, kept in the daemon's crate, so that cargo alone builds a daemon that has it.

use crate::run::{self, Failed};
use crate::tools;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Builds the page and puts it where the daemon embeds it.
pub(crate) fn build() -> Result<(), Failed> {
    prepare()?;
    types(&[])?;
    npm(&["run", "check"])?;
    npm(&["run", "build"])
}

/// The types and the page that are committed are those that the sources give; the page's own tests pass.
pub(crate) fn check() -> Result<(), Failed> {
    prepare()?;
    types(&["--check"])?;
    npm(&["run", "check"])?;
    npm(&["test"])?;
    npm(&["run", "compare"])
}

/// The page in a browser, against daemons on emulated GPUs.
pub(crate) fn browse() -> Result<(), Failed> {
    tools::install_browser();
    prepare()?;
    run::cargo(&["build", "--package", "coloc"])?;
    npm(&["run", "e2e"])
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../web")
}

/// The packages of the lock file, and no others.
fn prepare() -> Result<(), Failed> {
    tools::install_node()?;
    npm(&["ci", "--no-audit", "--no-fund", "--loglevel=error"])
}

/// Makes the page's types from the document that the daemon serves.
fn types(arguments: &[&str]) -> Result<(), Failed> {
    let failed = |step: &str| Failed { step: step.to_owned() };
    println!("\n=== types of the page, from the OpenAPI document");
    let asked = Command::new(env!("CARGO"))
        .args(["run", "--quiet", "--package", "coloc", "--", "api"])
        .stderr(Stdio::inherit())
        .output()
        .map_err(|_| failed("asking for the OpenAPI document"))?;
    if !asked.status.success() {
        return Err(failed("asking for the OpenAPI document"));
    }
    let mut child = Command::new("node")
        .arg("scripts/types.mjs")
        .args(arguments)
        .current_dir(folder())
        .stdin(Stdio::piped())
        .spawn()
        .map_err(|_| failed("running node"))?;
    // What cannot be written shows in how the child ends.
    let _ = child.stdin.take().is_none_or(|mut pipe| pipe.write_all(&asked.stdout).is_err());
    match child.wait() {
        Ok(status) if status.success() => Ok(()),
        _ => Err(failed("making the types of the page")),
    }
}

fn npm(arguments: &[&str]) -> Result<(), Failed> {
    let step = format!("npm {} (in web/)", arguments.join(" "));
    println!("\n=== {step}");
    match Command::new("npm").args(arguments).current_dir(folder()).status() {
        Ok(status) if status.success() => Ok(()),
        _ => Err(Failed { step }),
    }
}
