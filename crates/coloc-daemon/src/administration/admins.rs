//! Administrators: root, the user that the daemon runs as, and the members of a group.
//!
//! Which user calls is the kernel's word or a token's; which groups that user is in is the system's (NSS). Nothing that a
//! user can write has a part in it.

use crate::quotas::groups_of;
use crate::record::Uid;
use rustc_hash::FxHashMap;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What the system said of a user counts for so long: a directory service may be slow, and a user may leave the group.
const FRESH: Duration = Duration::from_secs(5);
/// Users of whom something is remembered at once.
const MOST_REMEMBERED: usize = 1024;

static ADMINS: LazyLock<Mutex<Admins>> = LazyLock::new(Mutex::default);

#[derive(Default)]
struct Admins {
    group: Option<u32>,
    members: FxHashMap<Uid, (bool, Instant)>,
}

impl Admins {
    fn has(&mut self, uid: Uid, now: Instant, is_member: impl FnOnce(u32) -> bool) -> bool {
        let Some(group) = self.group else { return false };
        let known = self.members.get(&uid).filter(|(_, at)| now.duration_since(*at) < FRESH);
        if let Some(&(member, _)) = known {
            return member;
        }
        if self.members.len() >= MOST_REMEMBERED {
            self.members.clear();
        }
        let member = is_member(group);
        self.members.insert(uid, (member, now));
        member
    }
}

/// From now on the members of this group of the system are administrators, beside root and the daemon's user.
pub fn set_group(group: Option<&str>) -> Result<(), NoSuchGroup> {
    let number = group.map(find_group).transpose()?;
    let mut admins = ADMINS.lock().unwrap_or_else(PoisonError::into_inner);
    *admins = Admins { group: number, members: FxHashMap::default() };
    Ok(())
}

/// Root and the daemon's user: they may also act as other users. The group's members may not, or each would be root.
pub fn is_superuser(uid: Uid) -> bool {
    uid.0 == 0 || uid.0 == rustix::process::geteuid().as_raw()
}

/// Whether a user is an administrator: one who may touch the tasks of all users, and the GPUs.
pub fn is_admin(uid: Uid) -> bool {
    if is_superuser(uid) {
        return true;
    }
    let mut admins = ADMINS.lock().unwrap_or_else(PoisonError::into_inner);
    admins.has(uid, Instant::now(), |group| groups_of(uid).contains(&group))
}

/// The number of a group of the system.
pub fn find_group(name: &str) -> Result<u32, NoSuchGroup> {
    let group = nix::unistd::Group::from_name(name).ok().flatten();
    group.map(|group| group.gid.as_raw()).ok_or_else(|| NoSuchGroup(name.to_owned()))
}

/// The users whom the system lists in a group. Those whose main group it is are not among them.
pub fn listed_in(group: &str) -> Vec<String> {
    nix::unistd::Group::from_name(group).ok().flatten().map_or_else(Vec::new, |group| group.mem)
}

/// A group that this machine does not know.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("there is no group {0:?} on this machine: `groupadd {0}` makes it")]
pub struct NoSuchGroup(pub String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_said_counts_for_a_moment() {
        let mut admins = Admins { group: Some(7), members: FxHashMap::default() };
        let now = Instant::now();
        assert!(admins.has(Uid(1000), now, |group| group == 7));
        assert!(admins.has(Uid(1000), now + FRESH / 2, |_| panic!("it is known")));
        assert!(!admins.has(Uid(1000), now + FRESH, |_| false), "left the group");
        admins.group = None;
        assert!(!admins.has(Uid(1000), now, |_| true), "no group, no members");
    }

    #[test]
    fn root_is_one_without_a_group_and_a_stranger_is_none() {
        assert!(is_admin(Uid(0)) && !is_admin(Uid(4_000_000)));
        assert!(is_superuser(Uid(0)) && !is_superuser(Uid(4_000_000)));
        assert_eq!(find_group("no such group"), Err(NoSuchGroup("no such group".to_owned())));
    }
}
