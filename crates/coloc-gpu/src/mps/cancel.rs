//! Ending a client without hurting the others.
//!
//! A client of MPS that is killed while it runs a kernel can take the server, and with it all other clients, down. So
//! it is asked first, then the server is told to end its context, and only then is it killed.

use super::protocol::Command;
use coloc_model::Millis;

/// One thing to do. Each is for the processes of the task that are still alive; when none is, the plan is over.
#[derive(Clone, PartialEq, Debug)]
pub enum CancelStep {
    /// Ask the processes to end.
    Terminate {
        /// The processes.
        pids: Vec<u32>,
    },
    /// Wait for them, no longer than this.
    Wait(Millis),
    /// Tell the server to end the contexts of the processes that are left.
    Tell(Vec<Command>),
    /// Kill what is left.
    Kill {
        /// The processes.
        pids: Vec<u32>,
    },
}

/// How to end a task, in order.
#[derive(Clone, PartialEq, Debug)]
pub struct CancelPlan {
    /// What to do.
    pub steps: Vec<CancelStep>,
}

/// How to end a task's processes. `clients` are the clients of a server among them, each with the server's PID; without
/// any there is no other client to protect and the server is left out. `grace` is how long they have after they are
/// asked; without it they were asked before.
pub fn cancel_plan(pids: &[u32], clients: &[(u32, u32)], grace: Option<Millis>) -> CancelPlan {
    let pids = pids.to_vec();
    let mut steps = Vec::new();
    if let Some(grace) = grace {
        steps.push(CancelStep::Terminate { pids: pids.clone() });
        steps.push(CancelStep::Wait(grace));
    }
    if !clients.is_empty() {
        let end = |&(server, client): &(u32, u32)| Command::TerminateClient { server, client };
        steps.push(CancelStep::Tell(clients.iter().map(end).collect()));
        // The server drains the kernels that are running.
        steps.push(CancelStep::Wait(DRAIN));
    }
    steps.push(CancelStep::Kill { pids });
    CancelPlan { steps }
}

const DRAIN: Millis = Millis::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_killed_only_after_the_server_let_it_go() {
        let plan = cancel_plan(&[20, 21], &[(7, 20), (7, 21)], Some(Millis::from_secs(30)));
        let ends = vec![
            Command::TerminateClient { server: 7, client: 20 },
            Command::TerminateClient { server: 7, client: 21 },
        ];
        assert_eq!(
            plan.steps,
            [
                CancelStep::Terminate { pids: vec![20, 21] },
                CancelStep::Wait(Millis::from_secs(30)),
                CancelStep::Tell(ends),
                CancelStep::Wait(DRAIN),
                CancelStep::Kill { pids: vec![20, 21] },
            ]
        );
    }

    #[test]
    fn without_mps_there_is_nobody_to_tell() {
        let plan = cancel_plan(&[20], &[], Some(Millis::from_secs(1)));
        assert!(!plan.steps.iter().any(|step| matches!(step, CancelStep::Tell(_))));
        let asked = cancel_plan(&[20], &[(7, 20)], None);
        assert!(matches!(asked.steps[0], CancelStep::Tell(_)), "who was asked is not asked again");
    }
}
