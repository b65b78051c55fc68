//! Other people's GPU clients on emulated GPUs: installed from their registry, they must agree with coloc.

use crate::run::{Failed, cargo, complaint, succeeds};
use std::fs;
use std::path::Path;
use std::process::Command;

const VENV: &str = "target/clients";
const REQUIREMENTS: &str = "xtask/clients/requirements.txt";

/// Installs the clients once, and lets them read a fleet with two trainers on it.
pub(crate) fn check() -> Result<(), Failed> {
    println!("\n=== third-party clients on emulated GPUs");
    if let Err(why) = install() {
        println!("SKIPPED: third-party clients could not be installed: {why}");
        return Ok(());
    }
    cargo(&["build"])?;
    let step = || Failed { step: "third-party clients agree with coloc".into() };
    let coloc = fs::canonicalize("target/debug/coloc").map_err(|_| step())?;
    let python = format!("{VENV}/bin/python");
    // The trainers' warm-up takes a tenth of a second this way; the clock is stopped before anybody reads.
    let fleet = ["emu", "run", "--fleet", "4xA100-40GB", "--time-scale", "200", "--"];
    let status = Command::new(&coloc)
        .args(fleet)
        .args([&python, "xtask/clients/agree.py"])
        .arg(&coloc)
        .status();
    if !status.is_ok_and(|status| status.success()) {
        return Err(step());
    }
    describes_itself(&coloc, &python)
}

/// The OpenAPI document is one by somebody else's judgement.
fn describes_itself(coloc: &Path, python: &str) -> Result<(), Failed> {
    let step = || Failed { step: "the OpenAPI document is valid".into() };
    let document = format!("{VENV}/openapi.json");
    let file = fs::File::create(&document).map_err(|_| step())?;
    let written = Command::new(coloc).arg("api").stdout(file).status();
    let valid = written.is_ok_and(|status| status.success())
        && succeeds(python, &["-m", "openapi_spec_validator", &document]);
    if valid { Ok(()) } else { Err(step()) }
}

/// A virtual environment with exactly the required versions; kept until they change.
fn install() -> Result<(), String> {
    let wanted = fs::read_to_string(REQUIREMENTS).map_err(|error| error.to_string())?;
    let stamp = Path::new(VENV).join("installed.txt");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    if !succeeds("python3", &["-m", "venv", "--clear", VENV]) {
        return Err("python3 -m venv failed".into());
    }
    let pip = format!("{VENV}/bin/pip");
    let arguments = ["install", "--quiet", "--disable-pip-version-check", "-r", REQUIREMENTS];
    if let Some(text) = complaint(&pip, &arguments) {
        return Err(text);
    }
    fs::write(stamp, wanted).map_err(|error| error.to_string())
}
