//! How short a makespan could be at best.

use crate::trace::Trace;
use coloc_model::{Fleet, Millis, Time};

/// A lower bound of the makespan under any policy: a fluid that respects arrivals and SM work.
///
/// Work that arrives from some moment on cannot be done faster than all SMs of the fleet together do
/// it, and no task ends before it has run alone at full speed.
pub fn makespan_bound(trace: &Trace, fleet: &Fleet) -> Time {
    let devices = fleet.len() as f64;
    let mut bound = Time::START;
    let mut work_from_here = 0.0;
    for task in trace.tasks().iter().rev() {
        let sm = task.profile.activity.sm.get();
        work_from_here += sm * task.duration.secs() * f64::from(task.gpus);
        let drained = task.submit + Millis::from_secs_f64(work_from_here / devices);
        bound = bound.max(drained).max(task.submit + task.duration);
    }
    bound
}
