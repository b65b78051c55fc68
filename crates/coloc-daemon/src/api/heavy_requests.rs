//! Heavy requests: their answers take long, or much memory. Few are dealt with at once, and one of each user's. A user
//! who sends many waits for their own, and keeps no other user waiting.

use super::answer::Failure;
use crate::record::Uid;
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Users that are remembered, before users without a heavy request are forgotten.
const REMEMBERED: usize = 64;

/// Heavy requests of all users.
#[derive(Debug)]
pub struct HeavyRequests {
    all: Arc<Semaphore>,
    by_user: Mutex<FxHashMap<Uid, Arc<Semaphore>>>,
}

/// A heavy request, until it is over.
#[derive(Debug)]
pub(super) struct HeavyRequest {
    _theirs: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
}

impl Drop for HeavyRequest {
    fn drop(&mut self) {
        crate::heap::burst_is_over();
    }
}

impl HeavyRequests {
    /// So many at once.
    pub fn new(at_once: usize) -> Arc<Self> {
        let all = Arc::new(Semaphore::new(at_once));
        Arc::new(HeavyRequests { all, by_user: Mutex::default() })
    }

    /// Waits until a user may have one more.
    pub(super) async fn take(&self, uid: Uid) -> Result<HeavyRequest, Failure> {
        let theirs = self.of(uid).acquire_owned().await.map_err(|_| Failure::Stopping)?;
        let of_all = self.all.clone().acquire_owned().await.map_err(|_| Failure::Stopping)?;
        Ok(HeavyRequest { _theirs: theirs, _of_all: of_all })
    }

    fn of(&self, uid: Uid) -> Arc<Semaphore> {
        let mut by_user = self.by_user.lock().unwrap_or_else(PoisonError::into_inner);
        if by_user.len() > REMEMBERED {
            by_user.retain(|_, permits| Arc::strong_count(permits) > 1);
        }
        by_user.entry(uid).or_insert_with(|| Arc::new(Semaphore::new(1))).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_for_many_keeps_nobody_waiting() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let heavy_requests = HeavyRequests::new(2);
            let first = heavy_requests.take(Uid(1)).await.unwrap();
            let crowd: Vec<_> = (0..50)
                .map(|_| {
                    let heavy_requests = heavy_requests.clone();
                    tokio::spawn(async move { heavy_requests.take(Uid(1)).await.map(drop) })
                })
                .collect();
            tokio::task::yield_now().await;
            let other = heavy_requests.take(Uid(2)).await.unwrap();
            assert!(crowd.iter().all(|one| !one.is_finished()));
            drop((first, other));
            for one in crowd {
                one.await.unwrap().unwrap();
            }
            (100..300).for_each(|uid| drop(heavy_requests.of(Uid(uid))));
            assert!(heavy_requests.by_user.lock().unwrap().len() <= REMEMBERED + 1);
        });
    }
}
