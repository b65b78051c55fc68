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

    /// Its day, such as 2026-02-01, by UTC.
    pub fn utc_day(self) -> String {
        // Days since 1970 as a date of the Gregorian calendar, by eras of 400 years.
        let days = (self.0 / DAY_MS) as i64 + 719_468;
        let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
        let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year + year / 4 - year / 100);
        let month = (5 * of_year + 2) / 153;
        let date = of_year - (153 * month + 2) / 5 + 1;
        let month = if month < 10 { month + 3 } else { month - 9 };
        let year = year + era * 400 + i64::from(month <= 2);
        format!("{year:04}-{month:02}-{date:02}")
    }

    /// Its day and time, such as 2026-02-01 08:30:00 UTC.
    pub fn utc(self) -> String {
        let second = self.0 % DAY_MS / 1000;
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        format!("{} {hour:02}:{minute:02}:{second:02} UTC", self.utc_day())
    }
}

/// Milliseconds of a day.
const DAY_MS: u64 = 86_400_000;

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

#[cfg(test)]
mod tests {
    use super::Moment;

    #[test]
    fn days_have_dates() {
        let all = [(0, "1970-01-01"), (951_782_400, "2000-02-29"), (1_795_002_526, "2026-11-18")];
        for (at, date) in all {
            assert_eq!(Moment(at * 1000).utc_day(), date);
        }
        assert_eq!(Moment(1_795_002_526_000).utc(), "2026-11-18 11:48:46 UTC");
    }
}
