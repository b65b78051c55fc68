//! When something is to begin, as people and Slurm say it.

use crate::local_time::LocalTime;
use coloc_api::moment::Moment;
use coloc_model::Millis;

const EXPECTED: &str =
    "expected now+1h, 16:00, tomorrow, 2027-01-20, 2027-01-20T12:34 or seconds since 1970";

/// `now+1hour`, `16:00`, `noon`, `tomorrow`, `2027-01-20T12:34:56`, or seconds since 1970.
pub(crate) fn begin(text: &str) -> Result<Moment, String> {
    moment(text, Moment::now()).ok_or_else(|| format!("{text:?}: {EXPECTED}"))
}

fn moment(text: &str, now: Moment) -> Option<Moment> {
    let text = text.trim();
    if text == "now" {
        return Some(now);
    }
    if let Some(span) = text.strip_prefix("now+") {
        return now.0.checked_add(span_of(span)?.0).map(Moment);
    }
    let bare = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    // Six digits are a date to Slurm (MMDDYY), and no task waits for 1970.
    if bare && text.len() >= 9 {
        let seconds: f64 = text.parse().ok()?;
        return (0.0..1e11).contains(&seconds).then_some(Moment((seconds * 1000.0) as u64));
    }
    let today = LocalTime::of((now.0 / 1000) as i64)?;
    let midnight = LocalTime { hour: 0, minute: 0, second: 0, ..today };
    let tomorrow = LocalTime { day: midnight.day + 1, ..midnight };
    let at = match text.to_ascii_lowercase().as_str() {
        "today" => return Some(now),
        "tomorrow" | "midnight" => tomorrow,
        word => match named_hour(word).or_else(|| clock(word)) {
            Some((hour, minute, second)) => {
                let at = LocalTime { hour, minute, second, ..midnight };
                // An hour that is over is tomorrow's.
                if at.seconds()? as u64 * 1000 <= now.0 {
                    LocalTime { day: at.day + 1, ..at }
                } else {
                    at
                }
            }
            None => date_and_time(text)?,
        },
    };
    Some(Moment(u64::try_from(at.seconds()?).ok()?.checked_mul(1000)?))
}

fn named_hour(word: &str) -> Option<(i32, i32, i32)> {
    match word {
        "noon" => Some((12, 0, 0)),
        "teatime" => Some((16, 0, 0)),
        _ => None,
    }
}

/// `60` (seconds), `10minutes`, `1hour`, `2days`, or as everywhere else.
fn span_of(text: &str) -> Option<Millis> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let unit = match text.get(end..)?.trim() {
        "" | "second" | "seconds" => 1,
        "minute" | "minutes" => 60,
        "hour" | "hours" => 3600,
        "day" | "days" => 86_400,
        "week" | "weeks" => 7 * 86_400,
        _ => return text.parse().ok(),
    };
    let seconds = text.get(..end)?.parse::<u64>().ok()?.checked_mul(unit)?;
    (seconds < 1_000_000_000).then(|| Millis::from_secs(seconds))
}

/// `16:00`, `16:00:30`, `4:00pm`.
fn clock(text: &str) -> Option<(i32, i32, i32)> {
    let (digits, later) = match (text.strip_suffix("am"), text.strip_suffix("pm")) {
        (Some(digits), _) => (digits, Some(0)),
        (_, Some(digits)) => (digits, Some(12)),
        _ => (text, None),
    };
    let numbers: Vec<i32> = digits.trim().split(':').map(small).collect::<Option<_>>()?;
    let (hour, minute, second) = match numbers[..] {
        [hour, minute] => (hour, minute, 0),
        [hour, minute, second] => (hour, minute, second),
        _ => return None,
    };
    let hour = match later {
        Some(later) if (1..=12).contains(&hour) => hour % 12 + later,
        Some(_) => return None,
        None => hour,
    };
    let sane = (0..24).contains(&hour) && (0..60).contains(&minute) && (0..60).contains(&second);
    sane.then_some((hour, minute, second))
}

fn small(text: &str) -> Option<i32> {
    let digits = text.len() <= 4 && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

/// `2027-01-20`, with `T12:34` behind it.
pub(super) fn date_and_time(text: &str) -> Option<LocalTime> {
    let (date, time) = text.split_once('T').map_or((text, None), |(date, time)| (date, Some(time)));
    let numbers: Vec<i32> = date.split('-').map(small).collect::<Option<_>>()?;
    let [year, month, day] = numbers[..] else { return None };
    let (hour, minute, second) = time.map_or(Some((0, 0, 0)), clock)?;
    let sane = year >= 1970 && (1..=12).contains(&month) && (1..=31).contains(&day);
    let wanted = LocalTime { year, month, day, hour, minute, second };
    // A library that is asked for the 30th of February means the 2nd of March.
    let is_a_day = |local: LocalTime| (local.month, local.day) == (month, day);
    let exists = sane && wanted.seconds().and_then(LocalTime::of).is_some_and(is_a_day);
    exists.then_some(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_go_by_many_names() {
        let noon = LocalTime { year: 2026, month: 11, day: 16, hour: 12, minute: 0, second: 0 };
        let now = Moment(noon.seconds().unwrap() as u64 * 1000);
        let told = |text: &str| {
            let at = moment(text, now)?;
            LocalTime::of((at.0 / 1000) as i64).map(|local| local.to_string())
        };
        for (text, expected) in [
            ("now", "2026-11-16T12:00:00"),
            ("now+1hour", "2026-11-16T13:00:00"),
            ("now+60", "2026-11-16T12:01:00"),
            ("now+1h", "2026-11-16T13:00:00"),
            ("now+2days", "2026-11-18T12:00:00"),
            ("16:00", "2026-11-16T16:00:00"),
            ("4:30pm", "2026-11-16T16:30:00"),
            ("11:59", "2026-11-17T11:59:00"),
            ("12:15am", "2026-11-17T00:15:00"),
            ("teatime", "2026-11-16T16:00:00"),
            ("noon", "2026-11-17T12:00:00"),
            ("tomorrow", "2026-11-17T00:00:00"),
            ("2027-01-20", "2027-01-20T00:00:00"),
            ("2027-01-20T12:34", "2027-01-20T12:34:00"),
        ] {
            assert_eq!(told(text).as_deref(), Some(expected), "{text}");
        }
        assert_eq!(moment("1794798476.5", now), Some(Moment(1_794_798_476_500)));
        for wrong in [
            "",
            "x",
            "25:00",
            "1:60",
            "13:00pm",
            "now+",
            "now+x",
            "now+99999999999999999999days",
            "2027-13-01",
            "2027-02-30",
            "2027-01",
            "2027-01-20T",
            "-5",
            "1e3",
            "16:00:00:00",
            "010127",
        ] {
            assert!(moment(wrong, now).is_none(), "{wrong}");
        }
    }
}
