//! The time of day where this program runs.
//!
//! `unsafe` because only the C library knows the time zone.
#![allow(unsafe_code)]

use std::fmt;
use std::mem::MaybeUninit;

/// A time as a clock on the wall and a calendar beside it show it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LocalTime {
    pub(crate) year: i32,
    /// From 1.
    pub(crate) month: i32,
    /// From 1. One after the last of a month is the first of the next.
    pub(crate) day: i32,
    pub(crate) hour: i32,
    pub(crate) minute: i32,
    pub(crate) second: i32,
}

impl LocalTime {
    /// The local time of a moment, in seconds since 1970.
    pub(crate) fn of(seconds: i64) -> Option<Self> {
        let mut parts = MaybeUninit::<libc::tm>::zeroed();
        // SAFETY: both pointers are good for the call, which writes all of `parts` or returns null.
        let parts = unsafe {
            if libc::localtime_r(&seconds, parts.as_mut_ptr()).is_null() {
                return None;
            }
            parts.assume_init()
        };
        Some(LocalTime {
            year: parts.tm_year.checked_add(1900)?,
            month: parts.tm_mon + 1,
            day: parts.tm_mday,
            hour: parts.tm_hour,
            minute: parts.tm_min,
            second: parts.tm_sec,
        })
    }

    /// The moment at which clocks show this, in seconds since 1970.
    pub(crate) fn seconds(self) -> Option<i64> {
        // SAFETY: a structure of numbers and a pointer, for which zero is a value.
        let mut parts: libc::tm = unsafe { MaybeUninit::zeroed().assume_init() };
        parts.tm_year = self.year.checked_sub(1900)?;
        parts.tm_mon = self.month - 1;
        (parts.tm_mday, parts.tm_hour) = (self.day, self.hour);
        (parts.tm_min, parts.tm_sec) = (self.minute, self.second);
        // Whether it is summer is for the library to know.
        parts.tm_isdst = -1;
        // SAFETY: the pointer is good for the call.
        let seconds = unsafe { libc::mktime(&mut parts) };
        (seconds >= 0).then_some(seconds)
    }
}

impl fmt::Display for LocalTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LocalTime { year, month, day, hour, minute, second } = self;
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back_again() {
        for seconds in [0, 1_000_000_000, 1_794_798_476] {
            let local = LocalTime::of(seconds).expect("a time");
            assert_eq!(local.seconds(), Some(seconds), "{local}");
        }
        let end = LocalTime { year: 2026, month: 12, day: 32, hour: 0, minute: 0, second: 0 };
        let next = end.seconds().and_then(LocalTime::of).expect("a time");
        assert_eq!(next.to_string(), "2027-01-01T00:00:00");
        assert_eq!(LocalTime { year: i32::MIN, ..end }.seconds(), None);
        assert_eq!(LocalTime::of(i64::MAX), None);
    }
}
