//! Runs the user's own script with tensors that have shapes but no memory, if PyTorch is there.

use crate::environment::Environment;
use crate::estimate::{Estimate, Promise};
use crate::graph::{Flag, FlagKind};
use coloc_model::{Bytes, Loads};
use std::io::Write;
use std::process::{Command, Stdio};

/// The tracer that runs inside the user's interpreter.
const TRACER: &str = include_str!("faketensor.py");
const PEAK: &str = "COLOC_FAKETENSOR_PEAK_BYTES=";
const SEEN: &str = "COLOC_FAKETENSOR_STEPS_SEEN=";
const LOADS: &str = "COLOC_FAKETENSOR_LOADS=";

/// How many times the live tensors the allocator is taken to hold at most, with workspaces and fragments. A guess: no
/// dry run was compared with a measurement.
const ALLOCATOR_AT_MOST: f64 = 2.0;
/// The least that a bound has for context and libraries: the largest constant that is known is 1719 MiB.
const CONTEXT_AT_LEAST: Bytes = Bytes::from_mib(2048);

/// A dry run gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum FakeTensorError {
    /// The command is not one that can be traced.
    #[error("a dry run traces Python scripts: expected `python train.py …`, found {0:?}")]
    NotPython(String),
    /// The interpreter cannot be started.
    #[error("cannot start {interpreter:?}: {source}; is Python on the path?")]
    Start {
        /// Which interpreter.
        interpreter: String,
        /// Why.
        source: std::io::Error,
    },
    /// PyTorch is missing.
    #[error(
        "{interpreter:?} has no PyTorch; activate the task's environment, or use --summary, --graph or \
         --hf-config, which need none"
    )]
    NoTorch {
        /// Which interpreter.
        interpreter: String,
    },
    /// The script ended without an answer.
    #[error("the script failed before its first optimizer step was traced:\n{output}")]
    NoAnswer {
        /// The last lines that it wrote.
        output: String,
    },
    /// The script took no optimizer step, or put nothing on a GPU.
    #[error(
        "the script ended after {steps} optimizer steps with {peak} on the GPU: there is nothing to measure; \
         give it the arguments with which it trains"
    )]
    NothingTrained {
        /// Steps seen.
        steps: u32,
        /// The most that was alive.
        peak: Bytes,
    },
}

/// Traces `command` for `steps` optimizer steps. What the driver and libraries hold is that of `environment`.
pub fn dry_run(
    command: &[String],
    steps: u32,
    environment: &Environment,
) -> Result<Estimate, FakeTensorError> {
    let shown = command.join(" ");
    let (interpreter, arguments) = match command.split_first() {
        Some((first, rest)) if is_python(first) && !rest.is_empty() => (first, rest),
        _ => return Err(FakeTensorError::NotPython(shown)),
    };
    let start = |source| FakeTensorError::Start { interpreter: interpreter.clone(), source };
    let mut child = Command::new(interpreter)
        .arg("-")
        .args(arguments)
        .env("COLOC_FAKETENSOR_STEPS", steps.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(start)?;
    if let Some(mut input) = child.stdin.take() {
        // A script that ends at once closes the pipe; its output says why.
        let _ = input.write_all(TRACER.as_bytes());
    }
    let output = child.wait_with_output().map_err(start)?;
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    if errors.contains("COLOC_FAKETENSOR_NO_TORCH") {
        return Err(FakeTensorError::NoTorch { interpreter: interpreter.clone() });
    }
    let marked = |mark| text.lines().rev().find_map(|line| line.strip_prefix(mark)).map(str::trim);
    let number = |mark| marked(mark).and_then(|text| text.parse::<u64>().ok());
    let (Some(peak), Some(seen)) = (number(PEAK), number(SEEN)) else {
        let lines: Vec<&str> = errors.lines().collect();
        let tail = lines[lines.len().saturating_sub(8)..].join("\n");
        return Err(FakeTensorError::NoAnswer { output: tail });
    };
    let (tensors, seen) = (Bytes(peak), seen.min(u64::from(u32::MAX)) as u32);
    if tensors == Bytes(0) || seen == 0 {
        return Err(FakeTensorError::NothingTrained { steps: seen, peak: tensors });
    }
    let loads = match marked(LOADS) {
        Some("batch_norm") => Loads::BatchNorm,
        Some("convolutions") => Loads::Convolutions,
        _ => Loads::Plain,
    };
    let context = environment.total_mib(loads);
    let mut estimate = answer(tensors, context, environment.spread_mib);
    if seen < steps {
        let detail = format!("the script ended after {seen} of {steps} steps");
        estimate.flags.push(Flag { kind: FlagKind::Assumption, detail });
    }
    Ok(estimate)
}

fn is_python(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or(word);
    name.starts_with("python")
}

/// Fake tensors see neither context, workspaces nor the allocator's fragments. The context is known.
fn answer(tensors: Bytes, context_mib: f64, spread_mib: f64) -> Estimate {
    let detail = format!(
        "{context_mib:.0} MiB for the context are added; workspaces and fragmentation are not part of a dry run"
    );
    let context = Bytes::from_mib_f64(context_mib);
    let at_most = Bytes::from_mib_f64(context_mib + spread_mib).max(CONTEXT_AT_LEAST);
    Estimate {
        peak: tensors + context,
        bound: tensors.scale(ALLOCATOR_AT_MOST) + at_most,
        promise: Promise::Guess,
        class_mib: None,
        utilization: None,
        estimator: "faketensor",
        flags: vec![Flag { kind: FlagKind::Assumption, detail }],
        breakdown: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_python_scripts_are_traced() {
        let command = ["bash".to_owned(), "train.sh".to_owned()];
        assert!(matches!(
            dry_run(&command, 3, &Environment::default()),
            Err(FakeTensorError::NotPython(_))
        ));
        assert!(is_python("/opt/env/bin/python3.12"));
    }

    #[test]
    fn the_context_is_part_of_the_peak() {
        let said = answer(Bytes::from_mib(1000), 3000.0, 50.0);
        assert_eq!((said.peak, said.bound), (Bytes::from_mib(4000), Bytes::from_mib(5050)));
        assert!(said.flags[0].detail.contains("3000 MiB for the context"));
    }

    #[test]
    fn a_missing_interpreter_is_named() {
        let command = ["python-that-is-not-there".to_owned(), "train.py".to_owned()];
        let error = dry_run(&command, 3, &Environment::default()).unwrap_err();
        assert!(error.to_string().contains("python-that-is-not-there"), "{error}");
    }
}
