//! One-time codes: what `coloc web` gets over the socket, where the kernel says which user asks, and a page changes for a token.

use crate::record::Uid;
use crate::tokens::TokenError;
use coloc_api::fingerprint::Fingerprint;
use coloc_api::view::Scope;
use ring::rand::SecureRandom as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a code is of use.
pub(crate) const LASTS: Duration = Duration::from_secs(60);
/// Codes of one user at a time; the oldest makes room.
const OF_ONE_USER: usize = 8;
/// Codes of all users.
const MOST: usize = 1024;

/// A code that was given out.
#[derive(Clone, Copy, Debug)]
struct Given {
    hash: Fingerprint,
    uid: Uid,
    scope: Scope,
    until: Instant,
}

/// Codes that were given out and not used yet. They are in memory only.
#[derive(Default, Debug)]
pub struct Codes(Mutex<Vec<Given>>);

impl Codes {
    fn given(&self) -> MutexGuard<'_, Vec<Given>> {
        // No thread leaves it half changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A code for a user: 128 random bits.
    pub(crate) fn make(&self, now: Instant, uid: Uid, scope: Scope) -> Result<String, TokenError> {
        let mut secret = [0; 16];
        let random = ring::rand::SystemRandom::new();
        random.fill(&mut secret).map_err(|_| TokenError::NoRandomness)?;
        let code: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
        let hash = Fingerprint::of(code.as_bytes());
        let mut given = self.given();
        given.retain(|given| given.until > now);
        while given.iter().filter(|given| given.uid == uid).count() >= OF_ONE_USER {
            let Some(oldest) = given.iter().position(|given| given.uid == uid) else { break };
            given.remove(oldest);
        }
        if given.len() >= MOST {
            return Err(TokenError::TooMany);
        }
        given.push(Given { hash, uid, scope, until: now + LASTS });
        Ok(code)
    }

    /// Whose code this is and what for; it is of no use afterwards.
    pub(crate) fn take(&self, now: Instant, code: &str) -> Option<(Uid, Scope)> {
        let hash = Fingerprint::of(code.as_bytes());
        let mut given = self.given();
        given.retain(|given| given.until > now);
        let found = given.iter().position(|given| given.hash == hash)?;
        let Given { uid, scope, .. } = given.remove(found);
        Some((uid, scope))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_works_once_and_not_after_a_minute() {
        let (codes, now, me) = (Codes::default(), Instant::now(), Uid(7));
        let code = codes.make(now, me, Scope::Read).unwrap();
        assert_eq!(code.len(), 32);
        assert_eq!(codes.take(now, "no such code"), None);
        assert_eq!(codes.take(now, &code), Some((me, Scope::Read)));
        assert_eq!(codes.take(now, &code), None, "once");
        let code = codes.make(now, me, Scope::Act).unwrap();
        assert_eq!(codes.take(now + LASTS, &code), None, "not after a minute");
    }

    #[test]
    fn one_user_has_few_codes_and_takes_none_from_others() {
        let (codes, now) = (Codes::default(), Instant::now());
        let theirs = codes.make(now, Uid(1), Scope::Read).unwrap();
        let mine: Vec<String> =
            (0..20).map(|_| codes.make(now, Uid(2), Scope::Read).unwrap()).collect();
        assert_eq!(codes.take(now, &mine[0]), None, "the oldest made room");
        assert!(codes.take(now, &mine[19]).is_some() && codes.take(now, &theirs).is_some());
    }
}
