//! What the scheduler does, case by case: one file a subject.

mod testkit;

mod scenarios {
    mod backfill;
    mod best_effort;
    mod cancel;
    mod consolidate;
    mod contract;
    mod explain;
    mod fair;
    mod fifo;
    mod gang;
    mod host;
    mod inherit;
    mod learning;
    mod least_work;
    mod ledger;
    mod mig;
    mod placement;
    mod presets;
    mod priority;
    mod quota;
    mod recovery;
    mod screens;
    mod starvation;
    mod surprises;
    mod wakeups;
}
