//! The keys that leave a terminal without ending what runs there.

use std::str::FromStr;
use std::time::{Duration, Instant};

/// Keys that may be the beginning of those that detach are held back for so long.
const PATIENCE: Duration = Duration::from_millis(500);
/// The most keys.
const MOST: usize = 8;

/// Keys that detach, one after the other; none where nothing does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct DetachKeys(Vec<u8>);

impl FromStr for DetachKeys {
    type Err = String;

    /// `ctrl-p,ctrl-q`, `ctrl-a,d`, `none`.
    fn from_str(text: &str) -> Result<Self, String> {
        if text == "none" {
            return Ok(DetachKeys(Vec::new()));
        }
        let key = |name: &str| match (name.strip_prefix("ctrl-"), name.as_bytes()) {
            (Some(letter), _) => match letter.as_bytes() {
                &[letter @ (b'@'..=b'_' | b'a'..=b'z')] => Some(letter & 0x1f),
                _ => None,
            },
            (None, &[letter @ b'!'..=b'~']) => Some(letter),
            _ => None,
        };
        let keys = text.split(',').map(|name| key(name.trim())).collect::<Option<Vec<u8>>>();
        keys.filter(|keys| keys.len() <= MOST).map(DetachKeys).ok_or_else(|| {
            format!("{text:?} are no keys; expected such as ctrl-p,ctrl-q or ctrl-a,d, at most {MOST}, or none")
        })
    }
}

/// Looks for the keys in what is typed.
#[derive(Debug)]
pub(crate) struct Scanner {
    keys: Vec<u8>,
    /// How many of them were typed, and when the last.
    held: usize,
    since: Instant,
}

impl Scanner {
    pub(crate) fn new(keys: &DetachKeys) -> Self {
        Scanner { keys: keys.0.clone(), held: 0, since: Instant::now() }
    }

    /// What of this is to be sent, and whether all keys were typed then.
    pub(crate) fn scan(&mut self, typed: &[u8], now: Instant) -> (Vec<u8>, bool) {
        let mut sent = self.release(now);
        for &byte in typed {
            if self.keys.get(self.held) == Some(&byte) {
                (self.held, self.since) = (self.held + 1, now);
                if self.held == self.keys.len() {
                    self.held = 0;
                    return (sent, true);
                }
                continue;
            }
            sent.extend_from_slice(&self.keys[..std::mem::take(&mut self.held)]);
            match self.keys.first() == Some(&byte) {
                true => (self.held, self.since) = (1, now),
                false => sent.push(byte),
            }
        }
        (sent, false)
    }

    /// What was held back for long enough.
    pub(crate) fn release(&mut self, now: Instant) -> Vec<u8> {
        match self.held > 0 && now >= self.since + PATIENCE {
            true => self.keys[..std::mem::take(&mut self.held)].to_vec(),
            false => Vec::new(),
        }
    }

    /// When something that is held back is to be sent.
    pub(crate) fn due(&self) -> Option<Instant> {
        (self.held > 0).then(|| self.since + PATIENCE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_named() {
        let keys = |text: &str| text.parse::<DetachKeys>().map(|keys| keys.0);
        assert_eq!(keys("ctrl-p,ctrl-q"), Ok(vec![0x10, 0x11]));
        assert_eq!(keys("ctrl-A, d"), Ok(vec![1, b'd']));
        assert_eq!(keys("ctrl-]"), Ok(vec![0x1d]));
        assert_eq!(keys("none"), Ok(Vec::new()));
        for wrong in ["", "ctrl-", "ctrl-pp", "escape", "ctrl-p,,q", "a,b,c,d,e,f,g,h,i", "é"] {
            assert!(keys(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_only_began_like_them_is_typed_after_all() {
        let now = Instant::now();
        let mut scanner = Scanner::new(&"ctrl-p,ctrl-q".parse().expect("keys"));
        assert_eq!(scanner.scan(b"ls\r", now), (b"ls\r".to_vec(), false));
        assert_eq!(scanner.scan(b"\x10", now), (Vec::new(), false));
        assert_eq!(scanner.scan(b"\x10", now), (b"\x10".to_vec(), false), "the second may begin");
        assert_eq!(scanner.scan(b"x", now), (b"\x10x".to_vec(), false));
        assert_eq!(scanner.scan(b"a\x10\x11b", now), (b"a".to_vec(), true));
        assert_eq!(scanner.scan(b"\x10", now), (Vec::new(), false));
        assert_eq!(scanner.release(now), b"");
        assert_eq!(scanner.release(now + PATIENCE), b"\x10", "a key is late, not lost");
        assert_eq!(scanner.due(), None);
        let mut none = Scanner::new(&"none".parse().expect("keys"));
        assert_eq!(none.scan(b"\x10\x11", now), (b"\x10\x11".to_vec(), false));
    }
}
