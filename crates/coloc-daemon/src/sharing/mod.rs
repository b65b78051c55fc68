//! Setting up what tasks that share a GPU need: control daemons of MPS, one for each user and set of GPUs, and
//! MIG instances.

mod notes;
mod partitions;

pub use partitions::{PartitionError, Partitions, place_of};

use crate::record::Uid;
use coloc_gpu::device::Uuid;
use coloc_gpu::driver::Guarded;
use coloc_gpu::mps::{
    ClientLimits, Control, DaemonLayout, LayoutError, MpsError, Program, client_environment,
    start_plan,
};
use coloc_model::Bytes;
use rustc_hash::FxHashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A control daemon that takes longer to answer is not there.
const DEADLINE: Duration = Duration::from_secs(5);

/// Sharing that could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum SharingError {
    /// Its folders.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// Its daemon.
    #[error(transparent)]
    Mps(#[from] MpsError),
}

/// What has been set up.
#[derive(Debug)]
pub struct Sharing {
    state: PathBuf,
    program: Program,
    ready: FxHashSet<PathBuf>,
    /// MIG instances.
    pub partitions: Partitions,
}

impl Sharing {
    /// Folders go below `state`; instances are made by a connection of their own, so that they need not wait for
    /// the monitor.
    pub fn new(state: PathBuf, driver: Guarded) -> Self {
        let partitions = Partitions::new(&state, driver);
        Sharing { state, program: Program::default(), ready: FxHashSet::default(), partitions }
    }

    /// Folders of daemons, ours and those that an earlier daemon of ours set up: `mps/UID/GPUS/pipe`.
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

    /// The variables that make a task a client of MPS on these GPUs, whose daemon answers by then.
    pub fn mps(
        &mut self,
        owner: Uid,
        gpus: &[Uuid],
        memory: Option<Bytes>,
    ) -> Result<Vec<(&'static str, String)>, SharingError> {
        let layout = DaemonLayout::new(&self.state, owner.0, gpus)?;
        if !self.ready.contains(&layout.pipe) || !is_alive(&layout.pipe) {
            let control = Control::new(&self.program, &layout, DEADLINE);
            control.start(&start_plan(layout.clone(), &ClientLimits::NONE))?;
            self.ready.insert(layout.pipe.clone());
        }
        let limits = ClientLimits { memory, ..ClientLimits::NONE };
        Ok(client_environment(&layout, &limits, gpus))
    }

    /// Ends every daemon that was set up here, by this daemon or an earlier one. Only for when no task runs.
    pub fn tear_down(&mut self) {
        self.partitions.tear_down();
        self.ready.clear();
        for layout in self.layouts() {
            // One that does not answer is not there.
            let _ = Control::new(&self.program, &layout, DEADLINE).quit();
            let folder = layout.pipe.parent().map(Path::to_owned);
            let _ = folder.map(std::fs::remove_dir_all);
        }
    }
}

/// The control daemon of a pipe directory is there: it keeps its PID in a file, and is asked for nothing, because every
/// launch waits for this.
fn is_alive(pipe: &Path) -> bool {
    let pid = std::fs::read_to_string(pipe.join("nvidia-cuda-mps-control.pid"));
    // Without the file nobody knows, and the daemon has answered before.
    pid.map_or(true, |pid| Path::new("/proc").join(pid.trim()).exists())
}
