//! Control daemons of MPS, one for each user and set of GPUs, and the limits of their servers.
//!
//! All of a user's tasks on a GPU have one server with one limit for all clients. It is that of the largest of them,
//! and the environment of each tightens it to its own. So no task that drops its variables gets more than the largest.

use crate::executor::local::run::is_there;
use crate::record::Uid;
use coloc_api::view::Process;
use coloc_gpu::device::Uuid;
use coloc_gpu::mps::{
    ClientLimits, Control, DaemonLayout, LayoutError, MpsError, Program, admit_plan,
    client_environment, start_plan,
};
use coloc_gpu::process::ProcessTable;
use coloc_model::Bytes;
use rustc_hash::FxHashMap;
use std::fmt;
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::time::{Duration, Instant};

/// A control daemon that takes longer to answer is not there.
pub(crate) const DEADLINE: Duration = Duration::from_secs(5);
/// One that did not answer is left alone this long.
const LEFT_ALONE: Duration = Duration::from_secs(60);

/// Sharing that could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum SharingError {
    /// Its folders.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// Its daemon.
    #[error(transparent)]
    Mps(#[from] MpsError),
    /// A folder that its user can enter.
    #[error("cannot make {} for its user: {source}", folder.display())]
    Folder {
        /// Which.
        folder: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It may be there soon.
    #[error("its MPS control daemon has not answered yet")]
    NotYet,
    /// It did not answer a moment ago.
    #[error(
        "the MPS control daemon in {} did not answer; it is left alone for a minute", pipe.display()
    )]
    Silent {
        /// Its folder.
        pipe: PathBuf,
    },
    /// The server did not come up.
    #[error("the MPS control daemon in {} has started no server", pipe.display())]
    NoServer {
        /// Its folder.
        pipe: PathBuf,
    },
    /// The thread that talks to it could not be started.
    #[error("cannot talk to MPS: {0}")]
    Thread(io::Error),
}

/// A task that is to be a client.
#[derive(Clone, Debug)]
pub struct Newcomer<'a> {
    /// Its user.
    pub owner: Uid,
    /// Its GPUs, in its order.
    pub gpus: &'a [Uuid],
    /// What it may use.
    pub limits: ClientLimits,
    /// What the tasks on its server may use.
    pub others: &'a [ClientLimits],
    /// The memory of the largest of its GPUs.
    pub whole: Bytes,
}

/// A task that can be a client.
#[derive(Clone, PartialEq, Debug)]
pub struct Admitted {
    /// The variables that make it one.
    pub variables: Vec<(&'static str, String)>,
    /// The memory that its server refuses to go beyond, as the server says; `None` if that is all there is.
    pub server_memory: Option<Bytes>,
    /// Why the server has no limit, if it should have one.
    pub unlimited: Option<String>,
    /// The server.
    pub server: Process,
    /// The folder by which its control daemon is reached.
    pub pipe: PathBuf,
}

/// A server, and what it was last told.
#[derive(Clone, PartialEq, Debug)]
struct Server {
    process: Process,
    limits: ClientLimits,
    /// Why the limits are not in force, and when that was found.
    trouble: Option<(String, Instant)>,
}

impl Server {
    /// Whether nothing is to be said to it for these limits: they are in force, or it refused them a moment ago.
    fn was_told(&self, limits: &ClientLimits) -> bool {
        let rests = self.trouble.as_ref().is_none_or(|(_, since)| since.elapsed() < LEFT_ALONE);
        self.limits == *limits && rests
    }
}

type Errand = Receiver<Result<Server, SharingError>>;

/// Tells the waiting launches that an errand has ended.
#[derive(Clone)]
struct Bell(Arc<dyn Fn() + Send + Sync>);

impl fmt::Debug for Bell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Bell")
    }
}

/// Rings when it goes, however that comes.
struct AtTheEnd(Bell);

impl Drop for AtTheEnd {
    fn drop(&mut self) {
        (self.0.0)();
    }
}

/// The control daemons.
#[derive(Debug)]
pub struct Mps {
    state: PathBuf,
    program: Program,
    servers: FxHashMap<PathBuf, Server>,
    errands: FxHashMap<PathBuf, Errand>,
    silent: FxHashMap<PathBuf, Instant>,
    bell: Bell,
}

impl Mps {
    /// Folders go below `state`.
    pub fn new(state: PathBuf) -> Self {
        Mps {
            state,
            program: Program::default(),
            servers: FxHashMap::default(),
            errands: FxHashMap::default(),
            silent: FxHashMap::default(),
            bell: Bell(Arc::new(|| {})),
        }
    }

    /// A caller that was told [`SharingError::NotYet`] is told so when it is worth asking again.
    pub fn ring(&mut self, bell: impl Fn() + Send + Sync + 'static) {
        self.bell = Bell(Arc::new(bell));
    }

    /// Makes a task a client of its user's server on these GPUs, which answers by then and gives no client more than
    /// the largest of its tasks. It never waits: while the control daemon is talked to, it is `NotYet`.
    pub fn admit(&mut self, newcomer: &Newcomer<'_>) -> Result<Admitted, SharingError> {
        let layout = DaemonLayout::new(&self.state, newcomer.owner.0, newcomer.gpus)?;
        let all = newcomer.others.iter().copied().chain([newcomer.limits]);
        let limits = ClientLimits::loosest(all);
        self.collect(&layout.pipe)?;
        let known = self.known(&layout.pipe);
        let server = match known {
            // Nothing is asked where nothing changes: every launch waits for this.
            Some(server) if server.was_told(&limits) => server,
            known => self.set_up(&layout, known, limits, newcomer.whole)?,
        };
        let admitted = Admitted {
            variables: client_environment(&layout, &newcomer.limits, newcomer.gpus),
            server_memory: server.limits.memory.filter(|_| server.trouble.is_none()),
            unlimited: server.trouble.as_ref().map(|(why, _)| why.clone()),
            server: server.process,
            pipe: layout.pipe.clone(),
        };
        self.servers.insert(layout.pipe, server);
        Ok(admitted)
    }

    /// Makes the first processes on these GPUs clients without limits, however long that takes.
    pub fn admit_unlimited(&mut self, owner: Uid, gpus: &[Uuid]) -> Result<Admitted, SharingError> {
        let (limits, whole) = (ClientLimits::NONE, Bytes::ZERO);
        let newcomer = Newcomer { owner, gpus, limits, others: &[], whole };
        loop {
            match self.admit(&newcomer) {
                Err(SharingError::NotYet) => std::thread::sleep(Duration::from_millis(10)),
                done => return done,
            }
        }
    }

    /// The folder by which the control daemon of a user on these GPUs is reached.
    pub fn pipe(&self, owner: Uid, gpus: &[Uuid]) -> Option<PathBuf> {
        DaemonLayout::new(&self.state, owner.0, gpus).ok().map(|layout| layout.pipe)
    }

    /// This server of these GPUs has ended or been replaced, or its control daemon has ended.
    pub fn has_lost(&self, owner: Uid, gpus: &[Uuid], server: Process) -> bool {
        let Ok(layout) = DaemonLayout::new(&self.state, owner.0, gpus) else { return false };
        let replaced = |now: &Server| now.process != server;
        !is_there(server)
            || !is_alive(&layout.pipe)
            || self.servers.get(&layout.pipe).is_some_and(replaced)
    }

    /// The server of a pipe directory, if it and its control daemon are there.
    fn known(&self, pipe: &Path) -> Option<Server> {
        let known = self.servers.get(pipe).cloned();
        known.filter(|server| is_there(server.process) && is_alive(pipe))
    }

    /// Takes note of what an errand has brought.
    fn collect(&mut self, pipe: &Path) -> Result<(), SharingError> {
        let Some(errand) = self.errands.remove(pipe) else { return Ok(()) };
        match errand.try_recv() {
            Ok(Ok(server)) => {
                self.servers.insert(pipe.to_owned(), server);
                Ok(())
            }
            Ok(Err(error)) => {
                let silent = matches!(error, SharingError::Mps(MpsError::TimedOut { .. }));
                if silent {
                    self.silent.insert(pipe.to_owned(), Instant::now());
                }
                // A server does its work without its control daemon's words.
                if silent && self.known(pipe).is_some() { Ok(()) } else { Err(error) }
            }
            Err(TryRecvError::Empty) => {
                self.errands.insert(pipe.to_owned(), errand);
                Err(SharingError::NotYet)
            }
            Err(TryRecvError::Disconnected) => {
                Err(SharingError::NoServer { pipe: pipe.to_owned() })
            }
        }
    }

    /// Has a thread of its own talk to the control daemon, one at a time, so that one that hangs holds up no launch.
    fn set_up(
        &mut self,
        layout: &DaemonLayout,
        known: Option<Server>,
        limits: ClientLimits,
        whole: Bytes,
    ) -> Result<Server, SharingError> {
        let pipe = layout.pipe.clone();
        if self.silent.get(&pipe).is_some_and(|since| since.elapsed() < LEFT_ALONE) {
            let silent = SharingError::Silent { pipe };
            let Some(known) = known else { return Err(silent) };
            let trouble = Some((silent.to_string(), Instant::now()));
            return Ok(Server { limits, trouble, ..known });
        }
        let (tell, errand) = sync_channel(1);
        let (state, program, layout) = (self.state.clone(), self.program.clone(), layout.clone());
        let bell = self.bell.clone();
        let work = move || {
            // It goes after what it tells of.
            let _bell = AtTheEnd(bell);
            let tell = tell;
            // The receiver may be gone.
            let _ = tell.send(bring_up(&state, &program, &layout, known, limits, whole));
        };
        std::thread::Builder::new()
            .name("mps".to_owned())
            .spawn(work)
            .map_err(SharingError::Thread)?;
        self.errands.insert(pipe, errand);
        Err(SharingError::NotYet)
    }

    /// Folders of daemons, ours and the ones that an earlier daemon of ours set up: `mps/UID/GPUS/pipe`.
    fn layouts(&self) -> Vec<DaemonLayout> {
        let below = |folder: &Path| {
            std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
        };
        let users = below(&self.state.join("mps"));
        let folders = users.flat_map(|user| {
            let uid = user.file_name().and_then(|name| name.to_str()?.parse().ok());
            below(&user).filter_map(move |folder| Some((uid?, folder))).collect::<Vec<_>>()
        });
        let layout = |(uid, folder): (u32, PathBuf)| DaemonLayout {
            pipe: folder.join("pipe"),
            log: folder.join("log"),
            gpus: Vec::new(),
            uid,
        };
        folders.map(layout).collect()
    }

    /// Ends every daemon that was set up here, by this daemon or an earlier one. Only for when no task runs.
    pub fn tear_down(&mut self) {
        self.servers.clear();
        for layout in self.layouts() {
            // One that does not answer is not there.
            let _ = Control::new(&self.program, &layout, DEADLINE).quit();
            let folder = layout.pipe.parent().map(Path::to_owned);
            let _ = folder.map(std::fs::remove_dir_all);
        }
    }
}

/// Starts the control daemon and its server unless they are there, and sets the server's limits.
fn bring_up(
    state: &Path,
    program: &Program,
    layout: &DaemonLayout,
    known: Option<Server>,
    limits: ClientLimits,
    whole: Bytes,
) -> Result<Server, SharingError> {
    let control = Control::new(program, layout, DEADLINE);
    let told = known.as_ref().filter(|server| server.trouble.is_none()).map(|server| server.limits);
    let (pid, told) = match known {
        Some(server) => (server.process.pid, told),
        None => find_or_start(state, &control, layout)?,
    };
    let admitted = control.carry_out(&admit_plan(pid, &layout.gpus, &limits, told.as_ref(), whole));
    let trouble = match admitted {
        Ok(()) => None,
        Err(error @ MpsError::TimedOut { .. }) => return Err(error.into()),
        // Without them the task still runs, and its enforcement says so.
        Err(error) => Some((error.to_string(), Instant::now())),
    };
    let began = ProcessTable::default().alive_since(pid);
    let gone = || SharingError::NoServer { pipe: layout.pipe.clone() };
    Ok(Server { process: Process { pid, began: began.ok_or_else(gone)? }, limits, trouble })
}

/// The server of an earlier daemon of ours, or a new one and what it was told.
fn find_or_start(
    state: &Path,
    control: &Control<'_>,
    layout: &DaemonLayout,
) -> Result<(u32, Option<ClientLimits>), SharingError> {
    match control.servers() {
        Ok(servers) if !servers.is_empty() => return Ok((servers[0], None)),
        Err(error @ (MpsError::TimedOut { .. } | MpsError::Program { .. })) => {
            return Err(error.into());
        }
        Ok(_) | Err(_) => {}
    }
    open_to(state, layout)?;
    control.start(&start_plan(layout.clone(), &ClientLimits::NONE))?;
    let none = || SharingError::NoServer { pipe: layout.pipe.clone() };
    let server = control.servers()?.first().copied().ok_or_else(none)?;
    Ok((server, Some(ClientLimits::NONE)))
}

/// Lets another user, and its group, into the folders of its daemon: to its sockets, not to change what is there.
fn open_to(state: &Path, layout: &DaemonLayout) -> Result<(), SharingError> {
    let own = rustix::process::geteuid().as_raw();
    if layout.uid == own {
        return Ok(());
    }
    let user = nix::unistd::User::from_uid(nix::unistd::Uid::from_raw(layout.uid)).ok().flatten();
    let Some(group) = user.map(|user| user.gid.as_raw()) else { return Ok(()) };
    let all = state.join("mps");
    let theirs = all.join(layout.uid.to_string());
    let daemons = layout.pipe.parent().unwrap_or(&theirs);
    for (folder, mode) in
        [(&*all, 0o711), (&*theirs, 0o710), (daemons, 0o711), (&*layout.pipe, 0o711)]
    {
        let failed = |source| SharingError::Folder { folder: folder.to_owned(), source };
        // One that is there may have been made for ourselves alone.
        std::fs::create_dir_all(folder).map_err(failed)?;
        std::fs::set_permissions(folder, Permissions::from_mode(mode)).map_err(failed)?;
        if folder == theirs {
            chown(folder, None, Some(group)).map_err(failed)?;
        }
    }
    Ok(())
}

/// The control daemon of a pipe directory is there: it keeps its PID in a file, and is asked for nothing, because every
/// launch waits for this.
fn is_alive(pipe: &Path) -> bool {
    let pid = std::fs::read_to_string(pipe.join("nvidia-cuda-mps-control.pid"));
    // Without the file its PID is not known, and the daemon has answered before.
    let is_there = |pid: u32| ProcessTable::default().alive_since(pid).is_some();
    pid.map_or(true, |pid| pid.trim().parse().is_ok_and(is_there))
}

#[cfg(test)]
#[path = "mps_test.rs"]
mod tests;
