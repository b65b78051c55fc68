//! Moments of the world's clock.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A moment of the world's clock, in milliseconds since 1970.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug, JsonSchema, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Moment(pub u64);

impl Moment {
    /// Now.
    pub fn now() -> Self {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Moment(since.map_or(0, |since| since.as_millis() as u64))
    }

    /// Seconds since 1970.
    pub fn secs(self) -> f64 {
        self.0 as f64 / 1000.0
    }
}

/// Moments as clients see them: seconds since 1970, with a fraction.
pub(crate) mod seconds {
    use super::Moment;
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(at: &Moment, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_f64(at.secs())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Moment, D::Error> {
        f64::deserialize(from).map(|seconds| Moment((seconds * 1000.0).round() as u64))
    }
}
