//! Quantities with their unit in the type.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub, SubAssign};
use std::str::FromStr;

const MIB: u64 = 1 << 20;

/// A quantity could not be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("cannot read {text:?} as {what}; expected {expected}")]
pub struct ParseUnitError {
    text: String,
    what: &'static str,
    expected: &'static str,
}

/// An amount of memory.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Bytes(pub u64);

impl Bytes {
    /// No memory.
    pub const ZERO: Bytes = Bytes(0);
    /// More memory than any device has.
    pub const MAX: Bytes = Bytes(u64::MAX);

    /// Whole mebibytes.
    pub const fn from_mib(mib: u64) -> Self {
        Bytes(mib * MIB)
    }

    /// Mebibytes with a fraction, rounded to the byte. Negative and NaN become zero.
    pub fn from_mib_f64(mib: f64) -> Self {
        Bytes((mib * MIB as f64).round() as u64)
    }

    /// The amount in mebibytes.
    pub fn mib(self) -> f64 {
        self.0 as f64 / MIB as f64
    }

    /// The amount in gibibytes.
    pub fn gib(self) -> f64 {
        self.mib() / 1024.0
    }

    /// What is left after taking `other`, never below zero.
    #[must_use]
    pub const fn saturating_sub(self, other: Bytes) -> Bytes {
        Bytes(self.0.saturating_sub(other.0))
    }

    /// The amount times a factor, rounded up to the byte.
    #[inline]
    #[must_use]
    pub fn scale(self, factor: f64) -> Bytes {
        let scaled = self.0 as f64 * factor;
        // Without a call to the mathematical library, which plain x86-64 needs for rounding.
        let whole = scaled as u64;
        Bytes(whole.saturating_add(u64::from((whole as f64) < scaled)))
    }
}

impl Add for Bytes {
    type Output = Bytes;
    fn add(self, other: Bytes) -> Bytes {
        Bytes(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Bytes) {
        *self = *self + other;
    }
}

impl Sub for Bytes {
    type Output = Bytes;
    /// Panics when `other` is larger: memory that was never booked cannot be returned.
    fn sub(self, other: Bytes) -> Bytes {
        Bytes(self.0.checked_sub(other.0).expect("more memory returned than was taken"))
    }
}

impl SubAssign for Bytes {
    fn sub_assign(&mut self, other: Bytes) {
        *self = *self - other;
    }
}

impl Sum for Bytes {
    fn sum<I: Iterator<Item = Bytes>>(iter: I) -> Bytes {
        iter.fold(Bytes::ZERO, Add::add)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = if self.0 >= 1024 * MIB {
            format!("{:.1} GiB", self.gib())
        } else {
            format!("{:.0} MiB", self.mib())
        };
        f.pad(&text)
    }
}

impl FromStr for Bytes {
    type Err = ParseUnitError;

    /// `12G`, `900MiB`, `1.5TB` (all binary); a bare number is MiB, as in Slurm.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fail = || ParseUnitError {
            text: text.to_owned(),
            what: "an amount of memory",
            expected: "a number with K, M, G or T, such as 12G or 900M (a bare number is MiB)",
        };
        let trimmed = text.trim();
        let digits = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.');
        let (number, unit) = trimmed.split_at(digits.unwrap_or(trimmed.len()));
        let number: f64 = number.parse().map_err(|_| fail())?;
        let exponent =
            match unit.trim().to_ascii_uppercase().trim_end_matches('B').trim_end_matches('I') {
                "" if unit.trim().is_empty() => 20,
                "" if unit.trim().eq_ignore_ascii_case("b") => 0,
                "K" => 10,
                "M" => 20,
                "G" => 30,
                "T" => 40,
                _ => return Err(fail()),
            };
        let bytes = number * (1u64 << exponent) as f64;
        if bytes >= u64::MAX as f64 {
            return Err(fail());
        }
        Ok(Bytes(bytes.round() as u64))
    }
}

/// A span of time in whole milliseconds.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Millis(pub u64);

impl Millis {
    /// No time at all.
    pub const ZERO: Millis = Millis(0);

    /// Whole seconds.
    pub const fn from_secs(secs: u64) -> Self {
        Millis(secs * 1000)
    }

    /// Seconds with a fraction, rounded to the millisecond. Negative and NaN become zero.
    pub fn from_secs_f64(secs: f64) -> Self {
        Millis((secs * 1000.0).round() as u64)
    }

    /// The span in seconds.
    pub fn secs(self) -> f64 {
        self.0 as f64 / 1000.0
    }
}

impl Add for Millis {
    type Output = Millis;
    fn add(self, other: Millis) -> Millis {
        Millis(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Millis {
    fn add_assign(&mut self, other: Millis) {
        *self = *self + other;
    }
}

impl FromStr for Millis {
    type Err = ParseUnitError;

    /// `90`, `90s`, `5m`, `1.5h`, `7d`; a bare number is seconds.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fail = || ParseUnitError {
            text: text.to_owned(),
            what: "a span of time",
            expected: "a number with s, m, h or d, such as 90s or 1.5h (a bare number is seconds)",
        };
        let trimmed = text.trim();
        let digits = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.');
        let (number, unit) = trimmed.split_at(digits.unwrap_or(trimmed.len()));
        let number: f64 = number.parse().map_err(|_| fail())?;
        let seconds = match unit.trim().to_ascii_lowercase().as_str() {
            "ms" => 0.001,
            "" | "s" => 1.0,
            "m" | "min" => 60.0,
            "h" => 3600.0,
            "d" => 86_400.0,
            _ => return Err(fail()),
        };
        // Three hundred centuries, in which milliseconds can still be added.
        let seconds = number * seconds;
        (seconds < 1e12).then(|| Millis::from_secs_f64(seconds)).ok_or_else(fail)
    }
}

impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let secs = self.secs();
        let text = match secs {
            s if s < 120.0 => format!("{s:.1} s"),
            s if s < 7200.0 => format!("{:.1} min", s / 60.0),
            s => format!("{:.1} h", s / 3600.0),
        };
        f.pad(&text)
    }
}

/// A point in time: milliseconds since the clock of this run began.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Time(pub u64);

impl Time {
    /// When the clock began.
    pub const START: Time = Time(0);
    /// Later than anything that will happen.
    pub const NEVER: Time = Time(u64::MAX);

    /// Seconds since the clock began, rounded to the millisecond.
    pub fn from_secs_f64(secs: f64) -> Self {
        Time(Millis::from_secs_f64(secs).0)
    }

    /// Seconds since the clock began.
    pub fn secs(self) -> f64 {
        Millis(self.0).secs()
    }

    /// How long after `earlier` this is; zero if it is before.
    #[must_use]
    pub const fn since(self, earlier: Time) -> Millis {
        Millis(self.0.saturating_sub(earlier.0))
    }

    /// This long before, not before the clock began.
    #[must_use]
    pub const fn before(self, span: Millis) -> Time {
        Time(self.0.saturating_sub(span.0))
    }
}

impl Add<Millis> for Time {
    type Output = Time;
    fn add(self, span: Millis) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}

/// A share of a whole, 0 to 1: SM activity, DRAM activity, a slice of a device.
#[derive(Clone, Copy, PartialEq, PartialOrd, Default, Debug, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Fraction(f64);

impl Fraction {
    /// Nothing.
    pub const ZERO: Fraction = Fraction(0.0);
    /// The whole.
    pub const ONE: Fraction = Fraction(1.0);

    /// A constant share; refuses to compile into anything outside 0 to 1.
    pub const fn new(value: f64) -> Self {
        assert!(value >= 0.0 && value <= 1.0, "a fraction lies between 0 and 1");
        Fraction(value)
    }

    /// The nearest share to `value`; NaN becomes zero.
    #[inline]
    pub fn saturating(value: f64) -> Self {
        if value.is_nan() { Fraction(0.0) } else { Fraction(value.clamp(0.0, 1.0)) }
    }

    /// The share as a number.
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl TryFrom<f64> for Fraction {
    type Error = ParseUnitError;

    fn try_from(value: f64) -> Result<Self, Self::Error> {
        if (0.0..=1.0).contains(&value) {
            Ok(Fraction(value))
        } else {
            Err(ParseUnitError {
                text: value.to_string(),
                what: "a fraction",
                expected: "a number from 0 to 1",
            })
        }
    }
}

impl From<Fraction> for f64 {
    fn from(fraction: Fraction) -> f64 {
        fraction.0
    }
}

// Sound because a Fraction is never NaN.
impl Eq for Fraction {}

#[allow(clippy::derive_ord_xor_partial_ord)]
impl Ord for Fraction {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl fmt::Display for Fraction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{:.0} %", self.0 * 100.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn memory_reads_like_slurm() {
        let cases = [
            ("12G", 12 << 30),
            ("12GiB", 12 << 30),
            ("900M", 900 << 20),
            ("900", 900 << 20),
            ("1.5T", 3 << 39),
            ("64k", 64 << 10),
            ("17B", 17),
        ];
        for (text, bytes) in cases {
            assert_eq!(text.parse(), Ok(Bytes(bytes)), "{text}");
        }
        for text in ["", "G", "12X", "-3G", "1e9", "nan", "12GG", "99999999999T", "1..2G"] {
            assert!(text.parse::<Bytes>().is_err(), "{text}");
        }
    }

    #[test]
    fn quantities_print_with_their_unit() {
        assert_eq!(Bytes::from_mib(512).to_string(), "512 MiB");
        assert_eq!(Bytes::from_mib(40_960).to_string(), "40.0 GiB");
        assert_eq!(Millis::from_secs(90).to_string(), "90.0 s");
        assert_eq!(Millis::from_secs(5400).to_string(), "90.0 min");
        assert_eq!(Fraction::new(0.85).to_string(), "85 %");
    }

    proptest! {
        #[test]
        fn parsing_memory_never_panics(text in ".{0,24}") {
            let _ = text.parse::<Bytes>();
        }

        #[test]
        fn a_fraction_is_always_within_bounds(value in any::<f64>()) {
            let fraction = Fraction::saturating(value).get();
            prop_assert!((0.0..=1.0).contains(&fraction));
        }
    }

    #[test]
    fn spans_have_units() {
        let span = |text: &str| text.parse::<Millis>().map(|span| span.0);
        assert_eq!(span("90"), Ok(90_000));
        assert_eq!(span("1.5h"), Ok(5_400_000));
        assert_eq!((span("5m"), span("7d"), span("20 ms")), (Ok(300_000), Ok(604_800_000), Ok(20)));
        for text in ["", "h", "-1h", "1y", "1e9", "nan", "1..2", "99999999999d"] {
            assert!(span(text).is_err(), "{text:?}");
        }
    }
}
