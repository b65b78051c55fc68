//! Slurm's accounting, as `sacct -P` prints it: columns by their names, in any order. Job steps, jobs
//! without GPUs and jobs that did not run to an end of some kind are passed over. Nothing is said of
//! memory on the GPU or of activity, so each job asks to be alone.

use super::read::{Known, Taken};
use super::table::{Fault, Header, Layout, MAX_SECONDS, Row, empty};
use super::{TraceTask, tiresias};
use coloc_model::{Millis, SignatureId, Time};

pub(super) const LAYOUT: Layout = Layout {
    columns: &[
        "Submit",
        "JobID",
        "State",
        "User",
        "Account",
        "JobName",
        "Start",
        "End",
        "Elapsed",
        "ElapsedRaw",
        "AllocTRES",
        "ReqTRES",
    ],
    required: 3,
    expected: "at least JobID|State|Submit|Elapsed|AllocTRES, as of \
               sacct -P -X -a -o JobID,User,Account,JobName,State,Submit,Start,End,Elapsed,AllocTRES",
    header: Header::First,
    lenient: true,
    delimiter: b'|',
};

const MOMENT: &str = "a time such as 2024-01-31T08:00:00";
const SPAN: &str = "a span such as 1-02:30:00 of a second to ten years";
const TRES: &str = "resources such as cpu=8,gres/gpu=2,mem=64G";

/// How jobs that ran and ended are marked; the first word of the column.
const ENDED: [&str; 9] = [
    "COMPLETED",
    "FAILED",
    "CANCELLED",
    "TIMEOUT",
    "OUT_OF_MEMORY",
    "NODE_FAIL",
    "PREEMPTED",
    "DEADLINE",
    "BOOT_FAIL",
];

pub(super) fn task(row: &Row<'_>, known: &mut Known) -> Result<Taken, Fault> {
    let is_step = row.text("JobID").is_some_and(|id| id.contains('.'));
    let state = row.text("State").unwrap_or_default().split_whitespace().next();
    if is_step {
        return Ok(Taken::PassedOver("of job steps"));
    }
    if !state.is_some_and(|state| ENDED.contains(&state.trim_end_matches('+'))) {
        return Ok(Taken::PassedOver("not ended"));
    }
    let Some(gpus) = gpus(row)? else { return Ok(Taken::PassedOver("without a GPU")) };
    let Some(duration) = duration(row)? else { return Ok(Taken::PassedOver("never ran")) };
    let submit = row.parsed("Submit", MOMENT, moment)?.ok_or_else(|| empty("Submit", MOMENT))?;
    Ok(Taken::Task(TraceTask {
        submit: Time::from_secs_f64(submit as f64),
        signature: SignatureId(known.names.number(row.text("JobName").unwrap_or("job"))),
        user: known.user(row.text("User"), row.text("Account")),
        gpus,
        duration,
        profile: tiresias::profile(),
        exclusive: true,
        priority: 0,
        phases: coloc_physics::Phases::NONE,
        declared: None,
        recorded: None,
        checkpoint: None,
    }))
}

/// GPUs that it was given, else that it asked for; none if it did without.
fn gpus(row: &Row<'_>) -> Result<Option<u32>, Fault> {
    for column in ["AllocTRES", "ReqTRES"] {
        if let Some(gpus) = row.parsed(column, TRES, count)? {
            return Ok(Some(gpus).filter(|&gpus| gpus > 0));
        }
    }
    Ok(None)
}

/// `gres/gpu=N`, or the sum of `gres/gpu:KIND=N` where the total is not given.
fn count(tres: &str) -> Option<u32> {
    let (mut total, mut typed) = (None, 0u32);
    for part in tres.split(',') {
        let (name, value) = part.split_once('=')?;
        match name.trim() {
            "gres/gpu" => total = Some(value.trim().parse().ok()?),
            name if name.starts_with("gres/gpu:") => {
                typed = typed.checked_add(value.trim().parse().ok()?)?;
            }
            _ => {}
        }
    }
    Some(total.unwrap_or(typed)).filter(|&gpus| gpus <= 65_536)
}

/// How long it ran; `None` if it did not.
fn duration(row: &Row<'_>) -> Result<Option<Millis>, Fault> {
    let seconds = |text: &str| text.parse::<u64>().ok();
    let elapsed = match row.parsed("ElapsedRaw", "a number of seconds", seconds)? {
        Some(seconds) => Some(seconds),
        None => row.parsed("Elapsed", SPAN, span)?,
    };
    let elapsed = match elapsed {
        Some(seconds) => seconds,
        None => {
            let at = |column| match row.text(column) {
                Some("Unknown" | "None") => Ok(None),
                _ => row.parsed(column, MOMENT, moment),
            };
            let (Some(start), Some(end)) = (at("Start")?, at("End")?) else {
                return Err(empty("Elapsed", SPAN));
            };
            end.saturating_sub(start)
        }
    };
    if elapsed as f64 > MAX_SECONDS {
        let column = if row.text("ElapsedRaw").is_some() { "ElapsedRaw" } else { "Elapsed" };
        return Err(super::table::wrong(column, &elapsed.to_string(), SPAN));
    }
    Ok((elapsed > 0).then(|| Millis::from_secs(elapsed)))
}

/// `[days-]hours:minutes:seconds`, `minutes:seconds`, with a fraction perhaps, in whole seconds.
fn span(text: &str) -> Option<u64> {
    let (days, rest) = match text.split_once('-') {
        Some((days, rest)) => (days.parse::<u64>().ok()?, rest),
        None => (0, text),
    };
    let rest = rest.split_once('.').map_or(rest, |(whole, _)| whole);
    let mut seconds = 0u64;
    let mut parts = 0;
    for part in rest.split(':') {
        seconds = seconds.checked_mul(60)?.checked_add(part.parse().ok()?)?;
        parts += 1;
    }
    (2..=3).contains(&parts).then_some(())?;
    days.checked_mul(86_400)?.checked_add(seconds)
}

/// Seconds since 1970 of `2024-01-31T08:00:00`, as if in UTC, or of a number of such seconds.
fn moment(text: &str) -> Option<u64> {
    if let Ok(seconds) = text.parse::<u64>() {
        return Some(seconds).filter(|&seconds| seconds < 1 << 40);
    }
    let (date, time) = text.split_once('T')?;
    let mut date = date.splitn(3, '-').map(|part| part.parse::<u64>().ok());
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let mut time = time.splitn(3, ':').map(|part| part.parse::<u64>().ok());
    let (hour, minute, second) = (time.next()??, time.next()??, time.next()??);
    let valid = (1970..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour < 24
        && minute < 60
        && second < 61;
    valid.then(|| days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second)
}

/// Days since 1970 in the Gregorian calendar. Years begin in March, so that a leap day is the last.
fn days(year: u64, month: u64, day: u64) -> u64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let before_1970 = 719_468;
    365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1 - before_1970
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_count_from_1970() {
        assert_eq!(moment("1970-01-01T00:00:00"), Some(0));
        assert_eq!(moment("2000-03-01T00:00:00"), Some(951_868_800));
        assert_eq!(moment("2024-02-29T12:34:56"), Some(1_709_210_096));
        assert_eq!(moment("1709210096"), Some(1_709_210_096));
        for text in [
            "",
            "Unknown",
            "2024-02-29",
            "2024-13-01T00:00:00",
            "2024-01-01T24:00:00",
            "0-0-0T0:0:0",
        ] {
            assert_eq!(moment(text), None, "{text:?}");
        }
    }

    #[test]
    fn spans_may_have_days() {
        assert_eq!(span("1-02:03:04"), Some(93_784));
        assert_eq!((span("00:01:40"), span("01:40.250")), (Some(100), Some(100)));
        for text in ["", "5", "1:2:3:4", "x:00:00", "1-", "-1:00", "99999999999999999999:00"] {
            assert_eq!(span(text), None, "{text:?}");
        }
    }

    #[test]
    fn gpus_are_counted_once() {
        assert_eq!(count("billing=8,cpu=8,gres/gpu:a100=2,gres/gpu=2,mem=64G,node=1"), Some(2));
        assert_eq!(count("cpu=8,gres/gpu:a100=2,gres/gpu:v100=1"), Some(3));
        assert_eq!(count("cpu=8,mem=64G"), Some(0));
        for text in ["gpu", "gres/gpu=x", "gres/gpu=-1", "gres/gpu=99999999999"] {
            assert_eq!(count(text), None, "{text:?}");
        }
    }
}
