//! Traces that name or describe each task: our own format, and CARMA's.
//!
//! `carma` has `submit_time_s,task` and takes everything else from the catalogue; `coloc` may describe
//! each task in full, and falls back on the catalogue for columns that are left out.

use super::read::{Known, Taken};
use super::table::{Fault, Layout, Row, empty, wrong};
use super::{Checkpoint, Recorded, TraceErrorKind, TraceTask};
use coloc_model::{Bytes, Millis, SignatureId};
use coloc_physics::catalogue::{self, Workload};
use coloc_physics::{Evaluate, LateGrowth, Load, Phases, Profile};

/// The columns of the `coloc` format, in the order in which they are written.
pub(super) const COLUMNS: [&str; 24] = [
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
    "load_s",
    "load_mib",
    "eval_every_s",
    "eval_s",
    "eval_mib",
    "grow_after_s",
    "grow_mib",
    "declared_mib",
    "estimate_mib",
    "bound_mib",
    "checkpoint_s",
];
/// Columns before those of phases, declarations and estimates.
const USUAL: usize = 13;
const MIB: &str = "MiB from 0 to 16777216";
pub(super) const COLOC: Layout = Layout::strict(&COLUMNS, 2, "at least submit_s,task");
pub(super) const CARMA: Layout =
    Layout::strict(&["submit_time_s", "task"], 2, "submit_time_s,task");

pub(super) fn task(row: &Row<'_>, known: &mut Known) -> Result<Taken, Fault> {
    submitted(row, "submit_s", known)
}

pub(super) fn catalogued(row: &Row<'_>, known: &mut Known) -> Result<Taken, Fault> {
    submitted(row, "submit_time_s", known)
}

fn submitted(row: &Row<'_>, at: &'static str, known: &mut Known) -> Result<Taken, Fault> {
    let name = row.text("task").ok_or_else(|| empty("task", "the name of a task"))?;
    let workload = catalogue::find(name);
    let missing =
        |column| ("task", TraceErrorKind::UnknownTask { name: name.to_owned(), missing: column });
    let submit = row.time(at)?;
    let gpus = row.gpus("gpus")?;
    let duration = row.span("duration_s")?;
    let exclusive = row.parsed("exclusive", "0, 1, true or false", |text| match text {
        "0" | "false" => Some(false),
        "1" | "true" => Some(true),
        _ => None,
    })?;
    let priority = row.parsed("priority", "a whole number", |text| text.parse::<i32>().ok())?;
    // Most files have none of these columns, and are long.
    let special = at == "submit_s" && row.has_any_from(USUAL);
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
        phases: if special { phases(row)? } else { Phases::NONE },
        declared: if special { mib(row, "declared_mib")? } else { None },
        recorded: if special { recorded(row)? } else { None },
        checkpoint: if special { checkpoint(row)? } else { None },
    }))
}

/// Memory, if the column has any.
fn mib(row: &Row<'_>, column: &'static str) -> Result<Option<Bytes>, Fault> {
    Ok(row.number(column, MIB, 0.0..=16_777_216.0)?.map(Bytes::from_mib_f64))
}

/// What a task does beside warming up and training. Columns that belong together come together.
fn phases(row: &Row<'_>) -> Result<Phases, Fault> {
    let with = |column: &'static str| {
        mib(row, column)?.ok_or_else(|| empty(column, "MiB: the columns beside it need it"))
    };
    let load = match row.span("load_s")? {
        Some(span) => Some(Load { span, held: mib(row, "load_mib")?.unwrap_or_default() }),
        None if row.text("load_mib").is_some() => {
            return Err(empty("load_s", "seconds: load_mib needs them"));
        }
        None => None,
    };
    let evaluate = match (row.span("eval_every_s")?, row.span("eval_s")?) {
        (Some(every), Some(span)) if every >= Millis::from_secs(1) && span < every => {
            Some(Evaluate { every, span, held: with("eval_mib")? })
        }
        (None, None) if row.text("eval_mib").is_none() => None,
        _ => {
            let expected = "seconds, at least 1, with a shorter eval_s and eval_mib beside them";
            return Err(wrong("eval_every_s", row.text("eval_every_s").unwrap_or(""), expected));
        }
    };
    let late = match row.span("grow_after_s")? {
        Some(after) => Some(LateGrowth { after, held: with("grow_mib")? }),
        None if row.text("grow_mib").is_some() => {
            return Err(empty("grow_after_s", "seconds: grow_mib needs them"));
        }
        None => None,
    };
    Ok(Phases { load, evaluate, late })
}

/// How often a task saves its work.
fn checkpoint(row: &Row<'_>) -> Result<Option<Checkpoint>, Fault> {
    if row.text("checkpoint_s") == Some("none") {
        return Ok(Some(Checkpoint::Never));
    }
    let expected = "seconds from 0 (whenever it is told to) to 31536000, or none";
    let every = row.number("checkpoint_s", expected, 0.0..=31_536_000.0)?;
    Ok(every.map(|every| Checkpoint::Every(Millis::from_secs_f64(every))))
}

/// What was estimated of a task when it was submitted.
fn recorded(row: &Row<'_>) -> Result<Option<Recorded>, Fault> {
    match (mib(row, "estimate_mib")?, mib(row, "bound_mib")?) {
        (None, None) => Ok(None),
        (None, Some(_)) => Err(empty("estimate_mib", "MiB: bound_mib needs them")),
        (Some(peak), bound) if bound.is_some_and(|bound| bound < peak) => {
            let expected = "MiB, no less than estimate_mib";
            Err(wrong("bound_mib", row.text("bound_mib").unwrap_or(""), expected))
        }
        (Some(peak), bound) => Ok(Some(Recorded { peak, bound: bound.unwrap_or(peak) })),
    }
}

fn profile(
    row: &Row<'_>,
    known: Option<&Workload>,
    missing: impl Fn(&'static str) -> Fault,
) -> Result<Profile, Fault> {
    let share = |column| row.number(column, "a share from 0 to 1", 0.0..=1.0);
    let base = known.map(Workload::profile);
    let memory = mib(row, "memory_mib")?
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
