//! Setting up what tasks that share a GPU need: control daemons of MPS, one for each user and set of GPUs.

use crate::record::Uid;
use coloc_gpu::device::Uuid;
use coloc_gpu::mps::{
    ClientLimits, Control, DaemonLayout, LayoutError, MpsError, Program, client_environment,
    start_plan,
};
use coloc_model::Bytes;
use rustc_hash::FxHashMap;
use std::path::PathBuf;
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
    ready: FxHashMap<PathBuf, DaemonLayout>,
}

impl Sharing {
    /// Nothing yet; folders go below `state`.
    pub fn new(state: PathBuf) -> Self {
        Sharing { state, program: Program::default(), ready: FxHashMap::default() }
    }

    /// The variables that make a task a client of MPS on these GPUs, whose daemon answers by then.
    pub fn mps(
        &mut self,
        owner: Uid,
        gpus: &[Uuid],
        memory: Option<Bytes>,
    ) -> Result<Vec<(&'static str, String)>, SharingError> {
        let layout = DaemonLayout::new(&self.state, owner.0, gpus)?;
        if !self.ready.contains_key(&layout.pipe) {
            let control = Control::new(&self.program, &layout, DEADLINE);
            control.start(&start_plan(layout.clone(), &ClientLimits::NONE))?;
            self.ready.insert(layout.pipe.clone(), layout.clone());
        }
        let limits = ClientLimits { memory, ..ClientLimits::NONE };
        Ok(client_environment(&layout, &limits, gpus))
    }

    /// Ends every daemon that was set up here. Only for when no task runs.
    pub fn tear_down(&mut self) {
        for (_, layout) in self.ready.drain() {
            // One that does not answer is not there.
            let _ = Control::new(&self.program, &layout, DEADLINE).quit();
        }
    }
}
