//! Gavel's traces: tab-separated, without a header, seven columns (those made from Philly) or ten. They
//! give steps instead of run times: how long these take on each kind of GPU is in the published
//! throughputs. Run times refer to V100s of one node.

use super::read::{Known, Taken};
use super::table::{Fault, Header, Layout, MAX_SECONDS, Row, empty};
use super::{Trace, TraceErrorKind, TraceTask};
use coloc_model::{KNOWN_MODELS, Millis, SignatureId, SpeedTable};
use coloc_physics::gavel;

pub(super) const LAYOUT: Layout = Layout {
    columns: &["job_type", "total_steps", "scale_factor", "arrival_time"],
    required: 4,
    expected: "7 columns (job_type, command, num_steps_arg, needs_data_dir, total_steps, arrival_time, \
               scale_factor) or 10",
    header: Header::None(&[
        &[
            "job_type",
            "command",
            "num_steps_arg",
            "needs_data_dir",
            "total_steps",
            "arrival_time",
            "scale_factor",
        ],
        &[
            "job_type",
            "command",
            "working_directory",
            "num_steps_arg",
            "needs_data_dir",
            "total_steps",
            "scale_factor",
            "priority_weight",
            "SLO",
            "arrival_time",
        ],
    ]),
    lenient: true,
    delimiter: b'\t',
};

const JOB: &str = "a job that Gavel measured, such as ResNet-50 (batch size 64)";
const STEPS: &str = "a number of steps that take from a millisecond to ten years";

pub(super) fn task(row: &Row<'_>, known: &mut Known) -> Result<Taken, Fault> {
    let job = row.text("job_type").ok_or_else(|| empty("job_type", JOB))?;
    let gpus =
        row.gpus("scale_factor")?.ok_or_else(|| empty("scale_factor", "a number of GPUs"))?;
    let unknown = || ("job_type", TraceErrorKind::Value { value: job.to_owned(), expected: JOB });
    let measured = gavel::find(job, gpus).ok_or_else(unknown)?;
    let seconds = |text: &str| {
        let steps: f64 = text.parse().ok()?;
        let seconds = steps / measured.reference_steps();
        (0.001..=MAX_SECONDS).contains(&seconds).then_some(seconds)
    };
    let seconds = row.parsed("total_steps", STEPS, seconds)?;
    Ok(Taken::Task(TraceTask {
        submit: row.time("arrival_time")?,
        signature: SignatureId(known.names.number(&name(job, gpus))),
        user: known.user(None, None),
        gpus,
        duration: Millis::from_secs_f64(seconds.ok_or_else(|| empty("total_steps", STEPS))?),
        profile: measured.profile(),
        exclusive: false,
        priority: 0,
        phases: coloc_physics::Phases::NONE,
        declared: None,
        recorded: None,
        checkpoint: None,
    }))
}

/// Jobs with several GPUs behave differently, so they have a name of their own.
fn name(job: &str, gpus: u32) -> String {
    if gpus == 1 { job.to_owned() } else { format!("{job} x{gpus}") }
}

/// How fast the tasks of a trace that Gavel measured run on each kind of GPU, and when spread over nodes.
/// What was not measured is left out.
pub fn published_speeds(trace: &Trace) -> SpeedTable {
    let mut table = SpeedTable::default();
    for number in 0..trace.names().len() as u32 {
        let (name, signature) = (trace.names().name(number), SignatureId(number));
        let wide = name.rsplit_once(" x").and_then(|(job, n)| Some((job, n.parse().ok()?)));
        let (job, gpus) = wide.unwrap_or((name, 1));
        let Some(known) = gavel::find(job, gpus) else { continue };
        for model in KNOWN_MODELS {
            if let Some(speed) = known.speed(model) {
                table.insert(signature, model, speed);
            }
            if let Some(speed) = known.spread(model) {
                table.insert_spread(signature, model, speed);
            }
        }
    }
    table
}
