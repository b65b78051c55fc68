//! The daemon's entry: puts the parts together and serves until it is told to stop.

mod error;
mod network;
mod place;
mod signals;

pub use error::DaemonError;
pub(crate) use place::lock;
pub use place::{check_free, check_state};

use crate::administration::admins;
use crate::api::{self, ApiState, router};
use crate::clock::Clock;
use crate::executor::local::cgroup::{Groups, NoGroups};
use crate::executor::local::sharing::Sharing;
use crate::executor::local::{LocalExecutor, Watcher, make_commands, runs_below};
use crate::hardware::{self, Hardware, Sighting};
use crate::intent_file::IntentFile;
use crate::journal::{Journal, Saved, Setup};
use crate::metrics::Exporter;
use crate::news::News;
use crate::owner::{self, Input, Names, Owner, Parts, Tables};
use crate::renumber::renumber;
use crate::reserve::Reserve;
use crate::retention::{self, Retention};
use crate::retention_clock::RetentionClockFile;
use crate::series::{self, Series};
use crate::settings::{Settings, Source};
use crate::tls::Identity;
use crate::tokens::Tokens;
use crate::whatif::Worker;
use coloc_core::Policy;
use coloc_gpu::driver::{Guarded, Xids};
use coloc_gpu::process::TaskRoots;
use coloc_model::Millis;
use network::{Network, Page};
use place::{listen, make_own};
use signals::{reload_when_told, told_to_stop};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::net::{TcpListener, UnixListener};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

/// Inputs that may lie in the owner's inbox.
const INBOX: usize = 1 << 16;
/// However fast time passes, GPUs are not looked at more often.
const SHORTEST_PERIOD: Duration = Duration::from_millis(20);

/// How a daemon is to be.
#[derive(Debug)]
pub struct Options {
    /// Where it keeps what must survive.
    pub state: PathBuf,
    /// Where it listens.
    pub socket: PathBuf,
    /// Where it listens on the network, if it does.
    pub listen: Option<Listen>,
    /// Where the page is served on this machine, if it is.
    pub web: Option<Web>,
    /// Where metrics are read, if they are.
    pub metrics: Option<SocketAddr>,
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

/// An address for connections over the network.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Listen {
    /// The address.
    pub address: SocketAddr,
    /// Its certificate; without one the daemon makes its own.
    pub identity: Option<Identity>,
}

/// An address of this machine alone, for browsers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Web {
    /// The address.
    pub address: SocketAddr,
    /// A browser that shows no token may look.
    pub anonymous: bool,
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> DaemonError {
    let path = path.to_owned();
    move |source| DaemonError::Io { path, source }
}

/// Serves until SIGTERM or SIGINT. Tasks go on without it, and are found again.
#[expect(
    clippy::too_many_lines,
    reason = "the parts of the daemon are put together here, and nowhere else"
)]
pub fn run(options: Options) -> Result<(), DaemonError> {
    crate::descriptors::inherit_none();
    let runs = runs_below(&options.state);
    check_state(&options.state)?;
    make_own(&runs).map_err(at(&runs))?;
    // What was made may have been put there by another user in the meantime.
    check_state(&options.state)?;
    let _lock = lock(&options.state)?;
    let journal_file = options.state.join("journal.db");
    let (mut journal, mut saved) = open_journal(&journal_file, &runs)?;
    let clock = Clock::new(saved.epoch, options.time_scale);
    let period = clock.world(options.period).max(SHORTEST_PERIOD);
    let hardware = Hardware::find(options.period, period)?;
    let emulated = hardware.is_emulated();
    let policy = options.settings.policy;
    let uuids = note_setup(&mut journal, &mut saved, &hardware, policy, options.time_scale)?;
    hardware.check(policy.share)?;
    admins::set_group(options.settings.administration.admin_group.as_deref())?;
    let listeners = Listeners::open(&options)?;
    let tokens = Arc::new(Tokens::open(&options.state.join("tokens.json"))?);

    let (inbox, inputs) = mpsc::sync_channel(INBOX);
    let (roots, new_roots) = mpsc::channel();
    let retention = keep_what_is_left(&options.state, &tokens, inbox.clone())?;
    let news = News::new(epoch());
    let series_file = options.state.join("series.json.gz");
    let series = Series::open(&series_file);
    let _kept = series::keep(series.clone(), series_file.clone()).map_err(at(&series_file))?;
    let executor = executor(&options, &hardware, &inbox, roots)?;
    let user_limits = api::UserLimits::new(options.settings.bounds);
    let (mut names, settings, fleet) =
        (Names::default(), options.settings, hardware.gpus.fleet.clone());
    let tables = Tables::of(&settings, &fleet, &uuids)?;
    tables.pools.notes(&fleet).iter().for_each(|note| tracing::warn!("{note}"));
    let scheduler = owner::scheduler(&fleet, &settings, &mut names, &tables);
    let parts = Parts {
        scheduler,
        fleet,
        settings,
        tables,
        names,
        clock,
        journal,
        executor: Box::new(executor),
        gpu_names: uuids,
        reserve: Reserve::new(options.state.join("reserve"), clock.instant()),
        intent_file: IntentFile::open(options.state.join("intents"), clock.instant()),
        retention,
        news: news.clone(),
        about: owner::About { host: host(), emulated },
        series: series.clone(),
    };
    let exporter = Exporter::new(&hardware, journal_file.clone());
    hardware.watch(clock, period, new_roots, tell(inbox.clone()));
    let (owner, gone) = start(Owner::new(parts, saved)?, inputs).map_err(at(&options.state))?;
    let api = ApiState {
        inbox: inbox.clone(),
        journal: journal_file,
        runs,
        emulated,
        tokens,
        reach: listeners.network.as_ref().map(|network| network.reach),
        web: listeners.page.as_ref().map(|page| page.address),
        codes: Arc::default(),
        series: series.clone(),
        forecast: Arc::default(),
        whatif: Worker::start(options.state.join("journal.db")).map_err(at(&options.state))?,
        source: Arc::new(options.source),
        user_limits,
        heavy_requests: api::HeavyRequests::new(api::HEAVY_AT_ONCE),
        metrics: Arc::new(exporter),
        file_changes: Arc::default(),
        news,
    };
    listeners.serve(api, gone);
    let _ = inbox.send(Input::Shutdown);
    let ended = owner.join();
    if let Err(error) = series.save(&series_file) {
        tracing::warn!("{}: {error}", series_file.display());
    }
    let _ = std::fs::remove_file(&options.socket);
    ended.map_err(|_| DaemonError::OwnerDied)
}

/// A name for this run of the daemon, which no other run has.
fn epoch() -> String {
    format!("{:x}-{:x}", coloc_api::moment::Moment::now().0, std::process::id())
}

/// The machine's name.
fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Brings the owner what the monitor sees.
fn tell(inbox: mpsc::SyncSender<Input>) -> impl FnMut(Sighting) -> bool + Send + 'static {
    move |sighting| inbox.send(Input::Seen(Box::new(sighting))).is_ok()
}

/// Where people come in, and what serves them.
struct Listeners {
    runtime: Runtime,
    socket: UnixListener,
    network: Option<Network>,
    metrics: Option<TcpListener>,
    page: Option<Page>,
}

impl Listeners {
    fn open(options: &Options) -> Result<Self, DaemonError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(api::BLOCKING_THREADS)
            .build();
        let runtime = runtime.map_err(at(&options.state))?;
        let socket = runtime.block_on(async { listen(&options.socket) })?;
        tracing::info!("listening at {}", options.socket.display());
        let at = options.listen.as_ref();
        let network = at.map(|at| runtime.block_on(Network::open(at, &options.state)));
        let network = network.transpose()?;
        let metrics = options.metrics.map(|at| runtime.block_on(network::open_metrics(at)));
        let metrics = metrics.transpose()?;
        let page = options.web.map(|web| runtime.block_on(Page::open(web))).transpose()?;
        Ok(Listeners { runtime, socket, network, metrics, page })
    }

    /// Serves until the daemon is told to stop, or its owner is gone.
    fn serve(self, api: ApiState, gone: oneshot::Receiver<()>) {
        let Listeners { runtime, socket, network, metrics, page } = self;
        let (user_limits, reloads, scraped) = (api.user_limits.clone(), api.clone(), api.clone());
        let router = router(api);
        crate::notify::tell(crate::notify::READY);
        runtime.block_on(async {
            tokio::select! {
                () = api::serve(socket, router.clone(), user_limits) => {}
                () = Network::serve(network, router.clone()) => {}
                () = Page::serve(page, router) => {}
                () = network::serve_metrics(metrics, scraped) => {}
                () = reload_when_told(reloads) => {}
                () = told_to_stop() => {}
                // Without it nothing is decided: better to end, and to be started anew.
                _ = gone => {}
            }
        });
        crate::notify::tell(crate::notify::STOPPING);
    }
}

/// The journal, and what it tells of before.
fn open_journal(file: &Path, runs: &Path) -> Result<(Journal, Saved), DaemonError> {
    let mut journal = Journal::open(file)?;
    if !journal.was_checked() {
        tracing::warn!(
            "the journal is large: only tasks that have not ended were checked; `coloc state check` checks all"
        );
    }
    let saved = journal.load(runs)?;
    if saved.draining {
        tracing::info!("draining, as before: `coloc resume` goes on");
    }
    Ok((journal, saved))
}

/// Keeps which GPUs there are. Tasks follow theirs by name, wherever that is now. Says the names in the fleet's order.
fn note_setup(
    journal: &mut Journal,
    saved: &mut Saved,
    hardware: &Hardware,
    policy: Policy,
    time_scale: f64,
) -> Result<Vec<String>, DaemonError> {
    let gpus = hardware.gpus.fleet.gpus().iter().map(|gpu| gpu.model).collect();
    let uuids = hardware.gpus.names();
    let before = journal.setup()?.map(|setup| setup.uuids).unwrap_or_default();
    for (record, _) in &mut saved.live {
        renumber(record, &before, &uuids);
    }
    journal.note_setup(&Setup { policy, gpus, time_scale, uuids: uuids.clone() })?;
    Ok(uuids)
}

/// What runs tasks on this machine, and tells the owner of their ends.
fn executor(
    options: &Options,
    hardware: &Hardware,
    inbox: &mpsc::SyncSender<Input>,
    roots: mpsc::Sender<Vec<TaskRoots>>,
) -> Result<LocalExecutor, DaemonError> {
    let groups = match Groups::find(&options.state) {
        Err(chosen @ NoGroups::NoGroup { .. }) => return Err(chosen.into()),
        found => found.map_err(|none| none.to_string()),
    };
    let ends = inbox.clone();
    let watcher = Watcher::start(move |task, attempt, end| {
        let _ = ends.send(Input::Ended { task, attempt, end });
    });
    let mut sharing = Sharing::new(options.state.clone(), Guarded::nvml(hardware::DEADLINE));
    let answers = inbox.clone();
    sharing.mps.ring(move || {
        let _ = answers.send(Input::SharingReady);
    });
    let errors = inbox.clone();
    let xids = Xids::listen(move || {
        let _ = errors.try_send(Input::GpuError);
    });
    Ok(LocalExecutor {
        runs: runs_below(&options.state),
        program: options.program.clone(),
        uuids: hardware.gpus.uuids.clone(),
        prefixes: options.prefixes.clone(),
        variables: options.variables.clone(),
        commands: make_commands(&options.socket, &options.program),
        socket: options.socket.clone(),
        time_scale: options.time_scale,
        grace: options.settings.grace,
        hooks: options.settings.administration.hooks.clone(),
        sharing,
        groups,
        addresses: hardware.gpus.addresses.clone(),
        capacities: hardware.gpus.capacities.clone(),
        watcher: watcher.map_err(at(&options.state))?,
        known: BTreeMap::new(),
        roots,
        xids,
        inbox: inbox.clone(),
        signaller: Default::default(),
    })
}

/// Starts the owner's thread, and tells when it is gone.
fn start(
    owner: Owner,
    inputs: mpsc::Receiver<Input>,
) -> io::Result<(JoinHandle<()>, oneshot::Receiver<()>)> {
    let (alive, gone) = oneshot::channel::<()>();
    let work = move || {
        owner.run(&inputs);
        drop(alive);
    };
    Ok((std::thread::Builder::new().name("owner".to_owned()).spawn(work)?, gone))
}

/// Starts the thread that removes what ended tasks left, and hears for how long it is kept.
fn keep_what_is_left(
    state: &Path,
    tokens: &Arc<Tokens>,
    inbox: mpsc::SyncSender<Input>,
) -> Result<mpsc::Sender<Retention>, DaemonError> {
    let (rules, said) = mpsc::channel();
    let (runs, journal) = (runs_below(state), state.join("journal.db"));
    let (clock, tokens) = (RetentionClockFile::open(&state.join("clock.json")), tokens.clone());
    let tell = move |tasks| {
        let _ = inbox.send(Input::Removed(tasks));
    };
    let keep = move || retention::keep(&runs, &journal, &said, clock, &tokens, tell);
    let thread = std::thread::Builder::new().name("retention".to_owned());
    thread.spawn(keep).map_err(at(state))?;
    Ok(rules)
}
