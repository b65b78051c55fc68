//! Flags by which the administrator of a server decides who may do what on it.

use super::pool;
use crate::error::{CliError, UsageError};
use crate::parse::slurm::{self, Limit};
use clap::Args;
use coloc_core::Policy;
use coloc_daemon::administration::{Administration, Pool, TimeLimits, admins, pools};

/// What the administrator decides
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "What the administrator decides")]
pub(crate) struct AdministrationArgs {
    /// A group of the system whose members are administrators, beside root and the user that runs the daemon
    #[arg(long, value_name = "GROUP")]
    admin_group: Option<String>,
    /// The time limit of a task that asks for none, such as 8h [default: --max-time]
    #[arg(long, value_name = "TIME", value_parser = slurm::limit)]
    default_time: Option<Limit>,
    /// The largest time limit that a task may have, such as 7d [default: none]
    #[arg(long, value_name = "TIME", value_parser = slurm::limit)]
    max_time: Option<Limit>,
    /// A pool of GPUs that submissions name, the preferred first; in a configuration file a [[pool]]
    #[arg(long, value_name = "name=NAME;KEY=VALUE;…", value_parser = pool::pool)]
    pool: Vec<Pool>,
}

impl AdministrationArgs {
    pub(crate) fn administration(&self, policy: &Policy) -> Result<Administration, CliError> {
        let limit = |flag: Option<Limit>| flag.and_then(|Limit(limit)| limit);
        let times = TimeLimits { default: limit(self.default_time), largest: limit(self.max_time) };
        if let Some(default) = times.default.filter(|&default| !times.allow(Some(default))) {
            let why = format!("{default} is more than --max-time allows");
            return Err(UsageError::flag("--default-time", why).into());
        }
        let known = self.admin_group.as_deref().map(admins::find_group).transpose();
        known.map_err(|error| UsageError::flag("--admin-group", error.to_string()))?;
        pools::check(&self.pool, policy)
            .map_err(|error| UsageError::flag("--pool", error.to_string()))?;
        let (admin_group, pools) = (self.admin_group.clone(), self.pool.clone());
        Ok(Administration { times, admin_group, pools })
    }
}
