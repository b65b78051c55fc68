//! SHA-256 of something, as people compare it and as it is kept.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use subtle::ConstantTimeEq as _;

/// A SHA-256.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// Of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        let digest = ring::digest::digest(&ring::digest::SHA256, bytes);
        let mut hash = [0; 32];
        hash.copy_from_slice(digest.as_ref());
        Fingerprint(hash)
    }
}

/// How long a comparison takes says nothing of where two differ.
impl PartialEq for Fingerprint {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for Fingerprint {}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha256:")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for Fingerprint {
    type Err = String;

    /// With or without `sha256:`, and with colons between bytes as openssl writes it.
    fn from_str(text: &str) -> Result<Self, String> {
        let fail = || format!("{text:?} is no fingerprint; expected sha256: and 64 hex digits");
        let digits = text.trim().trim_start_matches("sha256:").replace(':', "");
        let digits = crate::text::decode(&digits).ok_or_else(fail)?;
        digits.try_into().map(Fingerprint).map_err(|_| fail())
    }
}

impl TryFrom<String> for Fingerprint {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Fingerprint> for String {
    fn from(fingerprint: Fingerprint) -> String {
        fingerprint.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_can_be_read() {
        let one = Fingerprint::of(b"abc");
        let known = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(one.to_string(), known);
        assert_eq!(known.parse(), Ok(one));
        let spaced: String = known.as_bytes()[7..].chunks(2).fold(String::new(), |text, pair| {
            let pair = String::from_utf8_lossy(pair).to_uppercase();
            if text.is_empty() { pair } else { format!("{text}:{pair}") }
        });
        assert_eq!(spaced.parse(), Ok(one));
        for wrong in ["", "sha256:", "sha256:ab", "zz", &format!("{known}00"), "ß"] {
            assert!(wrong.parse::<Fingerprint>().is_err(), "{wrong}");
        }
        assert_ne!(Fingerprint::of(b"abd"), one);
    }
}
