use super::*;
use crate::record::SpecId;
use coloc_api::report::EnergyKind;
use coloc_model::{TaskId, TaskState};

const HOUR: u64 = 3_600_000;

/// A task of root's on two GPUs that it had half of, for so many hours from then on.
fn task(id: u32, from: u64, hours: u64) -> Record {
    let mut record = Record::new(TaskId(id), SpecId(1), Uid(0), Moment(from - 60_000));
    let (from, to) = (Moment(from), Moment(from + hours * HOUR));
    (record.started, record.first_started) = (Some(from), Some(from));
    (record.phase, record.ended) = (TaskState::Completed, Some(to));
    let seconds = (hours * 3600) as f64;
    let gpu = |uuid: &str| GpuUsage {
        uuid: uuid.to_owned(),
        promised_s: seconds / 2.0,
        held_s: seconds / 4.0,
        watched_s: seconds * 0.9,
        sm_s: seconds * 0.9 * 0.5,
        energy_j: seconds * 100.0,
    };
    let gpus = vec![gpu("a"), gpu("b")];
    let energy_kind = Some(EnergyKind::Measured);
    record.accounting.attempts =
        vec![AttemptUsage { number: 1, from, to, ooms: 1, energy_kind, gpus }];
    record
}

fn table(by: ReportBy, from: u64, to: u64, records: &[Record]) -> Report {
    let window = Window { from: Moment(from), to: Moment(to) };
    let uuids = vec!["a".to_owned()];
    let (rows, total) = (BTreeMap::new(), Sums::default());
    let mut table = Table { window, by, offset_s: 0, scale: 1.0, uuids, rows, total };
    for record in records {
        table.add(record, "ann", &accounting(record, None));
    }
    table.report()
}

#[test]
fn rows_add_up_to_the_total() {
    // From an hour before midnight to two hours after it, and a second task beside it.
    let records = [task(1, 23 * HOUR, 3), task(2, 22 * HOUR, 1)];
    for by in [ReportBy::User, ReportBy::Group, ReportBy::Gpu, ReportBy::Day] {
        let report = table(by, 0, 100 * HOUR, &records);
        let sum = |of: fn(&ReportRow) -> f64| report.rows.iter().map(of).sum::<f64>();
        assert_eq!(report.total.tasks, 2, "{by:?}: once each");
        assert!((sum(|row| row.gpu_hours_promised) - 4.0).abs() < 1e-9, "{by:?}");
        assert!((report.total.gpu_hours_promised - 4.0).abs() < 1e-9);
        assert!((sum(|row| row.gpu_hours_used) - 2.0).abs() < 1e-9);
        assert!((sum(|row| row.energy_j.unwrap()) - 8.0 * 360_000.0).abs() < 1e-3);
        assert!((sum(|row| row.gpu_hours_unwatched) - 0.8).abs() < 1e-9);
        assert!(report.rows.iter().all(|row| row.smact_mean.unwrap() - 0.5 < 1e-9));
        assert_eq!((report.total.ooms, report.total.wait_mean_s), (2, Some(60.0)));
    }
    let gpus = table(ReportBy::Gpu, 0, 100 * HOUR, &records);
    assert_eq!(gpus.rows.iter().map(|row| row.key.as_str()).collect::<Vec<_>>(), ["0", "b"]);
    let days = table(ReportBy::Day, 0, 100 * HOUR, &records);
    let of = |row: &ReportRow| (row.key.clone(), row.tasks, row.ooms, row.wait_mean_s);
    assert_eq!(of(&days.rows[0]), ("1970-01-01".to_owned(), 2, 1, Some(60.0)));
    assert_eq!(of(&days.rows[1]), ("1970-01-02".to_owned(), 1, 1, None), "it began the day before");
}

#[test]
fn a_report_has_the_part_of_a_task_that_is_in_its_time() {
    let records = [task(1, 10 * HOUR, 4)];
    let half = table(ReportBy::User, 12 * HOUR, 13 * HOUR, &records);
    assert_eq!((half.rows[0].tasks, half.rows[0].gpu_hours_promised), (1, 1.0));
    assert_eq!((half.rows[0].ooms, half.rows[0].wait_mean_s), (0, None));
    assert_eq!(half.rows[0].energy_j, Some(720_000.0));
    let none = table(ReportBy::Day, 20 * HOUR, 30 * HOUR, &records);
    assert_eq!((none.rows.len(), none.total.tasks, none.total.energy_j), (0, 0, None));
}

#[test]
fn a_task_of_an_older_journal_is_told_by_its_last_attempt() {
    let mut record = task(1, 10 * HOUR, 2);
    record.accounting = Accounting::default();
    record.usage.add(coloc_model::Millis(HOUR), crate::owner::Slowed::ALONE, [0.5; 4]);
    let slot = coloc_model::Slot { gpu: coloc_model::GpuId(0), instance: None };
    let share = coloc_model::Share::Exclusive;
    record.placement = Some(Placement { slots: [slot].into(), share });
    let report = table(ReportBy::User, 0, 100 * HOUR, &[record]);
    let row = &report.rows[0];
    assert_eq!((row.gpu_hours_promised, row.smact_mean, row.energy_j), (2.0, Some(0.5), None));
}

#[test]
fn moments_of_requests_are_bounded() {
    assert_eq!(moment(f64::NAN), Moment(0));
    assert_eq!(moment(-5.0), Moment(0));
    assert_eq!(moment(1.5), Moment(1500));
    assert!(moment(f64::INFINITY).0 < u64::MAX / 2);
}
