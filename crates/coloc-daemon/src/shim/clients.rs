//! Ending those of a task's processes that are clients of MPS. One that is killed in the middle of a kernel can take its
//! server down, and all others with it; so the server lets go of it first.

use super::tree;
use crate::run::Order;
use coloc_gpu::mps::{Control, DaemonLayout, MpsError, Program, cancel_plan};
use std::path::PathBuf;
use std::time::Duration;

/// A control daemon that takes longer to answer keeps nobody from ending.
const DEADLINE: Duration = Duration::from_secs(2);

/// Has the MPS server let go of everything that the shim has started, if there is one, and kills it then. Says what was in
/// the way.
pub(super) fn end(order: &Order) -> Result<(), MpsError> {
    let Some(layout) = layout(order) else { return Ok(()) };
    let ours = tree::descendants(std::process::id());
    if ours.is_empty() {
        return Ok(());
    }
    let program = Program::default();
    let control = Control::new(&program, &layout, DEADLINE);
    let mut clients = control.clients()?;
    clients.retain(|(_, client)| ours.contains(client));
    let pids: Vec<u32> = clients.iter().map(|&(_, client)| client).collect();
    control.cancel(&cancel_plan(&pids, &clients, None), &pids).map(drop)
}

/// The control daemon whose clients the task's processes are, which may be one of its user's own.
fn layout(order: &Order) -> Option<DaemonLayout> {
    let pipe = |(name, _): &&(_, _)| *name == "CUDA_MPS_PIPE_DIRECTORY".into();
    let (_, pipe) = order.environment.iter().find(pipe)?;
    let pipe: PathBuf = pipe.as_path().to_owned();
    let log = pipe.with_file_name("log");
    let uid = rustix::process::geteuid().as_raw();
    // Whoever only talks to it need not say which GPUs it is for.
    pipe.is_absolute().then_some(DaemonLayout { pipe, log, gpus: Vec::new(), uid })
}
