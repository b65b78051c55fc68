//! Running commands, and saying which one failed.

use std::process::Command;

/// A step that failed; its own output has said why.
#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) step: String,
}

/// Runs cargo in the workspace.
pub(crate) fn cargo(arguments: &[&str]) -> Result<(), Failed> {
    cargo_with(arguments, &[])
}

/// Runs cargo with extra environment variables.
pub(crate) fn cargo_with(arguments: &[&str], variables: &[(&str, &str)]) -> Result<(), Failed> {
    let step = format!("cargo {}", arguments.join(" "));
    println!("\n=== {step}");
    let status =
        Command::new(env!("CARGO")).args(arguments).envs(variables.iter().copied()).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        _ => Err(Failed { step }),
    }
}

/// What a command printed; `None` if it could not be run or failed.
pub(crate) fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Whether a command succeeds, quietly.
pub(crate) fn succeeds(program: &str, arguments: &[&str]) -> bool {
    output(program, arguments).is_some()
}

/// What a command complained of; `None` if it succeeded.
pub(crate) fn complaint(program: &str, arguments: &[&str]) -> Option<String> {
    match Command::new(program).args(arguments).output() {
        Ok(output) if output.status.success() => None,
        Ok(output) => Some(String::from_utf8_lossy(&output.stderr).into_owned()),
        Err(error) => Some(error.to_string()),
    }
}
