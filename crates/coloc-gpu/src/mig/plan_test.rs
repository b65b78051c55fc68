//! The planner against a judge that tries everything.

#[path = "../../tests/support/multisets.rs"]
mod multisets;

use super::*;
use crate::device::{DeviceProcess, ProcessKind};
use crate::mig::ComputeInstance;
use coloc_model::mig::MigTable;
use proptest::prelude::*;

fn a100() -> Board {
    Board::from_table(&MigTable::A100_40)
}

fn task(at: usize) -> TaskId {
    TaskId(at as u32)
}

fn named(names: &[&str]) -> Vec<Want> {
    names.iter().enumerate().map(|(at, name)| Want::named(task(at), name)).collect()
}

fn existing(board: &mut Board, id: u32, name: &str, start: u8, busy: bool) {
    let profile = board.profiles.iter().find(|p| p.name == name).expect("known profile");
    let place = Place { start, span: profile.span() };
    let computes = vec![ComputeInstance { id: ComputeInstanceId(0), slices: profile.compute }];
    let instance =
        ExistingInstance { id: GpuInstanceId(id), profile: profile.id, place, computes, busy };
    board.instances.push(instance);
}

/// Whether these profiles fit beside the masks taken so far: by trying all places of all.
fn possible(board: &Board, profiles: &[usize], taken: u16, compute: u32) -> bool {
    let Some((&first, rest)) = profiles.split_first() else { return true };
    let profile = &board.profiles[first];
    let compute = compute + u32::from(profile.compute);
    compute <= u32::from(board.compute_slices())
        && profile.places.iter().any(|place| {
            taken & place.mask() == 0 && possible(board, rest, taken | place.mask(), compute)
        })
}

/// Checks that a plan gives every want what it needs, and that slices are given once.
fn assert_sound(board: &Board, wants: &[Want], plan: &MigPlan) {
    let destroyed = |id| plan.steps.contains(&Step::DestroyInstance(id));
    let kept = board.instances.iter().filter(|instance| !destroyed(instance.id));
    let mut taken = 0u16;
    let mut compute = 0;
    for instance in kept.clone() {
        taken |= instance.place.mask();
        compute += u32::from(board.profile(instance.profile).expect("known").compute);
    }
    assert!(!board.instances.iter().any(|instance| instance.busy && destroyed(instance.id)));
    for (want, assignment) in wants.iter().zip(&plan.assignments) {
        let profile = board.profile(assignment.profile).expect("known");
        assert!(profile.memory >= want.memory && profile.places.contains(&assignment.place));
        assert_eq!(assignment.slices.len(), want.members.len());
        match assignment.reused {
            Some(id) => {
                let instance = board.instances.iter().find(|i| i.id == id).expect("it is there");
                assert!(!instance.busy && !destroyed(id));
                assert_eq!((instance.profile, instance.place), (profile.id, assignment.place));
            }
            None => {
                assert_eq!(taken & assignment.place.mask(), 0, "slices are given once: {plan:?}");
                taken |= assignment.place.mask();
                compute += u32::from(profile.compute);
            }
        }
    }
    assert!(compute <= u32::from(board.compute_slices()));
}

#[test]
fn every_legal_combination_is_planned_and_every_other_refused() {
    let board = a100();
    let (mut legal, mut refused) = (0, 0);
    for profiles in multisets::multisets(board.profiles.len(), 8).iter() {
        let names: Vec<&str> =
            profiles.iter().map(|&at| board.profiles[at].name.as_str()).collect();
        let wants = named(&names);
        match plan(&board, &wants) {
            Ok(plan) => {
                assert!(possible(&board, profiles, 0, 0), "{names:?}");
                assert_sound(&board, &wants, &plan);
                legal += 1;
            }
            Err(refusal) => {
                assert!(!possible(&board, profiles, 0, 0), "{names:?}: {refusal}");
                assert!(!matches!(
                    refusal,
                    MigRefusal::TooLarge { .. } | MigRefusal::NoSuchProfile { .. }
                ));
                refused += 1;
            }
        }
    }
    // The number of combinations that the judge finds; it changes only with the table.
    assert_eq!(legal + refused, 3002);
    assert!(legal > 50, "{legal} legal combinations");
}

#[test]
fn what_was_decided_elsewhere_lies_where_it_was_decided() {
    let mut board = a100();
    existing(&mut board, 1, "2g.10gb", 4, false);
    existing(&mut board, 2, "1g.5gb", 0, true);
    let placed = |compute, start, span| [Want::placed(task(0), compute, Place { start, span })];
    // An idle instance of the same size and place is reused.
    let reused = plan(&board, &placed(2, 4, 2)).expect("it is there");
    assert_eq!((reused.assignments[0].reused, reused.steps.len()), (Some(GpuInstanceId(1)), 0));
    // One of another size is in the way, though the same size would fit elsewhere.
    let other = plan(&board, &placed(1, 4, 2)).expect("the idle one goes");
    assert_eq!(other.assignments[0].place, Place { start: 4, span: 2 });
    assert!(other.steps.contains(&Step::DestroyInstance(GpuInstanceId(1))), "{other:?}");
    assert_sound(&board, &placed(1, 4, 2), &other);
    // A busy one never goes, and nothing lies where the board allows nothing.
    assert!(matches!(plan(&board, &placed(4, 0, 4)), Err(MigRefusal::NoLayout { .. })));
    let nowhere = plan(&board, &placed(3, 1, 4)).expect_err("three slices from slice 1 on");
    assert_eq!(nowhere, MigRefusal::NoSuchPlace { compute: 3, start: 1, span: 4 });
    // A task that may not have come yet is not disturbed.
    board.mark_kept(&[Place { start: 4, span: 2 }]);
    assert!(plan(&board, &placed(2, 4, 2)).is_err());
}

#[test]
fn the_order_of_tasks_does_not_matter() {
    // The driver's guide: 19,19,14,9 fails in this order, 9,19,14,19 succeeds.
    let wants = named(&["1g.5gb", "1g.5gb", "2g.10gb", "3g.20gb"]);
    let plan = plan(&a100(), &wants).expect("legal");
    assert_sound(&a100(), &wants, &plan);
    let first = plan.steps.first().expect("steps");
    assert!(matches!(first, Step::CreateInstance { want: 3, .. }), "the largest first: {first:?}");
}

#[test]
fn refusals_say_what_is_short() {
    let says = |names: &[&str]| match plan(&a100(), &named(names)) {
        Ok(plan) => panic!("{names:?} was planned: {plan:?}"),
        Err(refusal) => refusal.to_string(),
    };
    insta::assert_snapshot!(says(&["1g.5gb"; 8]), @"8 of 1g.5gb are wanted, and the board holds 7");
    insta::assert_snapshot!(says(&["4g.20gb", "2g.10gb", "2g.10gb"]), @"8 compute slices are wanted, and 7 of 7 are not in use");
    insta::assert_snapshot!(says(&["3g.20gb", "3g.20gb", "1g.5gb"]), @"9 memory slices are wanted, and 8 of 8 are not in use");
    insta::assert_snapshot!(says(&["9g.90gb"]), @r#"this board has no profile "9g.90gb"; it has 1g.5gb, 1g.10gb, 2g.10gb, 3g.20gb, 4g.20gb, 7g.40gb"#);
    let mut board = a100();
    existing(&mut board, 1, "1g.5gb", 1, true);
    existing(&mut board, 2, "1g.5gb", 5, true);
    let nowhere = plan(&board, &named(&["3g.20gb"])).expect_err("no run of four slices is free");
    insta::assert_snapshot!(nowhere, @"3g.20gb would suffice in slices but cannot be laid out beside 1g.5gb@1 (busy), 1g.5gb@5 (busy)");
    let huge = plan(&a100(), &[Want::alone(task(0), Bytes::from_mib(50_000), 1)]);
    insta::assert_snapshot!(huge.expect_err("too large"), @"no instance of this board has 48.8 GiB and 1 compute slices; the largest is 7g.40gb");
}

#[test]
fn idle_instances_are_reused_and_busy_ones_left_alone() {
    let mut board = a100();
    existing(&mut board, 1, "3g.20gb", 4, false);
    existing(&mut board, 2, "2g.10gb", 0, true);
    let wants = [
        Want::alone(task(0), Bytes::from_mib(15_000), 1),
        Want::alone(task(1), Bytes::from_mib(4000), 1),
    ];
    let plan = plan(&board, &wants).expect("fits");
    assert_sound(&board, &wants, &plan);
    assert_eq!(plan.assignments[0].reused, Some(GpuInstanceId(1)));
    assert_eq!(plan.steps.len(), 2, "one instance is made: {:?}", plan.steps);
}

#[test]
fn idle_instances_in_the_way_are_destroyed() {
    let mut board = a100();
    (0..7).for_each(|at| existing(&mut board, u32::from(at), "1g.5gb", at, at == 6));
    let wants = named(&["4g.20gb"]);
    let plan = plan(&board, &wants).expect("fits beside the busy one");
    assert_sound(&board, &wants, &plan);
    let destroyed = plan.steps.iter().filter(|s| matches!(s, Step::DestroyInstance(_))).count();
    assert_eq!(destroyed, 4, "two idle ones beside it stay: {:?}", plan.steps);
    board.instances.iter_mut().for_each(|instance| instance.busy = true);
    let refusal = super::plan(&board, &wants).expect_err("everything is in use");
    insta::assert_snapshot!(refusal, @"4 compute slices are wanted, and 0 of 7 are not in use");
}

#[test]
fn a_larger_instance_serves_when_no_smaller_one_fits() {
    let mut board = a100();
    existing(&mut board, 1, "1g.5gb", 1, true);
    existing(&mut board, 2, "1g.5gb", 3, true);
    existing(&mut board, 3, "1g.5gb", 5, true);
    // 9 GiB wants two slices; only 6 and 7 are free together, where a 2g may not start.
    let wants = [Want::alone(task(0), Bytes::from_mib(9000), 1)];
    let plan = plan(&board, &wants).expect("fits");
    assert_eq!(plan.assignments[0].place, Place { start: 6, span: 2 });
    assert_sound(&board, &wants, &plan);
}

#[test]
fn tasks_may_share_an_instance() {
    let members = vec![Member { task: task(0), compute: 1 }, Member { task: task(1), compute: 2 }];
    let want = Want { members, memory: Bytes::from_mib(18_000), profile: None, place: None };
    let plan = plan(&a100(), &[want]).expect("fits");
    assert_eq!(plan.assignments[0].slices, [1, 2]);
    let creates = plan.steps.iter().filter(|s| matches!(s, Step::CreateCompute { .. })).count();
    assert_eq!((plan.steps.len(), creates), (3, 2));
}

#[test]
fn a_process_that_is_nowhere_keeps_every_instance_busy() {
    let mut board = a100();
    existing(&mut board, 1, "3g.20gb", 4, false);
    existing(&mut board, 2, "3g.20gb", 0, false);
    let process = |gpu_instance| DeviceProcess {
        pid: 7,
        kind: ProcessKind::Compute,
        memory: None,
        gpu_instance,
        compute_instance: None,
    };
    let mut told = board.clone();
    told.mark_busy(&[process(Some(2))]);
    assert_eq!(told.to_string(), "3g.20gb@4, 3g.20gb@0 (busy)");
    board.mark_busy(&[process(None)]);
    assert!(board.instances.iter().all(|instance| instance.busy));
}

/// Compute slices, MiB, the most there may be, and places.
type DrawnProfile = (u8, u64, u32, Vec<(u32, u32)>);

proptest! {
    #[test]
    fn boards_that_make_no_sense_are_survived(
        profiles in prop::collection::vec((any::<u8>(), 0u64..100_000, 0u32..4, prop::collection::vec((0u32..20, 0u32..20), 0..4)), 0..5),
        there in prop::collection::vec((0u32..6, 0u32..20, 0u32..20, any::<bool>()), 0..80),
        asked in prop::collection::vec((0u64..100_000, any::<u8>()), 0..4),
    ) {
        let place = |&(start, span): &(u32, u32)| Place::new(start, span);
        let profile = |(id, (compute, mib, most, places)): (usize, DrawnProfile)| BoardProfile {
            id: id as u32,
            name: format!("{id}"),
            kind: ProfileKind::Plain,
            compute,
            memory: Bytes::from_mib(mib),
            most,
            places: places.iter().filter_map(place).collect(),
        };
        let instance = |(id, (profile, start, span, busy)): (usize, (u32, u32, u32, bool))| {
            let place = Place::new(start, span)?;
            let id = GpuInstanceId(id as u32);
            Some(ExistingInstance { id, profile, place, computes: Vec::new(), busy })
        };
        let profiles = profiles.into_iter().enumerate().map(profile).collect();
        let board = Board::new(profiles, there.into_iter().enumerate().filter_map(instance).collect());
        let want = |(at, (mib, compute)): (usize, (u64, u8))| Want::alone(task(at), Bytes::from_mib(mib), compute);
        let wants: Vec<Want> = asked.into_iter().enumerate().map(want).collect();
        if let Err(refusal) = plan(&board, &wants) {
            prop_assert!(!refusal.to_string().is_empty());
        }
    }

    #[test]
    fn plans_are_sound_on_boards_in_any_state(
        there in prop::collection::vec((0usize..6, 0usize..7, any::<bool>()), 0..8),
        asked in prop::collection::vec((0u64..45_000, 1u8..8), 0..6),
    ) {
        let mut board = a100();
        let (mut taken, mut compute) = (0u16, 0);
        for (id, (profile, place, busy)) in there.into_iter().enumerate() {
            let profile = board.profiles[profile].clone();
            let place = profile.places[place % profile.places.len()];
            if taken & place.mask() == 0 && compute + profile.compute <= 7 {
                taken |= place.mask();
                compute += profile.compute;
                existing(&mut board, id as u32, &profile.name, place.start, busy);
            }
        }
        let wants: Vec<Want> = asked
            .into_iter()
            .enumerate()
            .map(|(at, (mib, compute))| Want::alone(task(at), Bytes::from_mib(mib), compute))
            .collect();
        if let Ok(plan) = plan(&board, &wants) {
            assert_sound(&board, &wants, &plan);
        }
    }
}
