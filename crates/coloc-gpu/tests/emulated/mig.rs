//! MIG: planned by us, created by the driver.

use crate::multisets::multisets;
use crate::stage::on_fleet;
use coloc_emu::Place as EmulatedPlace;
use coloc_gpu::driver::{Driver, DriverError};
use coloc_gpu::mig::{
    ApplyError, Board, Member, Place, Want, apply, disable, enable, plan, remove,
};
use coloc_model::mig::{Instance, Layout, MigTable};
use coloc_model::{Bytes, TaskId};
use coloc_physics::Profile;

fn task(at: usize) -> TaskId {
    TaskId(at as u32)
}

fn mask(place: &Place) -> u32 {
    ((1 << place.span) - 1) << place.start
}

/// The judge: whether a combination can be laid out on an empty board, by trying all places of all.
fn legal(board: &Board, set: &[usize], taken: u32, compute: u32) -> bool {
    let Some((&first, rest)) = set.split_first() else { return true };
    let profile = &board.profiles[first];
    let compute = compute + u32::from(profile.compute);
    compute <= 7
        && profile.places.iter().any(|place| {
            taken & mask(place) == 0 && legal(board, rest, taken | mask(place), compute)
        })
}

/// No profile more often than the driver says that it can be there.
fn within_numbers(board: &Board, set: &[usize]) -> bool {
    (0..board.profiles.len()).all(|kind| {
        set.iter().filter(|&&at| at == kind).count() as u32 <= board.profiles[kind].most
    })
}

fn clear(driver: &mut dyn Driver) {
    for instance in driver.mig_board(0).expect("a board").instances {
        for ci in instance.computes {
            driver.destroy_compute(0, instance.id, ci.id).expect("it is idle");
        }
        driver.destroy_instance(0, instance.id).expect("it is empty");
    }
}

/// What the driver says to a combination that cannot be: the first refusal, the largest first, at every place.
fn drivers_refusal(driver: &mut dyn Driver, board: &Board, set: &[usize]) -> Option<DriverError> {
    let mut refusal = None;
    for &kind in set.iter().rev() {
        let profile = &board.profiles[kind];
        let mut created = false;
        for &place in profile.places.iter().rev() {
            match driver.create_instance(0, profile.id, place) {
                Ok(_) => {
                    created = true;
                    break;
                }
                Err(error) => refusal = Some(error),
            }
        }
        if !created {
            break;
        }
        refusal = None;
    }
    clear(driver);
    refusal
}

#[test]
fn every_legal_combination_is_created_and_every_other_refused() {
    on_fleet(
        "mig::every_legal_combination_is_created_and_every_other_refused",
        "1xA100-40GB",
        |stage| {
            let mut driver = stage.driver();
            enable(&mut driver, 0).expect("the GPU is idle");
            let board = driver.mig_board(0).expect("a board");
            assert_eq!(board.profiles.len(), 7, "all profiles of the table: {board:?}");
            let (mut created, mut refused) = (0, 0);
            for set in multisets(board.profiles.len(), 8) {
                let names: Vec<&str> =
                    set.iter().map(|&at| board.profiles[at].name.as_str()).collect();
                let wants: Vec<Want> = names
                    .iter()
                    .enumerate()
                    .map(|(at, name)| Want::named(task(at), name))
                    .collect();
                let possible = within_numbers(&board, &set) && legal(&board, &set, 0, 0);
                match apply(&mut driver, 0, &wants, &[]) {
                    Ok(applied) => {
                        assert!(possible, "{names:?}");
                        let there = driver.mig_board(0).expect("a board").instances.len();
                        assert_eq!((there, applied.given.len()), (set.len(), set.len()));
                        created += 1;
                        clear(&mut driver);
                    }
                    Err(ApplyError::Refused(why)) => {
                        assert!(!possible, "{names:?}: {why}");
                        let by_driver = drivers_refusal(&mut driver, &board, &set);
                        assert!(
                            matches!(by_driver, Some(DriverError::InsufficientResources { .. })),
                            "{names:?}: the driver says {by_driver:?}, we say {why}"
                        );
                        refused += 1;
                    }
                    Err(error) => panic!("{names:?}: {error}"),
                }
            }
            println!("{created} combinations created, {refused} refused");
            assert_eq!(created + refused, 6434);
        },
    );
}

#[test]
fn boards_of_the_table_and_of_the_driver_agree() {
    let fleet = "1xA100-40GB,1xA100-80GB,1xH100-80GB,1xH200-141GB,1xA30-24GB";
    on_fleet("mig::boards_of_the_table_and_of_the_driver_agree", fleet, |stage| {
        let mut driver = stage.driver();
        for index in 0..5 {
            enable(&mut driver, index).expect("idle");
            let table = driver.identity(index).expect("it answers").model().mig().expect("MIG");
            let told = driver.mig_board(index).expect("a board");
            let planned = Board::from_table(table);
            for profile in &planned.profiles {
                let same = told.profiles.iter().find(|known| known.name == profile.name);
                let same = same.unwrap_or_else(|| panic!("{} on GPU {index}", profile.name));
                assert_eq!((same.compute, same.memory), (profile.compute, profile.memory));
                assert_eq!(same.places, profile.places, "{}", profile.name);
            }
        }
    });
}

#[test]
fn a_busy_gpu_is_not_partitioned_and_a_busy_instance_not_touched() {
    on_fleet(
        "mig::a_busy_gpu_is_not_partitioned_and_a_busy_instance_not_touched",
        "1xA100-40GB",
        |stage| {
            let mut driver = stage.driver();
            let profile = Profile::new(0.5, 0.3, 0.2, 0.2, Bytes::from_mib(2000));
            let slot = stage.occupy(EmulatedPlace::whole(0), Bytes::from_mib(1000), &profile);
            let refused = enable(&mut driver, 0).expect_err("somebody is on it");
            assert_eq!(refused, ApplyError::NotIdle { pids: vec![std::process::id()] });
            assert!(refused.to_string().contains(&format!("PID {}", std::process::id())));
            stage.leave(slot);
            enable(&mut driver, 0).expect("now it is idle");

            let wants = [Want::named(task(0), "3g.20gb"), Want::named(task(1), "1g.5gb")];
            let given = apply(&mut driver, 0, &wants, &[]).expect("it fits").given;
            let mig = coloc_emu::fleet::MigDevice {
                gi: given[0].gpu_instance.0,
                ci: given[0].compute_instance.0,
            };
            let place = EmulatedPlace { gpu: 0, mig: Some(mig) };
            let slot = stage.occupy(place, Bytes::from_mib(1000), &profile);
            assert!(matches!(disable(&mut driver, 0), Err(ApplyError::NotIdle { .. })));
            // The idle 1g is reused; the busy 3g is neither given away nor moved.
            let wants = [Want::named(task(2), "1g.5gb"), Want::named(task(3), "2g.10gb")];
            let more =
                apply(&mut driver, 0, &wants, &[]).expect("it fits beside the busy one").given;
            assert_eq!(more[0].gpu_instance, given[1].gpu_instance);
            let mut board = driver.mig_board(0).expect("a board");
            board.mark_busy(&driver.processes(0).expect("a list"));
            assert_eq!(board.instances.iter().filter(|instance| instance.busy).count(), 1);
            let whole = plan(&board, &[Want::named(task(4), "7g.40gb")]).expect_err("one is busy");
            assert!(whole.to_string().contains("4 of 7"), "{whole}");
            stage.leave(slot);
            disable(&mut driver, 0).expect("nobody is left");
        },
    );
}

#[test]
fn tasks_share_a_gpu_instance_by_compute_instances() {
    on_fleet("mig::tasks_share_a_gpu_instance_by_compute_instances", "1xA100-40GB", |stage| {
        let mut driver = stage.driver();
        enable(&mut driver, 0).expect("idle");
        let members =
            vec![Member { task: task(0), compute: 1 }, Member { task: task(1), compute: 2 }];
        let want = Want { members, memory: Bytes::from_mib(18_000), profile: None, place: None };
        let given = apply(&mut driver, 0, &[want], &[]).expect("it fits").given;
        assert_eq!(given[0].gpu_instance, given[1].gpu_instance);
        assert_ne!(given[0].device, given[1].device);
        let devices = driver.mig_devices(0).expect("a list");
        assert_eq!(devices.len(), 2);
        assert!(given.iter().all(|given| given.device.as_str().starts_with("MIG-")));
    });
}

#[test]
fn what_the_books_say_of_slices_is_what_the_board_has() {
    on_fleet("mig::what_the_books_say_of_slices_is_what_the_board_has", "1xA100-40GB", |stage| {
        let mut driver = stage.driver();
        enable(&mut driver, 0).expect("it is idle");
        let (mut books, mut alive) = (Layout::default(), Vec::<Instance>::new());
        let mut dice = 7u64;
        for round in 0..200 {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(round);
            let pick = (dice >> 33) as usize;
            let (memory, compute) =
                (Bytes::from_mib([3000, 9000, 15_000][pick % 3]), [1, 2, 3][pick / 3 % 3]);
            let wanted = books.smallest(&MigTable::A100_40, memory, compute);
            let Some(instance) = wanted.filter(|_| !pick.is_multiple_of(5) || alive.is_empty())
            else {
                books.destroy(alive.swap_remove(pick % alive.len()));
                continue;
            };
            let place = |instance: &Instance| Place { start: instance.start, span: instance.span };
            let kept: Vec<Place> = alive.iter().map(place).collect();
            let want = Want::placed(task(0), instance.compute, place(&instance));
            apply(&mut driver, 0, &[want], &kept).expect("the books allow it");
            books.create(instance);
            alive.push(instance);
            // The board may have idle ones besides; all that are counted on are there.
            let board = driver.mig_board(0).expect("a board");
            for counted in &alive {
                let there = board.instances.iter().find(|there| there.place == place(counted));
                let profile =
                    there.and_then(|there| board.profile(there.profile)).expect("it is there");
                assert_eq!((profile.compute, profile.memory), (counted.compute, counted.memory));
            }
        }
        assert!(remove(&mut driver, 0, Place { start: 15, span: 1 }).expect("nothing is there"));
    });
}
