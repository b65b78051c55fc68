//! Memory that was declared, is not used, and may be lent.

use super::CONTRACT;
use crate::testkit::{World, gib, secs, task};
use coloc_core::Refusal;

/// A lender that was seen to use 5 of 30 GiB.
fn lender(world: &mut World) -> coloc_model::TaskId {
    let lender = world.submit(task().lends(30));
    world.trains(lender, gib(5));
    lender
}

#[test]
fn what_is_lent_goes_to_those_who_allow_to_be_sent_away() {
    let mut world = World::new("1xA100-40GB", CONTRACT);
    lender(&mut world);
    let firm = world.submit(task().declares(20));
    assert_eq!(world.refusals(firm, 0), [Refusal::Memory { need: gib(20), available: gib(10) }]);
    let borrower = world.submit(task().declares(20).borrows());
    assert!(world.runs(borrower));
    let fits = world.submit(task().declares(10));
    assert!(world.runs(fits), "10 GiB are promised to no task");
    assert!(world.waits(firm));
}

#[test]
fn a_lender_gets_its_memory_back_at_once() {
    let mut world = World::new("1xA100-40GB", CONTRACT);
    let lender = lender(&mut world);
    let borrower = world.submit(task().declares(20).borrows());
    assert!(world.runs(borrower));
    world.observe_at_work(lender, gib(12), 0.5);
    assert!(world.waits(borrower), "it was requeued");
    assert_eq!(world.booked(0), gib(30));
    assert_eq!(world.scheduler.settling().recalled, 1);
    world.finish(lender);
    assert!(world.runs(borrower));
}

#[test]
fn a_borrower_that_never_needed_what_was_lent_stays() {
    let mut world = World::new("1xA100-40GB", CONTRACT);
    let lender = lender(&mut world);
    let own = world.submit(task().declares(8).borrows());
    assert!(world.runs(own));
    world.observe_at_work(lender, gib(30), 0.5);
    assert!(world.runs(own), "it has memory of its own");
}

#[test]
fn a_lender_that_dies_below_its_declaration_was_wronged() {
    let mut world = World::new("1xA100-40GB", CONTRACT);
    let lender = lender(&mut world);
    let borrower = world.submit(task().declares(25).borrows());
    assert!(world.runs(borrower));
    world.oom(lender, gib(20));
    assert!(world.runs(lender), "it is back, and the borrower is gone");
    assert!(world.waits(borrower));
    assert_eq!(world.booked(0), gib(30));
    world.advance(secs(1));
}

#[test]
fn who_died_for_want_of_what_it_lent_does_not_lend_again() {
    let mut world = World::new("1xA100-40GB", CONTRACT);
    let lender = world.submit(task().lends(30));
    world.trains(lender, gib(4));
    let borrower = world.submit(task().declares(30).borrows());
    assert!(world.runs(borrower));
    // It grows faster than the borrower goes, of which a monitor still sees what it holds.
    world.observe_at_work(lender, gib(11), 0.5);
    assert!(!world.runs(borrower));
    world.tell(coloc_core::Event::ForeignSeen { gpu: coloc_model::GpuId(0), used: gib(29) });
    world.oom(lender, gib(12));
    world.tell(coloc_core::Event::ForeignSeen { gpu: coloc_model::GpuId(0), used: gib(0) });
    assert!(world.runs(lender) && !world.runs(borrower));
    assert_eq!(world.scheduler.attempts(lender).map(|attempts| attempts.ooms), Some(0));
    world.trains(lender, gib(4));
    assert!(!world.runs(borrower), "nothing is lent");
    assert_eq!(world.booked(0), gib(30));
}
