//! What users and groups hold now, and what they have had.
//!
//! Usage is GPU time that is forgotten with a half-life `h`: while a user holds `r` GPUs,
//! `U(t + d) = U(t)·2^(−d/h) + r·h/ln 2·(1 − 2^(−d/h))`.

use super::{Account, Accounts, OverQuota, Quota, Resource, Whose};
use crate::demand::Demand;
use crate::policy::{Policy, Queue};
use coloc_model::{Bytes, GroupId, Millis, Time, UserId};

/// What a task takes from its user's account while it runs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Charge {
    pub(crate) gpus: u32,
    pub(crate) memory: Bytes,
    /// The part of its GPUs that no other task can use, in GPUs.
    pub(crate) share: f64,
}

impl Charge {
    /// Where accounts are not kept.
    pub(crate) const NONE: Charge = Charge { gpus: 0, memory: Bytes::ZERO, share: 0.0 };
}

/// What a user or a group holds.
#[derive(Clone, Copy, Default, Debug)]
struct Holding {
    gpus: u32,
    memory: Bytes,
}

impl Holding {
    fn add(&mut self, charge: &Charge) {
        self.gpus += charge.gpus;
        self.memory += charge.memory;
    }

    fn remove(&mut self, charge: &Charge) {
        self.gpus -= charge.gpus;
        self.memory -= charge.memory;
    }

    fn over(&self, quota: Quota, gpus: u32, memory: Bytes) -> Option<Resource> {
        if let Some(limit) = quota.gpus.filter(|&limit| self.gpus + gpus > limit) {
            return Some(Resource::Gpus { limit, held: self.gpus, wanted: gpus });
        }
        let limit = quota.memory.filter(|&limit| self.memory + memory > limit)?;
        Some(Resource::Memory { limit, held: self.memory, wanted: memory })
    }
}

/// A user's past, as of a moment.
#[derive(Clone, Copy, Default, Debug)]
struct Usage {
    /// GPU seconds, those long ago partly forgotten.
    seconds: f64,
    /// GPUs held since then.
    rate: f64,
    /// Tasks that make up the rate: without any it is zero, whatever rounding says.
    tasks: u32,
    as_of: Time,
}

/// What all users and groups hold, and what users have had.
#[derive(Clone, Debug)]
pub(crate) struct Holdings {
    accounts: Accounts,
    limited: bool,
    /// Half-life in seconds, where usage is kept.
    half_life: Option<f64>,
    users: Vec<(Holding, Usage)>,
    groups: Vec<Holding>,
    presence: Option<Presence>,
}

/// Who has tasks here, where users share GPUs evenly.
#[derive(Clone, Default, Debug)]
struct Presence {
    /// Tasks of each user that wait or run.
    tasks: Vec<u32>,
    /// Weights of the users who have any.
    weights: f64,
    /// GPUs that all of them hold.
    held: f64,
}

impl Holdings {
    /// Usage is kept only if a half-life is given.
    pub(crate) fn new(accounts: Accounts, half_life: Option<Millis>) -> Self {
        let limited = accounts.have_quotas();
        let half_life = half_life.map(|span| span.secs().max(0.001));
        Holdings {
            accounts,
            limited,
            half_life,
            users: Vec::new(),
            groups: Vec::new(),
            presence: None,
        }
    }

    /// What a policy needs to know of users.
    pub(crate) fn of(accounts: Accounts, policy: &Policy) -> Self {
        let mut holdings = Holdings::new(accounts, policy.half_life());
        if policy.queue == Queue::LeastWork {
            holdings.keep_presence();
        }
        holdings
    }

    /// Keeps who has tasks here, for [`Holdings::has_more_than_its_share`].
    pub(crate) fn keep_presence(&mut self) {
        self.presence = Some(Presence::default());
    }

    /// A task of a user came.
    pub(crate) fn came(&mut self, user: UserId) {
        let weight = self.accounts.user(user).weight;
        let Some(presence) = &mut self.presence else { return };
        if presence.tasks.len() <= user.index() {
            presence.tasks.resize(user.index() + 1, 0);
        }
        presence.tasks[user.index()] += 1;
        if presence.tasks[user.index()] == 1 {
            presence.weights += weight;
        }
    }

    /// A task of a user is here no longer.
    pub(crate) fn gone(&mut self, user: UserId) {
        let weight = self.accounts.user(user).weight;
        let Some(presence) = &mut self.presence else { return };
        presence.tasks[user.index()] -= 1;
        if presence.tasks[user.index()] == 0 {
            presence.weights -= weight;
        }
    }

    /// A user holds a larger part of what is held than its weight among the users who have tasks here.
    pub(crate) fn has_more_than_its_share(&self, user: UserId) -> bool {
        let Some(presence) = &self.presence else { return false };
        let Some((_, usage)) = self.users.get(user.index()) else { return false };
        let weight = self.accounts.user(user).weight;
        // Rounding must not decide between users who hold the same.
        usage.rate * presence.weights > presence.held * weight * (1.0 + 1e-9)
    }

    /// Agrees something with a user who holds nothing yet.
    pub(crate) fn agree(&mut self, user: UserId, account: Account) {
        self.accounts.set_user(user, account);
    }

    /// Takes over what users have had, as of now. What they hold follows from the tasks that still run.
    pub(crate) fn remember(&mut self, now: Time, past: &Holdings) {
        let Some(half_life) = past.half_life else { return };
        let usage = |usage: &Usage| Usage {
            seconds: usage.at(now, half_life),
            as_of: now,
            ..Usage::default()
        };
        let users = past.users.iter().map(|(_, past)| (Holding::default(), usage(past)));
        self.users = users.collect();
    }

    /// Notes that a user had this part of the GPUs from then until then, which is over.
    pub(crate) fn recall(&mut self, now: Time, user: UserId, share: f64, from: Time, to: Time) {
        let Some(half_life) = self.half_life else { return };
        let had = Usage { rate: share, as_of: from, ..Usage::default() }.at(to, half_life);
        let left = Usage { seconds: had, as_of: to, ..Usage::default() }.at(now, half_life);
        self.accrue(now, user);
        self.users[user.index()].1.seconds += left;
    }

    /// A user or a group has a quota.
    pub(crate) fn are_limited(&self) -> bool {
        self.limited
    }

    /// The policy or a quota needs what users hold or have had.
    pub(crate) fn are_kept(&self) -> bool {
        self.limited || self.half_life.is_some() || self.presence.is_some()
    }

    pub(crate) fn started(&mut self, now: Time, user: UserId, charge: &Charge) {
        if !self.are_kept() {
            return;
        }
        self.accrue(now, user);
        let (holding, usage) = &mut self.users[user.index()];
        holding.add(charge);
        usage.rate += charge.share;
        usage.tasks += 1;
        if let Some(presence) = &mut self.presence {
            presence.held += charge.share;
        }
        if let Some(group) = self.accounts.user(user).group {
            self.group(group).add(charge);
        }
    }

    pub(crate) fn ended(&mut self, now: Time, user: UserId, charge: &Charge) {
        if !self.are_kept() {
            return;
        }
        self.accrue(now, user);
        let (holding, usage) = &mut self.users[user.index()];
        holding.remove(charge);
        usage.tasks -= 1;
        if let Some(presence) = &mut self.presence {
            presence.held = (presence.held - charge.share).max(0.0);
        }
        usage.rate = if usage.tasks == 0 { 0.0 } else { (usage.rate - charge.share).max(0.0) };
        if let Some(group) = self.accounts.user(user).group {
            self.group(group).remove(charge);
        }
    }

    fn group(&mut self, group: GroupId) -> &mut Holding {
        if self.groups.len() <= group.index() {
            self.groups.resize(group.index() + 1, Holding::default());
        }
        &mut self.groups[group.index()]
    }

    /// Brings a user's usage up to date.
    fn accrue(&mut self, now: Time, user: UserId) {
        if self.users.len() <= user.index() {
            self.users.resize_with(user.index() + 1, Default::default);
        }
        let Some(half_life) = self.half_life else { return };
        let usage = &mut self.users[user.index()].1;
        *usage = Usage { seconds: usage.at(now, half_life), as_of: now, ..*usage };
    }

    /// How far ahead of others a user is: twice the usage that it will have a half-life from now if it
    /// goes on as it does, over its weight. So what is held counts at once, before any time has passed.
    pub(crate) fn score(&self, now: Time, user: UserId) -> f64 {
        let Some((_, usage)) = self.users.get(user.index()) else { return 0.0 };
        let Some(half_life) = self.half_life else { return 0.0 };
        let ahead = usage.rate * half_life / std::f64::consts::LN_2;
        (usage.at(now, half_life) + ahead) / self.accounts.user(user).weight
    }

    /// The most GPUs that a task of a user may ever have, if that is limited.
    pub(crate) fn most(&self, user: UserId, demand: &Demand) -> Option<u32> {
        let account = self.accounts.user(user);
        let quotas = [Some(account.quota), account.group.map(|group| self.accounts.group(group))];
        let by_memory = |limit: Bytes| u32::try_from(limit.0.checked_div(demand.book.0)?).ok();
        let most = |quota: Quota| quota.gpus.into_iter().chain(quota.memory.and_then(by_memory));
        quotas.into_iter().flatten().flat_map(most).min()
    }

    /// Why a task of a user may not start now, however many GPUs are free.
    pub(crate) fn refusal(&self, user: UserId, gpus: u32, memory: Bytes) -> Option<OverQuota> {
        let account = self.accounts.user(user);
        let held = self.users.get(user.index()).map(|(holding, _)| *holding).unwrap_or_default();
        if let Some(resource) = held.over(account.quota, gpus, memory) {
            return Some(OverQuota { whose: Whose::User(user), resource });
        }
        let group = account.group?;
        let held = self.groups.get(group.index()).copied().unwrap_or_default();
        let resource = held.over(self.accounts.group(group), gpus, memory)?;
        Some(OverQuota { whose: Whose::Group(group), resource })
    }
}

impl Usage {
    fn at(&self, now: Time, half_life: f64) -> f64 {
        let kept = libm::exp2(-now.since(self.as_of).secs() / half_life);
        self.seconds * kept + self.rate * half_life / std::f64::consts::LN_2 * (1.0 - kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Millis = Millis::from_secs(3600);

    fn charge(gpus: u32) -> Charge {
        Charge { gpus, memory: Bytes::from_mib(1024), share: f64::from(gpus) }
    }

    #[test]
    fn usage_is_half_forgotten_after_a_half_life() {
        let mut holdings = Holdings::new(Accounts::default(), Some(HOUR));
        let (user, hour) = (UserId(0), |hours: u64| Time::START + Millis::from_secs(3600 * hours));
        holdings.started(Time::START, user, &charge(2));
        holdings.ended(hour(1), user, &charge(2));
        let after = holdings.score(hour(1), user);
        // Two GPUs for an hour, of which the first minutes count for little more than half.
        assert!((after / (2.0 * 3600.0) - 0.5 / std::f64::consts::LN_2).abs() < 1e-9, "{after}");
        assert!((holdings.score(hour(2), user) / after - 0.5).abs() < 1e-12);
        assert_eq!(holdings.score(hour(2), UserId(7)), 0.0, "nobody knows them");
    }

    #[test]
    fn what_is_recalled_is_what_was_had() {
        let (user, hour) = (UserId(0), |hours: u64| Time::START + Millis::from_secs(3600 * hours));
        let mut lived = Holdings::new(Accounts::default(), Some(HOUR));
        lived.started(hour(1), user, &charge(2));
        lived.started(hour(2), user, &charge(1));
        lived.ended(hour(3), user, &charge(2));
        lived.ended(hour(5), user, &charge(1));
        let mut told = Holdings::new(Accounts::default(), Some(HOUR));
        // In any order.
        told.recall(hour(6), user, 1.0, hour(2), hour(5));
        told.recall(hour(6), user, 2.0, hour(1), hour(3));
        let (lived, told) = (lived.score(hour(7), user), told.score(hour(7), user));
        assert!((lived / told - 1.0).abs() < 1e-12, "{lived} and {told}");
    }

    #[test]
    fn what_is_held_counts_at_once_and_by_weight() {
        let mut accounts = Accounts::default();
        accounts.set_user(UserId(1), Account { weight: 2.0, ..Account::PLAIN });
        let mut holdings = Holdings::new(accounts, Some(HOUR));
        holdings.started(Time::START, UserId(0), &charge(1));
        holdings.started(Time::START, UserId(1), &charge(2));
        let score = |user| holdings.score(Time::START, UserId(user));
        assert!(score(0) > 0.0);
        assert_eq!(score(0), score(1), "twice the weight, twice the GPUs");
    }

    #[test]
    fn quotas_of_users_and_groups() {
        let mut accounts = Accounts::default();
        let group = Some(GroupId(0));
        let quota = Quota { gpus: Some(3), memory: None };
        accounts.set_user(UserId(0), Account { quota, group, ..Account::PLAIN });
        accounts.set_user(UserId(1), Account { group, ..Account::PLAIN });
        let memory = Some(Bytes::from_mib(3 * 1024));
        accounts.set_group(GroupId(0), Quota { gpus: None, memory });
        let mut holdings = Holdings::new(accounts, Some(HOUR));
        holdings.started(Time::START, UserId(0), &charge(2));
        let refusal = |holdings: &Holdings, user, gpus, gib: u64| {
            holdings.refusal(UserId(user), gpus, Bytes::from_mib(1024 * gib))
        };
        assert_eq!(refusal(&holdings, 0, 1, 2), None);
        let over = refusal(&holdings, 0, 2, 1).expect("3 GPUs at most");
        assert_eq!(over.resource, Resource::Gpus { limit: 3, held: 2, wanted: 2 });
        assert!(!over.is_for_ever());
        assert!(refusal(&holdings, 0, 4, 1).is_some_and(|over| over.is_for_ever()));
        let over = refusal(&holdings, 1, 1, 3).expect("3 GiB at most for the group");
        assert_eq!(over.whose, Whose::Group(GroupId(0)));
        assert_eq!(
            over.to_string(),
            "the quota of group 0 is 3.0 GiB: 1.0 GiB in use, 3.0 GiB wanted"
        );
        holdings.ended(Time::START, UserId(0), &charge(2));
        assert_eq!(refusal(&holdings, 1, 1, 3), None);
    }
}
