//! Numbers as they are shown: never a bare 0 for what is not known.

use super::app::Clock;

/// What is not known.
pub(super) const UNKNOWN: &str = "–";

const GIB: f64 = (1u64 << 30) as f64;

/// GiB with one decimal, and none from a hundred on.
pub(super) fn gib(bytes: u64) -> String {
    let gib = bytes as f64 / GIB;
    if gib < 99.95 { format!("{gib:.1}") } else { format!("{gib:.0}") }
}

pub(super) fn gib_or(bytes: Option<u64>) -> String {
    bytes.map_or_else(|| UNKNOWN.to_owned(), gib)
}

/// `16.8/17.6`, each part four wide.
pub(super) fn of(used: Option<u64>, promised: Option<u64>) -> String {
    format!("{:>4}/{:>4}", gib_or(used), gib_or(promised))
}

/// A span of time in at most four characters: `45s`, `54m`, `3h40`, `12h`, `4d`.
pub(super) fn span(seconds: f64) -> String {
    let seconds = seconds.max(0.0) as u64;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..36_000 => format!("{}h{:02}", seconds / 3600, seconds / 60 % 60),
        36_000..360_000 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// A time of day in five characters; days from now where that would be taken for another day.
pub(super) fn clock(at_s: f64, now_s: f64, clock: Clock) -> String {
    let days = (at_s - now_s) / 86_400.0;
    if days.abs() > 0.9 {
        return format!("{:>+4.0}d", if days > 0.0 { days.ceil() } else { days.floor() });
    }
    let (hour, minute, _) = clock(at_s);
    format!("{hour:02}:{minute:02}")
}

pub(super) fn clock_or(at_s: Option<f64>, now_s: f64, clock: Clock) -> String {
    at_s.map_or_else(|| UNKNOWN.to_owned(), |at_s| self::clock(at_s, now_s, clock))
}

/// `71%`.
pub(super) fn percent(share: f64) -> String {
    format!("{:.0}%", share * 100.0)
}

/// Watts, or kilowatts from a thousand on.
pub(super) fn power(watts: f64) -> String {
    if watts < 1000.0 { format!("{watts:.0} W") } else { format!("{:.2} kW", watts / 1000.0) }
}

const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// A column of a little chart, from 0 to 100 % always.
pub(super) fn level(share: f64) -> char {
    let at = (share.clamp(0.0, 1.0) * LEVELS.len() as f64) as usize;
    LEVELS[at.min(LEVELS.len() - 1)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_take_at_most_four_characters() {
        let cases = [
            (-1.0, "0s"),
            (59.9, "59s"),
            (3599.0, "59m"),
            (3600.0, "1h00"),
            (13_200.0, "3h40"),
            (43_200.0, "12h"),
            (864_000.0, "10d"),
        ];
        for (seconds, shown) in cases {
            assert_eq!(span(seconds), shown);
        }
    }

    #[test]
    fn what_is_not_known_is_no_zero() {
        assert_eq!(of(None, Some(24 << 30)), "   –/24.0");
        assert_eq!(of(Some(0), Some(141 << 30)), " 0.0/ 141");
        assert_eq!(of(Some(u64::MAX), None).chars().count(), 16, "it is cut where it is drawn");
    }

    #[test]
    fn another_day_is_not_taken_for_this_one() {
        let at = |seconds: f64| clock(seconds, 1000.0, |s| ((s / 3600.0) as u32 % 24, 0, 0));
        assert_eq!(
            (at(7200.0), at(200_000.0), at(-100_000.0)),
            ("02:00".into(), "  +3d".into(), "  -2d".into())
        );
    }

    #[test]
    fn levels_stay_within_the_chart() {
        assert_eq!([-1.0, 0.0, 0.5, 1.0, 7.0].map(level), ['▁', '▁', '▅', '█', '█']);
    }
}
