//! How much each user and group is owed and may hold: `--weight`, `--quota`, `--half-life`.

use super::policy::FairOrderFlag;
use crate::error::{CliError, UsageError};
use clap::Args;
use coloc_core::accounts::{Account, Accounts, Quota};
use coloc_daemon::quotas::Quotas;
use coloc_model::{Bytes, GroupId, Millis, UserId};
use coloc_sim::{Names, Simulation, Trace};
use std::str::FromStr;

/// Shares and quotas.
#[derive(Args, Clone, Default, Debug)]
pub(crate) struct AccountArgs {
    /// How fast fair forgets past usage, such as 1h or 7d [default: 7d]
    #[arg(long, value_name = "SPAN")]
    pub(crate) half_life: Option<Millis>,
    /// Which of a user's tasks goes first under fair [default: arrival]
    #[arg(long, value_enum)]
    pub(crate) fair_order: Option<FairOrderFlag>,
    /// A user's share under fair against that of others, which is 1; may be given several times
    #[arg(long, value_name = "USER=SHARE")]
    pub(crate) weight: Vec<Weight>,
    /// The most that a user or, with @, a group may hold at once: GPUs such as alice=4, or GPU memory such as @vision=320G; * stands for every user; may be given several times
    #[arg(long, value_name = "WHO=LIMIT")]
    pub(crate) quota: Vec<QuotaFor>,
}

/// `USER=SHARE`.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Weight {
    user: String,
    weight: f64,
}

impl FromStr for Weight {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let fail = || {
            format!(
                "cannot read {text:?}; expected USER=SHARE with a share above 0, such as alice=2"
            )
        };
        let (user, weight) = text.rsplit_once('=').ok_or_else(fail)?;
        let weight: f64 = weight.trim().parse().map_err(|_| fail())?;
        let valid = (1e-6..=1e6).contains(&weight) && !user.trim().is_empty();
        valid.then(|| Weight { user: user.trim().to_owned(), weight }).ok_or_else(fail)
    }
}

/// `WHO=LIMIT`.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct QuotaFor {
    who: Who,
    limit: Limit,
}

#[derive(Clone, PartialEq, Debug)]
enum Who {
    Everybody,
    User(String),
    Group(String),
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Limit {
    Gpus(u32),
    Memory(Bytes),
}

impl FromStr for QuotaFor {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let fail = || {
            format!(
                "cannot read {text:?}; expected WHO=LIMIT, such as alice=4, @vision=320G or *=8"
            )
        };
        let (who, limit) = text.rsplit_once('=').ok_or_else(fail)?;
        let who = match who.trim() {
            "" | "@" => return Err(fail()),
            "*" => Who::Everybody,
            who => match who.strip_prefix('@') {
                Some(group) => Who::Group(group.to_owned()),
                None => Who::User(who.to_owned()),
            },
        };
        let limit = limit.trim();
        let limit = match limit.parse() {
            Ok(gpus) => Limit::Gpus(gpus),
            // A bare number is GPUs, so memory needs its unit.
            Err(_) if limit.ends_with(|c: char| c.is_ascii_alphabetic()) => {
                Limit::Memory(limit.parse().map_err(|_| fail())?)
            }
            Err(_) => return Err(fail()),
        };
        Ok(QuotaFor { who, limit })
    }
}

impl Limit {
    fn over(self, quota: Quota) -> Quota {
        match self {
            Limit::Gpus(gpus) => Quota { gpus: Some(gpus), ..quota },
            Limit::Memory(memory) => Quota { memory: Some(memory), ..quota },
        }
    }
}

impl AccountArgs {
    /// Refuses what makes no sense.
    pub(crate) fn check(&self) -> Result<(), CliError> {
        if self.half_life.is_some_and(|span| span == Millis::ZERO) {
            return Err(UsageError::value("--half-life", "more than 0", "0").into());
        }
        Ok(())
    }

    /// The same for the people of a machine.
    pub(crate) fn quotas(&self) -> Quotas {
        let weight = |Weight { user, weight }: &Weight| (user.clone(), *weight);
        let mut quotas =
            Quotas { weights: self.weight.iter().map(weight).collect(), ..Quotas::default() };
        for QuotaFor { who, limit } in &self.quota {
            let quota = limit.over(Quota::NONE);
            match who {
                Who::Everybody => quotas.everybody = limit.over(quotas.everybody),
                Who::User(user) => quotas.users.push((user.clone(), quota)),
                Who::Group(group) => quotas.groups.push((group.clone(), quota)),
            }
        }
        quotas
    }

    /// Gives the simulation the accounts of the trace's users; a name that the trace does not have is a
    /// mistake.
    pub(crate) fn apply(&self, simulation: &mut Simulation, trace: &Trace) -> Result<(), CliError> {
        self.check()?;
        if self.weight.is_empty() && self.quota.is_empty() {
            return Ok(());
        }
        simulation.accounts = self.accounts(trace)?;
        Ok(())
    }

    fn accounts(&self, trace: &Trace) -> Result<Accounts, CliError> {
        let mut accounts = Accounts::default();
        for user in 0..trace.users().len() {
            let user = UserId::from(user);
            accounts.set_user(user, Account { group: trace.group_of(user), ..Account::PLAIN });
        }
        for Weight { user, weight } in &self.weight {
            let user = UserId(find(trace.users(), user, "--weight", "user")?);
            accounts.set_user(user, Account { weight: *weight, ..accounts.user(user) });
        }
        // What is said of one user or group wins over what is said of all users.
        let everybody = |quota: &&QuotaFor| quota.who == Who::Everybody;
        let general = self.quota.iter().filter(everybody);
        let particular = self.quota.iter().filter(|quota| !everybody(quota));
        for QuotaFor { who, limit } in general.chain(particular) {
            let users: Vec<u32> = match who {
                Who::Everybody => (0..trace.users().len() as u32).collect(),
                Who::User(user) => vec![find(trace.users(), user, "--quota", "user")?],
                Who::Group(group) => {
                    let group = GroupId(find(trace.groups(), group, "--quota", "group")?);
                    accounts.set_group(group, limit.over(accounts.group(group)));
                    continue;
                }
            };
            for user in users.into_iter().map(UserId) {
                let account = accounts.user(user);
                accounts.set_user(user, Account { quota: limit.over(account.quota), ..account });
            }
        }
        Ok(accounts)
    }
}

fn find(names: &Names, name: &str, flag: &str, what: &str) -> Result<u32, CliError> {
    const SHOWN: u32 = 8;
    names.find(name).ok_or_else(|| {
        let count = names.len() as u32;
        let mut known: Vec<&str> = (0..count.min(SHOWN)).map(|number| names.name(number)).collect();
        if count > SHOWN {
            known.push("…");
        }
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        UsageError::flag(flag, format!("the trace has no {what} {name:?}; it has {known}")).into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotas_are_gpus_or_memory() {
        let quota = |text: &str| text.parse::<QuotaFor>().map(|quota| (quota.who, quota.limit));
        assert_eq!(quota("alice=4"), Ok((Who::User("alice".to_owned()), Limit::Gpus(4))));
        let memory = Limit::Memory(Bytes::from_mib(320 * 1024));
        assert_eq!(quota("@vision=320G"), Ok((Who::Group("vision".to_owned()), memory)));
        assert_eq!(quota("*=0"), Ok((Who::Everybody, Limit::Gpus(0))));
        for text in
            ["", "alice", "=4", "@=4", "alice=", "alice=-1", "alice=4.5", "alice=x", "a=1e9"]
        {
            assert!(quota(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn weights_are_above_zero() {
        assert_eq!("a=b=2.5".parse(), Ok(Weight { user: "a=b".to_owned(), weight: 2.5 }));
        for text in
            ["", "alice", "=1", "alice=0", "alice=-1", "alice=nan", "alice=inf", "alice=1e99"]
        {
            assert!(text.parse::<Weight>().is_err(), "{text:?}");
        }
    }
}
