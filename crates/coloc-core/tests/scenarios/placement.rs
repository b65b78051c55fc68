//! Which of the GPUs that may take a task gets it.

use crate::testkit::{World, exclusive, mps, task};
use coloc_core::Policy;
use coloc_core::policy::{Gate, MemoryBasis, Place, Queue};
use coloc_model::{Bytes, Millis, Share};

/// Where a task of 8 GiB goes on a server with this many GiB promised on each GPU.
fn by_memory(place: Place, booked: [u64; 4]) -> Option<u32> {
    let mut world = World::filled(mps(Queue::Fifo, place), booked.map(|gib| task().gib(gib)));
    let newcomer = world.submit(task().gib(8));
    world.runs(newcomer).then(|| world.gpus(newcomer)[0])
}

#[test]
fn placements_by_promised_memory() {
    let cases = [
        // First fit takes the first with room, best fit the tightest, MAGM the emptiest; lower ids
        // win among equals.
        ([35, 20, 10, 30], [Some(1), Some(3), Some(2)]),
        ([32, 32, 10, 31], [Some(0), Some(0), Some(2)]),
        ([10, 10, 10, 10], [Some(0), Some(0), Some(0)]),
        ([33, 33, 40, 32], [Some(3), Some(3), Some(3)]),
        ([33, 33, 40, 36], [None, None, None]),
        ([20, 30, 20, 30], [Some(0), Some(1), Some(0)]),
    ];
    for (booked, expected) in cases {
        let got = [Place::FirstFit, Place::BestFit, Place::Magm].map(|p| by_memory(p, booked));
        assert_eq!(got, expected, "promised {booked:?}");
    }
}

#[test]
fn magm_by_what_devices_report() {
    let memory = MemoryBasis::Reported { reserve: Bytes::ZERO };
    let policy = Policy { memory, ..mps(Queue::Fifo, Place::Magm) };
    let mut world = World::new("3xA100-40GB", policy);
    for (gpu, used) in [(0, 9), (1, 7), (2, 8)] {
        world.observe_gpu(gpu, 0.5, Bytes::from_mib(used));
    }
    let id = world.submit(task().gib(1));
    assert_eq!(world.gpus(id), [1]);
}

#[test]
fn exclusive_takes_empty_gpus_in_order() {
    let mut world = World::new("3xA100-40GB", exclusive(Queue::BestEffort));
    let [a, b, c, d] = world.submit_all([task().gib(1); 4]);
    assert_eq!([a, b, c].map(|id| world.gpus(id)[0]), [0, 1, 2]);
    assert!(world.waits(d), "room for its gigabyte is everywhere, an empty GPU nowhere");
    world.finish(b);
    assert_eq!(world.gpus(d), [1]);
}

#[test]
fn sharing_exclusively_forbids_occupied_gpus_whatever_the_placement() {
    let places = [Place::RoundRobin, Place::FirstFit, Place::BestFit, Place::Magm, Place::Lug];
    for place in places.into_iter().chain([Place::LeastInterference, Place::Any]) {
        let policy = Policy::plain(Queue::BestEffort, place, Share::Exclusive);
        let mut world = World::new("2xA100-40GB", policy);
        let ids = world.submit_all([task().gib(1); 3]);
        let on: Vec<_> = world.running().map(|id| world.gpus(id)).collect();
        assert_eq!(on, [[0], [1]], "{place:?}");
        assert!(world.waits(ids[2]), "{place:?}");
    }
}

#[test]
fn round_robin_goes_round() {
    let mut world = World::new("3xA100-40GB", mps(Queue::Fifo, Place::RoundRobin));
    let ids = world.submit_all([task().gib(1); 7]);
    assert_eq!(ids.map(|id| world.gpus(id)[0]), [0, 1, 2, 0, 1, 2, 0]);
}

#[test]
fn round_robin_skips_who_cannot_and_goes_on_behind_who_could() {
    let mut world = World::new("4xA100-40GB", mps(Queue::Fifo, Place::RoundRobin));
    let [_, full, ..] =
        world.submit_all([task().gib(1), task().gib(40), task().gib(1), task().gib(1)]);
    let [a, b, c] = world.submit_all([task().gib(2); 3]);
    assert_eq!([a, b, c].map(|id| world.gpus(id)[0]), [0, 2, 3]);
    world.finish(full);
    let [d, e] = world.submit_all([task().gib(2); 2]);
    assert_eq!([d, e].map(|id| world.gpus(id)[0]), [0, 1]);
}

#[test]
fn round_robin_wraps_inside_a_gang() {
    let mut world = World::new("3xA100-40GB", mps(Queue::Fifo, Place::RoundRobin));
    let [_, _, gang, next] =
        world.submit_all([task().gib(1), task().gib(1), task().gpus(2).gib(1), task().gib(1)]);
    assert_eq!(world.gpus(gang), [2, 0]);
    assert_eq!(world.gpus(next), [1]);
}

/// Where a task goes when GPUs show this SM activity.
fn lug(policy: Policy, sm: [f64; 4]) -> u32 {
    let mut world = World::new("4xA100-40GB", policy);
    for (gpu, sm) in (0..).zip(sm) {
        world.observe_gpu(gpu, sm, Bytes::ZERO);
    }
    world.advance(Millis::from_secs(600));
    let id = world.submit(task().gib(1));
    world.gpus(id)[0]
}

#[test]
fn lug_takes_the_least_utilized() {
    let plain = mps(Queue::Fifo, Place::Lug);
    let window = Millis::from_secs(90);
    let one = coloc_model::Fraction::ONE;
    let gates = [
        Gate::Open,
        Gate::TumblingMean { limit: one, window },
        Gate::Risk { sm: one, occupancy: one, dram: one },
    ];
    for gate in gates {
        let policy = Policy { gate, ..plain };
        assert_eq!(lug(policy, [0.5, 0.3, 0.2, 0.4]), 2, "{gate:?}");
        assert_eq!(lug(policy, [0.3, 0.3, 0.9, 0.3]), 0, "{gate:?}");
    }
}

#[test]
fn lug_by_expected_load_prefers_a_gpu_that_emptied() {
    let gate = Gate::Expected { limit: 1.2 };
    let mut world = World::new("2xA100-40GB", Policy { gate, ..mps(Queue::Fifo, Place::Lug) });
    let [first, second] = world.submit_all([task().gib(1).sm(0.2); 2]);
    assert_eq!([first, second].map(|id| world.gpus(id)[0]), [0, 1]);
    world.finish(first);
    let third = world.submit(task().gib(1).sm(0.2));
    assert_eq!(world.gpus(third), [0]);
}

#[test]
fn lug_ranks_by_the_score_that_the_gate_reads() {
    let hot = coloc_model::Fraction::ONE;
    let gate = Gate::Risk { sm: hot, occupancy: hot, dram: hot };
    let mut world = World::new("2xA100-40GB", Policy { gate, ..mps(Queue::Fifo, Place::Lug) });
    world.observe_gpu(0, 0.9, Bytes::ZERO);
    world.observe_gpu(1, 0.5, Bytes::ZERO);
    world.advance(Millis::from_secs(60));
    // Calm for two seconds only: most of its window is still busy.
    world.observe_gpu(0, 0.1, Bytes::ZERO);
    world.advance(Millis::from_secs(2));
    let id = world.submit(task().gib(1));
    assert_eq!(world.gpus(id), [1]);
}

/// Where a task with SM demand `newcomer` goes beside tasks of these demands.
fn least_interference(incumbents: [f64; 4], newcomer: f64) -> u32 {
    let fillers = incumbents.map(|sm| task().gib(1).sm(sm));
    let mut world = World::filled(mps(Queue::Fifo, Place::LeastInterference), fillers);
    let id = world.submit(task().gib(1).sm(newcomer));
    world.gpus(id)[0]
}

#[test]
fn least_interference_takes_the_neighbour_that_hurts_least() {
    assert_eq!(least_interference([0.5, 0.2, 0.4, 0.3], 0.5), 1);
    assert_eq!(least_interference([0.5, 0.4, 0.4, 0.5], 0.9), 1);
    assert_eq!(least_interference([0.9, 0.8, 0.7, 0.0], 0.1), 3);
}

#[test]
fn least_interference_prefers_an_empty_gpu() {
    let mut world = World::new("2xA100-40GB", mps(Queue::Fifo, Place::LeastInterference));
    let [a, b] = world.submit_all([task().gib(1).sm(0.05), task().gib(1).sm(0.05)]);
    assert_eq!([a, b].map(|id| world.gpus(id)[0]), [0, 1]);
}

#[test]
fn least_interference_is_about_our_tasks_on_every_fleet() {
    // What the monitor shows of a GPU is not what a newcomer will feel there.
    let mut world = World::new("2x2xA100-40GB", mps(Queue::Fifo, Place::LeastInterference));
    for gpu in 0..2 {
        world.observe_gpu(gpu, 0.3, Bytes::ZERO);
    }
    let gang = world.submit(task().gib(1).gpus(2));
    assert_eq!(world.gpus(gang), [0, 1]);
}

#[test]
fn least_interference_counts_what_incumbents_lose() {
    // One busy neighbour against three calm ones of the same sum: the newcomer feels the same, the
    // capacity is the same, but three incumbents lose.
    let policy = mps(Queue::Fifo, Place::LeastInterference);
    let mut world = World::filled(policy, [task().gib(10).sm(0.3), task().gib(40).sm(0.9)]);
    let calm = world.submit_all([task().gib(1).sm(0.3); 2]);
    assert_eq!(calm.map(|id| world.gpus(id)[0]), [0, 0], "only there is memory");
    let newcomer = world.submit(task().gib(0).sm(0.5));
    assert_eq!(world.gpus(newcomer), [1]);
}
