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
    if !is_installed("third-party clients", VENV, REQUIREMENTS)? {
        return Ok(());
    }
    cargo(&["build"])?;
    let step = || Failed { step: "third-party clients agree with coloc".into() };
    let coloc = fs::canonicalize("target/debug/coloc").map_err(|_| step())?;
    let python = format!("{VENV}/bin/python");
    // The trainers' warm-up takes a tenth of a second this way; the clock is stopped before a client reads.
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

/// Installs packages from their registry once; says whether they are there, which without a network they need not be.
pub(crate) fn is_installed(what: &str, venv: &str, requirements: &str) -> Result<bool, Failed> {
    match install(venv, requirements) {
        Ok(()) => Ok(true),
        Err(NotInstalled::NoNetwork(sign)) => {
            println!("SKIPPED: {what} cannot be installed without a network: {sign}");
            Ok(false)
        }
        Err(NotInstalled::Failed(why)) => {
            println!("{why}");
            Err(Failed { step: format!("{what} are installed") })
        }
    }
}

/// Another project's validator accepts the OpenAPI document.
fn describes_itself(coloc: &Path, python: &str) -> Result<(), Failed> {
    let step = || Failed { step: "the OpenAPI document is valid".into() };
    let document = format!("{VENV}/openapi.json");
    let file = fs::File::create(&document).map_err(|_| step())?;
    let written = Command::new(coloc).arg("api").stdout(file).status();
    let valid = written.is_ok_and(|status| status.success())
        && succeeds(python, &["-m", "openapi_spec_validator", &document]);
    if valid { Ok(()) } else { Err(step()) }
}

/// Why the clients are not there.
#[derive(PartialEq, Eq, Debug)]
enum NotInstalled {
    /// No registry can be reached; the line that says so.
    NoNetwork(String),
    /// Anything else: a version that is gone, a broken Python.
    Failed(String),
}

/// What pip says when no registry can be reached. A registry that answers, with whatever, is one that can.
const NO_NETWORK: [&str; 7] = [
    "Failed to establish a new connection",
    "Temporary failure in name resolution",
    "Name or service not known",
    "Network is unreachable",
    "No route to host",
    "Connection refused",
    "ConnectTimeoutError",
];

impl NotInstalled {
    fn because(complaint: String) -> Self {
        let tells = |line: &&str| NO_NETWORK.iter().any(|sign| line.contains(sign));
        match complaint.lines().find(tells) {
            Some(line) => NotInstalled::NoNetwork(line.trim().to_owned()),
            None => NotInstalled::Failed(complaint),
        }
    }
}

/// A virtual environment with exactly the required versions; kept until they change.
fn install(venv: &str, requirements: &str) -> Result<(), NotInstalled> {
    let failed = |error: std::io::Error| NotInstalled::Failed(error.to_string());
    let wanted = fs::read_to_string(requirements).map_err(failed)?;
    let stamp = Path::new(venv).join("installed.txt");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    if let Some(text) = complaint("python3", &["-m", "venv", "--clear", venv]) {
        return Err(NotInstalled::Failed(format!("python3 -m venv: {text}")));
    }
    let pip = format!("{venv}/bin/pip");
    let arguments = ["install", "--quiet", "--disable-pip-version-check", "-r", requirements];
    if let Some(text) = complaint(&pip, &arguments) {
        return Err(NotInstalled::because(text));
    }
    fs::write(stamp, wanted).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_missing_network_is_an_excuse() {
        let offline = "WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError(\
            \": Failed to establish a new connection: [Errno -3] Temporary failure in name resolution\")'\n\
            ERROR: No matching distribution found for gpustat==1.1.1";
        let told = NotInstalled::because(offline.to_owned());
        assert!(matches!(told, NotInstalled::NoNetwork(line) if line.starts_with("WARNING")));
        for gone in [
            "ERROR: No matching distribution found for gpustat==99",
            "ERROR: HTTP error 403 while getting https://example.org/simple",
            "ReadTimeoutError: the registry is slow",
        ] {
            let told = NotInstalled::because(gone.to_owned());
            assert_eq!(told, NotInstalled::Failed(gone.to_owned()));
        }
    }
}
