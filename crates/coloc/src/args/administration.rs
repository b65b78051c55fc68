//! Flags by which the administrator of a server decides who may do what on it.

use super::pool;
use crate::error::{CliError, UsageError};
use crate::parse::slurm::{self, Limit};
use clap::{Args, ValueEnum};
use coloc_core::Policy;
use coloc_daemon::administration::{
    Administration, ForeignPolicy, Hooks, Pool, PoolTable, TimeLimits, admins, pools,
};
use coloc_model::{Fleet, Millis};
use std::path::PathBuf;

/// What the administrator decides
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "What the administrator decides")]
pub(crate) struct AdministrationArgs {
    /// A group of the system whose members are administrators, beside root and the user that runs the daemon
    #[arg(long, value_name = "GROUP")]
    admin_group: Option<String>,
    /// The time limit of a task that asks for none, such as 8h; without it, that is --max-time
    #[arg(long, value_name = "TIME", value_parser = slurm::limit)]
    default_time: Option<Limit>,
    /// The largest time limit that a task may have, such as 7d; none without it
    #[arg(long, value_name = "TIME", value_parser = slurm::limit)]
    max_time: Option<Limit>,
    /// A pool of GPUs that submissions name, the preferred first; in a configuration file a [[pool]]
    #[arg(long, value_name = "name=NAME;KEY=VALUE;…", value_parser = pool::pool)]
    pool: Vec<Pool>,
    /// A program that runs before each attempt, with the daemon's rights; if it fails, the task waits again
    #[arg(long, value_name = "PROGRAM")]
    prolog: Option<PathBuf>,
    /// A program that runs after each attempt, with the daemon's rights, however it ended
    #[arg(long, value_name = "PROGRAM")]
    epilog: Option<PathBuf>,
    /// Kill a prolog or epilog after this long
    #[arg(long, value_name = "TIME", default_value = "60s")]
    hook_timeout: Millis,
    /// What to do about processes on GPUs that are not tasks; their memory is never promised to tasks
    #[arg(long, value_enum, default_value = "warn")]
    foreign: ForeignFlag,
}

flag_values! {
    /// What to do about processes that are not tasks.
    ForeignFlag => ForeignPolicy {
        /// Nothing more
        Tolerate => ForeignPolicy::Tolerate,
        /// Tell of them in the log, `doctor` and `queue`
        Warn => ForeignPolicy::Warn,
        /// The same, and expect less of GPUs that they keep busy
        Count => ForeignPolicy::Count,
    }
}

/// The longest time that a prolog or epilog may take.
const LONGEST_HOOK: Millis = Millis::from_secs(3600);

impl AdministrationArgs {
    /// The settings. What can be said of pools without a look at the machine's GPUs is said here; of an emulated fleet, all.
    pub(crate) fn administration(
        &self,
        policy: &Policy,
        fleet: Option<&Fleet>,
    ) -> Result<Administration, CliError> {
        let limit = |flag: Option<Limit>| flag.and_then(|Limit(limit)| limit);
        let times = TimeLimits { default: limit(self.default_time), largest: limit(self.max_time) };
        if let Some(default) = times.default.filter(|&default| !times.allow(Some(default))) {
            let why = format!("{default} is more than --max-time allows");
            return Err(UsageError::flag("--default-time", why).into());
        }
        let known = self.admin_group.as_deref().map(admins::find_group).transpose();
        known.map_err(|error| UsageError::flag("--admin-group", error.to_string()))?;
        let checked = match fleet {
            Some(fleet) => PoolTable::of(&self.pool, policy, fleet, &[]).map(|_| ()),
            None => pools::check(&self.pool, policy),
        };
        checked
            .and_then(|()| pools::check_times(&self.pool, times))
            .map_err(|error| UsageError::flag("--pool", error.to_string()))?;
        let (admin_group, pools) = (self.admin_group.clone(), self.pool.clone());
        if !(Millis::from_secs(1)..=LONGEST_HOOK).contains(&self.hook_timeout) {
            return Err(UsageError::flag("--hook-timeout", "from 1 second to 1 hour").into());
        }
        let (prolog, epilog) = (self.prolog.clone(), self.epilog.clone());
        let checked = |flag: &str, program: &Option<PathBuf>| {
            let one = Hooks { prolog: program.clone(), ..Hooks::default() };
            one.check().map_err(|error| UsageError::flag(flag, error.to_string()))
        };
        checked("--prolog", &prolog)?;
        checked("--epilog", &epilog)?;
        let hooks = Hooks { prolog, epilog, timeout: self.hook_timeout };
        let foreign = self.foreign.into();
        Ok(Administration { times, admin_group, pools, hooks, foreign })
    }
}
