//! Tokens: what a client shows that comes over the network, where no kernel says which user calls.
//!
//! A token is 256 random bits, so it cannot be guessed, and its SHA-256 alone is kept. A slow hash would add nothing:
//! it is meant for passwords, which people choose and others can try.

use crate::record::Uid;
use coloc_api::fingerprint::Fingerprint;
use coloc_api::moment::Moment;
use coloc_api::view::{Scope, TokenView};
use ring::rand::SecureRandom as _;
use serde::{Deserialize, Serialize};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

/// Every token begins like this, so that programs that look for secrets in files know one.
const PREFIX: &str = "coloc";
/// The most tokens that one user may have at a time.
const MOST: usize = 100;
/// The most that are kept of one user, with those that have ended.
const MOST_KEPT: usize = 2 * MOST;
/// That a token was used is written down this often at most.
const USED_EVERY_MS: u64 = 60_000;
/// Tokens that ended this long ago are forgotten.
const FORGOTTEN_AFTER_MS: u64 = 30 * 86_400_000;
/// The form of the file.
const VERSION: u32 = 1;

/// A token that is of no use, or could not be made.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// It does not look like one, there is none such, or its secret is wrong: a client must not learn which.
    #[error("the token is not valid here: `coloc token create` on the daemon's machine makes one")]
    Unknown,
    /// It was good once.
    #[error("the token has expired: `coloc token create` on the daemon's machine makes a new one")]
    Expired,
    /// A user does not want it any more.
    #[error("the token was revoked")]
    Revoked,
    /// There is none of that number.
    #[error("there is no token {0}, or it is another user's")]
    NoToken(u32),
    /// Enough is enough.
    #[error("a user has at most {MOST} tokens: revoke some first")]
    TooMany,
    /// The system has no random numbers.
    #[error("the system gives no random numbers")]
    NoRandomness,
    /// The file cannot be used.
    #[error("{}: {source}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// What a token says of the client that shows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bearer {
    /// The user.
    pub uid: Uid,
    /// What it may be used for.
    pub scope: Scope,
}

/// What is kept of a token.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Token {
    id: u32,
    uid: Uid,
    label: String,
    created: Moment,
    expires: Option<Moment>,
    revoked: Option<Moment>,
    used: Option<Moment>,
    hash: Fingerprint,
    /// What it may be used for; those of earlier versions, for everything.
    #[serde(default)]
    scope: Scope,
}

impl Token {
    fn ended(&self, now: Moment) -> Option<Moment> {
        let expired = self.expires.filter(|expires| *expires <= now);
        self.revoked.into_iter().chain(expired).min()
    }
}

impl Token {
    fn view(&self) -> TokenView {
        TokenView {
            id: self.id,
            user: crate::users::name(self.uid),
            label: self.label.clone(),
            created_s: self.created.secs(),
            expires_s: self.expires.map(Moment::secs),
            last_used_s: self.used.map(Moment::secs),
            revoked_s: self.revoked.map(Moment::secs),
            scope: self.scope,
        }
    }
}

#[derive(Default, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    version: u32,
    last: u32,
    tokens: Vec<Token>,
}

impl Kept {
    /// Takes away the oldest tokens of a user that have ended, so that there is room for one more.
    fn forget_surplus(&mut self, uid: Uid, now: Moment) -> Vec<Token> {
        let theirs = self.tokens.iter().filter(|token| token.uid == uid).count();
        let mut surplus = (theirs + 1).saturating_sub(MOST_KEPT);
        let goes = |token: &mut Token| {
            let goes = surplus > 0 && token.uid == uid && token.ended(now).is_some();
            surplus -= usize::from(goes);
            goes
        };
        self.tokens.extract_if(.., goes).collect()
    }
}

/// The tokens of all users, in a file that only the daemon can read.
#[derive(Debug)]
pub struct Tokens {
    file: PathBuf,
    kept: Mutex<Kept>,
}

impl Tokens {
    /// Reads the file, if there is one. One that makes no sense is left alone.
    pub fn open(file: &Path) -> Result<Self, TokenError> {
        let fail = |source| TokenError::File { file: file.to_owned(), source };
        let kept = match std::fs::read(file) {
            Ok(text) => serde_json::from_slice::<Kept>(&text).map_err(|e| fail(e.into()))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Kept::default(),
            Err(error) => return Err(fail(error)),
        };
        if kept.version > VERSION {
            return Err(fail(io::Error::other("it was written by a later version of coloc")));
        }
        Ok(Tokens { file: file.to_owned(), kept: Mutex::new(kept) })
    }

    /// Makes a token. It is shown this once.
    pub fn create(
        &self,
        now: Moment,
        uid: Uid,
        label: String,
        expires: Option<Moment>,
        scope: Scope,
    ) -> Result<(String, TokenView), TokenError> {
        let mut secret = [0; 32];
        let random = ring::rand::SystemRandom::new();
        random.fill(&mut secret).map_err(|_| TokenError::NoRandomness)?;
        let mut kept = self.kept();
        let alive = |token: &&Token| token.uid == uid && token.ended(now).is_none();
        if kept.tokens.iter().filter(alive).count() >= MOST {
            return Err(TokenError::TooMany);
        }
        let id = kept.last + 1;
        let secret: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
        let text = format!("{PREFIX}_{id}_{secret}");
        let hash = Fingerprint::of(text.as_bytes());
        let (revoked, used) = (None, None);
        let token = Token { id, uid, label, created: now, expires, revoked, used, hash, scope };
        let view = token.view();
        kept.last = id;
        let forgotten = kept.forget_surplus(uid, now);
        kept.tokens.push(token);
        let written = self.write(&mut kept);
        if written.is_err() {
            // What is not on the disk was never given out.
            kept.tokens.retain(|token| token.id != id);
            kept.tokens.extend(forgotten);
            kept.tokens.sort_unstable_by_key(|token| token.id);
        }
        written.map(|()| (text, view))
    }

    /// Revokes the oldest tokens of a user with this label, so that there are fewer than so many.
    pub(crate) fn make_room(
        &self,
        now: Moment,
        uid: Uid,
        label: &str,
        most: usize,
    ) -> Result<(), TokenError> {
        let alive = |token: &&mut Token| {
            token.uid == uid && token.label == label && token.ended(now).is_none()
        };
        let mut kept = self.kept();
        let surplus = (kept.tokens.iter_mut().filter(alive).count() + 1).saturating_sub(most);
        if surplus == 0 {
            return Ok(());
        }
        for token in kept.tokens.iter_mut().filter(alive).take(surplus) {
            token.revoked = Some(now);
        }
        self.write(&mut kept)
    }

    /// Whose token this is and what it may be used for; and whether that it was used should be written down.
    pub fn admit(&self, now: Moment, text: &str) -> Result<(Bearer, bool), TokenError> {
        let mut parts = text.split('_');
        let (prefix, id) = (parts.next(), parts.next().and_then(|id| id.parse::<u32>().ok()));
        let Some(id) = id.filter(|_| prefix == Some(PREFIX)) else {
            return Err(TokenError::Unknown);
        };
        let mut kept = self.kept();
        let token = kept.tokens.iter_mut().find(|token| token.id == id);
        let token = token.filter(|token| token.hash == Fingerprint::of(text.as_bytes()));
        let token = token.ok_or(TokenError::Unknown)?;
        // A client that knows the secret may know what became of it.
        if token.revoked.is_some() {
            return Err(TokenError::Revoked);
        }
        if token.ended(now).is_some() {
            return Err(TokenError::Expired);
        }
        let stale = token.used.is_none_or(|used| now.0.saturating_sub(used.0) >= USED_EVERY_MS);
        if stale {
            token.used = Some(now);
        }
        Ok((Bearer { uid: token.uid, scope: token.scope }, stale))
    }

    /// Tokens of a user, or of all users; what has ended stays for a while.
    pub fn list(&self, of: Option<Uid>) -> Vec<TokenView> {
        let kept = self.kept();
        let wanted = kept.tokens.iter().filter(|token| of.is_none_or(|uid| token.uid == uid));
        wanted.map(Token::view).collect()
    }

    /// Makes a token useless; only that user's, if one is named.
    pub fn revoke(&self, now: Moment, id: u32, of: Option<Uid>) -> Result<TokenView, TokenError> {
        let mut kept = self.kept();
        let theirs = |token: &&mut Token| of.is_none_or(|uid| token.uid == uid) && token.id == id;
        let token = kept.tokens.iter_mut().find(theirs).ok_or(TokenError::NoToken(id))?;
        token.revoked.get_or_insert(now);
        let view = token.view();
        // It is of no use from now on, whatever the disk says; the caller hears of both.
        self.write(&mut kept)?;
        Ok(view)
    }

    /// Writes down who was here.
    pub fn save(&self) -> Result<(), TokenError> {
        self.write(&mut self.kept())
    }

    /// Forgets tokens that ended long ago, by a clock that does not jump.
    pub(crate) fn forget_old(&self, now: Moment) -> Result<(), TokenError> {
        let mut kept = self.kept();
        let before = kept.tokens.len();
        kept.tokens.retain(|token| {
            let ended = token.ended(now);
            ended.is_none_or(|ended| now.0.saturating_sub(ended.0) <= FORGOTTEN_AFTER_MS)
        });
        if kept.tokens.len() == before { Ok(()) } else { self.write(&mut kept) }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // No thread leaves it half changed: one that panicked did so before or after.
        self.kept.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn write(&self, kept: &mut Kept) -> Result<(), TokenError> {
        kept.version = VERSION;
        let fail = |source| TokenError::File { file: self.file.clone(), source };
        let text = serde_json::to_vec_pretty(kept).map_err(|error| fail(error.into()))?;
        write_private(&self.file, &text).map_err(fail)
    }
}

/// Replaces a file by one that only its owner can read, in one step. It is on the disk when this returns, and so is its
/// name: a token that was revoked is not good again after a crash.
pub(crate) fn write_private(file: &Path, text: &[u8]) -> io::Result<()> {
    let new = file.with_extension("new");
    let _ = std::fs::remove_file(&new);
    let mut there = std::fs::File::options().create_new(true).write(true).mode(0o600).open(&new)?;
    there.write_all(text)?;
    there.sync_all()?;
    std::fs::rename(&new, file)?;
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    std::fs::File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ME: Uid = Uid(1000);
    const ACTS: Bearer = Bearer { uid: ME, scope: Scope::Act };
    const DAY: u64 = 86_400_000;

    fn tokens() -> (tempfile::TempDir, Tokens) {
        let place = tempfile::tempdir().unwrap();
        let tokens = Tokens::open(&place.path().join("tokens.json")).unwrap();
        (place, tokens)
    }

    #[test]
    fn a_token_works_until_it_does_not() {
        let (place, tokens) = tokens();
        let (now, later) = (Moment(5 * DAY), Moment(9 * DAY));
        let (text, view) =
            tokens.create(now, ME, "ci".to_owned(), Some(Moment(8 * DAY)), Scope::Act).unwrap();
        assert_eq!(tokens.admit(now, &text).unwrap(), (ACTS, true));
        assert_eq!(tokens.admit(now, &text).unwrap(), (ACTS, false), "written down once a minute");
        assert!(matches!(tokens.admit(later, &text), Err(TokenError::Expired)));
        let file = std::fs::read_to_string(place.path().join("tokens.json")).unwrap();
        assert!(!file.contains(text.rsplit('_').next().unwrap()), "the secret is not kept");
        // Another daemon on the same state knows it too.
        let again = Tokens::open(&place.path().join("tokens.json")).unwrap();
        assert_eq!(again.admit(now, &text).unwrap().0, ACTS);
        assert!(matches!(tokens.revoke(now, view.id, Some(Uid(7))), Err(TokenError::NoToken(1))));
        tokens.revoke(now, view.id, Some(ME)).unwrap();
        assert!(matches!(tokens.admit(now, &text), Err(TokenError::Revoked)));
        assert_eq!(tokens.list(Some(Uid(7))), []);
        assert_eq!(tokens.list(None).len(), 1);
        tokens.save().unwrap();
        tokens.forget_old(Moment(20 * DAY)).unwrap();
        assert_eq!(tokens.list(None).len(), 1, "a while longer");
        tokens.forget_old(Moment(60 * DAY)).unwrap();
        assert_eq!(tokens.list(None), [], "forgotten after a month");
        let again = Tokens::open(&place.path().join("tokens.json")).unwrap();
        assert_eq!(again.list(None), []);
    }

    #[test]
    fn nothing_else_is_a_token() {
        let (_place, tokens) = tokens();
        let (text, _) = tokens.create(Moment(0), ME, String::new(), None, Scope::Act).unwrap();
        let mut wrong = text.clone();
        wrong.replace_range(text.len() - 1.., if text.ends_with('0') { "1" } else { "0" });
        let truncated = text[..text.len() - 1].to_owned();
        let shouted = text.to_uppercase();
        for text in
            ["", "_", "coloc", "coloc_1", "coloc_1_", "coloc_4294967296_ab", "coloc_-1_", "ß_1_é"]
                .into_iter()
                .chain([
                    wrong.as_str(),
                    &truncated,
                    &shouted,
                    &format!("{text} "),
                    &format!(" {text}"),
                ])
        {
            assert!(matches!(tokens.admit(Moment(0), text), Err(TokenError::Unknown)), "{text:?}");
        }
    }

    #[test]
    fn there_is_an_end_to_tokens_and_a_wrong_file_is_kept() {
        let (place, tokens) = tokens();
        for _ in 0..MOST {
            tokens.create(Moment(0), ME, String::new(), None, Scope::Act).unwrap();
        }
        let more = tokens.create(Moment(0), ME, String::new(), None, Scope::Act);
        assert!(matches!(more, Err(TokenError::TooMany)));
        tokens.revoke(Moment(0), 1, None).unwrap();
        tokens.create(Moment(0), ME, String::new(), None, Scope::Act).unwrap();
        for id in (0..MOST as u32 + 5).map(|n| n + 102) {
            tokens.revoke(Moment(0), id - 1, None).unwrap();
            let (_, made) = tokens.create(Moment(0), ME, String::new(), None, Scope::Act).unwrap();
            assert_eq!(made.id, id);
        }
        assert_eq!(tokens.list(Some(ME)).len(), MOST_KEPT, "what ended long ago is forgotten");
        let file = place.path().join("tokens.json");
        for wrong in ["", "{}", "[]", "{\"version\":2,\"last\":0,\"tokens\":[]}", "\u{0}"] {
            std::fs::write(&file, wrong).unwrap();
            assert!(matches!(Tokens::open(&file), Err(TokenError::File { .. })), "{wrong:?}");
            assert_eq!(std::fs::read_to_string(&file).unwrap(), wrong);
        }
    }
}
