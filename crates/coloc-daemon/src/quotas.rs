//! Weights and quotas, by the names that people have on this machine.

use crate::record::Uid;
use coloc_core::accounts::{Account, Accounts, Quota};
use coloc_model::GroupId;
use std::collections::BTreeMap;
use std::ffi::CString;

/// Weights and quotas of users and groups.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct Quotas {
    /// Shares under fair.
    pub weights: Vec<(String, f64)>,
    /// The most that each user may hold, unless something else is said of them.
    pub everybody: Quota,
    /// The most that these users may hold.
    pub users: Vec<(String, Quota)>,
    /// The most that these groups of the system may hold together.
    pub groups: Vec<(String, Quota)>,
}

/// An account that this machine does not know.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum UnknownAccount {
    /// A user.
    #[error("{flag}: there is no user {name:?} on this machine")]
    User {
        /// The option that names it.
        flag: &'static str,
        /// The name.
        name: String,
    },
    /// A group.
    #[error("--quota: there is no group {0:?} on this machine")]
    Group(String),
}

/// The same by numbers.
#[derive(Clone, PartialEq, Debug)]
pub struct AccountTable {
    others: Account,
    users: BTreeMap<Uid, Account>,
    /// Number, name and limit.
    groups: Vec<(u32, String, Quota)>,
}

impl Quotas {
    /// Looks every account up.
    pub fn look_up(&self) -> Result<AccountTable, UnknownAccount> {
        let others = Account { quota: self.everybody, ..Account::PLAIN };
        let mut users = BTreeMap::new();
        let find = |flag, name: &String| {
            crate::users::find(name)
                .ok_or_else(|| UnknownAccount::User { flag, name: name.clone() })
        };
        for (name, weight) in &self.weights {
            users.entry(find("--weight", name)?).or_insert(others).weight = *weight;
        }
        for (name, quota) in &self.users {
            let quota_of = |account: &mut Account| {
                account.quota.gpus = quota.gpus.or(account.quota.gpus);
                account.quota.memory = quota.memory.or(account.quota.memory);
            };
            quota_of(users.entry(find("--quota", name)?).or_insert(others));
        }
        let mut groups: Vec<(u32, String, Quota)> = Vec::new();
        for (name, quota) in &self.groups {
            let group = nix::unistd::Group::from_name(name).ok().flatten();
            let number = group.ok_or_else(|| UnknownAccount::Group(name.clone()))?.gid.as_raw();
            let at = groups.iter().position(|(known, ..)| *known == number).unwrap_or(groups.len());
            if at == groups.len() {
                groups.push((number, name.clone(), Quota::NONE));
            }
            let limit = &mut groups[at].2;
            limit.gpus = quota.gpus.or(limit.gpus);
            limit.memory = quota.memory.or(limit.memory);
        }
        Ok(AccountTable { others, users, groups })
    }
}

impl AccountTable {
    /// Users with a weight or quota by name.
    pub fn named(&self) -> impl Iterator<Item = Uid> + '_ {
        self.users.keys().copied()
    }

    /// What holds for users of whom nothing else is said, and for groups.
    pub fn accounts(&self) -> Accounts {
        let mut accounts = Accounts::of_others(self.others);
        for (index, (_, _, quota)) in self.groups.iter().enumerate() {
            accounts.set_group(GroupId::from(index), *quota);
        }
        accounts
    }

    /// The account of a user. Of several limited groups the first that was named counts.
    pub fn account(&self, uid: Uid) -> Account {
        let account = self.users.get(&uid).copied().unwrap_or(self.others);
        let theirs = if self.groups.is_empty() { Vec::new() } else { groups_of(uid) };
        let group = self.groups.iter().position(|(number, ..)| theirs.contains(number));
        Account { group: group.map(GroupId::from), ..account }
    }

    /// Number and name of each group with a quota, in the order in which they were named.
    pub(crate) fn limited_groups(&self) -> Vec<(u32, String)> {
        self.groups.iter().map(|(number, name, _)| (*number, name.clone())).collect()
    }

    /// The name of a group.
    pub fn group_name(&self, group: GroupId) -> String {
        self.groups
            .get(group.index())
            .map_or_else(|| group.to_string(), |(_, name, _)| name.clone())
    }
}

/// The groups of a user, as the system has them now.
pub(crate) fn groups_of(uid: Uid) -> Vec<u32> {
    let user = nix::unistd::User::from_uid(uid.0.into()).ok().flatten();
    let Some(user) = user else { return Vec::new() };
    let name = CString::new(user.name).unwrap_or_default();
    let groups = nix::unistd::getgrouplist(&name, user.gid).unwrap_or_default();
    groups.into_iter().map(nix::unistd::Gid::as_raw).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use coloc_model::Bytes;

    fn gpus(gpus: u32) -> Quota {
        Quota { gpus: Some(gpus), memory: None }
    }

    #[test]
    fn what_is_said_of_somebody_wins() {
        let memory = Quota { gpus: None, memory: Some(Bytes::from_mib(1024)) };
        let quotas = Quotas {
            weights: vec![("root".to_owned(), 2.0)],
            everybody: gpus(4),
            users: vec![("root".to_owned(), memory), ("12345".to_owned(), gpus(0))],
            groups: vec![("root".to_owned(), gpus(8)), ("root".to_owned(), memory)],
        };
        let account_table = quotas.look_up().unwrap();
        let root = account_table.account(Uid(0));
        assert_eq!(
            (root.weight, root.quota.gpus, root.quota.memory),
            (2.0, Some(4), memory.memory)
        );
        assert_eq!(root.group, Some(GroupId(0)));
        assert_eq!(account_table.group_name(GroupId(0)), "root");
        assert_eq!(account_table.account(Uid(12345)).quota, gpus(0));
        let newcomer = account_table.account(Uid(54321));
        assert_eq!((newcomer.quota, newcomer.group), (gpus(4), None));
        let both = Quota { gpus: Some(8), memory: memory.memory };
        assert_eq!(account_table.accounts().group(GroupId(0)), both);
        assert!(account_table.accounts().have_quotas());
        assert!(!Quotas::default().look_up().unwrap().accounts().have_quotas());
    }

    #[test]
    fn whom_nobody_knows_is_named() {
        let who = || "no such person".to_owned();
        let weights = Quotas { weights: vec![(who(), 1.0)], ..Quotas::default() };
        assert!(
            weights.look_up().unwrap_err().to_string().starts_with("--weight: there is no user")
        );
        let groups = Quotas { groups: vec![(who(), gpus(1))], ..Quotas::default() };
        assert_eq!(groups.look_up(), Err(UnknownAccount::Group(who())));
    }
}
