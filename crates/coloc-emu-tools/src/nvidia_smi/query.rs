//! `--query-gpu` and `--query-compute-apps`.

use super::fields::{Seen, Value, app_field};
use crate::tool::ToolError;
use coloc_emu::Place;
use coloc_emu::fleet::State;

/// How tables are written.
#[derive(Clone, Copy, Default)]
pub(super) struct Format {
    no_header: bool,
    no_units: bool,
}

impl Format {
    pub(super) fn parse(text: Option<&str>) -> Result<Self, ToolError> {
        let mut format = Format::default();
        for word in text.unwrap_or("csv").split(',').map(str::trim) {
            match word {
                "csv" => {}
                "noheader" => format.no_header = true,
                "nounits" => format.no_units = true,
                _ => {
                    let text = format!(
                        "\"--format={word}\" is not a known format. Use csv[,noheader][,nounits]."
                    );
                    return Err(ToolError::new(2, text));
                }
            }
        }
        Ok(format)
    }

    /// Without the line of names.
    pub(super) fn without_header(self) -> Self {
        Format { no_header: true, ..self }
    }

    fn value(self, value: &Value) -> String {
        match value.unit {
            "" => value.text.clone(),
            _ if self.no_units => value.text.clone(),
            unit => format!("{} {unit}", value.text),
        }
    }
}

fn names(fields: &str) -> Vec<&str> {
    fields.split(',').map(str::trim).filter(|name| !name.is_empty()).collect()
}

fn no_field(name: &str) -> ToolError {
    ToolError::new(2, format!("Field \"{name}\" is not a valid field to query."))
}

fn header(name: &str, unit: &str) -> String {
    if unit.is_empty() { name.to_owned() } else { format!("{name} [{unit}]") }
}

/// One line a GPU.
pub(super) fn gpus(
    state: &State,
    gpus: &[u32],
    fields: &str,
    format: Format,
) -> Result<String, ToolError> {
    let names = names(fields);
    let mut headers: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut lines = Vec::new();
    for &gpu in gpus {
        let Ok(seen) = Seen::new(state, gpu) else {
            lines.push(vec!["[GPU is lost]"; names.len()].join(", "));
            continue;
        };
        let mut values = Vec::new();
        headers.clear();
        for name in &names {
            let value = seen.field(name)?.ok_or_else(|| no_field(name))?;
            headers.push(header(name, value.unit));
            values.push(format.value(&value));
        }
        lines.push(values.join(", "));
    }
    if !format.no_header {
        lines.insert(0, headers.join(", "));
    }
    Ok(lines.join("\n"))
}

/// The unit of a process's fields.
fn app_unit(name: &str) -> Result<&'static str, ToolError> {
    const KNOWN: [&str; 8] = [
        "timestamp",
        "pid",
        "process_name",
        "name",
        "gpu_name",
        "gpu_uuid",
        "gpu_serial",
        "gpu_bus_id",
    ];
    match name {
        "used_memory" | "used_gpu_memory" => Ok("MiB"),
        name if KNOWN.contains(&name) => Ok(""),
        _ => Err(no_field(name)),
    }
}

/// One line a process and device.
pub(super) fn apps(
    state: &State,
    gpus: &[u32],
    fields: &str,
    format: Format,
) -> Result<String, ToolError> {
    let names = names(fields);
    let mut headers = Vec::new();
    for name in &names {
        headers.push(header(name, app_unit(name)?));
    }
    let mut lines = Vec::new();
    if !format.no_header {
        lines.push(headers.join(", "));
    }
    for &gpu in gpus {
        for resident in state.residents(Place::whole(gpu)) {
            let mut values = Vec::new();
            for name in &names {
                let value = app_field(state, &resident, name)?.ok_or_else(|| no_field(name))?;
                values.push(format.value(&value));
            }
            lines.push(values.join(", "));
        }
    }
    Ok(lines.join("\n"))
}
