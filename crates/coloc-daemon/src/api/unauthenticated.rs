//! Connections over the network on which no token was shown yet. They cost little, and there are few of them. The
//! newest is let in: the oldest makes room, first of the address that has the most. So a client with a token gets to
//! show it, however many others say nothing, from the same address or from others.

use super::answer::Failure;
use super::user_limits::{ConnectionSlot, UserLimits};
use crate::owner::Caller;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// The most unauthenticated connections of one address.
pub(super) const OF_ONE_ADDRESS: usize = 32;

/// All unauthenticated connections.
#[derive(Debug)]
pub(super) struct Unauthenticated {
    most: usize,
    /// Places of connections on which a token was shown.
    known: Arc<Semaphore>,
    all: Mutex<All>,
}

#[derive(Default, Debug)]
struct All {
    next: u64,
    count: usize,
    /// The oldest first.
    by_address: FxHashMap<IpAddr, VecDeque<(u64, Arc<Notify>)>>,
}

impl All {
    fn remove(&mut self, address: IpAddr, number: u64) {
        let Some(here) = self.by_address.get_mut(&address) else { return };
        let before = here.len();
        here.retain(|(other, _)| *other != number);
        self.count -= before - here.len();
        if here.is_empty() {
            self.by_address.remove(&address);
        }
    }

    /// Sends the oldest of an address away.
    fn send_away(&mut self, address: IpAddr) {
        let oldest = self.by_address.get(&address).and_then(|here| here.front()).cloned();
        if let Some((number, leave)) = oldest {
            leave.notify_one();
            self.remove(address, number);
        }
    }
}

impl Unauthenticated {
    /// Room for so many unauthenticated connections, and for so many on which a token was shown.
    pub(super) fn new(most: usize, known: usize) -> Arc<Self> {
        let known = Arc::new(Semaphore::new(known.max(1)));
        Arc::new(Unauthenticated { most: most.max(1), known, all: Mutex::default() })
    }

    /// A client connects.
    pub(super) fn admit(self: &Arc<Self>, address: IpAddr) -> Arc<UnauthenticatedConnection> {
        let address = network_of(address);
        let mut all = self.all();
        if all.by_address.get(&address).is_some_and(|here| here.len() >= OF_ONE_ADDRESS) {
            all.send_away(address);
        } else if all.count >= self.most {
            let crowd = all.by_address.iter().max_by_key(|(_, here)| here.len());
            if let Some(crowd) = crowd.map(|(address, _)| *address) {
                all.send_away(crowd);
            }
        }
        let number = all.next;
        all.next += 1;
        all.count += 1;
        let leave = Arc::new(Notify::new());
        all.by_address.entry(address).or_default().push_back((number, leave.clone()));
        drop(all);
        Arc::new(UnauthenticatedConnection {
            number,
            address,
            leave,
            place: OnceLock::new(),
            unauthenticated: self.clone(),
        })
    }

    fn all(&self) -> MutexGuard<'_, All> {
        // Counting does not panic.
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Addresses of IPv6 are given out by the network.
fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6((address.to_bits() >> 64 << 64).into()),
        address => address,
    }
}

/// A connection over the network.
#[derive(Debug)]
pub(super) struct UnauthenticatedConnection {
    number: u64,
    address: IpAddr,
    leave: Arc<Notify>,
    /// Once a token was shown, its user's place.
    place: OnceLock<(ConnectionSlot, OwnedSemaphorePermit)>,
    unauthenticated: Arc<Unauthenticated>,
}

impl UnauthenticatedConnection {
    /// Waits until it has to make room.
    pub(super) async fn sent_away(&self) {
        self.leave.notified().await;
    }

    /// A token was shown: it makes room for no other connection any more, and counts for the user. Later tokens on the
    /// same connection speak for others, but the place stays the first user's.
    pub(super) fn is_known(
        &self,
        caller: Caller,
        user_limits: &Arc<UserLimits>,
    ) -> Result<(), Failure> {
        if self.place.get().is_none() {
            let place = user_limits.connect(caller)?;
            let room = self.unauthenticated.known.clone();
            let room = room.try_acquire_owned().map_err(|_| Failure::Busy)?;
            self.unauthenticated.all().remove(self.address, self.number);
            let _ = self.place.set((place, room));
        }
        Ok(())
    }
}

impl Drop for UnauthenticatedConnection {
    fn drop(&mut self) {
        self.unauthenticated.all().remove(self.address, self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounds::Bounds;
    use crate::record::Uid;
    use std::task::{Context, Poll, Waker};

    fn is_sent_away(newcomer: &UnauthenticatedConnection) -> bool {
        let mut leaves = Box::pin(newcomer.sent_away());
        leaves.as_mut().poll(&mut Context::from_waker(Waker::noop())) == Poll::Ready(())
    }

    fn address(last: u8) -> IpAddr {
        [127, 0, 0, last].into()
    }

    #[test]
    fn the_oldest_of_the_crowd_makes_room() {
        let unauthenticated = Unauthenticated::new(40, 9);
        let one: Vec<_> = (0..30).map(|_| unauthenticated.admit(address(1))).collect();
        let two: Vec<_> = (0..10).map(|_| unauthenticated.admit(address(2))).collect();
        let _third = unauthenticated.admit(address(3));
        let gone: Vec<bool> = one.iter().map(|newcomer| is_sent_away(newcomer)).collect();
        assert!(gone[0] && !gone[1..].contains(&true), "{gone:?}");
        assert!(!two.iter().any(|newcomer| is_sent_away(newcomer)));
        drop(one);
        let many: Vec<_> =
            (0..OF_ONE_ADDRESS + 3).map(|_| unauthenticated.admit(address(2))).collect();
        assert!(two.iter().all(|newcomer| is_sent_away(newcomer)), "too many of one address");
        drop((many, two));
        assert_eq!(unauthenticated.all().count, 1);
    }

    #[test]
    fn who_has_shown_a_token_stays() {
        let unauthenticated = Unauthenticated::new(2, 9);
        let user_limits = UserLimits::new(Bounds { connections: 1, ..Bounds::default() });
        let user = Caller { uid: Uid(7), admin: false };
        let known = unauthenticated.admit(address(1));
        known.is_known(user, &user_limits).expect("a place");
        known.is_known(user, &user_limits).expect("the same place");
        let crowd: Vec<_> = (0..9).map(|_| unauthenticated.admit(address(1))).collect();
        assert!(!is_sent_away(&known));
        assert!(crowd[8].is_known(user, &user_limits).is_err(), "one connection a user");
        drop(known);
        crowd[8].is_known(user, &user_limits).expect("there is room again");
    }

    #[test]
    fn a_network_is_one_address() {
        let parse = |text: &str| network_of(text.parse().expect("an address"));
        assert_eq!(parse("2001:db8::1"), parse("2001:db8::ffff:1"));
        assert_ne!(parse("2001:db8::1"), parse("2001:db8:0:1::1"));
        assert_eq!(parse("::ffff:10.0.0.1"), parse("10.0.0.1"));
        assert_ne!(parse("10.0.0.1"), parse("10.0.0.2"));
    }
}
