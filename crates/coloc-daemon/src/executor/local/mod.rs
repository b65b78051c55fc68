//! Tasks on this machine: starting, finding and stopping their shims.

mod as_user;
pub mod cgroup;
mod clients;
mod devices;
mod ends;
mod enforcement;
mod environment;
mod find;
mod hooks;
mod judge;
mod kill;
mod login_shell;
mod not_started;
pub mod notices;
mod outputs;
pub mod run;
pub mod sharing;
pub mod shim;
mod signal;
mod slurm_names;
mod start;
mod watch;

use outputs::expand;
pub use outputs::{last_words_of, output_of};
pub use slurm_names::make_commands;
pub use watch::Watcher;

use super::progress;
use super::{
    Executor, Found, GpuError, LaunchError, Launched, MemoryLimit, SharingServer, StopRequest,
};
use crate::administration::Hooks;
use crate::hardware::Gpus;
use crate::notices::Notice;
use crate::owner::Input;
use crate::record::{Record, Uid};
use cgroup::Groups;
use coloc_api::request::SignalRequest;
use coloc_api::spec::{TaskSpec, Warning};
use coloc_api::text::RawText;
use coloc_api::view::{Containment, EnforcementView};
use coloc_gpu::device::Uuid;
use coloc_gpu::driver::Xids;
use coloc_gpu::health::Condition;
use coloc_gpu::process::TaskRoots;
use coloc_model::{Bytes, GpuId, Millis, TaskId, Time};
use find::Shim;
use not_started::NotStarted;
use run::{GroupPlace, Order, Output, READERS, RunAs, RunDir, Started};
use rustix::process::Signal;
use sharing::Sharing;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

/// The log is turned over at this length.
const LOG_LIMIT: u64 = 64 << 20;

/// So much of an output's end is looked at for signs of training.
const TAIL: u64 = 4096;

/// What the shim of an attempt understands by a request to end. One of an earlier version would die of a signal that it does not
/// know.
fn signal_of(request: StopRequest, shim: &Started) -> Signal {
    match request {
        StopRequest::AfterWarning if shim.can_warn => Signal::USR1,
        StopRequest::AfterWarning | StopRequest::AtOnce => Signal::TERM,
    }
}

/// Runs tasks on this machine.
pub struct LocalExecutor {
    /// Where attempts have their directories.
    pub runs: PathBuf,
    /// The program that has the verb `shim`.
    pub program: PathBuf,
    /// The GPUs by name, in the order of the fleet.
    pub uuids: Vec<Uuid>,
    /// Put before what a task has in these variables: libraries and tools of emulated GPUs.
    pub prefixes: Vec<(&'static str, OsString)>,
    /// Given to every task as it is.
    pub variables: Vec<(String, OsString)>,
    /// Where Slurm's commands are links to the program.
    pub commands: Option<PathBuf>,
    /// The socket, for tasks that talk to the daemon.
    pub socket: PathBuf,
    /// The world's seconds are this many of the tasks'.
    pub time_scale: f64,
    /// From a polite request to end to a kill.
    pub grace: Millis,
    /// Programs that run before and after attempts.
    pub hooks: Hooks,
    /// Sets up what tasks that share a GPU need.
    pub sharing: Sharing,
    /// Where tasks have control groups, or why they have none.
    pub groups: Result<Groups, String>,
    /// The addresses of the GPUs on their bus, in the order of the fleet.
    pub addresses: Vec<String>,
    /// Their memory.
    pub capacities: Vec<Bytes>,
    /// Tells when a shim is gone.
    pub watcher: Watcher,
    /// What the processes of tasks that were launched or found can be known by.
    pub known: BTreeMap<TaskId, TaskRoots>,
    /// Where the monitor is told of the tasks that run.
    pub roots: mpsc::Sender<Vec<TaskRoots>>,
    /// Hears critical errors of GPUs.
    pub xids: Xids,
    /// The owner's.
    pub inbox: mpsc::SyncSender<Input>,
    /// Sends signals to all processes of tasks.
    pub(crate) signaller: signal::Signaller,
}

impl LocalExecutor {
    /// The directory of a task's last attempt.
    fn run_dir(&self, record: &Record) -> RunDir {
        RunDir::of(&self.runs, record.id, record.attempt)
    }

    fn start(
        &mut self,
        record: &Record,
        spec: &TaskSpec,
        memory: MemoryLimit,
        neighbours: &[&Record],
    ) -> Result<Launched, NotStarted> {
        let devices = self.devices(record, neighbours)?;
        let limit = memory.bytes();
        let (client, without) = self.admit_to_mps(record, spec, limit, &devices, neighbours)?;
        let mut limits = self.framework_cap(record, spec, limit);
        limits.extend(client.iter().flat_map(|client| client.variables.clone()));
        let environment = self.environment(record, spec, &devices, limits);
        let group = self.make_group(record, spec);
        let enforcement = self.declare(record, spec, &group, memory, client.as_ref());
        let group = group.ok().map(|(group, _)| GroupPlace {
            path: group.path().as_os_str().to_owned().into(),
            name: group.name().to_owned(),
        });
        let mps = client.map(|client| client.pipe.into_os_string().into());
        let order = Order { group, mps, ..self.order(record, spec, environment)? };
        let dir = self.run_dir(record);
        dir.create(order.user.as_ref(), spec.script.as_ref())?;
        if let Err(error) = self.start_shim(record, spec, &dir, &order) {
            self.end_group(record);
            return Err(error.into());
        }
        let neighbours = clients::restated(record, &enforcement, neighbours);
        Ok(Launched { enforcement, without, neighbours })
    }

    fn order(
        &self,
        record: &Record,
        spec: &TaskSpec,
        environment: Vec<(RawText, RawText)>,
    ) -> Result<Order, NotStarted> {
        let world = |span| Millis(self.world(span).as_millis() as u64);
        let pattern = |path: &RawText| expand(path, record, &spec.name);
        Ok(Order {
            command: self.command(record, spec),
            directory: spec.directory.clone(),
            environment,
            user: run_as(record.owner)?,
            output: spec.output.as_ref().map(pattern),
            errors: spec.errors.as_ref().map(pattern),
            log_limit: LOG_LIMIT,
            time_limit: spec.time_limit.map(world),
            warning: spec.warning.map(|w| Warning { before: world(w.before), ..w }),
            grace: self.grace,
            truncate: spec.truncate && record.attempt == 1,
            group: None,
            mps: None,
            umask: spec.umask,
            terminal: spec.terminal,
            // What the client sent was read by the first attempt.
            input: spec.input && record.attempt == 1,
            hooks: self.hook_order(record),
            limits: spec.limits.clone(),
        })
    }

    /// How long a span of the tasks' time takes in the world.
    fn world(&self, span: Millis) -> Duration {
        Duration::from_millis((span.0 as f64 / self.time_scale) as u64)
    }
}

impl Executor for LocalExecutor {
    fn launch(
        &mut self,
        record: &Record,
        spec: &TaskSpec,
        memory: MemoryLimit,
        neighbours: &[&Record],
    ) -> Result<Launched, LaunchError> {
        let told = |error: NotStarted| LaunchError { blame: error.blame(), why: error.to_string() };
        self.start(record, spec, memory, neighbours).map_err(told)
    }

    /// Its shim sends SIGTERM, after the signal that the task wants to hear where there is time for one, and then kills.
    fn stop(&mut self, record: &Record, request: StopRequest) {
        let dir = self.run_dir(record);
        let signal = match dir.revoke() {
            Ok(true) => Signal::KILL,
            Ok(false) | Err(_) => match dir.started() {
                Ok(Some(started)) => signal_of(request, &started),
                Ok(None) | Err(_) => Signal::TERM,
            },
        };
        self.watcher.signal(record.id, record.attempt, signal);
    }

    fn longest_stop(&self, spec: &TaskSpec, request: StopRequest) -> Duration {
        let lead = match (request, spec.warning) {
            (StopRequest::AfterWarning, Some(warning)) => self.world(warning.before),
            (StopRequest::AfterWarning, None) | (StopRequest::AtOnce, _) => Duration::ZERO,
        };
        lead.min(shim::LONGEST_FAREWELL) + Duration::from_millis(self.grace.0)
    }

    fn can_change_time_limit(&self, record: &Record) -> bool {
        let started = self.run_dir(record).started().ok().flatten();
        // One that has not begun reads the file when it begins.
        started.is_none_or(|started| started.can_change_limit)
    }

    fn set_time_limit(&mut self, record: &Record, spec: &TaskSpec) -> Result<(), String> {
        let limit = spec.time_limit.map(|limit| Millis(self.world(limit).as_millis() as u64));
        let dir = self.run_dir(record);
        dir.write_limit(limit).map_err(|error| error.to_string())?;
        // A shim that has not begun would die of the signal, and reads the file when it begins.
        if let Ok(Some(Started { can_change_limit: true, .. })) = dir.started() {
            self.watcher.signal(record.id, record.attempt, Signal::USR2);
        }
        Ok(())
    }

    fn kill(&mut self, record: &Record) {
        self.kill_from_outside(record);
    }

    fn can_signal(&self, record: &Record, request: SignalRequest) -> bool {
        self.signalling(record, request).is_some()
    }

    fn signal(&mut self, record: &Record, request: SignalRequest) {
        if let Some(signalling) = self.signalling(record, request) {
            self.signaller.send(signalling);
        }
    }

    fn find(&mut self, record: &Record, spec: &TaskSpec) -> Found {
        match self.find_shim(record, spec) {
            Ok(Shim::There) => Found::Running,
            Ok(Shim::NeverStarted) => Found::NeverStarted,
            Ok(Shim::Gone) => {
                let roots = self.known.get(&record.id).cloned();
                match self.remains(record, spec, roots).end() {
                    super::End::Unclear(why) => Found::Unknown(why),
                    end => Found::Ended(end),
                }
            }
            Err(error) => Found::Unknown(error.to_string()),
        }
    }

    fn keep_only(&mut self, attempts: &[(TaskId, u32)], is_known: &dyn Fn(TaskId) -> bool) {
        self.sweep_groups(attempts, is_known);
    }

    fn attribute_to(&mut self, tasks: &mut dyn Iterator<Item = TaskId>) {
        let tasks: BTreeSet<TaskId> = tasks.collect();
        self.known.retain(|task, _| tasks.contains(task));
        let _ = self.roots.send(self.known.values().cloned().collect());
    }

    fn enforcement(&self, record: &Record) -> Option<Box<EnforcementView>> {
        self.true_enforcement(record)
    }

    fn output(&self, record: &Record, spec: &TaskSpec) -> PathBuf {
        output_of(&self.run_dir(record), record, spec)
    }

    fn look_for_progress(&mut self, record: &Record, spec: &TaskSpec) {
        let (task, attempt, owner) = (record.id, record.attempt, record.owner);
        let output = Output::at(self.run_dir(record), self.output(record, spec));
        let inbox = self.inbox.clone();
        // A task whose user has too many reads under way is looked at next time.
        let _ = READERS.begin(output.reads(owner), move || {
            let end = output.end(owner, TAIL).unwrap_or_default();
            let (sign, counted) = (progress::sign_of_training(&end), progress::count(&end));
            if sign.is_some() || counted.is_some() {
                let _ = inbox.try_send(Input::Sign { task, attempt, sign, counted });
            }
        });
    }

    fn leader(&self, task: TaskId) -> Option<u32> {
        self.known.get(&task).map(|roots| roots.leader)
    }

    fn containment(&self) -> (Containment, String) {
        match &self.groups {
            Ok(groups) => (groups.containment(), groups.says()),
            Err(why) => (Containment::Session, format!("session: {why}")),
        }
    }

    fn set_hooks(&mut self, hooks: &Hooks) {
        self.hooks.clone_from(hooks);
    }

    fn epilog_failure(&self, record: &Record) -> Option<String> {
        self.run_dir(record).ended().ok().flatten()?.epilog
    }

    fn set_grace(&mut self, grace: Millis) {
        self.grace = grace;
    }

    fn set_gpus(&mut self, gpus: &Gpus) {
        self.uuids.clone_from(&gpus.uuids);
        self.addresses.clone_from(&gpus.addresses);
        self.capacities.clone_from(&gpus.capacities);
    }

    fn is_gone(&self, gpu: GpuId) -> bool {
        let Some(uuid) = self.uuids.get(gpu.index()) else { return false };
        self.sharing.partitions.is_gone(uuid, gpu)
    }

    fn condition(&self, gpu: GpuId) -> Option<Condition> {
        self.sharing.partitions.condition(self.uuids.get(gpu.index())?)
    }

    fn gpu_errors(&mut self) -> Vec<GpuError> {
        let heard = self.xids.take().into_iter();
        let known = heard.filter_map(|event| {
            let index = self.uuids.iter().position(|uuid| *uuid == event.gpu)?;
            Some(GpuError { gpu: GpuId::from(index), xid: event.xid, at: event.at })
        });
        known.collect()
    }

    fn deaf_to_gpu_errors(&self) -> Option<String> {
        self.xids.trouble().map(|error| error.to_string())
    }

    fn sharing_server(&self, record: &Record) -> SharingServer {
        self.mps_server(record)
    }

    fn sweep_sharing(&mut self, now: Time, attempts: &mut dyn Iterator<Item = &Record>) {
        self.sweep_instances(now, attempts);
    }

    fn deliver(&mut self, notice: &Notice, sendmail: &Path) {
        self.tell(notice, sendmail);
    }

    fn tear_down(&mut self) {
        self.sharing.tear_down();
        if let Ok(groups) = &self.groups {
            groups.leave();
        }
    }
}

/// The user that a task runs as. A daemon that is not root can only be itself, and takes only its own user's tasks.
fn run_as(owner: Uid) -> Result<Option<RunAs>, NotStarted> {
    if !rustix::process::geteuid().is_root() || owner.0 == 0 {
        return Ok(None);
    }
    let user = nix::unistd::User::from_uid(nix::unistd::Uid::from_raw(owner.0));
    let user = user.map_err(io::Error::from)?.ok_or(NotStarted::NoSuchUser(owner.0))?;
    Ok(Some(RunAs { uid: user.uid.as_raw(), gid: user.gid.as_raw(), name: user.name }))
}

/// Where a daemon's attempts are.
pub fn runs_below(state: &Path) -> PathBuf {
    state.join("runs")
}
