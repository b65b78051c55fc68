//! What attempts use, added up.

use super::*;
use crate::hardware::EnergyReading;
use coloc_api::report::EnergyKind;

/// What the monitor sees when GPUs draw 200 W: their counters stand at so many seconds of that.
fn drawing(kit: &OwnerKit, seconds: f64) -> Sighting {
    let reading = EnergyReading { counter_j: Some(200.0 * seconds), ..EnergyReading::default() };
    let energy = kit.fleet.ids().map(|gpu| (gpu, reading)).collect();
    Sighting { energy, ..kit.sighting() }
}

#[test]
fn neighbours_share_what_their_gpu_draws_and_a_restart_loses_a_minute_at_most() {
    let mut kit = OwnerKit::new("1xA100-40GB", shared());
    let tasks = [kit.submit(declared(10)), kit.submit(declared(20))];
    for second in 0..=100u32 {
        kit.see(drawing(&kit, f64::from(second)));
        if second < 100 {
            kit.advance(1);
        }
    }
    let energy = |kit: &OwnerKit| tasks.map(|t| kit.live(t).record.accounting.energy_j().unwrap());
    let [first, second] = energy(&kit);
    assert!((first + second - 20_000.0).abs() < 1.0, "all that was drawn: {first} {second}");
    assert!((first - second).abs() < 1.0, "they are expected to work as much");
    let smact = kit.live(tasks[0]).record.accounting.smact_mean().unwrap();
    assert!((smact - 0.4).abs() < 0.01, "half of 0.8: {smact}");
    let total = kit.live(tasks[0]).record.accounting.total();
    assert!((total.promised_s - 25.0).abs() < 0.1, "10 of 40 GB for 100 s: {}", total.promised_s);
    assert!((total.held_s - 10.0).abs() < 0.5, "4 of 40 GB for 100 s: {}", total.held_s);

    kit.restart();
    let [kept, _] = energy(&kit);
    assert!(kept > first * 0.55 && kept <= first, "the last minute may be lost: {kept} of {first}");
    let before = kit.live(tasks[0]).record.accounting.total();
    kit.advance(50);
    kit.see(drawing(&kit, 150.0));
    kit.complete(tasks[0]);
    let row = kit.disk.row(tasks[0]).unwrap();
    let after = row.accounting.total();
    assert_eq!(after.watched_s, before.watched_s, "what was not seen is not made up");
    assert!((after.promised_s - 37.5).abs() < 0.2, "the promise held: {}", after.promised_s);
    assert_eq!(row.accounting.energy_kind(), Some(EnergyKind::Measured));
    assert_eq!((row.stopped, row.accounting.attempts.len()), (row.ended, 1));
}

#[test]
fn the_run_time_of_a_task_that_is_cancelled_while_it_recovers_ends_with_its_attempt() {
    let mut kit = OwnerKit::new("1xA100-40GB", shared());
    let (task, neighbour) = (kit.submit(declared(19)), kit.submit(declared(19)));
    kit.see(kit.sighting());
    kit.advance(10);
    kit.oom(task, gib(19), gib(5));
    kit.advance(500);
    assert_eq!(kit.phases([task, neighbour]), [TaskState::Recovering, TaskState::Running]);
    kit.change(task, Change::Cancel).expect("it waits");
    kit.run_until_idle();
    let row = kit.disk.row(task).unwrap();
    let (started, stopped, ended) =
        (row.started.unwrap(), row.left_its_gpus().unwrap(), row.ended.unwrap());
    assert!(stopped.0 - started.0 <= 11_000, "it ran for 10 s");
    assert!(ended.0 - stopped.0 >= 499_000, "and waited for 500 s");
    assert_eq!(row.accounting.attempts[0].ooms, 1);
    assert_eq!(row.accounting.ran_ms(), stopped.0 - started.0);
}
