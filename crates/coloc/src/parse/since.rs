//! How far to look back, as people say it: a span, or a day.

use super::begin_time::date_and_time;
use crate::local_time::LocalTime;
use coloc_api::moment::Moment;
use coloc_model::Millis;

const EXPECTED: &str = "expected a span such as 12h or 7d, today, yesterday, 2027-01-20, 2027-01-20T12:34 or seconds since 1970";

/// `7d` (ago), `today`, `yesterday`, `2027-01-20T12:34:56`, or seconds since 1970.
pub(crate) fn past_moment(text: &str) -> Result<Moment, String> {
    moment(text, Moment::now()).ok_or_else(|| format!("{text:?}: {EXPECTED}"))
}

fn moment(text: &str, now: Moment) -> Option<Moment> {
    let text = text.trim();
    let bare = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if bare && text.len() >= 9 {
        let seconds: f64 = text.parse().ok()?;
        return (0.0..1e11).contains(&seconds).then_some(Moment((seconds * 1000.0) as u64));
    }
    // A number without a unit may be meant as days or as hours.
    if !bare && let Ok(span) = text.parse::<Millis>() {
        return Some(Moment(now.0.saturating_sub(span.0)));
    }
    let today = LocalTime::of((now.0 / 1000) as i64)?;
    let midnight = LocalTime { hour: 0, minute: 0, second: 0, ..today };
    let at = match text.to_ascii_lowercase().as_str() {
        "now" => return Some(now),
        "today" => midnight,
        "yesterday" => LocalTime { day: midnight.day - 1, ..midnight },
        _ => date_and_time(text)?,
    };
    Some(Moment(u64::try_from(at.seconds()?).ok()?.checked_mul(1000)?))
}

/// How many seconds clocks here are ahead of UTC at a moment.
pub(crate) fn utc_offset_s(at: Moment) -> i32 {
    let seconds = (at.0 / 1000) as i64;
    let local = LocalTime::of(seconds);
    let days = |local: LocalTime| days_since_1970(local.year, local.month, local.day);
    let shown = local.map(|local| {
        days(local) * 86_400 + i64::from(local.hour * 3600 + local.minute * 60 + local.second)
    });
    shown.map_or(0, |shown| (shown - seconds).clamp(-86_400, 86_400) as i32)
}

/// Days of the Gregorian calendar, for years after 1970.
fn days_since_1970(year: i32, month: i32, day: i32) -> i64 {
    const BEFORE: [i64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
    let year = i64::from(year);
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let leaps = |until: i64| until / 4 - until / 100 + until / 400;
    let this_year = BEFORE.get(month.max(1) as usize - 1).copied().unwrap_or(0);
    (year - 1970) * 365 + leaps(year - 1) - leaps(1969)
        + this_year
        + i64::from(is_leap && month > 2)
        + i64::from(day)
        - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_past_goes_by_many_names() {
        let noon = LocalTime { year: 2026, month: 11, day: 1, hour: 12, minute: 0, second: 0 };
        let now = Moment(noon.seconds().unwrap() as u64 * 1000);
        let told = |text: &str| {
            let at = moment(text, now)?;
            LocalTime::of((at.0 / 1000) as i64).map(|local| local.to_string())
        };
        for (text, expected) in [
            ("2h", "2026-11-01T10:00:00"),
            ("today", "2026-11-01T00:00:00"),
            ("yesterday", "2026-10-31T00:00:00"),
            ("2026-10-20", "2026-10-20T00:00:00"),
            ("2026-10-20T09:30", "2026-10-20T09:30:00"),
            ("now", "2026-11-01T12:00:00"),
        ] {
            assert_eq!(told(text).as_deref(), Some(expected), "{text}");
        }
        assert_eq!(moment("1794798476.5", now), Some(Moment(1_794_798_476_500)));
        for wrong in ["", "x", "7", "2026-02-30", "-5", "last week", "7w"] {
            assert!(moment(wrong, now).is_none(), "{wrong}");
        }
    }

    #[test]
    fn days_are_counted_by_the_calendar() {
        assert_eq!(days_since_1970(1970, 1, 1), 0);
        assert_eq!(days_since_1970(2000, 3, 1), 11_017);
        assert_eq!(days_since_1970(2026, 11, 18), 20_775);
        assert!(utc_offset_s(Moment::now()).abs() <= 15 * 3600);
    }
}
