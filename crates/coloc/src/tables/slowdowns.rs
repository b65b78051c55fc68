//! How fast two tasks run beside each other: CSV `task,beside,speed`, and `share` if it matters.

use super::{fault, read as read_table};
use crate::error::CliError;
use coloc_model::{Share, SignatureId};
use coloc_physics::{PairTable, SlowdownPair};
use coloc_sim::Names;
use std::path::Path;

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct PairRow {
    task: String,
    beside: String,
    speed: f64,
    #[serde(default)]
    share: Option<Share>,
}

/// Reads measured pairs. Pairs of tasks that the trace does not have are passed over.
pub(crate) fn read(file: &Path, names: &Names) -> Result<PairTable, CliError> {
    let mut pairs = PairTable::default();
    for (line, row) in read_table::<PairRow>(file)? {
        if !(row.speed > 0.0 && row.speed <= 2.0) {
            let problem = format!("column speed: {} is not above 0 and at most 2", row.speed);
            return Err(fault(file, line, problem));
        }
        let signature = |name: &str| names.find(name).map(SignatureId);
        let (Some(task), Some(beside)) = (signature(&row.task), signature(&row.beside)) else {
            continue;
        };
        let shares: &[Share] = match &row.share {
            Some(share) => std::slice::from_ref(share),
            None => &[Share::Streams, Share::Mps],
        };
        for &share in shares {
            pairs.insert(SlowdownPair { share, task, beside, slowdown: 1.0 / row.speed });
        }
    }
    Ok(pairs)
}
