//! Alibaba's GPU trace v2023 (`openb_pod_list_*.csv`): pods with thousandths of a GPU. A pod with a part
//! of a GPU becomes a task that may be collocated and asks for that part of its SMs and memory; pods with
//! whole GPUs are alone on them. Pods without a GPU and pods that never ran are passed over.

use super::TraceTask;
use super::read::{Known, Taken};
use super::table::{Fault, Header, Layout, Row, empty};
use coloc_model::{Bytes, SignatureId};
use coloc_physics::{Phases, Profile};

pub(super) const LAYOUT: Layout = Layout {
    columns: &[
        "num_gpu",
        "gpu_milli",
        "creation_time",
        "deletion_time",
        "scheduled_time",
        "qos",
        "name",
    ],
    required: 5,
    expected: "num_gpu,gpu_milli,creation_time,deletion_time,scheduled_time",
    header: Header::First,
    lenient: true,
    delimiter: b',',
};

/// Most GPUs of that cluster have 16 GB; what a pod may use of one, context included.
const WHOLE: Bytes = Bytes::from_mib(15 * 1024);

pub(super) fn task(row: &Row<'_>, known: &mut Known) -> Result<Taken, Fault> {
    if row.text("num_gpu") == Some("0") {
        return Ok(Taken::PassedOver("without a GPU"));
    }
    if row.text("scheduled_time").is_none() {
        return Ok(Taken::PassedOver("never scheduled"));
    }
    let gpus = row.gpus("num_gpu")?.ok_or_else(|| empty("num_gpu", "a number of GPUs"))?;
    let milli = row.number("gpu_milli", "thousandths of a GPU from 1 to 1000", 1.0..=1000.0)?;
    let part = milli.unwrap_or(1000.0) / 1000.0;
    let (began, ended) = (row.time("scheduled_time")?, row.time("deletion_time")?);
    let duration = ended.since(began);
    if duration.0 == 0 {
        return Ok(Taken::PassedOver("gone as soon as scheduled"));
    }
    let name = format!("{gpus}x{part:.3}");
    Ok(Taken::Task(TraceTask {
        submit: row.time("creation_time")?,
        signature: SignatureId(known.names.number(&name)),
        user: known.user(row.text("qos"), None),
        gpus,
        duration,
        profile: Profile::new(part, part, part / 2.0, part / 2.0, WHOLE.scale(part)),
        exclusive: part >= 1.0,
        priority: 0,
        phases: Phases::NONE,
        declared: None,
        recorded: None,
        checkpoint: None,
    }))
}
