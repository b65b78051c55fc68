//! Traces that name or describe each task: our own format, and CARMA's.
//!
//! `carma` has `submit_time_s,task` and takes everything else from the catalogue; `coloc` may describe
//! each task in full, and falls back on the catalogue for columns that are left out.

use super::read::{Known, Taken};
use super::table::{Fault, Layout, Row, empty};
use super::{TraceErrorKind, TraceTask};
use coloc_model::{Bytes, SignatureId};
use coloc_physics::Profile;
use coloc_physics::catalogue::{self, Workload};

/// The columns of the `coloc` format, in the order in which they are written.
pub(super) const COLUMNS: [&str; 13] = [
    "submit_s",
    "task",
    "user",
    "group",
    "gpus",
    "duration_s",
    "memory_mib",
    "gpu_active",
    "sm",
    "occupancy",
    "dram",
    "exclusive",
    "priority",
];
pub(super) const COLOC: Layout = Layout::strict(&COLUMNS, 2, "at least submit_s,task");
pub(super) const CARMA: Layout =
    Layout::strict(&["submit_time_s", "task"], 2, "submit_time_s,task");

pub(super) fn task(row: &Row<'_>, known: &mut Known) -> Result<Taken, Fault> {
    submitted(row, "submit_s", known)
}

pub(super) fn catalogued(row: &Row<'_>, known: &mut Known) -> Result<Taken, Fault> {
    submitted(row, "submit_time_s", known)
}

fn submitted(row: &Row<'_>, submit: &'static str, known: &mut Known) -> Result<Taken, Fault> {
    let name = row.text("task").ok_or_else(|| empty("task", "the name of a task"))?;
    let workload = catalogue::find(name);
    let missing =
        |column| ("task", TraceErrorKind::UnknownTask { name: name.to_owned(), missing: column });
    let submit = row.time(submit)?;
    let gpus = row.gpus("gpus")?;
    let duration = row.span("duration_s")?;
    let exclusive = row.parsed("exclusive", "0, 1, true or false", |text| match text {
        "0" | "false" => Some(false),
        "1" | "true" => Some(true),
        _ => None,
    })?;
    let priority = row.parsed("priority", "a whole number", |text| text.parse::<i32>().ok())?;
    let duration = duration.or(workload.map(Workload::duration));
    Ok(Taken::Task(TraceTask {
        submit,
        signature: SignatureId(known.names.number(name)),
        user: known.user(row.text("user"), row.text("group")),
        gpus: gpus.or(workload.map(|workload| workload.gpus)).unwrap_or(1),
        duration: duration.ok_or_else(|| missing("duration_s"))?,
        profile: profile(row, workload, missing)?,
        exclusive: exclusive.unwrap_or(false),
        priority: priority.unwrap_or(0),
    }))
}

fn profile(
    row: &Row<'_>,
    known: Option<&Workload>,
    missing: impl Fn(&'static str) -> Fault,
) -> Result<Profile, Fault> {
    let share = |column| row.number(column, "a share from 0 to 1", 0.0..=1.0);
    let base = known.map(Workload::profile);
    let memory = row.number("memory_mib", "MiB from 0 to 16777216", 0.0..=16_777_216.0)?;
    let memory = memory
        .map(Bytes::from_mib_f64)
        .or(base.map(|profile| profile.memory))
        .ok_or_else(|| missing("memory_mib"))?;
    let activity = base.map(|profile| profile.activity).unwrap_or_default();
    let sm = share("sm")?.or(base.map(|_| activity.sm.get()));
    let sm = sm.ok_or_else(|| missing("sm"))?;
    let gpu = share("gpu_active")?.unwrap_or(activity.gpu.get());
    let occupancy = share("occupancy")?.or(base.map(|_| activity.occupancy.get()));
    let dram = share("dram")?.or(base.map(|_| activity.dram.get()));
    // Where a trace gives SM activity only: about half of it in occupancy and in DRAM.
    Ok(Profile::new(gpu, sm, occupancy.unwrap_or(sm / 2.0), dram.unwrap_or(sm / 2.0), memory))
}
