//! What people's hands know from Slurm: times, arrays, signals, GPUs.

use coloc_api::request::ArrayRequest;
use coloc_api::spec::Warning;
use coloc_model::Millis;

/// The most tasks that one array may have.
const LARGEST_ARRAY: usize = 100_000;

/// A time limit is shorter, in seconds.
const LONGEST: u64 = 1_000_000_000;

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
    match seconds {
        Some(0) => Err(fail()),
        Some(seconds) if seconds < LONGEST => Ok(Millis::from_secs(seconds)),
        _ => Err(format!(
            "{text:?} is longer than the longest time limit, {} days; without a limit it is UNLIMITED",
            LONGEST / 86_400
        )),
    }
}

/// A time limit, or that there is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Limit(pub(crate) Option<Millis>);

/// A time, or `0` or `UNLIMITED` for none.
pub(crate) fn limit(text: &str) -> Result<Limit, String> {
    let none = ["0", "unlimited", "infinite"].iter().any(|word| text.eq_ignore_ascii_case(word));
    if none { Ok(Limit(None)) } else { time(text).map(|span| Limit(Some(span))) }
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

fn too_large(text: &str) -> String {
    format!("{text:?}: an array has at most {LARGEST_ARRAY} tasks")
}

/// `1-100`, `0-9:3`, `1,5,9`, each with `%8`.
pub(crate) fn array(text: &str) -> Result<ArrayRequest, String> {
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
        if step == 0 || last < first {
            return Err(fail());
        }
        if (last - first) as usize / step >= LARGEST_ARRAY {
            return Err(too_large(text));
        }
        all.extend((first..=last).step_by(step));
    }
    // A user who says a number twice means one task.
    let mut seen = std::collections::HashSet::new();
    all.retain(|index| seen.insert(*index));
    if all.len() > LARGEST_ARRAY {
        return Err(too_large(text));
    }
    if at_once == Some(0) {
        return Err(fail());
    }
    Ok(ArrayRequest { indices: all, at_once })
}

/// `1`, or a range that begins with it.
pub(crate) fn nodes(text: &str) -> Result<u32, String> {
    let least = text.split(['-', ',']).next().unwrap_or(text);
    match least.trim().parse::<u32>() {
        Ok(1) => Ok(1),
        Ok(0) | Err(_) => Err(format!("{text:?} is no number of nodes: expected 1")),
        Ok(many) => Err(format!(
            "there is one server, and {many} are asked for: ask for --nodes=1, with GPUs and copies that fit on it"
        )),
    }
}

/// `USR1@60`, `SIGTERM@300`, `10@60`, with Slurm's `B:` before it.
pub(crate) fn warning(text: &str) -> Result<Warning, String> {
    let fail = || format!("{text:?}: expected a signal and seconds, such as USR1@60");
    // Whom it is for is found out when it is sent; there are no reservations that R would be about.
    let text = match text.split_once(':') {
        Some((whom, rest)) if whom.chars().all(|letter| matches!(letter, 'B' | 'R')) => rest,
        _ => text,
    };
    let (name, seconds) = text.split_once('@').unwrap_or((text, "60"));
    let seconds: u64 = seconds.parse().map_err(|_| fail())?;
    let signal = signal(name).map_err(|_| fail())?;
    Ok(Warning { signal, before: Millis::from_secs(seconds) })
}

/// `USR1`, `SIGUSR1` or `10`.
pub(crate) fn signal(text: &str) -> Result<i32, String> {
    let fail = || format!("{text:?}: expected a signal, such as USR1, SIGTERM or 10");
    coloc_api::signals::number(text).ok_or_else(fail)
}

/// So many GPUs, perhaps of a kind.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct GpuWish {
    pub(crate) count: u32,
    pub(crate) kind: Option<String>,
}

/// `2`, `a100:2`.
pub(crate) fn gpu_wish(text: &str) -> Result<GpuWish, String> {
    let fail = || format!("{text:?}: expected a number of GPUs, such as 2 or a100:2");
    let (kind, count) = text.split_once(':').map_or((None, text), |(kind, n)| (Some(kind), n));
    let count = count.parse().map_err(|_| fail())?;
    if kind.is_some_and(str::is_empty) {
        return Err(fail());
    }
    Ok(GpuWish { count, kind: kind.map(str::to_owned) })
}

/// `gpu:2`, `gpu:a100:2`, `gpu`, with what else is asked for after commas.
pub(crate) fn gres(text: &str) -> Result<GpuWish, String> {
    let fail = || format!("{text:?}: expected gpu:2 or gpu:a100:2");
    let parts = text.split(',').map(|part| part.split('(').next().unwrap_or(part));
    let parts = parts.map(|part| part.strip_prefix("gres/").unwrap_or(part));
    let wish = |part: &str| match part.strip_prefix("gpu")? {
        "" => Some(Ok(GpuWish { count: 1, kind: None })),
        rest => {
            let rest = rest.strip_prefix(':')?;
            // A kind alone is one of it.
            let kind = || GpuWish { count: 1, kind: Some(rest.to_owned()) };
            let alone = !rest.contains(':') && rest.starts_with(|c: char| c.is_ascii_alphabetic());
            Some(if alone { Ok(kind()) } else { gpu_wish(rest).map_err(|_| fail()) })
        }
    };
    let mut wishes = parts.filter_map(wish);
    wishes.next().unwrap_or_else(|| Err(fail()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_slurms() {
        let seconds = |text: &str| time(text).map(|span| span.0 / 1000);
        assert_eq!(seconds("90"), Ok(5400));
        assert_eq!((limit("0"), limit("unlimited")), (Ok(Limit(None)), Ok(Limit(None))));
        assert_eq!(limit("1-0"), Ok(Limit(Some(Millis::from_secs(86_400)))));
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
        assert_eq!(array("5,1,5,1-2"), Ok((vec![5, 1, 2], None)));
        for wrong in ["", "5-1", "1-9:0", "1-4000000000", "1%0", "a", "1-2%x"] {
            assert!(array(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn signals_and_kinds_of_gpus() {
        assert_eq!(warning("B:USR1@120").unwrap().before, Millis::from_secs(120));
        assert_eq!(warning("RB:10").unwrap().before, Millis::from_secs(60));
        assert!(warning("NOPE@1").is_err() && warning("X:USR1@1").is_err());
        assert_eq!((nodes("1"), nodes("1-4")), (Ok(1), Ok(1)));
        assert!(nodes("2").is_err_and(|why| why.contains("one server")));
        assert!(nodes("0").is_err() && nodes("x").is_err() && nodes("2-4").is_err());
        let count = |text: &str| gres(text).map(|wish| (wish.count, wish.kind.is_some()));
        assert_eq!((count("gpu:a100:2"), count("gpu")), (Ok((2, true)), Ok((1, false))));
        assert_eq!(
            (count("gpu:a100"), count("nvme:1,gres/gpu:3(S:0)")),
            (Ok((1, true)), Ok((3, false)))
        );
        for wrong in ["", "nvme:1", "gpu:", "gpu:-1", "gpu:a:b", "gpus:2", "gpu:a100:99999999999"] {
            assert!(gres(wrong).is_err(), "{wrong}");
        }
        assert!(gpu_wish("2").is_ok() && gpu_wish(":2").is_err() && gpu_wish("a100:").is_err());
    }
}
