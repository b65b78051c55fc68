//! The job files of the Tiresias simulator: `job_id,num_gpu,submit_time,iterations,model_name,duration,
//! interval` in any order. They say nothing of memory or activity, so each job asks to be alone.

use super::TraceTask;
use super::read::{Known, Taken};
use super::table::{Fault, Layout, Row, empty};
use coloc_model::{Bytes, SignatureId};
use coloc_physics::{Phases, Profile};

pub(super) const LAYOUT: Layout = Layout::strict(
    &["num_gpu", "submit_time", "duration", "job_id", "iterations", "model_name", "interval"],
    3,
    "at least num_gpu,submit_time,duration",
);

/// What a job is taken to do to a GPU: it matters for energy alone, since no other job is beside it.
const SM: f64 = 0.6;
const MEMORY: Bytes = Bytes::from_mib(4096);

/// The profile of a job of which nothing is known.
pub(super) fn profile() -> Profile {
    Profile::new(SM, SM, SM / 2.0, SM / 2.0, MEMORY)
}

pub(super) fn task(row: &Row<'_>, known: &mut Known) -> Result<Taken, Fault> {
    let must = |column| move || empty(column, "a number above 0");
    Ok(Taken::Task(TraceTask {
        submit: row.time("submit_time")?,
        signature: SignatureId(known.names.number(row.text("model_name").unwrap_or("job"))),
        user: known.user(None, None),
        gpus: row.gpus("num_gpu")?.ok_or_else(must("num_gpu"))?,
        duration: row.span("duration")?.ok_or_else(must("duration"))?,
        profile: profile(),
        exclusive: true,
        priority: 0,
        phases: Phases::NONE,
        declared: None,
        recorded: None,
        checkpoint: None,
    }))
}
