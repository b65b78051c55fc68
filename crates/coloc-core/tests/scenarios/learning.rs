//! What is learned of a kind of task, and what that changes.

use crate::testkit::{World, gib, mib, mps, secs, task};
use coloc_core::policy::{Gate, Knowledge, Place, Queue};
use coloc_core::{Event, Policy};
use coloc_model::{Fraction, InterferenceProfile, Lesson, SignatureId};

const LEARNING: Policy = Policy { learn: true, ..mps(Queue::BestEffort, Place::FirstFit) };
const KIND: SignatureId = SignatureId(1);

#[test]
fn the_peak_of_a_kind_is_remembered() {
    let mut world = World::new("1xA100-40GB", LEARNING);
    let id = world.submit(task().kind(1).gib(20));
    world.observe(id, mib(10_000));
    world.advance(secs(60));
    let peak = world.scheduler.beliefs().peak(KIND).expect("it was seen");
    assert_eq!((peak.exact, peak.padded), (mib(10_000), mib(10_300)));
    world.finish(id);
    world.submit(task().kind(1).gib(20));
    assert_eq!(world.booked(0), mib(10_300), "the next of its kind asks for no more");
}

#[test]
fn an_estimate_that_covers_what_was_seen_may_know_better() {
    let mut world = World::new("1xA100-40GB", LEARNING);
    let id = world.submit(task().kind(1).mib(10_100));
    world.observe(id, mib(10_000));
    world.advance(secs(60));
    world.finish(id);
    world.submit(task().kind(1).mib(10_100));
    assert_eq!(world.booked(0), mib(10_100));
}

#[test]
fn an_estimate_that_was_too_low_is_not_believed_again() {
    let mut world = World::new("1xA100-40GB", LEARNING);
    let id = world.submit(task().kind(1).gib(1));
    world.oom(id, mib(10_000));
    world.finish(id);
    world.submit(task().kind(1).gib(1));
    assert_eq!(world.booked(0), mib(10_300));
}

#[test]
fn what_nobody_saw_is_not_learned() {
    let mut world = World::new("1xA100-40GB", LEARNING);
    let id = world.submit(task().kind(1).gib(20));
    world.advance(secs(600));
    world.finish(id);
    assert_eq!(world.scheduler.beliefs().peak(KIND), None);
    world.submit(task().kind(1).gib(20));
    assert_eq!(world.booked(0), gib(20), "no sighting is not a sighting of nothing");
}

#[test]
fn knowledge_may_come_from_sightings_alone() {
    let knowledge = Knowledge::Unknown { min_free: gib(8) };
    let mut world = World::new("1xA100-40GB", Policy { knowledge, ..LEARNING });
    let id = world.submit(task().kind(1));
    world.observe(id, mib(1000));
    world.advance(secs(60));
    world.finish(id);
    world.submit(task().kind(1));
    assert_eq!(world.booked(0), mib(1030));
}

#[test]
fn activity_is_learned_from_a_task_that_is_alone() {
    let mut world = World::new("1xA100-40GB", LEARNING);
    let id = world.submit(task().kind(1).gib(1).sm(0.9));
    world.observe_gpu(0, 0.3, gib(1));
    world.advance(secs(60));
    let beliefs = world.scheduler.beliefs();
    assert!((beliefs.sm_demand(KIND, None) - 0.3).abs() < 1e-9);
    assert!(world.runs(id));
}

#[test]
fn what_a_monitor_shows_first_is_of_the_time_before() {
    let mut world = World::new("1xA100-40GB", LEARNING);
    world.submit(task().kind(1).gib(1).sm(0.9));
    world.observe_gpu(0, 0.0, gib(1));
    world.advance(secs(10));
    world.observe_gpu(0, 0.3, gib(1));
    world.advance(secs(50));
    assert!((world.scheduler.beliefs().sm_demand(KIND, None) - 0.3).abs() < 1e-9);
}

#[test]
fn activity_of_a_pair_is_split_by_what_is_known() {
    let mut world = World::new("1xA100-40GB", LEARNING);
    let known = world.submit(task().kind(7).gib(1).sm(0.2));
    world.observe_gpu(0, 0.2, gib(1));
    world.observe(known, gib(1));
    world.advance(secs(60));
    let id = world.submit(task().kind(1).gib(1));
    world.observe_gpu(0, 0.5, gib(2));
    world.observe(id, gib(1));
    world.advance(secs(80));
    let learned = world.scheduler.beliefs().sm_demand(KIND, None);
    // Most of what both do more than was believed is the doing of the one that was never seen.
    assert!((0.25..0.4).contains(&learned), "{learned}");
}

#[test]
fn a_saturated_gpu_teaches_nothing_about_one_of_several() {
    let mut world = World::new("1xA100-40GB", LEARNING);
    world.submit_all([task().kind(7).gib(1), task().kind(1).gib(1)]);
    world.observe_gpu(0, 0.9, gib(2));
    world.advance(secs(60));
    assert!(!world.scheduler.beliefs().knows(KIND));
}

#[test]
fn run_times_are_learned_from_tasks_that_completed() {
    let mut world = World::new("1xA100-40GB", LEARNING);
    for (span, completes) in [(100, true), (5, false), (200, true)] {
        let id = world.submit(task().kind(1).gib(1));
        world.advance(secs(span));
        if completes { world.finish(id) } else { world.fail(id) }
    }
    assert_eq!(world.scheduler.beliefs().run_time(KIND), Some(secs(150)));
}

#[test]
fn nothing_is_learned_unless_asked_for() {
    let mut world = World::new("1xA100-40GB", mps(Queue::BestEffort, Place::FirstFit));
    let id = world.submit(task().kind(1).gib(20));
    world.observe(id, gib(1));
    world.observe_gpu(0, 0.3, gib(1));
    world.advance(secs(600));
    world.finish(id);
    let beliefs = world.scheduler.beliefs();
    assert_eq!((beliefs.peak(KIND), beliefs.run_time(KIND)), (None, None));
    assert!(!beliefs.knows(KIND));
}

#[test]
fn a_waiting_kind_profits_from_what_is_learned_of_it() {
    for queue in [Queue::Fifo, Queue::BestEffort, Queue::Backfill] {
        let mut world =
            World::filled(Policy { queue, ..LEARNING }, [task().gib(10), task().gib(30)]);
        // Estimated at 20 GiB: the first fits on GPU 0, the second nowhere. It really takes five.
        let [seen, waiting] = world.submit_all([task().kind(1).gib(20); 2]);
        assert_eq!(world.gpus(seen), [0], "{queue:?}");
        world.observe(seen, gib(5));
        world.advance(secs(60));
        assert!(world.runs(waiting), "{queue:?}: it asks for 5.15 GiB now");
    }
}

#[test]
fn a_gpu_elsewhere_that_now_suffices_is_found() {
    for queue in [Queue::Fifo, Queue::BestEffort, Queue::Backfill] {
        let policy = Policy { queue, ..LEARNING };
        let mut world = World::filled(policy, [task().gib(31), task().gib(30)]);
        let [seen, waiting] = world.submit_all([task().kind(1).gib(9), task().kind(1).gib(20)]);
        assert_eq!(world.gpus(seen), [0], "{queue:?}");
        // GPU 0 stays as it is, full and too busy to tell which task does what; GPU 1 is as expected.
        world.observe_gpu(0, 0.9, gib(40));
        world.observe_gpu(1, 0.5, gib(30));
        world.observe(seen, gib(9));
        world.advance(secs(60));
        assert!(world.runs(waiting), "{queue:?}: 9.3 GiB fit into the ten of GPU 1");
    }
}

#[test]
fn a_gate_opens_when_a_task_turns_out_to_be_calm() {
    let gate = Gate::Expected { limit: 1.0 };
    let mut world = World::new("1xA100-40GB", Policy { gate, ..LEARNING });
    world.submit(task().kind(1).gib(1).sm(0.9));
    let waiting = world.submit(task().gib(1).sm(0.5));
    assert!(world.waits(waiting));
    world.observe_gpu(0, 0.2, gib(1));
    world.advance(secs(60));
    assert!(world.runs(waiting), "it keeps a fifth of the GPU busy, not nine tenths");
}

#[test]
fn a_task_that_loads_its_program_is_not_taken_for_a_calm_one() {
    let mut world = World::new("1xA100-40GB", LEARNING);
    let id = world.submit(task().kind(1).gib(1));
    world.observe_gpu(0, 0.0, gib(0));
    world.advance(secs(35));
    world.observe_gpu(0, 0.6, gib(1));
    world.observe(id, gib(1));
    world.advance(secs(25));
    assert!((world.scheduler.beliefs().sm_demand(KIND, None) - 0.6).abs() < 1e-9);
}

#[test]
fn a_neighbour_that_was_measured_to_be_rude_is_avoided() {
    let policy = mps(Queue::Fifo, Place::LeastInterference);
    let rude = Lesson {
        interference: Some(InterferenceProfile { sensitivity: 1.0, pressure: 4.0 }),
        ..Lesson::default()
    };
    let mild = Lesson {
        interference: Some(InterferenceProfile { sensitivity: 0.5, pressure: 0.5 }),
        ..Lesson::default()
    };
    for (lesson, chosen) in [(None, 0), (Some(rude), 1), (Some(mild), 0)] {
        let mut world = World::new("2xA100-40GB", policy);
        if let Some(lesson) = lesson {
            let taught = Event::Taught { signature: KIND, lesson };
            world.tell(taught);
        }
        world.submit_all([task().kind(1).gib(1).sm(0.4), task().kind(2).gib(1).sm(0.45)]);
        let newcomer = world.submit(task().kind(3).gib(1).sm(0.4));
        assert_eq!(world.gpus(newcomer), [chosen], "{lesson:?}");
    }
}

#[test]
fn what_was_measured_counts_before_anything_was_seen() {
    let mut world = World::new("1xA100-40GB", LEARNING);
    let lesson = Lesson { sm: Some(Fraction::new(0.8)), peak: Some(mib(2000)), interference: None };
    world.tell(Event::Taught { signature: KIND, lesson });
    world.submit(task().kind(1).gib(20));
    assert_eq!(world.booked(0), mib(2060));
    assert_eq!(world.scheduler.beliefs().sm_demand(KIND, None), 0.8);
}
