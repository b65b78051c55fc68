//! What the monitor sees.

use super::*;
use crate::hardware::EnergyReading;
use coloc_api::report::EnergyKind;

#[test]
fn a_task_whose_gpu_is_lost_starts_again_elsewhere() {
    let mut kit = OwnerKit::new("2xA100-40GB", whole());
    let task = kit.submit(train());
    assert_eq!(kit.gpus(task), [0]);
    kit.lose_gpu(0, true);
    kit.fail(task);
    let record = &kit.live(task).record;
    assert_eq!((record.phase, record.losses, kit.gpus(task)), (TaskState::Running, 1, vec![1]));
    kit.lose_gpu(0, false);
    let other = kit.submit(train());
    assert_eq!(kit.gpus(other), [0], "it is back");
}

#[test]
fn a_task_that_hangs_on_a_lost_gpu_is_stopped() {
    let mut kit = OwnerKit::new("2xA100-40GB", whole());
    let task = kit.submit(train());
    kit.lose_gpu(0, true);
    kit.advance(61);
    kit.see(kit.sighting());
    assert_eq!((kit.live(task).record.attempt, kit.gpus(task)), (2, vec![1]));
}

#[test]
fn a_critical_error_drains_a_gpu_and_is_not_its_tasks_fault() {
    let mut kit = OwnerKit::new("2xA100-40GB", whole());
    let task = kit.submit(train());
    kit.machine.report(GpuId(0), 79);
    kit.run_until_idle();
    assert!(kit.owner().gpu_views()[0].drain_reason.as_ref().unwrap().contains("XID 79"));
    kit.fail(task);
    assert_eq!((kit.live(task).record.losses, kit.gpus(task)), (1, vec![1]));
}

#[test]
fn a_task_that_keeps_its_neighbours_memory_is_ended_and_comes_back() {
    let mut kit = OwnerKit::new("1xA100-40GB", shared());
    kit.used = gib(8);
    let (memory_watchdog, modest) = (kit.submit(declared(10)), kit.submit(declared(20)));
    assert_eq!(kit.gpus(modest), [0], "they share it");
    for _ in 0..4 {
        let mut seen = kit.sighting();
        seen.tasks.iter_mut().filter(|t| t.task == memory_watchdog).for_each(|t| t.used = gib(25));
        kit.see(seen);
        kit.advance(5);
    }
    assert!(kit.story(memory_watchdog).contains("is ended by the watchdog: it holds 25.0 GiB"));
    assert_eq!(
        (kit.phase(modest), kit.disk.row(memory_watchdog).unwrap().ooms),
        (TaskState::Running, 1)
    );
}

#[test]
fn what_a_gpu_shows_after_a_task_left_it_is_no_evidence() {
    let mut kit = one_gpu();
    let task = kit.submit(train());
    kit.see(kit.sighting());
    let busy = *kit.owner().scheduler.gpus().get(GpuId(0)).signal();
    assert!(busy.activity.sm.get() > 0.0);
    kit.advance(1);
    // Its processes are gone, and its end was not heard of yet.
    let idle = vec![(GpuId(0), GpuSignal::default())];
    kit.see(Sighting { gpus: idle.clone(), ..Sighting::default() });
    assert_eq!(*kit.owner().scheduler.gpus().get(GpuId(0)).signal(), busy);
    kit.complete(task);
    kit.see(Sighting { gpus: idle, ..Sighting::default() });
    assert_eq!(*kit.owner().scheduler.gpus().get(GpuId(0)).signal(), GpuSignal::default());
}

#[test]
fn logs_are_looked_at_where_nothing_else_tells_that_a_task_trains() {
    let mut kit = OwnerKit::new("1xA100-40GB", shared());
    let task = kit.submit(train());
    kit.see(kit.sighting());
    let first = kit.owner().signs.last.get(&task).copied().expect("its log was looked at");
    kit.advance(6);
    kit.see(kit.sighting());
    assert_ne!(kit.owner().signs.last.get(&task), Some(&first), "it was looked at again");
}

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
