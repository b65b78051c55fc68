//! Text that need not be UTF-8: arguments, paths, environments. On Linux they are bytes.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::sync::Arc;

/// A word as a shell reads it back: in quotes where it needs some.
pub fn shell_quoted(word: &[u8]) -> Vec<u8> {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"%+,-./:=@_^".contains(byte);
    // Letters of other alphabets are no special characters of any shell.
    if !word.is_empty() && word.iter().all(|byte| plain(byte) || *byte >= 0x80) {
        return word.to_vec();
    }
    let pieces: Vec<&[u8]> = word.split(|&byte| byte == b'\'').collect();
    [b"'", &*pieces.join(&b"'\\''"[..]), b"'"].concat()
}

/// Bytes that are almost always text. In JSON a string, or `{"hex": "…"}` where they are not UTF-8. A copy shares
/// them: ten thousand tasks of one shell have one environment.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct RawText(Arc<[u8]>);

impl RawText {
    /// As the operating system wants it.
    pub fn as_os_str(&self) -> &OsStr {
        OsStr::from_bytes(&self.0)
    }

    /// As a path.
    pub fn as_path(&self) -> &Path {
        Path::new(self.as_os_str())
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// There is another copy.
    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }

    /// For people: what is not UTF-8 is replaced.
    pub fn to_string_lossy(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.0)
    }
}

impl From<OsString> for RawText {
    fn from(text: OsString) -> Self {
        RawText(text.into_vec().into())
    }
}

impl From<Vec<u8>> for RawText {
    fn from(bytes: Vec<u8>) -> Self {
        RawText(bytes.into())
    }
}

impl From<&str> for RawText {
    fn from(text: &str) -> Self {
        RawText(text.as_bytes().into())
    }
}

impl From<String> for RawText {
    fn from(text: String) -> Self {
        RawText(text.into_bytes().into())
    }
}

impl fmt::Debug for RawText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_string_lossy(), f)
    }
}

/// Bytes that are not UTF-8.
#[derive(JsonSchema, Serialize)]
struct Hex {
    /// Two digits a byte.
    hex: String,
}

/// A text, or bytes that are not UTF-8.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its shape is of use")]
enum Form {
    Text(String),
    Hex(Hex),
}

impl JsonSchema for RawText {
    fn schema_name() -> Cow<'static, str> {
        "RawText".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Form::json_schema(generator)
    }
}

impl Serialize for RawText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(&self.0) {
            Ok(text) => serializer.serialize_str(text),
            Err(_) => {
                let hex = self.0.iter().map(|byte| format!("{byte:02x}")).collect();
                Hex { hex }.serialize(serializer)
            }
        }
    }
}

impl<'de> Deserialize<'de> for RawText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextOrHex)
    }
}

/// Reads a text, or an object with bytes. A list of fields is no object.
struct TextOrHex;

impl<'de> Visitor<'de> for TextOrHex {
    type Value = RawText;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, or {\"hex\": \"…\"} for bytes that are not UTF-8")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<RawText, E> {
        Ok(text.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<RawText, A::Error> {
        let Some((name, hex)) = fields.next_entry::<String, String>()? else {
            return Err(A::Error::missing_field("hex"));
        };
        if name != "hex" || fields.next_key::<String>()?.is_some() {
            return Err(A::Error::custom("expected hex alone"));
        }
        decode(&hex).map(RawText::from).ok_or_else(|| A::Error::custom("not pairs of hex digits"))
    }
}

/// Bytes from pairs of hex digits.
pub(crate) fn decode(hex: &str) -> Option<Vec<u8>> {
    let pair = |pair: &[u8]| {
        let digit = |digit: u8| char::from(digit).to_digit(16);
        Some((digit(pair[0])? * 16 + digit(pair[1])?) as u8)
    };
    let whole = hex.len().is_multiple_of(2);
    whole.then(|| hex.as_bytes().chunks_exact(2).map(pair).collect()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_as_shells_read_them() {
        let quoted = |word: &str| String::from_utf8(shell_quoted(word.as_bytes())).expect("text");
        for plain in ["train.py", "--lr=0.1", "/a/b:c", "größe"] {
            assert_eq!(quoted(plain), plain);
        }
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted(""), "''");
        assert_eq!(quoted("it's $HOME"), r"'it'\''s $HOME'");
    }
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_survive_json(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let text = RawText(bytes.into());
            let json = serde_json::to_string(&text).unwrap();
            prop_assert_eq!(serde_json::from_str::<RawText>(&json).unwrap(), text);
        }
    }

    #[test]
    fn odd_hex_is_refused() {
        for json in [
            r#"{"hex":"f"}"#,
            r#"{"hex":"zz"}"#,
            r#"{"hex":"ß"}"#,
            "7",
            r#"["ff"]"#,
            "{}",
            r#"{"hex":"ff","hex":"ff"}"#,
            r#"{"x":"ff"}"#,
        ] {
            assert!(serde_json::from_str::<RawText>(json).is_err(), "{json}");
        }
    }
}
