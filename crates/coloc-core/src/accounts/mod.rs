//! How much users and groups may hold, how much they have had, and how much they are owed.

mod holdings;
mod quota;

pub(crate) use holdings::{Charge, Holdings};
pub use quota::{OverQuota, Quota, Resource, Whose};

use coloc_model::{GroupId, UserId};

/// What is agreed with one user.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Account {
    /// Its share of the fleet against that of others.
    pub weight: f64,
    /// The most that it may hold at once.
    pub quota: Quota,
    /// The group whose quota it shares.
    pub group: Option<GroupId>,
}

impl Account {
    /// An equal share, and no limit.
    pub const PLAIN: Account = Account { weight: 1.0, quota: Quota::NONE, group: None };
}

/// What is agreed with all users and groups. Without agreements all are equal and nothing is limited.
#[derive(Clone, PartialEq, Debug)]
pub struct Accounts {
    /// Of users with whom nothing is agreed.
    others: Account,
    users: Vec<Option<Account>>,
    groups: Vec<Quota>,
}

impl Default for Accounts {
    fn default() -> Self {
        Accounts { others: Account::PLAIN, users: Vec::new(), groups: Vec::new() }
    }
}

impl Accounts {
    /// The same for all users, until something is agreed with them.
    pub fn of_others(others: Account) -> Self {
        Accounts { others, ..Accounts::default() }
    }

    /// What is agreed with a user.
    pub fn user(&self, user: UserId) -> Account {
        self.users.get(user.index()).copied().flatten().unwrap_or(self.others)
    }

    /// The most that a group may hold at once.
    pub fn group(&self, group: GroupId) -> Quota {
        self.groups.get(group.index()).copied().unwrap_or(Quota::NONE)
    }

    /// Agrees something with a user.
    pub fn set_user(&mut self, user: UserId, account: Account) {
        if self.users.len() <= user.index() {
            self.users.resize(user.index() + 1, None);
        }
        self.users[user.index()] = Some(account);
    }

    /// Limits a group.
    pub fn set_group(&mut self, group: GroupId, quota: Quota) {
        if self.groups.len() <= group.index() {
            self.groups.resize(group.index() + 1, Quota::NONE);
        }
        self.groups[group.index()] = quota;
    }

    /// A user or a group has a quota.
    pub fn have_quotas(&self) -> bool {
        let limited = |quota: &Quota| *quota != Quota::NONE;
        let users = self.users.iter().flatten().chain([&self.others]);
        self.groups.iter().any(limited) || users.into_iter().any(|user| limited(&user.quota))
    }
}
