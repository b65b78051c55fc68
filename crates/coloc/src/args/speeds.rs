//! How fast tasks run on each kind of device: CSV `task,gpu,speed`.

use crate::error::CliError;
use coloc_model::{GpuModel, SignatureId, SpeedTable};
use coloc_sim::Names;
use std::path::Path;

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    task: String,
    gpu: GpuModel,
    speed: f64,
}

/// Reads speeds. Those of tasks that the trace does not have are passed over.
pub(crate) fn read(file: &Path, names: &Names) -> Result<SpeedTable, CliError> {
    let fail = |line, problem| CliError::Pairs { file: file.to_owned(), line, problem };
    let mut csv = csv::ReaderBuilder::new()
        .trim(csv::Trim::All)
        .from_path(file)
        .map_err(|error| fail(1, error.to_string()))?;
    let mut table = SpeedTable::default();
    let header = csv.headers().map_err(|error| fail(1, error.to_string()))?.clone();
    for record in csv.records() {
        let line_of = |error: &csv::Error| error.position().map_or(1, csv::Position::line);
        let record = record.map_err(|error| fail(line_of(&error), error.to_string()))?;
        let line = record.position().map_or(1, csv::Position::line);
        let row: Row =
            record.deserialize(Some(&header)).map_err(|error| fail(line, error.to_string()))?;
        if !(0.0..=1000.0).contains(&row.speed) {
            let problem = format!("column speed: {} is not from 0 to 1000", row.speed);
            return Err(fail(line, problem));
        }
        if let Some(task) = names.find(&row.task) {
            table.insert(SignatureId(task), row.gpu, row.speed);
        }
    }
    Ok(table)
}
