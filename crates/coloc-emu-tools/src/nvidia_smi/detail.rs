//! `-q`: everything, as text.

use super::fields::{Seen, process_name, timestamp};
use crate::tool::ToolError;
use coloc_emu::Place;
use coloc_emu::board::{CUDA_VERSION, DRIVER_VERSION};
use coloc_emu::fleet::State;

/// Sections, each with what it shows and the field that it shows.
const SECTIONS: [(&str, &[(&str, &str)]); 6] = [
    (
        "",
        &[
            ("Product Name", "name"),
            ("Persistence Mode", "persistence_mode"),
            ("Serial Number", "serial"),
            ("GPU UUID", "uuid"),
            ("VBIOS Version", "vbios_version"),
            ("Compute Mode", "compute_mode"),
            ("Performance State", "pstate"),
        ],
    ),
    ("MIG Mode", &[("Current", "mig.mode.current"), ("Pending", "mig.mode.pending")]),
    (
        "FB Memory Usage",
        &[
            ("Total", "memory.total"),
            ("Reserved", "memory.reserved"),
            ("Used", "memory.used"),
            ("Free", "memory.free"),
        ],
    ),
    ("Utilization", &[("GPU", "utilization.gpu"), ("Memory", "utilization.memory")]),
    (
        "GPU Power Readings",
        &[
            ("Average Power Draw", "power.draw.average"),
            ("Instantaneous Power Draw", "power.draw.instant"),
            ("Current Power Limit", "power.limit"),
            ("Default Power Limit", "power.default_limit"),
        ],
    ),
    ("Clocks", &[("Graphics", "clocks.gr"), ("SM", "clocks.sm"), ("Memory", "clocks.mem")]),
];

/// All there is to know.
pub(super) fn render(state: &State, gpus: &[u32]) -> Result<String, ToolError> {
    let pair = |depth: usize, name: &str, value: &str| {
        format!("{}{name:<width$}: {value}", " ".repeat(depth), width = 42 - depth)
    };
    let cuda = format!("{}.{}", CUDA_VERSION / 1000, CUDA_VERSION % 1000 / 10);
    let mut lines = vec![
        "\n==============NVSMI LOG (emulated by coloc)==============\n".to_owned(),
        pair(0, "Timestamp", &timestamp()),
        pair(0, "Driver Version", DRIVER_VERSION),
        pair(0, "CUDA Version", &cuda),
        String::new(),
        pair(0, "Attached GPUs", &state.gpu_count().to_string()),
    ];
    for &index in gpus {
        let gpu = state.live_gpu(index)?;
        let seen = Seen::new(state, index)?;
        lines.push(format!("GPU {}", gpu.bus_id(index)));
        for (section, fields) in SECTIONS {
            let depth = if section.is_empty() { 4 } else { 8 };
            if !section.is_empty() {
                lines.push(format!("    {section}"));
            }
            for (name, field) in fields {
                let Some(value) = seen.field(field)? else { continue };
                let unit = if value.unit.is_empty() { "" } else { " " };
                lines.push(pair(depth, name, &format!("{}{unit}{}", value.text, value.unit)));
            }
        }
        lines.push("    Temperature".to_owned());
        lines.push(pair(8, "GPU Current Temp", &format!("{} C", gpu.reading().celsius)));
        lines.push("    Processes".to_owned());
        for resident in state.residents(Place::whole(index)) {
            lines.push(pair(8, "Process ID", &resident.pid.to_string()));
            lines.push(pair(12, "Type", if resident.mps { "M+C" } else { "C" }));
            lines.push(pair(12, "Name", &process_name(resident.pid)));
            lines.push(pair(12, "Used GPU Memory", &format!("{:.0} MiB", resident.held.mib())));
        }
        lines.push(String::new());
    }
    Ok(lines.join("\n"))
}
