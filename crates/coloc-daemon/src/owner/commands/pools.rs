//! The pools that tasks name.

use crate::owner::commands::invalid::Invalid;
use crate::owner::{Caller, Owner, Refused};
use crate::record::Uid;
use coloc_api::spec::{MOST_POOL_NAMES, TaskSpec};
use coloc_model::{PoolSet, Share};

impl Owner {
    /// The pools that a submission may run in; `None` where there are no pools. A pool that is gone has no GPUs, so that its
    /// tasks wait for it.
    pub(in crate::owner) fn pools_of(&self, owner: Uid, spec: &TaskSpec) -> Option<PoolSet> {
        (!self.pool_table.is_empty()).then(|| self.pool_table.chosen(&spec.pools, owner))
    }

    /// Whether a user may have tasks in the pools that a submission names, or in the default one.
    pub(in crate::owner) fn check_pools(
        &self,
        caller: Caller,
        owner: Uid,
        spec: &TaskSpec,
    ) -> Result<(), Refused> {
        let table = &self.pool_table;
        if spec.pools.len() > MOST_POOL_NAMES {
            return Err(Invalid::ManyPools { most: MOST_POOL_NAMES }.into());
        }
        if table.is_empty() {
            return match spec.pools.is_empty() || spec.pools_if_any {
                true => Ok(()),
                false => Err(Invalid::NoPools.into()),
            };
        }
        if let Some(name) =
            spec.pools.iter().find(|name| table.names().all(|known| known != **name))
        {
            let name = name.chars().take(crate::administration::pools::LONGEST_NAME).collect();
            let here = table.names().collect::<Vec<_>>().join(", ");
            return Err(Invalid::NoSuchPool { name, here }.into());
        }
        let pools = table.chosen(&spec.pools, owner);
        if pools.is_empty() {
            return Err(Invalid::NoPoolForUser.into());
        }
        let closed = pools.iter().find(|&pool| !caller.admin && !table.may_use(pool, owner));
        if let Some(pool) = closed {
            return Err(Refused::PoolDenied(table.name(pool).to_owned()));
        }
        let mut ways = table.shares(pools);
        let first = ways.next();
        match ways.all(|way| Some(way) == first) {
            true => Ok(()),
            false => Err(Invalid::UnlikePools(spec.pools.join(", ")).into()),
        }
    }

    /// A gang cannot have MIG instances.
    pub(in crate::owner) fn check_gang_share(
        &self,
        owner: Uid,
        spec: &TaskSpec,
    ) -> Result<(), Invalid> {
        let pools = self.pools_of(owner, spec);
        let share = pools.and_then(|pools| self.pool_table.shares(pools).next());
        match share.unwrap_or(self.scheduler.policy().share) {
            Share::Mig if spec.gpus > 1 => Err(Invalid::GangOnMig),
            _ => Ok(()),
        }
    }
}
