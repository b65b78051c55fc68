//! Names of users.

use crate::record::Uid;
use coloc_gpu::process::Users;
use std::sync::LazyLock;

static USERS: LazyLock<Users> = LazyLock::new(Users::of_system);

/// The name of a user, or their number.
pub fn name(uid: Uid) -> String {
    USERS.name(uid.0)
}

/// The name of a user's primary group, or its number.
pub(crate) fn primary_group(uid: Uid) -> String {
    let user = nix::unistd::User::from_uid(uid.0.into()).ok().flatten();
    let Some(user) = user else { return format!("group of {}", uid.0) };
    let group = nix::unistd::Group::from_gid(user.gid).ok().flatten();
    group.map_or_else(|| user.gid.to_string(), |group| group.name)
}

/// The user of this name or number.
pub fn find(name: &str) -> Option<Uid> {
    let known = nix::unistd::User::from_name(name).ok().flatten();
    known.map(|user| Uid(user.uid.as_raw())).or_else(|| name.parse().ok().map(Uid))
}
