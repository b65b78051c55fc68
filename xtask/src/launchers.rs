//! Launchers of distributed training, with PyPI's torch, in tasks: each starts as many processes as it was asked for.

use crate::clients::is_installed;
use crate::run::{Failed, cargo, succeeds};

const VENV: &str = "target/launchers";
const REQUIREMENTS: &str = "xtask/launchers/requirements.txt";

/// Installs them once, gigabytes of them, and has each train for a moment on the CPU.
pub(crate) fn check() -> Result<(), Failed> {
    println!("\n=== launchers of distributed training in tasks");
    if !is_installed("launchers", VENV, REQUIREMENTS)? {
        return Ok(());
    }
    cargo(&["build"])?;
    let python = format!("{VENV}/bin/python");
    match succeeds(&python, &["xtask/launchers/check.py", "target/debug/coloc"]) {
        true => Ok(()),
        false => Err(Failed { step: "launchers start as many processes as asked for".into() }),
    }
}
