//! What people's hands know from Slurm: times, arrays, dependencies.

use super::task::Dependencies;
use coloc_daemon::owner::ArrayRequest;
use coloc_daemon::record::Moment;
use coloc_daemon::spec::{DependencyKind, Warning};
use coloc_model::Millis;

/// The most tasks that one array may have.
const LARGEST_ARRAY: usize = 100_000;

/// `90` (minutes), `90:00`, `1:30:00`, `1-12`, `1-12:30`, `1-12:30:15`, or `1h30m`.
pub(crate) fn time(text: &str) -> Result<Millis, String> {
    let fail = || format!("{text:?} is no time: expected 90 (minutes), 1:30:00, 2-12 or 1h30m");
    let numbers = |text: &str| -> Option<Vec<u64>> {
        let parts: Vec<u64> =
            text.split(':').map(|part| part.parse().ok()).collect::<Option<_>>()?;
        (parts.len() <= 3).then_some(parts)
    };
    let seconds = match text.split_once('-') {
        Some((days, rest)) => {
            let days: u64 = days.parse().map_err(|_| fail())?;
            let rest = numbers(rest).ok_or_else(fail)?;
            let at = |index: usize| rest.get(index).copied().unwrap_or(0);
            days.checked_mul(86_400)
                .and_then(|days| days.checked_add(at(0).checked_mul(3600)?))
                .and_then(|sum| sum.checked_add(at(1).checked_mul(60)?)?.checked_add(at(2)))
        }
        None => match numbers(text).as_deref() {
            Some([minutes]) => minutes.checked_mul(60),
            Some([minutes, seconds]) => {
                minutes.checked_mul(60).and_then(|m| m.checked_add(*seconds))
            }
            Some([hours, minutes, seconds]) => hours
                .checked_mul(3600)
                .and_then(|sum| sum.checked_add(minutes.checked_mul(60)?)?.checked_add(*seconds)),
            _ => return spelled_out(text).ok_or_else(fail),
        },
    };
    let seconds = seconds.filter(|seconds| (1..1_000_000_000).contains(seconds));
    seconds.map(Millis::from_secs).ok_or_else(fail)
}

/// `1h30m`, `45s`.
fn spelled_out(text: &str) -> Option<Millis> {
    let mut sum = Millis::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let unit = rest.find(|c: char| c.is_ascii_alphabetic())?;
        let end = rest[unit..].find(|c: char| !c.is_ascii_alphabetic());
        let end = end.map_or(rest.len(), |end| unit + end);
        let part: Millis = rest[..end].parse().ok()?;
        sum = Millis(sum.0.checked_add(part.0)?);
        rest = &rest[end..];
    }
    (sum > Millis::ZERO).then_some(sum)
}

/// `7`, `7,8`, `afterok:7:8`, `afterany:7`.
pub(super) fn dependencies(text: &str) -> Result<Dependencies, String> {
    let fail = || format!("{text:?}: expected task ids such as 7 or afterok:7:8 or afterany:7");
    let mut all = Vec::new();
    for part in text.split(',') {
        let mut words = part.split(':').peekable();
        let kind = match words.peek() {
            Some(&"afterok") => Some(DependencyKind::AfterOk),
            Some(&"afterany" | &"after") => Some(DependencyKind::AfterAny),
            Some(&"afternotok") => Some(DependencyKind::AfterNotOk),
            _ => None,
        };
        if kind.is_some() {
            words.next();
        }
        let before = all.len();
        for word in words {
            let task = word.parse().map_err(|_| fail())?;
            all.push((task, kind.unwrap_or(DependencyKind::AfterOk)));
        }
        if all.len() == before {
            return Err(fail());
        }
    }
    Ok(Dependencies::new(all))
}

/// `1-100`, `0-9:3`, `1,5,9`, each with `%8`.
pub(super) fn array(text: &str) -> Result<ArrayRequest, String> {
    let fail = || format!("{text:?} is no array: expected 1-100, 0-9:3, 1,5,9 or 1-100%8");
    let (indices, at_once) = match text.split_once('%') {
        Some((indices, at_once)) => (indices, Some(at_once.parse().map_err(|_| fail())?)),
        None => (text, None),
    };
    let mut all = Vec::new();
    for part in indices.split(',') {
        let (range, step) = match part.split_once(':') {
            Some((range, step)) => (range, step.parse().map_err(|_| fail())?),
            None => (part, 1usize),
        };
        let number = |text: &str| text.parse::<u32>().map_err(|_| fail());
        let (first, last) = match range.split_once('-') {
            Some((first, last)) => (number(first)?, number(last)?),
            None => (number(range)?, number(range)?),
        };
        if step == 0 || last < first || (last - first) as usize / step >= LARGEST_ARRAY {
            return Err(fail());
        }
        all.extend((first..=last).step_by(step));
    }
    if all.len() > LARGEST_ARRAY || at_once == Some(0) {
        return Err(fail());
    }
    Ok(ArrayRequest { indices: all, at_once })
}

/// `now+1h`, or seconds since 1970.
pub(super) fn begin(text: &str) -> Result<Moment, String> {
    let fail = || format!("{text:?}: expected now+1h or seconds since 1970");
    match text.strip_prefix("now+") {
        Some(span) => {
            let span: Millis = span.parse().map_err(|_| fail())?;
            Ok(Moment(Moment::now().0 + span.0))
        }
        None => {
            let seconds: f64 = text.parse().map_err(|_| fail())?;
            let sane = (0.0..1e11).contains(&seconds);
            sane.then_some(Moment((seconds * 1000.0) as u64)).ok_or_else(fail)
        }
    }
}

/// `USR1@60`, `SIGTERM@300`, `10@60`, with Slurm's `B:` before it.
pub(super) fn warning(text: &str) -> Result<Warning, String> {
    let fail = || format!("{text:?}: expected a signal and seconds, such as USR1@60");
    let text = text.strip_prefix("B:").unwrap_or(text);
    let (name, seconds) = text.split_once('@').unwrap_or((text, "60"));
    let seconds: u64 = seconds.parse().map_err(|_| fail())?;
    let signal = match name.trim_start_matches("SIG") {
        "HUP" => 1,
        "INT" => 2,
        "USR1" => 10,
        "USR2" => 12,
        "TERM" => 15,
        "CONT" => 18,
        number => number.parse().ok().filter(|n| (1..=64).contains(n)).ok_or_else(fail)?,
    };
    Ok(Warning { signal, before: Millis::from_secs(seconds) })
}

/// `gpu:2`, `gpu:a100:2`, `gpu`.
pub(super) fn gres(text: &str) -> Result<u32, String> {
    let fail = || format!("{text:?}: expected gpu:2 or gpu:a100:2");
    let rest = text.strip_prefix("gpu").ok_or_else(fail)?;
    match rest.rsplit_once(':') {
        None if rest.is_empty() => Ok(1),
        Some((_, count)) => count.parse().map_err(|_| fail()),
        None => Err(fail()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_slurms() {
        let seconds = |text: &str| time(text).map(|span| span.0 / 1000);
        assert_eq!(seconds("90"), Ok(5400));
        assert_eq!(seconds("90:30"), Ok(5430));
        assert_eq!(seconds("1:30:00"), Ok(5400));
        assert_eq!(seconds("2-12"), Ok(216_000));
        assert_eq!(seconds("1-00:00:05"), Ok(86_405));
        assert_eq!(seconds("1h30m"), Ok(5400));
        for wrong in [
            "",
            "x",
            "0",
            "-1",
            "1-",
            "1:2:3:4",
            "1h30",
            "99999999999999999999",
            "18446744073709551615-1",
        ] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn arrays_have_steps_and_limits() {
        let array = |text: &str| array(text).map(|a| (a.indices, a.at_once));
        assert_eq!(array("0-9:3%2"), Ok((vec![0, 3, 6, 9], Some(2))));
        assert_eq!(array("1,5"), Ok((vec![1, 5], None)));
        for wrong in ["", "5-1", "1-9:0", "1-4000000000", "1%0", "a", "1-2%x"] {
            assert!(array(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn dependencies_and_signals() {
        let all = dependencies("afterok:1:2,afterany:3,4").unwrap();
        assert_eq!(all.len(), 4);
        assert_eq!(all[2], (3, DependencyKind::AfterAny));
        assert!(dependencies("afterok:").is_err() && dependencies("x").is_err());
        assert_eq!(warning("B:USR1@120").unwrap().before, Millis::from_secs(120));
        assert!(warning("NOPE@1").is_err());
        assert_eq!((gres("gpu:a100:2"), gres("gpu")), (Ok(2), Ok(1)));
    }
}
