//! Users and kinds of tasks, which the scheduler knows by numbers.

use crate::record::Uid;
use coloc_model::{SignatureId, UserId};
use rustc_hash::FxHashMap;

/// Users and kinds of tasks as the scheduler numbers them.
#[derive(Default)]
pub struct Names {
    users: Vec<u32>,
    signatures: FxHashMap<String, u32>,
}

impl Names {
    /// The number of a user, and whether it is new.
    pub(super) fn user(&mut self, uid: u32) -> (UserId, bool) {
        let known = self.users.iter().position(|&known| known == uid);
        let index = known.unwrap_or_else(|| {
            self.users.push(uid);
            self.users.len() - 1
        });
        (UserId::from(index), known.is_none())
    }

    /// Every user who was seen.
    pub(super) fn known(&self) -> impl Iterator<Item = (UserId, Uid)> + '_ {
        self.users.iter().enumerate().map(|(index, &uid)| (UserId::from(index), Uid(uid)))
    }

    pub(super) fn number(&mut self, signature: String) -> SignatureId {
        let next = self.signatures.len() as u32;
        SignatureId(*self.signatures.entry(signature).or_insert(next))
    }

    /// A number that no kind of task has.
    pub(super) fn next(&self) -> SignatureId {
        SignatureId(self.signatures.len() as u32)
    }
}
