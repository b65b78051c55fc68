//! Users and groups that something is for, by the names that people have on this machine.

use super::admins::{NoSuchGroup, find_group};
use crate::quotas::groups_of;
use crate::record::Uid;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A user, or with `@` a group of the system.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Who {
    /// A user.
    User(String),
    /// A group of the system.
    Group(String),
}

/// The longest name, in bytes.
const LONGEST: usize = 64;

/// A name that is none.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0:?} names neither a user, such as ann, nor a group, such as @lab")]
pub struct NoName(String);

/// A name that this machine does not know.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unknown {
    /// A user.
    #[error("there is no user {0:?} on this machine")]
    User(String),
    /// A group.
    #[error(transparent)]
    Group(#[from] NoSuchGroup),
}

impl FromStr for Who {
    type Err = NoName;

    fn from_str(text: &str) -> Result<Self, NoName> {
        let name = text.strip_prefix('@').unwrap_or(text);
        let wrong = |c: char| c.is_control() || c.is_whitespace() || matches!(c, '@' | ',' | ';');
        if name.is_empty() || name.len() > LONGEST || name.contains(wrong) {
            return Err(NoName(text.chars().take(LONGEST).collect()));
        }
        Ok(match text.starts_with('@') {
            true => Who::Group(name.to_owned()),
            false => Who::User(name.to_owned()),
        })
    }
}

impl TryFrom<String> for Who {
    type Error = NoName;

    fn try_from(text: String) -> Result<Self, NoName> {
        text.parse()
    }
}

impl From<Who> for String {
    fn from(who: Who) -> String {
        who.to_string()
    }
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Who::User(name) => f.write_str(name),
            Who::Group(name) => write!(f, "@{name}"),
        }
    }
}

impl Who {
    /// Whether this machine knows it.
    pub fn check(&self) -> Result<(), Unknown> {
        match self {
            Who::User(name) => {
                let known = crate::users::find(name).map(|_| ());
                known.ok_or_else(|| Unknown::User(name.clone()))
            }
            Who::Group(name) => Ok(find_group(name).map(|_| ())?),
        }
    }
}

/// A user is one of these, or in one of these groups, as the system has it now.
pub fn includes(all: &[Who], uid: Uid) -> bool {
    let mut groups = None;
    all.iter().any(|who| match who {
        Who::User(name) => crate::users::find(name) == Some(uid),
        Who::Group(name) => find_group(name)
            .is_ok_and(|group| groups.get_or_insert_with(|| groups_of(uid)).contains(&group)),
    })
}

/// All of them in one text: `ann, @lab`.
pub fn listed(all: &[Who]) -> String {
    all.iter().map(Who::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_and_groups_are_told_apart() {
        let who = |text: &str| text.parse::<Who>();
        assert_eq!(who("@root"), Ok(Who::Group("root".to_owned())));
        for wrong in ["", "@", "a b", "@@a", "a,b", &"x".repeat(65)] {
            assert!(who(wrong).is_err(), "{wrong:?}");
        }
        let all = [who("12345").unwrap(), who("@root").unwrap()];
        assert!(includes(&all, Uid(0)) && includes(&all, Uid(12_345)));
        assert!(!includes(&all, Uid(54_321)));
        assert_eq!(listed(&all), "12345, @root");
        assert!(who("@no_such").unwrap().check().is_err() && all[1].check().is_ok());
    }
}
