//! Ending the processes of a task that are clients of MPS. One that is killed in the middle of a kernel can take its
//! server down, and all others with it; so the server lets go of it first.

use super::tree;
use crate::executor::local::run::Order;
use coloc_gpu::mps::{Control, DaemonLayout, MpsError, Program, cancel_plan};
use std::path::PathBuf;
use std::time::Duration;

/// A control daemon that takes longer to answer keeps no task from ending.
const DEADLINE: Duration = Duration::from_secs(2);

/// Has the MPS server let go of everything that the shim has started, if there is one, and kills it then. Says what was in
/// the way. A control daemon of the user's own is left to the user: a privileged shim opens nothing that the environment of a
/// task names.
pub(super) fn end(order: &Order) -> Result<(), MpsError> {
    match &order.mps {
        Some(pipe) => {
            end_clients(pipe.as_path().to_owned(), &tree::descendants(std::process::id()))
        }
        None => Ok(()),
    }
}

/// Has the server of a pipe directory let go of its clients among these processes, and kills them then.
pub(crate) fn end_clients(pipe: PathBuf, processes: &[u32]) -> Result<(), MpsError> {
    if processes.is_empty() {
        return Ok(());
    }
    let (log, uid) = (pipe.with_file_name("log"), rustix::process::geteuid().as_raw());
    // A program that only talks to it need not say which GPUs it is for.
    let layout = DaemonLayout { pipe, log, gpus: Vec::new(), uid };
    let program = Program::default();
    let control = Control::new(&program, &layout, DEADLINE);
    let mut clients = control.clients()?;
    clients.retain(|(_, client)| processes.contains(client));
    let pids: Vec<u32> = clients.iter().map(|&(_, client)| client).collect();
    control.cancel(&cancel_plan(&pids, &clients, None), &pids).map(drop)
}
