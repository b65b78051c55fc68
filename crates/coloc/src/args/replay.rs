//! Where the tasks of a simulation are replayed.

use crate::config::environments;
use crate::error::{CliError, UsageError};
use crate::estimating::LayersError;
use clap::Args;
use coloc_sim::{Estimator, Surroundings, Trace};

/// The environment of replayed tasks.
#[derive(Args, Clone, Default, Debug)]
pub(crate) struct ReplayArgs {
    /// With --estimator replay, the software environment whose constant is added: carma, gpumemnet, or one that `estimate learn` stored [default: for each task, the one that explains its published memory]
    #[arg(long, value_name = "NAME", value_parser = environments::name)]
    env: Option<String>,
}

impl ReplayArgs {
    /// The environment that was named. One that changes nothing is refused: a user who names it expects that it does.
    pub(crate) fn surroundings(
        &self,
        estimators: impl IntoIterator<Item = Estimator>,
        trace: &Trace,
    ) -> Result<Option<Surroundings>, CliError> {
        let Some(name) = &self.env else { return Ok(None) };
        let unused = |why| CliError::from(UsageError::NoEffect { flag: "--env", why });
        if !estimators.into_iter().any(|estimator| estimator == Estimator::Replay) {
            return Err(unused("it belongs to the estimator replay, and no policy asks it"));
        }
        let all = trace.tasks().len();
        if Estimator::Replay.silent_on(trace).is_some_and(|(unknown, _)| unknown == all) {
            return Err(unused("replay has no graph of any task in this trace"));
        }
        let named = environments::find(name).map_err(LayersError::from)?;
        let doubts = named.doubts();
        Ok(Some(Surroundings { name: named.name, constants: named.constants, doubts }))
    }
}
