//! Ended tasks with what each used.

use super::{MOST_ENDED, Window, accounting, moment};
use crate::accounting::Accounting;
use crate::journal::{Journal, JournalError, Setup};
use crate::owner::whole_view;
use crate::record::Record;
use coloc_api::SCHEMA;
use coloc_api::moment::Moment;
use coloc_api::report::{EndedTask, HistoryRequest, TaskHistory, UsageView};
use coloc_api::spec::TaskSpec;
use coloc_model::TaskId;
use rustc_hash::FxHashMap;
use std::ops::RangeInclusive;

/// The most ranges of ids in one request.
const MOST_RANGES: usize = 10_000;

/// What a task used, as clients see it.
fn usage_view(accounting: &Accounting) -> UsageView {
    let total = accounting.total();
    UsageView {
        energy_j: accounting.energy_j(),
        energy_kind: accounting.energy_kind(),
        smact_mean: accounting.smact_mean(),
        gpu_hours_promised: total.promised_s / 3600.0,
        gpu_hours_used: total.held_s / 3600.0,
    }
}

/// Ids and ranges of them, such as 3,7-9; `None` if they make no sense.
pub fn ids(text: &str) -> Option<Vec<RangeInclusive<u32>>> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let range = first.trim().parse().ok()?..=last.trim().parse().ok()?;
        (!range.is_empty()).then_some(range)
    };
    text.split(',').take(MOST_RANGES).map(range).collect()
}

/// Reads the newest ended tasks that fit a request, with those whose ends are not in the journal yet.
pub fn history(
    journal: &Journal,
    request: &HistoryRequest,
    ids: Option<&[RangeInclusive<u32>]>,
    unwritten: Vec<Record>,
) -> Result<TaskHistory, JournalError> {
    let setup = journal.setup()?;
    let to = request.until_s.map_or(Moment(u64::MAX >> 1), moment);
    let window = Window { from: moment(request.since_s), to };
    let is_named = |id: TaskId| ids.is_none_or(|ids| ids.iter().any(|range| range.contains(&id.0)));
    let most = request.limit.unwrap_or(MOST_ENDED).min(MOST_ENDED) as usize;
    let mut specs: FxHashMap<_, TaskSpec> = FxHashMap::default();
    let (mut tasks, mut truncated) = (Vec::new(), false);
    let mut records = journal.ended(window.from, MOST_ENDED)?;
    if !unwritten.is_empty() {
        records.retain(|known| unwritten.iter().all(|record| record.id != known.id));
        records.extend(unwritten);
        records.sort_by_key(|record| std::cmp::Reverse((record.ended, record.id)));
    }
    for record in records {
        let fits = record.ended.is_some_and(|ended| window.has(ended)) && is_named(record.id);
        if !fits {
            continue;
        }
        if request.user.as_ref().is_some_and(|user| *user != crate::users::name(record.owner)) {
            continue;
        }
        if tasks.len() == most {
            truncated = true;
            break;
        }
        let spec = journal.once_of(record.spec, &mut specs, |spec| spec)?;
        tasks.push(ended_task(&record, spec, setup.as_ref()));
    }
    tasks.reverse();
    Ok(TaskHistory { schema: SCHEMA, tasks, truncated })
}

fn ended_task(record: &Record, spec: &TaskSpec, setup: Option<&Setup>) -> EndedTask {
    let used = accounting(record, setup);
    let until = record.first_started.or(record.ended).unwrap_or(record.submitted);
    EndedTask {
        task: whole_view(record, spec),
        waited_s: until.0.saturating_sub(record.submitted.0) as f64 / 1000.0,
        ran_s: (!used.attempts.is_empty()).then(|| used.ran_ms() as f64 / 1000.0),
        usage: usage_view(&used),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_as_people_write_them() {
        assert_eq!(ids("3,7-9"), Some(vec![3..=3, 7..=9]));
        for wrong in ["", "x", "9-7", "1-", "-", "1,,2", "99999999999"] {
            assert_eq!(ids(wrong), None, "{wrong}");
        }
    }
}
