//! What was used of the GPUs, added up by user, group, GPU or day, and what each ended task used.

mod days;
mod history;
mod sums;

pub use history::{history, ids};

use crate::accounting::{Accounting, AttemptUsage, GpuUsage};
use crate::journal::{Journal, JournalError, Setup};
use crate::record::{Record, Uid};
use coloc_api::SCHEMA;
use coloc_api::moment::Moment;
use coloc_api::report::{Report, ReportBy, ReportRequest, ReportRow};
use coloc_model::Placement;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use sums::Sums;

/// The most ended tasks in one report.
const MOST_ENDED: u32 = 100_000;
/// The latest moment that a request may name: the year 9999.
const LATEST: f64 = 253_402_300_799.0;

/// What only the owner knows: tasks that have not ended and were started, and groups with a quota.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct LiveUsage {
    /// The tasks.
    pub records: Vec<Record>,
    /// Number and name of each group with a quota, in the order in which they were named.
    pub groups: Vec<(u32, String)>,
}

/// A span of the world's time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Window {
    from: Moment,
    to: Moment,
}

impl Window {
    fn has(self, at: Moment) -> bool {
        self.from <= at && at < self.to
    }

    /// The part of a span that is in it.
    fn part_of(self, from: Moment, to: Moment) -> f64 {
        if to <= from {
            return if self.has(from) { 1.0 } else { 0.0 };
        }
        let within = to.0.min(self.to.0).saturating_sub(from.0.max(self.from.0));
        within as f64 / (to.0 - from.0) as f64
    }
}

/// A moment of a request.
fn moment(seconds: f64) -> Moment {
    // What is no number is the beginning of time.
    Moment((seconds.clamp(0.0, LATEST).max(0.0) * 1000.0) as u64)
}

/// Adds up what was used.
pub fn report(
    journal: &Journal,
    live: &LiveUsage,
    request: &ReportRequest,
    now: Moment,
) -> Result<Report, JournalError> {
    let setup = journal.setup()?;
    let until = request.until_s.map_or(now, moment);
    let window = Window { from: moment(request.since_s), to: until };
    let mut records = journal.ended(window.from, MOST_ENDED)?;
    let truncated = records.len() >= MOST_ENDED as usize;
    let ended: rustc_hash::FxHashSet<_> = records.iter().map(|record| record.id).collect();
    // A task may have ended between the two looks.
    records.extend(live.records.iter().filter(|record| !ended.contains(&record.id)).cloned());
    let mut table = Table {
        window,
        by: request.by,
        offset_s: request.utc_offset_s,
        scale: setup.as_ref().map_or(1.0, |setup| setup.time_scale),
        uuids: setup.as_ref().map_or(Vec::new(), |setup| setup.uuids.clone()),
        rows: BTreeMap::new(),
        total: Sums::default(),
    };
    let mut users = Users { live, known: FxHashMap::default() };
    for record in &records {
        let (user, group) = users.of(record.owner);
        if request.user.as_ref().is_some_and(|wanted| wanted != user) {
            continue;
        }
        let key = if request.by == ReportBy::Group { group } else { user };
        table.add(record, key, &accounting(record, setup.as_ref()));
    }
    Ok(Report { truncated, ..table.report() })
}

/// Names of users and their groups.
struct Users<'a> {
    live: &'a LiveUsage,
    known: FxHashMap<Uid, (String, String)>,
}

impl Users<'_> {
    fn of(&mut self, uid: Uid) -> &(String, String) {
        let groups = &self.live.groups;
        self.known.entry(uid).or_insert_with(|| {
            let (user, theirs) = (crate::users::name(uid), crate::quotas::groups_of(uid));
            // The group whose quota counts for them, else their own.
            let limited = groups.iter().find(|(number, _)| theirs.contains(number));
            let group = limited.map(|(_, name)| name.clone());
            (user, group.unwrap_or_else(|| crate::users::primary_group(uid)))
        })
    }
}

/// What a task used, by its record; of a journal that does not say, what can be told of its last attempt.
fn accounting(record: &Record, setup: Option<&Setup>) -> Accounting {
    if !record.accounting.attempts.is_empty() {
        return record.accounting.clone();
    }
    let (Some(from), Some(to), Some(placement)) =
        (record.started, record.left_its_gpus(), &record.placement)
    else {
        return Accounting::default();
    };
    let scale = setup.map_or(1.0, |setup| setup.time_scale);
    let ran_s = to.0.saturating_sub(from.0) as f64 / 1000.0 * scale;
    let promised = record.memory.as_ref().and_then(|memory| memory.promised);
    let gpu = |gpu: coloc_model::GpuId| {
        let uuid = setup.and_then(|setup| setup.uuids.get(gpu.index()));
        let model = setup.and_then(|setup| setup.gpus.get(gpu.index()));
        let capacity = model.map_or(0, |model| model.memory().0).max(1) as f64;
        let part = |bytes: coloc_model::Bytes| (bytes.0 as f64 / capacity).min(1.0);
        GpuUsage {
            uuid: uuid.map_or_else(|| gpu.to_string(), Clone::clone),
            promised_s: promised.map_or(1.0, |promised| part(promised.bytes)) * ran_s,
            held_s: part(record.peak) * record.usage.watched_s,
            watched_s: record.usage.watched_s,
            sm_s: record.usage.sm_s,
            energy_j: 0.0,
        }
    };
    let gpus = Placement::gpus(placement).map(gpu).collect();
    let (number, ooms, energy_kind) = (record.attempt, record.ooms, None);
    Accounting { attempts: vec![AttemptUsage { number, from, to, ooms, energy_kind, gpus }] }
}

/// A report while it is made.
struct Table {
    window: Window,
    by: ReportBy,
    offset_s: i32,
    scale: f64,
    /// The GPUs by name, in the daemon's order.
    uuids: Vec<String>,
    rows: BTreeMap<String, Sums>,
    total: Sums,
}

impl Table {
    /// Adds a task; `key` is its row where rows are users or groups.
    fn add(&mut self, record: &Record, key: &str, accounting: &Accounting) {
        let mut rows: BTreeMap<String, Sums> = BTreeMap::new();
        let mut total = Sums::default();
        for attempt in &accounting.attempts {
            let part = self.window.part_of(attempt.from, attempt.to);
            if part <= 0.0 {
                continue;
            }
            let died = if self.window.has(attempt.to) { attempt.ooms } else { 0 };
            total.add(&attempt.total().times(part), self.gpu_seconds(attempt, part), attempt);
            total.ooms += died;
            self.split(attempt, key, part, died, &mut rows);
        }
        if rows.is_empty() {
            return;
        }
        if let Some(first) = record.first_started.filter(|first| self.window.has(*first)) {
            let waited = first.0.saturating_sub(record.submitted.0) as f64 / 1000.0 * self.scale;
            total.waited(waited);
            let day = days::name(first, self.offset_s);
            let is_its = |key: &String| self.by != ReportBy::Day || *key == day;
            rows.iter_mut().filter(|(key, _)| is_its(key)).for_each(|(_, row)| row.waited(waited));
        }
        self.total.merge(&total);
        for (key, row) in rows {
            self.rows.entry(key).or_default().merge(&row);
        }
    }

    /// Seconds of the scheduler's that an attempt had GPUs, times these.
    fn gpu_seconds(&self, attempt: &AttemptUsage, part: f64) -> f64 {
        let ran = attempt.to.0.saturating_sub(attempt.from.0) as f64 / 1000.0 * self.scale;
        ran * attempt.gpus.len() as f64 * part
    }

    /// Adds an attempt to the rows that it belongs to. What it used is taken to be spread evenly over its time.
    fn split(
        &self,
        attempt: &AttemptUsage,
        key: &str,
        part: f64,
        died: u32,
        rows: &mut BTreeMap<String, Sums>,
    ) {
        match self.by {
            ReportBy::User | ReportBy::Group => {
                let row = rows.entry(key.to_owned()).or_default();
                row.add(&attempt.total().times(part), self.gpu_seconds(attempt, part), attempt);
                row.ooms += died;
            }
            ReportBy::Gpu => {
                let each = self.gpu_seconds(attempt, part) / attempt.gpus.len().max(1) as f64;
                for gpu in &attempt.gpus {
                    let row = rows.entry(self.gpu_name(&gpu.uuid)).or_default();
                    row.add(&gpu.times(part), each, attempt);
                    row.ooms += died;
                }
            }
            ReportBy::Day => {
                let from = attempt.from.max(self.window.from);
                let to = attempt.to.min(self.window.to).max(from);
                for (day, from, to) in days::between(from, to, self.offset_s) {
                    let part = Window { from, to }.part_of(attempt.from, attempt.to);
                    let part = if attempt.to <= attempt.from { 1.0 } else { part };
                    let row = rows.entry(day).or_default();
                    row.add(&attempt.total().times(part), self.gpu_seconds(attempt, part), attempt);
                }
                let last = days::name(to, self.offset_s);
                rows.entry(last).or_default().ooms += died;
            }
        }
    }

    fn gpu_name(&self, uuid: &str) -> String {
        let index = self.uuids.iter().position(|known| known == uuid);
        index.map_or_else(|| uuid.to_owned(), |index| index.to_string())
    }

    fn report(self) -> Report {
        let Table { window, by, scale, .. } = self;
        let mut rows: Vec<ReportRow> =
            self.rows.into_iter().map(|(key, sums)| sums.row(key)).collect();
        match by {
            ReportBy::User | ReportBy::Group => rows.sort_by(|a, b| {
                b.gpu_hours_promised.total_cmp(&a.gpu_hours_promised).then(a.key.cmp(&b.key))
            }),
            ReportBy::Gpu => rows
                .sort_by_key(|row| (row.key.parse::<u32>().unwrap_or(u32::MAX), row.key.clone())),
            ReportBy::Day => {}
        }
        Report {
            schema: SCHEMA,
            by,
            since_s: window.from.secs(),
            until_s: window.to.secs(),
            time_scale: scale,
            rows,
            total: self.total.row("total".to_owned()),
            truncated: false,
        }
    }
}

#[cfg(test)]
mod tests;
