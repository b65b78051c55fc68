//! Names of users.

use crate::record::Uid;
use coloc_gpu::process::Users;
use std::sync::LazyLock;

static USERS: LazyLock<Users> = LazyLock::new(Users::of_system);

/// The name of a user, or their number.
pub fn name(uid: Uid) -> String {
    USERS.name(uid.0)
}

/// The user of this name or number.
pub fn find(name: &str) -> Option<Uid> {
    let known = nix::unistd::User::from_name(name).ok().flatten();
    known.map(|user| Uid(user.uid.as_raw())).or_else(|| name.parse().ok().map(Uid))
}
