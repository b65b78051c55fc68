//! The daemon's entry: puts the parts together and serves until it is told to stop.

use crate::agreements::Unknown;
use crate::api::{self, Desk, Reach, router};
use crate::cgroup::Groups;
use crate::clock::Clock;
use crate::hardware::{self, Hardware, HardwareError};
use crate::journal::{Journal, JournalError, Setup};
use crate::launch::{Launcher, runs_below};
use crate::owner::{self, Caller, Input, Names, Owner, Parts};
use crate::retention::{self, Retention};
use crate::settings::{Settings, Source};
use crate::sharing::Sharing;
use crate::tls::{Identity, TlsError};
use crate::tokens::{TokenError, Tokens};
use crate::watch::Watcher;
use axum::Router;
use coloc_gpu::driver::Guarded;
use coloc_model::Millis;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::time::Duration;
use tokio::net::{TcpListener, UnixListener};
use tokio_rustls::TlsAcceptor;

/// Inputs that may lie in the owner's inbox.
const INBOX: usize = 1 << 16;
/// However fast time passes, GPUs are not looked at more often.
const SHORTEST_PERIOD: Duration = Duration::from_millis(20);
/// Changes that a slow listener may lag behind.
const NEWS: usize = 1024;

/// How a daemon is to be.
#[derive(Debug)]
pub struct Options {
    /// Where it keeps what must survive.
    pub state: PathBuf,
    /// Where it listens.
    pub socket: PathBuf,
    /// Where it listens on the network, if it does.
    pub listen: Option<Listen>,
    /// How it schedules, and what else may change while it runs.
    pub settings: Settings,
    /// Where it reads them again.
    pub source: Source,
    /// The scheduler's seconds in one of the world's.
    pub time_scale: f64,
    /// How often it looks at the GPUs, by the scheduler's clock.
    pub period: Millis,
    /// The program that has the verb `shim`.
    pub program: PathBuf,
    /// Put before what tasks have in these variables.
    pub prefixes: Vec<(&'static str, OsString)>,
    /// Given to every task.
    pub variables: Vec<(String, OsString)>,
}

/// A door to the network.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Listen {
    /// The address.
    pub address: SocketAddr,
    /// Its certificate; without one the daemon makes its own.
    pub identity: Option<Identity>,
}

/// A daemon that cannot work.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// The GPUs.
    #[error(transparent)]
    Hardware(#[from] HardwareError),
    /// The journal.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// Weights and quotas.
    #[error(transparent)]
    Unknown(#[from] Unknown),
    /// Tokens.
    #[error(transparent)]
    Tokens(#[from] TokenError),
    /// Certificates.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The network.
    #[error("cannot listen at {address}: {source}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// A mistake of ours.
    #[error(
        "the daemon's owner died of a mistake of its own; tasks go on, and are found again at the next start"
    )]
    OwnerDied,
    /// Another one works there.
    #[error("another daemon uses {}: talk to that one, or give this one a --state and a --socket of its own", .0.display())]
    Taken(PathBuf),
    /// The system says no.
    #[error("{}: {source}", path.display())]
    Io {
        /// Where.
        path: PathBuf,
        /// What it says.
        source: io::Error,
    },
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> DaemonError {
    let path = path.to_owned();
    move |source| DaemonError::Io { path, source }
}

/// Serves until SIGTERM or SIGINT. Tasks go on without it, and are found again.
pub fn run(options: Options) -> Result<(), DaemonError> {
    let runs = runs_below(&options.state);
    std::fs::create_dir_all(&runs).map_err(at(&runs))?;
    let _lock = lock(&options.state)?;
    let journal_file = options.state.join("journal.db");
    keep_private(&journal_file).map_err(at(&journal_file))?;
    let mut journal = Journal::open(&journal_file)?;
    let saved = journal.load()?;
    let clock = Clock::new(saved.epoch, options.time_scale);
    let period = clock.world(options.period).max(SHORTEST_PERIOD);
    let hardware = Hardware::find(options.period, period)?;
    let emulated = hardware.is_emulated();
    let gpus = hardware.fleet.gpus().iter().map(|gpu| gpu.model).collect();
    let policy = options.settings.policy;
    journal.note_setup(&Setup { policy, gpus, time_scale: options.time_scale })?;
    hardware.check(policy.share)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(at(&options.state))?;
    let listener = runtime.block_on(async { listen(&options.socket) })?;
    eprintln!("coloc daemon: listening at {}", options.socket.display());
    let tokens = Arc::new(Tokens::open(&options.state.join("tokens.json"))?);
    let gate = options.listen.as_ref().map(|at| runtime.block_on(Gate::open(at, &options.state)));
    let gate = gate.transpose()?;

    let (inbox, inputs) = mpsc::sync_channel(INBOX);
    let (roots, new_roots) = mpsc::channel();
    let retention = keep_what_is_left(&runs, &journal_file, inbox.clone());
    let retention = retention.map_err(at(&options.state))?;
    let (news, _) = tokio::sync::broadcast::channel(NEWS);
    let ends = inbox.clone();
    let watcher = Watcher::start(move |task, attempt| {
        let _ = ends.send(Input::ShimGone { task, attempt });
    });
    let mut sharing = Sharing::new(options.state.clone(), Guarded::nvml(hardware::DEADLINE));
    let answers = inbox.clone();
    sharing.mps.ring(move || {
        let _ = answers.send(Input::MpsAnswered);
    });
    let launcher = Launcher {
        runs: runs.clone(),
        program: options.program,
        uuids: hardware.uuids.clone(),
        prefixes: options.prefixes,
        variables: options.variables,
        socket: options.socket.clone(),
        time_scale: options.time_scale,
        grace: options.settings.grace,
        sharing,
        groups: Groups::find(&options.state).map_err(|none| none.to_string()),
        addresses: hardware.addresses(),
        capacities: hardware.capacities(),
        watcher: watcher.map_err(at(&options.state))?,
        known: rustc_hash::FxHashMap::default(),
    };
    let (mut names, settings, fleet) = (Names::default(), options.settings, hardware.fleet.clone());
    let (scheduler, book) = owner::scheduler(&fleet, &settings, &mut names)?;
    let parts = Parts {
        scheduler,
        fleet,
        settings,
        book,
        names,
        clock,
        journal,
        launcher,
        roots,
        retention,
        news: news.clone(),
    };
    let eyes = inbox.clone();
    hardware.watch(clock, period, new_roots, move |sighting| {
        eyes.send(Input::Seen(Box::new(sighting))).is_ok()
    });
    let owner = Owner::new(parts, saved)?;
    let (alive, gone) = tokio::sync::oneshot::channel::<()>();
    let work = move || {
        owner.run(&inputs);
        drop(alive);
    };
    let owner = std::thread::Builder::new()
        .name("owner".to_owned())
        .spawn(work)
        .map_err(at(&options.state))?;
    let source = Arc::new(options.source);
    let reach = gate.as_ref().map(|gate| gate.reach);
    let desk = Desk {
        inbox: inbox.clone(),
        journal: journal_file,
        runs,
        emulated,
        tokens,
        reach,
        source,
        news,
    };
    let (reloads, router) = (desk.clone(), router(desk));
    crate::notify::tell(crate::notify::READY);
    runtime.block_on(async {
        tokio::select! {
            () = api::serve(listener, router.clone()) => {}
            () = Gate::serve(gate, router) => {}
            () = reload_when_told(reloads) => {}
            () = told_to_stop() => {}
            // Without it nothing is decided: better to end, and to be started anew.
            _ = gone => {}
        }
    });
    crate::notify::tell(crate::notify::STOPPING);
    let _ = inbox.send(Input::Shutdown);
    let ended = owner.join();
    let _ = std::fs::remove_file(&options.socket);
    ended.map_err(|_| DaemonError::OwnerDied)
}

/// Starts the thread that removes what ended tasks left, and hears for how long it is kept.
fn keep_what_is_left(
    runs: &Path,
    journal: &Path,
    inbox: mpsc::SyncSender<Input>,
) -> io::Result<mpsc::Sender<Retention>> {
    let (rules, said) = mpsc::channel();
    let (runs, journal) = (runs.to_owned(), journal.to_owned());
    let tell = move |tasks| {
        let _ = inbox.send(Input::Removed(tasks));
    };
    let keep = move || retention::keep(&runs, &journal, &said, tell);
    std::thread::Builder::new().name("retention".to_owned()).spawn(keep)?;
    Ok(rules)
}

/// The journal holds everybody's commands and environments. SQLite gives its other files the same mode.
fn keep_private(file: &Path) -> io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let file = File::options().create(true).append(true).mode(0o600).open(file)?;
    file.set_permissions(std::fs::Permissions::from_mode(0o600))
}

/// One daemon a directory. The lock is the kernel's: it goes with the process, however that ends.
fn lock(state: &Path) -> Result<File, DaemonError> {
    let path = state.join("lock");
    let file = File::create(&path).map_err(at(&path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(std::fs::TryLockError::WouldBlock) => Err(DaemonError::Taken(state.to_owned())),
        Err(std::fs::TryLockError::Error(error)) => Err(at(&path)(error)),
    }
}

/// Says whether another daemon works with that state.
pub fn check_free(state: &Path) -> Result<(), DaemonError> {
    if state.join("lock").exists() { lock(state).map(drop) } else { Ok(()) }
}

/// Listens where nobody does. A socket that a dead daemon left is taken away.
fn listen(socket: &Path) -> Result<UnixListener, DaemonError> {
    if let Some(parent) = socket.parent() {
        std::fs::create_dir_all(parent).map_err(at(parent))?;
    }
    if std::os::unix::net::UnixStream::connect(socket).is_ok() {
        return Err(DaemonError::Taken(socket.to_owned()));
    }
    let left = std::fs::symlink_metadata(socket).ok();
    // What is no socket is not ours to take away: binding will say that it is in the way.
    if left.is_some_and(|left| left.file_type().is_socket()) {
        std::fs::remove_file(socket).map_err(at(socket))?;
    }
    let listener = UnixListener::bind(socket).map_err(at(socket))?;
    // A system's daemon serves every user; the kernel tells them apart.
    let mode = if rustix::process::geteuid().is_root() { 0o666 } else { 0o600 };
    let open = std::fs::set_permissions(socket, std::fs::Permissions::from_mode(mode));
    open.map_err(at(socket))?;
    Ok(listener)
}

/// The door to the network.
struct Gate {
    listener: TcpListener,
    tls: TlsAcceptor,
    reach: Reach,
}

impl Gate {
    async fn open(at: &Listen, state: &Path) -> Result<Self, DaemonError> {
        let identity = match &at.identity {
            Some(identity) => identity.clone(),
            None => Identity::own(&state.join("tls"), at.address.ip())?,
        };
        let (tls, fingerprint) = identity.server()?;
        let fail = |source| DaemonError::Listen { address: at.address, source };
        let listener = TcpListener::bind(at.address).await.map_err(fail)?;
        let address = listener.local_addr().map_err(fail)?;
        eprintln!("coloc daemon: listening at https://{address}, certificate {fingerprint}");
        Ok(Gate { listener, tls: tls.into(), reach: Reach { address, fingerprint } })
    }

    async fn serve(gate: Option<Self>, router: Router) {
        match gate {
            Some(Gate { listener, tls, .. }) => api::serve_remote(listener, tls, router).await,
            None => std::future::pending().await,
        }
    }
}

/// SIGHUP: reads the configuration again. A wrong one is told, and the old one stays.
async fn reload_when_told(desk: Desk) {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut hangup) = signal(SignalKind::hangup()) else { return std::future::pending().await };
    while hangup.recv().await.is_some() {
        match desk.reload(Caller::DAEMON).await {
            Ok(reloaded) => eprintln!("coloc daemon: {}", reloaded.told()),
            Err(refused) => eprintln!("coloc daemon: {refused}; the old settings stay"),
        }
    }
    std::future::pending().await
}

async fn told_to_stop() {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut term), Ok(mut interrupt)) =
        (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = term.recv() => {}
        _ = interrupt.recv() => {}
    }
}
