//! The administrator's prolog and epilog: run with the rights of the daemon or shim that runs them, for a limited time.

use super::LocalExecutor;
use super::run::{HookOrder, RunDir};
use crate::administration::hooks::{HookError, check_program};
use crate::record::Record;
use coloc_api::text::RawText;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::io::{self, PipeReader, Read as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What a hook says beyond this is not kept.
const MOST_OUTPUT: usize = 64 << 10;
/// How often a hook that runs is looked at.
const PERIOD: Duration = Duration::from_millis(5);
/// What a hook leaves behind may hold its output for this long.
const LAST_WORDS: Duration = Duration::from_millis(200);
/// Where hooks find programs.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Which of the two.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Which {
    Prolog,
    Epilog,
}

impl Which {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Which::Prolog => "prolog",
            Which::Epilog => "epilog",
        }
    }
}

/// How a hook ended, and what it said.
#[derive(Debug)]
pub(crate) struct HookEnd {
    pub(crate) outcome: Outcome,
    pub(crate) output: Vec<u8>,
}

/// How a hook ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    Done,
    Failed(String),
    /// It was no longer wanted.
    Interrupted,
}

/// Runs a hook to its end, until its time is over, or until it is no longer wanted.
pub(crate) fn run(
    which: Which,
    order: &HookOrder,
    exit_code: Option<i32>,
    mut is_unwanted: impl FnMut() -> bool,
) -> HookEnd {
    let program = match which {
        Which::Prolog => &order.prolog,
        Which::Epilog => &order.epilog,
    };
    let Some(program) = program else {
        return HookEnd { outcome: Outcome::Done, output: Vec::new() };
    };
    let (mut child, words) = match start(which, program, order, exit_code) {
        Ok(started) => started,
        Err(error) => {
            let outcome = Outcome::Failed(format!("cannot run {error}"));
            return HookEnd { outcome, output: Vec::new() };
        }
    };
    let end = Instant::now() + Duration::from_millis(order.timeout.0);
    let outcome = loop {
        match child.try_wait() {
            Ok(Some(status)) => break judged(status),
            Ok(None) if is_unwanted() => break Outcome::Interrupted,
            Ok(None) if Instant::now() >= end => {
                break Outcome::Failed(format!("did not end within {}", order.timeout));
            }
            Ok(None) => std::thread::sleep(PERIOD),
            Err(error) => break Outcome::Failed(error.to_string()),
        }
    };
    // Its group is its own: whatever it started there goes with it.
    let _ = killpg(Pid::from_raw(child.id() as i32), Signal::SIGKILL);
    let _ = child.wait();
    HookEnd { outcome, output: words.taken() }
}

fn judged(status: ExitStatus) -> Outcome {
    match status.success() {
        true => Outcome::Done,
        false => Outcome::Failed(format!("it ended with {status}")),
    }
}

fn start(
    which: Which,
    program: &RawText,
    order: &HookOrder,
    exit_code: Option<i32>,
) -> Result<(std::process::Child, Words), HookError> {
    // It was all right when the settings were read; now it is run with the daemon's rights.
    check_program(program.as_path())?;
    let fail = |source| HookError::Io { path: program.as_path().to_owned(), source };
    let (reader, writer) = io::pipe().map_err(fail)?;
    let variables = order.environment.iter().map(|(name, value)| (name.as_path(), value.as_path()));
    let child = Command::new(program.as_path())
        .env_clear()
        .env("PATH", PATH)
        .envs(variables)
        .env("COLOC_HOOK", which.name())
        .envs(exit_code.map(|code| ("COLOC_EXIT_CODE", code.to_string())))
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(writer.try_clone().map_err(fail)?)
        .stderr(writer)
        .process_group(0)
        .spawn()
        .map_err(fail)?;
    Ok((child, Words::of(reader).map_err(fail)?))
}

/// What a hook says, read as it comes.
struct Words {
    said: Arc<Mutex<Vec<u8>>>,
    reader: std::thread::JoinHandle<()>,
}

impl Words {
    fn of(mut pipe: PipeReader) -> io::Result<Words> {
        let said: Arc<Mutex<Vec<u8>>> = Arc::default();
        let kept = Arc::clone(&said);
        let read = move || {
            let mut part = [0; 4096];
            while let Ok(length @ 1..) = pipe.read(&mut part) {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                let room = MOST_OUTPUT.saturating_sub(kept.len());
                kept.extend_from_slice(&part[..length.min(room)]);
            }
        };
        let reader = std::thread::Builder::new().name("hook".to_owned()).spawn(read)?;
        Ok(Words { said, reader })
    }

    /// All of it, as far as it has come.
    fn taken(self) -> Vec<u8> {
        let end = Instant::now() + LAST_WORDS;
        while !self.reader.is_finished() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::mem::take(&mut *self.said.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl LocalExecutor {
    /// The hooks of an attempt, with what they are told of it. Its name is its user's to choose, so they are not told.
    pub(super) fn hook_order(&self, record: &Record) -> HookOrder {
        let path = |program: &std::path::PathBuf| program.as_os_str().to_owned().into();
        let gpus: Vec<_> = record.placement.iter().flat_map(|p| p.gpus()).collect();
        let list = |items: Vec<String>| items.join(",");
        let numbers = list(gpus.iter().map(|gpu| gpu.to_string()).collect());
        let uuid = |gpu: &coloc_model::GpuId| self.uuids.get(gpu.index()).map(|u| u.to_string());
        let uuids = list(gpus.iter().filter_map(uuid).collect());
        let (id, user) = (record.id.to_string(), crate::users::name(record.owner));
        let uid = record.owner.0.to_string();
        let variables = [
            ("COLOC_TASK_ID", id.clone()),
            ("COLOC_ATTEMPT", record.attempt.to_string()),
            ("COLOC_TASK_USER", user.clone()),
            ("COLOC_TASK_UID", uid.clone()),
            ("COLOC_GPUS", numbers.clone()),
            ("CUDA_VISIBLE_DEVICES", uuids),
            ("CUDA_DEVICE_ORDER", "PCI_BUS_ID".to_owned()),
            ("SLURM_JOB_ID", id),
            ("SLURM_JOB_USER", user),
            ("SLURM_JOB_UID", uid),
            ("SLURM_JOB_GPUS", numbers),
        ];
        let variables = variables.into_iter().map(|(name, value)| (name.into(), value.into()));
        HookOrder {
            prolog: self.hooks.prolog.as_ref().map(path),
            epilog: self.hooks.epilog.as_ref().map(path),
            timeout: self.hooks.timeout,
            environment: variables.collect(),
        }
    }
}

/// Runs the epilog of an attempt whose shim is gone and did not. The next task does not wait for it.
pub(super) fn run_late_epilog(run: &RunDir, order: HookOrder) {
    if order.epilog.is_none() || !run.begins_epilog() {
        return;
    }
    let place = run.path();
    let late = move || {
        let HookEnd { outcome, output } = run_epilog(&order);
        let output = String::from_utf8_lossy(&output);
        let output = output.trim();
        match outcome {
            Outcome::Failed(why) => {
                tracing::error!("the epilog for {} failed: {why}: {output}", place.display());
            }
            Outcome::Done | Outcome::Interrupted => {
                tracing::info!("ran the epilog for {}: {output}", place.display());
            }
        }
    };
    if let Err(error) = std::thread::Builder::new().name("epilog".to_owned()).spawn(late) {
        tracing::error!("the epilog could not be run: {error}");
    }
}

fn run_epilog(order: &HookOrder) -> HookEnd {
    run(Which::Epilog, order, None, || false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use coloc_model::Millis;

    fn hook(script: &str) -> (tempfile::TempDir, HookOrder) {
        use std::os::unix::fs::PermissionsExt as _;
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("hook");
        std::fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        let order = HookOrder {
            prolog: Some(file.into_os_string().into()),
            epilog: None,
            timeout: Millis(2_000),
            environment: vec![("COLOC_TASK_ID".into(), "7".into())],
        };
        (place, order)
    }

    #[test]
    fn a_hook_is_told_of_its_task_and_what_it_says_is_kept() {
        let (_place, order) =
            hook("echo $COLOC_HOOK of $COLOC_TASK_ID; env | grep -c HOME; exit 3");
        let end = run(Which::Prolog, &order, None, || false);
        assert_eq!(String::from_utf8_lossy(&end.output), "prolog of 7\n0\n");
        assert!(matches!(end.outcome, Outcome::Failed(why) if why.contains("3")));
    }

    #[test]
    fn a_hook_that_does_not_end_is_killed_with_what_it_started() {
        let (_place, order) = hook("sleep 100 & sleep 100");
        let began = Instant::now();
        let order = HookOrder { timeout: Millis(100), ..order };
        let end = run(Which::Prolog, &order, None, || false);
        assert!(matches!(end.outcome, Outcome::Failed(why) if why.contains("did not end within")));
        assert!(began.elapsed() < Duration::from_secs(20));
        let asked = run(Which::Prolog, &order, None, || true);
        assert_eq!(asked.outcome, Outcome::Interrupted);
    }

    #[test]
    fn a_program_that_is_gone_is_a_failure_that_names_it() {
        let (place, order) = hook("true");
        drop(place);
        let end = run(Which::Prolog, &order, None, || false);
        assert!(matches!(end.outcome, Outcome::Failed(why) if why.contains("cannot run /")));
    }

    #[test]
    fn a_hook_that_others_can_change_by_now_is_not_run() {
        use std::os::unix::fs::PermissionsExt as _;
        let (place, order) = hook("echo it ran");
        let open = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(place.path(), open).unwrap();
        let end = run(Which::Prolog, &order, None, || false);
        assert!(end.output.is_empty());
        assert!(matches!(end.outcome, Outcome::Failed(why) if why.contains("another user could")));
    }
}
