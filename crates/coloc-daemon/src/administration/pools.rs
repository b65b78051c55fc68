//! Pools of GPUs that submissions name.

use super::TimeLimits;
use super::who::{self, Unknown, Who};
use crate::record::Uid;
use coloc_api::request::GpuName;
use coloc_core::Policy;
use coloc_model::{Fleet, GpuId, MOST_POOLS, Millis, PoolSet, Share};

/// The longest name of a pool, in bytes.
pub const LONGEST_NAME: usize = 64;

/// A pool, as the administrator describes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pool {
    /// What submissions call it.
    pub name: String,
    /// Its GPUs; `None` is all of them.
    pub gpus: Option<Vec<GpuName>>,
    /// How tasks share them; without it, as the daemon does.
    pub share: Option<Share>,
    /// Tasks that name no pool go there.
    pub default: bool,
    /// The users who may use it; none is all.
    pub allow: Vec<Who>,
    /// The largest time limit there.
    pub max_time: Option<Millis>,
}

/// Pools that cannot be had together.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PoolError {
    /// Too many.
    #[error("there are more than {MOST_POOLS} pools")]
    TooMany,
    /// One name twice.
    #[error("two pools have the name {0:?}")]
    SameName(String),
    /// A name that submissions could not say.
    #[error(
        "{0:?} is no name for a pool: up to {LONGEST_NAME} letters, digits, dots, dashes and underscores"
    )]
    Name(String),
    /// Unknown users.
    #[error("pool {pool}: {problem}")]
    Who {
        /// The pool.
        pool: String,
        /// What is wrong.
        problem: Unknown,
    },
    /// One GPU cannot be shared in two ways.
    #[error(
        "GPU {gpu} is in pool {one} with {first} and in pool {other} with {second}: give both one way of sharing"
    )]
    TwoWays {
        /// The GPU, as the pools name it.
        gpu: String,
        /// A pool.
        one: String,
        /// How it shares.
        first: Share,
        /// Another.
        other: String,
        /// How that one shares.
        second: Share,
    },
    /// The second is never used.
    #[error(
        "pools {first} and {second} are both the default, and {first} is for all users: take `default` away from one, or say who may use {first} (allow)"
    )]
    TwoDefaults {
        /// A pool.
        first: String,
        /// Another, after it.
        second: String,
    },
    /// No task may have what the pool allows.
    #[error("pool {pool}: its max-time of {limit} is more than the daemon's, {largest}")]
    LongTime {
        /// The pool.
        pool: String,
        /// Its largest limit.
        limit: Millis,
        /// That of all tasks.
        largest: Millis,
    },
    /// The daemon gives whole GPUs.
    #[error(
        "pool {pool} shares by {share}, and the daemon's policy gives tasks whole GPUs: choose another share and place in [daemon], and `share = \"exclusive\"` for the pools that want it"
    )]
    WholeGpus {
        /// The pool.
        pool: String,
        /// How it shares.
        share: Share,
    },
    /// The GPU cannot be partitioned.
    #[error("pool {pool}: GPU {gpu} cannot be partitioned, so that it has no MIG instances")]
    NoMig {
        /// The pool.
        pool: String,
        /// The GPU.
        gpu: GpuId,
    },
}

impl Pool {
    /// A GPU that both pools name in the same way.
    fn shared_gpu(&self, other: &Pool) -> Option<String> {
        match (&self.gpus, &other.gpus) {
            (None, None) => Some("0".to_owned()),
            (Some(gpus), None) | (None, Some(gpus)) => gpus.first().map(GpuName::to_string),
            (Some(own), Some(theirs)) => {
                own.iter().find(|gpu| theirs.contains(gpu)).map(GpuName::to_string)
            }
        }
    }

    /// Whether this pool and an earlier one can be had together.
    fn check_beside(&self, earlier: &Pool, policy: &Policy) -> Result<(), PoolError> {
        if earlier.name == self.name {
            return Err(PoolError::SameName(self.name.clone()));
        }
        if earlier.default && self.default && earlier.allow.is_empty() {
            let (first, second) = (earlier.name.clone(), self.name.clone());
            return Err(PoolError::TwoDefaults { first, second });
        }
        let share = |pool: &Pool| pool.share.unwrap_or(policy.share);
        let (first, second) = (share(earlier), share(self));
        if first == second || [first, second].contains(&Share::Exclusive) {
            return Ok(());
        }
        match earlier.shared_gpu(self) {
            Some(gpu) => {
                let (one, other) = (earlier.name.clone(), self.name.clone());
                Err(PoolError::TwoWays { gpu, one, first, other, second })
            }
            None => Ok(()),
        }
    }
}

/// Whether pools allow no more time than all tasks may have.
pub fn check_times(pools: &[Pool], times: TimeLimits) -> Result<(), PoolError> {
    for pool in pools {
        if let Some(limit) = pool.max_time.filter(|&limit| !times.allow(Some(limit)))
            && let Some(largest) = times.largest
        {
            return Err(PoolError::LongTime { pool: pool.name.clone(), limit, largest });
        }
    }
    Ok(())
}

/// What can be wrong with pools, whatever GPUs there are.
pub fn check(pools: &[Pool], policy: &Policy) -> Result<(), PoolError> {
    if pools.len() > MOST_POOLS {
        return Err(PoolError::TooMany);
    }
    for (place, pool) in pools.iter().enumerate() {
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        if pool.name.is_empty() || pool.name.len() > LONGEST_NAME || !pool.name.chars().all(fits) {
            return Err(PoolError::Name(pool.name.chars().take(LONGEST_NAME).collect()));
        }
        for earlier in &pools[..place] {
            pool.check_beside(earlier, policy)?;
        }
        for who in &pool.allow {
            let unknown = |problem| PoolError::Who { pool: pool.name.clone(), problem };
            who.check().map_err(unknown)?;
        }
        match pool.share {
            Some(share) if share != Share::Exclusive && policy.needs_idle() => {
                return Err(PoolError::WholeGpus { pool: pool.name.clone(), share });
            }
            _ => {}
        }
    }
    Ok(())
}

/// The pools of a daemon, with the GPUs that are there.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct PoolTable {
    pools: Vec<(Pool, coloc_core::Pool)>,
    /// GPUs that pools name and that are not there.
    missing: Vec<(String, GpuName)>,
}

impl PoolTable {
    /// Finds the GPUs of each pool.
    pub fn of(
        pools: &[Pool],
        policy: &Policy,
        fleet: &Fleet,
        uuids: &[String],
    ) -> Result<Self, PoolError> {
        check(pools, policy)?;
        let mut table = PoolTable::default();
        let mut ways: Vec<Option<(&str, Share)>> = vec![None; fleet.len()];
        for pool in pools {
            let share = pool.share.unwrap_or(policy.share);
            let gpus = table.find(pool, fleet, uuids);
            for &gpu in gpus.iter().filter(|_| share != Share::Exclusive) {
                if share == Share::Mig && fleet.gpu(gpu).model.mig().is_none() {
                    return Err(PoolError::NoMig { pool: pool.name.clone(), gpu });
                }
                let way = &mut ways[gpu.index()];
                match *way {
                    Some((one, first)) if first != share => {
                        let (one, other) = (one.to_owned(), pool.name.clone());
                        let gpu = gpu.to_string();
                        return Err(PoolError::TwoWays { gpu, one, first, other, second: share });
                    }
                    _ => *way = Some((&pool.name, share)),
                }
            }
            table.pools.push((pool.clone(), coloc_core::Pool { gpus, share }));
        }
        Ok(table)
    }

    fn find(&mut self, pool: &Pool, fleet: &Fleet, uuids: &[String]) -> Vec<GpuId> {
        let Some(names) = &pool.gpus else { return fleet.ids().collect() };
        let mut gpus = Vec::new();
        for name in names {
            let found = match name {
                GpuName::Index(index) => Some(*index as usize),
                GpuName::Uuid(uuid) => uuids.iter().position(|known| known == uuid),
            };
            match found.filter(|&index| index < fleet.len()) {
                Some(index) => gpus.push(GpuId::from(index)),
                None => self.missing.push((pool.name.clone(), name.clone())),
            }
        }
        gpus.sort_unstable();
        gpus.dedup();
        gpus
    }

    /// There are none: tasks may have all GPUs.
    pub fn is_empty(&self) -> bool {
        self.pools.is_empty()
    }

    /// The same for the scheduler.
    pub fn for_core(&self) -> Vec<coloc_core::Pool> {
        self.pools.iter().map(|(_, pool)| pool.clone()).collect()
    }

    /// The pools by their names, in the order in which they are preferred.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.pools.iter().map(|(pool, _)| pool.name.as_str())
    }

    /// What is to be known of pools that name GPUs which are not there, and of GPUs in no pool.
    pub fn notes(&self, fleet: &Fleet) -> Vec<String> {
        let missing = self.missing.iter();
        let missing =
            missing.map(|(pool, gpu)| format!("pool {pool} names GPU {gpu}, which is not there"));
        let pooled = |gpu: GpuId| self.pools.iter().any(|(_, pool)| pool.gpus.contains(&gpu));
        let unused = fleet.ids().filter(|&gpu| !self.is_empty() && !pooled(gpu));
        missing
            .chain(unused.map(|gpu| format!("GPU {gpu} is in no pool, and takes no task")))
            .collect()
    }

    /// The pools that a GPU is in.
    pub fn of_gpu(&self, gpu: GpuId) -> Vec<String> {
        let holds = |(_, pool): &&(Pool, coloc_core::Pool)| pool.gpus.contains(&gpu);
        self.pools.iter().filter(holds).map(|(pool, _)| pool.name.clone()).collect()
    }

    /// The pools of these names; of a task that names none, the first default that its user may use, or else the first.
    pub fn chosen(&self, names: &[String], uid: Uid) -> PoolSet {
        if names.is_empty() {
            let open = |&place: &usize| self.may_use(place, uid);
            let defaults = (0..self.pools.len()).filter(|&place| self.pools[place].0.default);
            let first = defaults.chain(0..self.pools.len()).find(open);
            return first.into_iter().collect();
        }
        let named = |place: &usize| names.contains(&self.pools[*place].0.name);
        (0..self.pools.len()).filter(named).collect()
    }

    /// A user may use a pool.
    pub fn may_use(&self, place: usize, uid: Uid) -> bool {
        let allow = self.pools.get(place).map(|(pool, _)| &pool.allow);
        allow.is_some_and(|allow| allow.is_empty() || who::includes(allow, uid))
    }

    /// The name of a pool.
    pub fn name(&self, place: usize) -> &str {
        self.pools.get(place).map_or("", |(pool, _)| &pool.name)
    }

    /// How tasks of these pools share GPUs.
    pub fn shares(&self, pools: PoolSet) -> impl Iterator<Item = Share> {
        pools.iter().filter_map(|place| self.pools.get(place).map(|(_, pool)| pool.share))
    }

    /// The largest time limit in these pools.
    pub fn max_time(&self, pools: PoolSet) -> Option<Millis> {
        pools.iter().filter_map(|place| self.pools.get(place)?.0.max_time).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use coloc_core::preset::{MemoryKnowledge, Preset};

    fn pool(name: &str, gpus: &[u32], share: Option<Share>) -> Pool {
        let gpus = Some(gpus.iter().map(|&gpu| GpuName::Index(gpu)).collect());
        let (allow, max_time) = (Vec::new(), None);
        Pool { name: name.to_owned(), gpus, share, default: false, allow, max_time }
    }

    fn table(pools: &[Pool]) -> Result<PoolTable, PoolError> {
        let policy = Preset::Coloc.policy(MemoryKnowledge::Estimate);
        let fleet = "3xA100-40GB,1xT4-16GB".parse().unwrap();
        PoolTable::of(pools, &policy, &fleet, &[])
    }

    #[test]
    fn who_names_no_pool_gets_the_first_that_is_open_to_them() {
        let closed = Pool { allow: vec!["@root".parse().unwrap()], ..pool("closed", &[0], None) };
        let open = pool("open", &[1, 9], None);
        let default = Pool { default: true, ..pool("usual", &[2], None) };
        let all = table(&[closed, open.clone(), default]).unwrap();
        let chosen = |names: &[&str], uid: u32| {
            let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
            all.chosen(&names, Uid(uid))
                .iter()
                .map(|place| all.name(place).to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(chosen(&[], 1234), ["usual"]);
        assert_eq!(chosen(&["open", "closed", "gone"], 1234), ["closed", "open"], "in their order");
        assert!(all.may_use(0, Uid(0)) && !all.may_use(0, Uid(1234)));
        let few = table(&[open]).unwrap();
        assert_eq!(few.notes(&"3xA100-40GB".parse().unwrap()).len(), 3, "one missing, two unused");
    }

    #[test]
    fn pools_that_contradict_each_other_are_refused() {
        let two = [pool("a", &[0], Some(Share::Mps)), pool("b", &[0], Some(Share::Mig))];
        assert!(matches!(table(&two), Err(PoolError::TwoWays { .. })));
        let whole = [pool("a", &[0], Some(Share::Mps)), pool("b", &[0], Some(Share::Exclusive))];
        assert!(table(&whole).is_ok(), "a whole GPU is a GPU that is empty");
        // Also where it is not known which GPUs there are.
        let policy = Preset::Coloc.policy(MemoryKnowledge::Estimate);
        let beside = |one: Pool, other: Pool| check(&[one, other], &policy);
        let [one, other] = two;
        assert!(matches!(beside(one.clone(), other.clone()), Err(PoolError::TwoWays { .. })));
        let all = Pool { gpus: None, ..other.clone() };
        assert!(matches!(beside(one.clone(), all), Err(PoolError::TwoWays { .. })));
        assert_eq!(beside(one.clone(), pool("b", &[1], Some(Share::Mig))), Ok(()));
        let default = |pool: Pool| Pool { default: true, ..pool };
        let (first, second) = (default(pool("a", &[0], None)), default(pool("b", &[1], None)));
        let some = Pool { allow: vec!["@root".parse().unwrap()], ..first.clone() };
        assert!(matches!(beside(first, second.clone()), Err(PoolError::TwoDefaults { .. })));
        assert_eq!(beside(some, second), Ok(()), "one for the group, one for all others");
        let times = TimeLimits { default: None, largest: Some(Millis::from_secs(60)) };
        let long = Pool { max_time: Some(Millis::from_secs(61)), ..one };
        assert!(matches!(check_times(&[long], times), Err(PoolError::LongTime { .. })));
        assert_eq!(check_times(&[other], times), Ok(()));
        let mig = [pool("a", &[3], Some(Share::Mig))];
        assert!(matches!(table(&mig), Err(PoolError::NoMig { .. })));
        let same = [pool("a", &[0], None), pool("a", &[1], None)];
        assert!(matches!(table(&same), Err(PoolError::SameName(_))));
        assert!(matches!(table(&[pool("a b", &[0], None)]), Err(PoolError::Name(_))));
        let stranger = Pool { allow: vec!["@no_such".parse().unwrap()], ..pool("a", &[0], None) };
        assert!(matches!(table(&[stranger]), Err(PoolError::Who { .. })));
    }
}
