//! What each user has of the interface just now: connections, and bytes of requests.

use super::answer::Failure;
use crate::bounds::Bounds;
use crate::owner::{Caller, Refused};
use crate::record::Uid;
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

/// What users have, and may have.
#[derive(Debug)]
pub struct UserLimits {
    bounds: RwLock<Bounds>,
    by_user: Mutex<FxHashMap<Uid, Use>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Use {
    connections: usize,
    bytes: u64,
}

impl UserLimits {
    /// A ledger with these bounds.
    pub fn new(bounds: Bounds) -> Arc<Self> {
        Arc::new(UserLimits { bounds: RwLock::new(bounds), by_user: Mutex::default() })
    }

    /// The bounds in force.
    pub(super) fn bounds(&self) -> Bounds {
        *self.bounds.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has other bounds from now on. What users have already they keep.
    pub(super) fn set(&self, bounds: Bounds) {
        *self.bounds.write().unwrap_or_else(PoisonError::into_inner) = bounds;
    }

    /// A place for a connection of a user's.
    pub(super) fn connect(self: &Arc<Self>, caller: Caller) -> Result<ConnectionSlot, Failure> {
        let most = self.bounds().connections;
        let mut by_user = self.by_user();
        let has = by_user.entry(caller.uid).or_default();
        if has.connections >= most && !caller.admin {
            return Err(over(format!(
                "you have {most} connections to the daemon, the most that a user may have (--max-user-connections): \
                 close some"
            )));
        }
        has.connections += 1;
        Ok(ConnectionSlot { uid: caller.uid, user_limits: self.clone() })
    }

    /// Room for a request of a user's, none of which is here yet.
    pub(super) fn receive(self: &Arc<Self>, uid: Uid) -> BytesInFlight {
        BytesInFlight { uid, bytes: 0, user_limits: self.clone() }
    }

    fn by_user(&self) -> MutexGuard<'_, FxHashMap<Uid, Use>> {
        // Counting does not panic.
        self.by_user.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn give_back(&self, uid: Uid, connections: usize, bytes: u64) {
        let mut by_user = self.by_user();
        if let Some(has) = by_user.get_mut(&uid) {
            has.connections = has.connections.saturating_sub(connections);
            has.bytes = has.bytes.saturating_sub(bytes);
            if *has == Use::default() {
                by_user.remove(&uid);
            }
        }
    }
}

fn over(what: String) -> Failure {
    Refused::OverLimit(what).into()
}

/// A user's connection, until it goes.
#[derive(Debug)]
pub(super) struct ConnectionSlot {
    uid: Uid,
    user_limits: Arc<UserLimits>,
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.user_limits.give_back(self.uid, 1, 0);
    }
}

/// The bytes of a request that are here, until it is answered.
#[derive(Debug)]
pub(super) struct BytesInFlight {
    uid: Uid,
    bytes: u64,
    user_limits: Arc<UserLimits>,
}

impl BytesInFlight {
    /// More of it has come.
    pub(super) fn more(&mut self, bytes: usize) -> Result<(), Failure> {
        let most = self.user_limits.bounds().in_flight;
        let mut by_user = self.user_limits.by_user();
        let has = by_user.entry(self.uid).or_default();
        let bytes = bytes as u64;
        if has.bytes + bytes > most.0 {
            return Err(over(format!(
                "your requests that are not answered yet have {most} together, the most that a user may have \
                 (--max-user-in-flight): send fewer at once"
            )));
        }
        has.bytes += bytes;
        self.bytes += bytes;
        Ok(())
    }
}

impl Drop for BytesInFlight {
    fn drop(&mut self) {
        self.user_limits.give_back(self.uid, 0, self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use coloc_model::Bytes;

    fn user_limits() -> Arc<UserLimits> {
        UserLimits::new(Bounds { connections: 2, in_flight: Bytes(100), ..Bounds::default() })
    }

    fn user(uid: u32) -> Caller {
        Caller { uid: Uid(uid), admin: uid == 0 }
    }

    #[test]
    fn one_user_cannot_take_every_place() {
        let user_limits = user_limits();
        let first = user_limits.connect(user(1)).expect("a place");
        let _second = user_limits.connect(user(1)).expect("a place");
        let refused = user_limits.connect(user(1)).expect_err("no place");
        assert!(refused.to_string().contains("2 connections"), "{refused}");
        assert!(user_limits.connect(user(2)).is_ok(), "another user");
        drop(first);
        let all: Vec<_> = (0..9).map_while(|_| user_limits.connect(user(0)).ok()).collect();
        assert_eq!(all.len(), 9, "an administrator may");
        assert!(user_limits.connect(user(1)).is_ok(), "there is room again");
    }

    #[test]
    fn bytes_in_flight_are_given_back() {
        let user_limits = user_limits();
        let (mut one, mut two) = (user_limits.receive(Uid(1)), user_limits.receive(Uid(1)));
        one.more(60).expect("room");
        two.more(40).expect("room");
        assert!(two.more(1).is_err());
        assert!(user_limits.receive(Uid(2)).more(100).is_ok(), "another user");
        drop(one);
        two.more(60).expect("room again");
        drop(two);
        assert!(user_limits.by_user().is_empty(), "nothing is remembered of who is gone");
    }
}
