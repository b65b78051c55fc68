//! Days of the calendar, for clocks that are some seconds ahead of UTC.

use coloc_api::moment::Moment;

const DAY_MS: i64 = 86_400_000;
/// A span of more days than this is told by its first ones: no task runs for so long.
const MOST_DAYS: usize = 4_000;

/// The day of a moment, such as 2027-01-20.
pub(super) fn name(at: Moment, offset_s: i32) -> String {
    let local = at.0 as i64 + i64::from(offset_s) * 1000;
    let (year, month, day) = civil(local.div_euclid(DAY_MS));
    format!("{year:04}-{month:02}-{day:02}")
}

/// The days that a span touches, each with the part of the span that is in it. A span of no length is one part.
pub(super) fn between(from: Moment, to: Moment, offset_s: i32) -> Vec<(String, Moment, Moment)> {
    let offset_ms = i64::from(offset_s) * 1000;
    let (mut parts, mut at) = (Vec::new(), from);
    while (at < to || parts.is_empty()) && parts.len() < MOST_DAYS {
        let next = ((at.0 as i64 + offset_ms).div_euclid(DAY_MS) + 1) * DAY_MS - offset_ms;
        let end = Moment(next.max(0) as u64).min(to);
        parts.push((name(at, offset_s), at, end));
        at = end.max(Moment(at.0 + 1));
    }
    parts
}

/// Year, month and day of a number of days since 1970, by the Gregorian calendar: years are taken to begin in March, so that
/// the leap day is their last.
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let leap_days = day_of_era / 1_460 - day_of_era / 36_524 + day_of_era / 146_096;
    let year_of_era = (day_of_era - leap_days) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_the_calendars_names() {
        let at = |seconds: u64| name(Moment(seconds * 1000), 0);
        assert_eq!(at(0), "1970-01-01");
        assert_eq!(at(951_782_400), "2000-02-29");
        assert_eq!(at(951_868_800), "2000-03-01");
        assert_eq!(at(1_704_067_199), "2023-12-31");
        assert_eq!(at(4_107_542_400), "2100-03-01");
        assert_eq!(name(Moment(1_704_067_199_000), 3600), "2024-01-01");
        assert_eq!(name(Moment(0), -3600), "1969-12-31");
    }

    #[test]
    fn a_span_is_cut_at_midnight() {
        let parts = between(Moment(86_399_000), Moment(86_400_000 * 2 + 5), 0);
        let days: Vec<(&str, u64)> =
            parts.iter().map(|(day, from, to)| (day.as_str(), to.0 - from.0)).collect();
        assert_eq!(days, [("1970-01-01", 1000), ("1970-01-02", 86_400_000), ("1970-01-03", 5)]);
        assert_eq!(between(Moment(5), Moment(5), 0).len(), 1);
        assert_eq!(between(Moment(0), Moment(u64::MAX / 2000), 0).len(), MOST_DAYS);
    }
}
