//! The executor against small programs that stand in for NVIDIA's.

use super::*;
use crate::mps::{ClientLimits, cancel_plan, start_plan};
use coloc_model::{Fraction, Millis};
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt;
use tempfile::TempDir;

/// A control program as a shell script, and a layout beside it.
struct Stage {
    dir: TempDir,
    program: Program,
    layout: DaemonLayout,
}

fn stage(script: &str) -> Stage {
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("control");
    std::fs::write(&file, format!("#!/bin/sh\n{script}")).expect("a script");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).expect("executable");
    let layout =
        DaemonLayout::new(dir.path(), 1000, &[Uuid::new("GPU-1b2c3d4e-00")]).expect("short");
    Stage { dir, program: Program(file), layout }
}

impl Stage {
    fn control(&self) -> Control<'_> {
        Control::new(&self.program, &self.layout, Duration::from_secs(5))
    }
}

const LIMITS: ClientLimits = ClientLimits {
    threads: Some(Fraction::new(0.5)),
    memory: Some(Bytes::from_mib(2048)),
    processes: 1,
};

/// Remembers in a file what it was told, and answers from there.
const FAITHFUL: &str = r#"
state="$CUDA_MPS_PIPE_DIRECTORY/told"
if [ "$1" = "-d" ]; then touch "$state"; exit 0; fi
[ -e "$state" ] || { echo "Cannot find MPS control daemon process"; exit 1; }
while read line; do
echo "$line" >> "$state"
case "$line" in
  get_server_list) echo 4242;;
  get_default_active_thread_percentage) grep set_default_active "$state" | tail -1 | cut -d' ' -f2;;
  get_default_device_pinned_mem_limit*) grep set_default_device "$state" | tail -1 | cut -d' ' -f3;;
esac
done
"#;

#[test]
fn a_daemon_is_started_and_its_limits_are_read_back() {
    let stage = stage(FAITHFUL);
    let control = stage.control();
    assert!(!control.is_running());
    control.start(&start_plan(stage.layout.clone(), &LIMITS)).expect("it comes up");
    let mode = std::fs::metadata(&stage.layout.pipe).expect("made").permissions().mode();
    assert_eq!(mode & 0o777, 0o700, "nobody else may talk to the daemon");
    assert_eq!(control.servers().expect("it answers"), [4242]);
    let read = control.read_back(&stage.layout.gpus[0], Bytes::from_mib(2048)).expect("it answers");
    assert!(read.holds(), "{read:?}");
    assert!(stage.dir.path().join("mps/1000/1b2c3d4e/log").is_dir());
}

#[test]
fn a_limit_that_does_not_read_back_is_no_limit() {
    let forgetful = FAITHFUL.replace("grep set_default_device", "echo 0G; : grep");
    let stage = stage(&forgetful);
    let control = Control::new(&stage.program, &stage.layout, Duration::from_millis(300));
    let error = control.start(&start_plan(stage.layout.clone(), &LIMITS)).expect_err("not ready");
    insta::assert_snapshot!(error, @"MPS is not ready: `get_default_device_pinned_mem_limit GPU-1b2c3d4e-00` reads no limit, and 2.0 GiB was set");
}

#[test]
fn a_daemon_that_hangs_is_given_up_on() {
    let stage = stage("sleep 60");
    let control = Control::new(&stage.program, &stage.layout, Duration::from_millis(100));
    let began = Instant::now();
    assert!(matches!(control.servers(), Err(MpsError::TimedOut { .. })));
    assert!(began.elapsed() < Duration::from_secs(10));
}

#[test]
fn a_program_that_is_not_there_says_where_it_comes_from() {
    let stage = stage("");
    let nowhere = Program(PathBuf::from("/nonexistent/nvidia-cuda-mps-control"));
    let error = Control::new(&nowhere, &stage.layout, Duration::from_secs(1)).servers();
    assert!(error.expect_err("no program").to_string().contains("compute utilities"));
}

#[test]
fn a_stubborn_client_is_let_go_by_the_server_before_it_is_killed() {
    let stage = stage(r#"read line; echo "$line" >> "$CUDA_MPS_PIPE_DIRECTORY/told""#);
    std::fs::create_dir_all(&stage.layout.pipe).expect("a folder");
    // It ignores SIGTERM; a line tells when it does.
    let mut child = std::process::Command::new("sh")
        .args(["-c", "trap '' TERM; echo ready; while :; do sleep 0.05; done"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("a shell");
    let mut line = [0; 6];
    child.stdout.as_mut().expect("piped").read_exact(&mut line).expect("a line");
    let plan = cancel_plan(&[child.id()], &[(7, child.id())], Some(Millis(50)));
    let short = |step: CancelStep| match step {
        CancelStep::Wait(_) => CancelStep::Wait(Millis(50)),
        other => other,
    };
    let plan = CancelPlan { steps: plan.steps.into_iter().map(short).collect() };
    stage.control().cancel(&plan, &[child.id()]).expect("it ends");
    let status = child.wait().expect("it has ended");
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(9));
    let told = std::fs::read_to_string(stage.layout.pipe.join("told")).expect("it was told");
    assert_eq!(told.trim(), format!("terminate_client 7 {}", child.id()));
}

#[test]
fn a_polite_client_is_not_killed() {
    let stage = stage("exit 1");
    let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("sleep");
    let plan = cancel_plan(&[child.id()], &[(7, child.id())], Some(Millis::from_secs(5)));
    let left = stage.control().cancel(&plan, &[child.id()]).expect("it ends");
    assert_eq!(left, Vec::<u32>::new());
    let status = child.wait().expect("it has ended");
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(15));
}
