//! What the monitor sees.

use super::*;

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
    assert!(
        kit.owner().gpu_views(coloc_model::Time(0))[0]
            .drain_reason
            .as_ref()
            .unwrap()
            .contains("XID 79")
    );
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

#[test]
fn a_task_says_how_far_it_is_while_it_runs() {
    let mut kit = OwnerKit::new("1xA100-40GB", shared());
    let task = kit.submit(train());
    assert_eq!(kit.owner().view(kit.live(task)).progress, None);
    for _ in 0..2 {
        kit.advance(10);
        kit.see(kit.sighting());
    }
    let told = kit.owner().view(kit.live(task)).progress.expect("its log tells");
    assert_eq!((told.unit.as_str(), told.total), ("iter", Some(1_000_000)));
    assert!(told.rate.is_some_and(|rate| rate > 0.0), "{told:?}");
    assert!(told.eta_s.is_some_and(|eta| eta > 0.0), "{told:?}");
    kit.complete(task);
    assert!(kit.owner().tasks.is_empty());
}

#[test]
fn a_slowdown_is_told_only_where_something_is_known() {
    let mut kit = OwnerKit::new("1xA100-40GB", shared());
    let tasks = [kit.submit(declared(4)), kit.submit(declared(4))];
    kit.see(kit.sighting());
    assert_eq!(kit.phases(tasks), [TaskState::Running; 2]);
    let slowed = |kit: &OwnerKit| {
        let gpus = kit.owner().gpu_views(coloc_model::Time::START);
        gpus[0].residents.iter().map(|resident| resident.slowdown).collect::<Vec<_>>()
    };
    assert_eq!(slowed(&kit), [None, None], "neither was ever seen alone");
    kit.advance(30);
    kit.see(kit.sighting());
    let usage = kit.live(tasks[0]).record.usage;
    assert!(
        usage.was_shared() && !usage.is_slowdown_known() && usage.slowdown() > 1.0,
        "{usage:?}"
    );
    kit.complete(tasks[0]);
    assert_eq!(slowed(&kit), [Some(1.0)], "alone it is not slowed");
}
