//! What it takes to start a daemon, to admit a client and to limit it.

use super::layout::DaemonLayout;
use super::protocol::Command;
use crate::device::{Identity, Uuid, Versions};
use coloc_model::{Bytes, Fraction};
use std::path::PathBuf;

/// What a client may use.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ClientLimits {
    /// The share of SMs; it can only be tightened below the server's.
    pub threads: Option<Fraction>,
    /// Device memory of the whole task on each GPU.
    pub memory: Option<Bytes>,
    /// Processes of the task that will be clients. MPS limits each of them by itself, so that the memory is divided
    /// among them.
    pub processes: u32,
}

impl ClientLimits {
    /// No limits, one process.
    pub const NONE: ClientLimits = ClientLimits { threads: None, memory: None, processes: 1 };

    /// The tightest limits that let every one of these clients have what it may. A server has one limit for all who
    /// come, and each may come at any time.
    pub fn loosest(all: impl IntoIterator<Item = ClientLimits>) -> ClientLimits {
        let mut all = all.into_iter();
        let Some(first) = all.next() else { return ClientLimits::NONE };
        let first = ClientLimits { memory: first.memory_of_each(), processes: 1, ..first };
        all.fold(first, |loosest, next| ClientLimits {
            threads: loosest.threads.zip(next.threads).map(|(a, b)| a.max(b)),
            memory: loosest.memory.zip(next.memory_of_each()).map(|(a, b)| a.max(b)),
            processes: 1,
        })
    }

    /// What one process may hold.
    pub fn memory_of_each(&self) -> Option<Bytes> {
        self.memory.map(|memory| Bytes(memory.0 / u64::from(self.processes.max(1))))
    }
}

/// One thing to do with a control daemon.
#[derive(Clone, PartialEq, Debug)]
pub enum ControlStep {
    /// Make a folder that its user alone can enter.
    MakeFolder(PathBuf),
    /// Start `nvidia-cuda-mps-control -d` for the layout's GPUs.
    StartDaemon,
    /// Tell it something.
    Tell(Command),
    /// Ask it for a share of SMs until the answer is this.
    ExpectThreads {
        /// The question.
        command: Command,
        /// The share.
        percentage: f64,
    },
    /// Ask it for a limit of memory until the answer is this.
    ExpectLimit {
        /// The question.
        command: Command,
        /// The limit.
        limit: Bytes,
    },
}

/// How to start a daemon, in order.
#[derive(Clone, PartialEq, Debug)]
pub struct StartPlan {
    /// Its folders.
    pub layout: DaemonLayout,
    /// What to do.
    pub steps: Vec<ControlStep>,
}

/// How to start a daemon whose servers limit every client like this. The limits come before the server: they apply
/// to future servers only.
pub fn start_plan(layout: DaemonLayout, limits: &ClientLimits) -> StartPlan {
    let mut steps = vec![
        ControlStep::MakeFolder(layout.pipe.clone()),
        ControlStep::MakeFolder(layout.log.clone()),
        ControlStep::StartDaemon,
    ];
    let percentage = 100.0 * limits.threads.map_or(1.0, Fraction::get);
    steps.push(ControlStep::Tell(Command::SetDefaultActiveThreadPercentage { percentage }));
    let command = Command::GetDefaultActiveThreadPercentage;
    let threads = ControlStep::ExpectThreads { command, percentage };
    let mut expected = vec![threads];
    for gpu in &layout.gpus {
        let Some(limit) = limits.memory_of_each() else { break };
        let set = Command::SetDefaultDevicePinnedMemLimit { gpu: gpu.clone(), limit };
        steps.push(ControlStep::Tell(set));
        let command = Command::GetDefaultDevicePinnedMemLimit { gpu: gpu.clone() };
        expected.push(ControlStep::ExpectLimit { command, limit });
    }
    steps.push(ControlStep::Tell(Command::StartServer { uid: layout.uid }));
    steps.append(&mut expected);
    StartPlan { layout, steps }
}

/// What to tell a running server before a task is launched, so that no client gets more than `limits`, and what it must
/// answer. The limits are for new clients of this server, and of one that may have to take its place. The environment of
/// each client can only tighten them. What it was `told` before need not be said again. `whole` is the memory of the
/// largest of the GPUs: a limit is lifted by setting that.
pub fn admit_plan(
    server: u32,
    gpus: &[Uuid],
    limits: &ClientLimits,
    told: Option<&ClientLimits>,
    whole: Bytes,
) -> Vec<ControlStep> {
    let mut steps = Vec::new();
    if told.is_none_or(|told| told.threads != limits.threads) {
        let percentage = 100.0 * limits.threads.map_or(1.0, Fraction::get);
        let default = Command::SetDefaultActiveThreadPercentage { percentage };
        let set = Command::SetActiveThreadPercentage { server, percentage };
        let command = Command::GetActiveThreadPercentage { server };
        steps.extend([default, set].map(ControlStep::Tell));
        steps.push(ControlStep::ExpectThreads { command, percentage });
    }
    if told.is_some_and(|told| told.memory_of_each() == limits.memory_of_each()) {
        return steps;
    }
    let limit = limits.memory_of_each().unwrap_or(whole);
    for gpu in gpus {
        let gpu = || gpu.clone();
        let default = Command::SetDefaultDevicePinnedMemLimit { gpu: gpu(), limit };
        let set = Command::SetDevicePinnedMemLimit { server, gpu: gpu(), limit };
        let command = Command::GetDevicePinnedMemLimit { server, gpu: gpu() };
        steps.extend([default, set].map(ControlStep::Tell));
        steps.push(ControlStep::ExpectLimit { command, limit });
    }
    steps
}

/// The variables that make a process a client with these limits. `visible` are the GPUs in the order of the
/// task's `CUDA_VISIBLE_DEVICES`, which is how the limits are numbered.
pub fn client_environment(
    layout: &DaemonLayout,
    limits: &ClientLimits,
    visible: &[Uuid],
) -> Vec<(&'static str, String)> {
    let mut variables = vec![
        ("CUDA_MPS_PIPE_DIRECTORY", layout.pipe.display().to_string()),
        ("CUDA_MPS_LOG_DIRECTORY", layout.log.display().to_string()),
    ];
    if let Some(threads) = limits.threads {
        let percentage = format!("{}", threads.get() * 100.0);
        variables.push(("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", percentage));
    }
    if let Some(limit) = limits.memory_of_each() {
        let each = (0..visible.len()).map(|at| format!("{at}={}M", limit.0.div_ceil(1 << 20)));
        let each = each.collect::<Vec<_>>().join(",");
        variables.push(("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", each));
    }
    variables
}

/// The most clients that MPS takes on a device: 16 before Volta, 48 since, 60 from CUDA 13.1 on.
pub fn client_limit(gpu: &Identity, versions: &Versions) -> u32 {
    match () {
        () if !gpu.is_volta_or_newer() => 16,
        () if versions.cuda >= (13, 1) => 60,
        () => 48,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::scripted::identity;
    use std::path::Path;

    fn layout() -> DaemonLayout {
        let gpu = Uuid::new("GPU-1b2c3d4e-0000");
        DaemonLayout::new(Path::new("/run/coloc"), 1000, &[gpu]).expect("short")
    }

    const HALF: ClientLimits = ClientLimits {
        threads: Some(Fraction::new(0.5)),
        memory: Some(Bytes::from_mib(8192)),
        processes: 4,
    };

    #[test]
    fn a_daemon_is_ready_when_its_limits_read_back() {
        let plan = start_plan(layout(), &HALF);
        let says = |step: &ControlStep| match step {
            ControlStep::MakeFolder(folder) => format!("folder {}", folder.display()),
            ControlStep::StartDaemon => "start".to_owned(),
            ControlStep::Tell(command) => format!("tell {command}"),
            ControlStep::ExpectThreads { command, percentage } => {
                format!("{command} is {percentage}")
            }
            ControlStep::ExpectLimit { command, limit } => format!("{command} is {limit}"),
        };
        let steps: Vec<String> = plan.steps.iter().map(says).collect();
        insta::assert_snapshot!(steps.join("\n"), @r"
        folder /run/coloc/mps/1000/1b2c3d4e/pipe
        folder /run/coloc/mps/1000/1b2c3d4e/log
        start
        tell set_default_active_thread_percentage 50
        tell set_default_device_pinned_mem_limit GPU-1b2c3d4e-0000 2048M
        tell start_server -uid 1000
        get_default_active_thread_percentage is 50
        get_default_device_pinned_mem_limit GPU-1b2c3d4e-0000 is 2.0 GiB
        ");
    }

    #[test]
    fn a_task_is_admitted_when_the_servers_limits_read_back() {
        let (whole, gpus) = (Bytes::from_mib(40_960), layout().gpus);
        let expected = |limits: &ClientLimits| {
            let last = admit_plan(7, &gpus, limits, None, whole).pop();
            let Some(ControlStep::ExpectLimit { command, limit }) = last else {
                panic!("{last:?}")
            };
            (command.to_string(), limit)
        };
        let question = "get_device_pinned_mem_limit 7 GPU-1b2c3d4e-0000".to_owned();
        assert_eq!(expected(&HALF), (question.clone(), Bytes::from_mib(2048)));
        // No limit is one that no client can reach: whether zero lifts it is not documented.
        assert_eq!(expected(&ClientLimits::NONE), (question, whole));
        assert!(admit_plan(7, &gpus, &HALF, Some(&HALF), whole).is_empty(), "it knows");
        let less = ClientLimits { threads: None, ..HALF };
        assert_eq!(admit_plan(7, &gpus, &less, Some(&HALF), whole).len(), 3, "threads alone");
    }

    #[test]
    fn a_server_lets_every_client_have_what_it_may() {
        let of = |threads, mib| ClientLimits {
            threads: Some(Fraction::new(threads)),
            memory: Some(Bytes::from_mib(mib)),
            processes: 1,
        };
        assert_eq!(ClientLimits::loosest([of(0.2, 4096), of(0.5, 1024)]), of(0.5, 4096));
        assert_eq!(ClientLimits::loosest([of(0.2, 4096)]), of(0.2, 4096));
        let open = ClientLimits::NONE;
        assert_eq!(ClientLimits::loosest([of(0.2, 4096), open, of(0.1, 1)]), open);
        assert_eq!(ClientLimits::loosest([]), open);
    }

    #[test]
    fn clients_find_the_daemon_and_their_limits_in_the_environment() {
        let visible = layout().gpus;
        let variables = client_environment(&layout(), &HALF, &visible);
        let text: Vec<String> =
            variables.iter().map(|(key, value)| format!("{key}={value}")).collect();
        insta::assert_snapshot!(text.join("\n"), @r"
        CUDA_MPS_PIPE_DIRECTORY=/run/coloc/mps/1000/1b2c3d4e/pipe
        CUDA_MPS_LOG_DIRECTORY=/run/coloc/mps/1000/1b2c3d4e/log
        CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=50
        CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=2048M
        ");
        assert_eq!(client_environment(&layout(), &ClientLimits::NONE, &visible).len(), 2);
    }

    #[test]
    fn a_device_takes_so_many_clients() {
        let versions = |cuda| Versions { driver: String::new(), cuda };
        assert_eq!(client_limit(&identity(0), &versions((12, 8))), 48);
        assert_eq!(client_limit(&identity(0), &versions((13, 1))), 60);
        let pascal = Identity { compute_capability: (6, 0), ..identity(0) };
        assert_eq!(client_limit(&pascal, &versions((12, 8))), 16);
    }
}
