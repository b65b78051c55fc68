//! `-q`: everything, as a tree that is written as text or as XML.

use super::fields::{Seen, process_name, timestamp};
use super::tree::{Node, group, leaf, text, xml};
use crate::tool::ToolError;
use coloc_emu::Place;
use coloc_emu::board::{CUDA_VERSION, DRIVER_VERSION};
use coloc_emu::fleet::{MigDevice, State};

/// Names in text, tags in XML, and the fields of queries that they show.
type Rows = &'static [(&'static str, &'static str, &'static str)];

const PRODUCT: Rows = &[
    ("Product Name", "product_name", "name"),
    ("Display Mode", "display_mode", "display_mode"),
    ("Display Active", "display_active", "display_active"),
    ("Persistence Mode", "persistence_mode", "persistence_mode"),
];
const IDENTITY: Rows = &[
    ("Serial Number", "serial", "serial"),
    ("GPU UUID", "uuid", "uuid"),
    ("VBIOS Version", "vbios_version", "vbios_version"),
];
const STATE: Rows = &[
    ("Fan Speed", "fan_speed", "fan.speed"),
    ("Performance State", "performance_state", "pstate"),
];

/// Sections: name, tag, and what is in them.
const SECTIONS: [(&str, &str, Rows); 6] = [
    (
        "FB Memory Usage",
        "fb_memory_usage",
        &[
            ("Total", "total", "memory.total"),
            ("Reserved", "reserved", "memory.reserved"),
            ("Used", "used", "memory.used"),
            ("Free", "free", "memory.free"),
        ],
    ),
    (
        "Utilization",
        "utilization",
        &[("GPU", "gpu_util", "utilization.gpu"), ("Memory", "memory_util", "utilization.memory")],
    ),
    (
        "ECC Mode",
        "ecc_mode",
        &[
            ("Current", "current_ecc", "ecc.mode.current"),
            ("Pending", "pending_ecc", "ecc.mode.pending"),
        ],
    ),
    (
        "GPU Power Readings",
        "gpu_power_readings",
        &[
            ("Power State", "power_state", "pstate"),
            ("Average Power Draw", "average_power_draw", "power.draw.average"),
            ("Instantaneous Power Draw", "instant_power_draw", "power.draw.instant"),
            ("Power Draw", "power_draw", "power.draw"),
            ("Current Power Limit", "current_power_limit", "power.limit"),
            ("Default Power Limit", "default_power_limit", "power.default_limit"),
            ("Min Power Limit", "min_power_limit", "power.min_limit"),
            ("Max Power Limit", "max_power_limit", "power.max_limit"),
        ],
    ),
    (
        "Clocks",
        "clocks",
        &[
            ("Graphics", "graphics_clock", "clocks.gr"),
            ("SM", "sm_clock", "clocks.sm"),
            ("Memory", "mem_clock", "clocks.mem"),
        ],
    ),
    (
        "Max Clocks",
        "max_clocks",
        &[
            ("Graphics", "graphics_clock", "clocks.max.gr"),
            ("SM", "sm_clock", "clocks.max.sm"),
            ("Memory", "mem_clock", "clocks.max.mem"),
        ],
    ),
];

/// The sections that `-d` can name, and the tags of what is in them.
const DISPLAYED: [(&str, &[&str]); 9] = [
    ("MEMORY", &["fb_memory_usage"]),
    ("UTILIZATION", &["utilization"]),
    ("ECC", &["ecc_mode"]),
    ("TEMPERATURE", &["temperature"]),
    ("POWER", &["gpu_power_readings"]),
    ("CLOCK", &["clocks", "max_clocks"]),
    ("COMPUTE", &["compute_mode"]),
    ("PIDS", &["processes"]),
    ("PERFORMANCE", &["performance_state"]),
];

/// The tags of the sections that are named, with commas between them.
pub(super) fn sections(names: &str) -> Result<Vec<&'static str>, ToolError> {
    let one = |name: &str| {
        let known = DISPLAYED.iter().find(|(known, _)| known.eq_ignore_ascii_case(name.trim()));
        known.map(|(_, tags)| tags.iter().copied()).ok_or_else(|| super::unknown(name))
    };
    let all = names.split(',').map(one).collect::<Result<Vec<_>, _>>()?;
    Ok(all.into_iter().flatten().collect())
}

/// All there is to know, or some sections of it, as text.
pub(super) fn render(
    state: &State,
    gpus: &[u32],
    sections: Option<&[&str]>,
) -> Result<String, ToolError> {
    let head = "\n==============NVSMI LOG (emulated by coloc)==============\n";
    let mut all = everything(state, gpus)?;
    if let Some(sections) = sections {
        all.iter_mut().for_each(|node| node.keep(|tag| sections.contains(&tag)));
    }
    Ok(format!("{head}\n{}", text(&all)))
}

/// The same, as XML.
pub(super) fn render_xml(state: &State, gpus: &[u32]) -> Result<String, ToolError> {
    let head = "<?xml version=\"1.0\" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM \"nvsmi_device_v12.dtd\">\n\
                <!-- emulated by coloc -->";
    let log = group("", "nvidia_smi_log", everything(state, gpus)?);
    Ok(format!("{head}\n{}", xml(&[log])))
}

fn everything(state: &State, gpus: &[u32]) -> Result<Vec<Node>, ToolError> {
    let cuda = format!("{}.{}", CUDA_VERSION / 1000, CUDA_VERSION % 1000 / 10);
    let mut all = vec![
        leaf("Timestamp", "timestamp", timestamp()),
        leaf("Driver Version", "driver_version", DRIVER_VERSION),
        leaf("CUDA Version", "cuda_version", cuda),
        leaf("Attached GPUs", "attached_gpus", state.gpu_count().to_string()),
    ];
    for &index in gpus {
        all.push(gpu(state, index)?);
    }
    Ok(all)
}

fn gpu(state: &State, index: u32) -> Result<Node, ToolError> {
    let gpu = state.live_gpu(index)?;
    let seen = Seen::new(state, index)?;
    let bus = gpu.bus_id(index);
    let mut parts = rows(&seen, PRODUCT)?;
    let modes: Rows = &[
        ("Current", "current_mig", "mig.mode.current"),
        ("Pending", "pending_mig", "mig.mode.pending"),
    ];
    parts.push(group("MIG Mode", "mig_mode", rows(&seen, modes)?));
    parts.push(mig_devices(state, index)?);
    parts.extend(rows(&seen, IDENTITY)?);
    parts.insert(parts.len() - 1, leaf("Minor Number", "minor_number", index.to_string()));
    parts.push(group("PCI", "pci", vec![leaf("Bus Id", "pci_bus_id", bus.clone())]));
    parts.extend(rows(&seen, STATE)?);
    parts.extend(rows(&seen, &[("Compute Mode", "compute_mode", "compute_mode")])?);
    for (name, tag, fields) in SECTIONS {
        parts.push(group(name, tag, rows(&seen, fields)?));
    }
    let celsius = format!("{} C", gpu.reading().celsius);
    parts.push(group(
        "Temperature",
        "temperature",
        vec![leaf("GPU Current Temp", "gpu_temp", celsius)],
    ));
    parts.push(processes(state, index));
    Ok(group("GPU", "gpu", parts).named(bus))
}

fn rows(seen: &Seen<'_>, fields: Rows) -> Result<Vec<Node>, ToolError> {
    let mut rows = Vec::new();
    for (name, tag, field) in fields {
        let Some(value) = seen.field(field)? else { continue };
        let unit = if value.unit.is_empty() { "" } else { " " };
        // Queries have brackets around what is not there, this has none.
        let text = if value.text == "[N/A]" { "N/A" } else { &value.text };
        rows.push(leaf(name, tag, format!("{text}{unit}{}", value.unit)));
    }
    Ok(rows)
}

fn mig_devices(state: &State, index: u32) -> Result<Node, ToolError> {
    let gpu = state.live_gpu(index)?;
    let mut devices = Vec::new();
    for (at, mig) in gpu.mig_devices().into_iter().enumerate() {
        let memory = state.memory(Place { gpu: index, mig: Some(mig) })?;
        let mib = |bytes: coloc_model::Bytes| format!("{:.0} MiB", bytes.mib());
        let MigDevice { gi, ci } = mig;
        devices.push(group(
            "MIG Device",
            "mig_device",
            vec![
                leaf("Index", "index", at.to_string()),
                leaf("GPU Instance ID", "gpu_instance_id", gi.to_string()),
                leaf("Compute Instance ID", "compute_instance_id", ci.to_string()),
                group(
                    "FB Memory Usage",
                    "fb_memory_usage",
                    vec![
                        leaf("Total", "total", mib(memory.total)),
                        leaf("Used", "used", mib(memory.used)),
                        leaf("Free", "free", mib(memory.free())),
                    ],
                ),
            ],
        ));
    }
    Ok(match devices.is_empty() {
        true => leaf("MIG Devices", "mig_devices", "None"),
        false => group("", "mig_devices", devices),
    })
}

fn processes(state: &State, index: u32) -> Node {
    let residents = state.residents(Place::whole(index)).into_iter();
    let process = |resident: coloc_emu::fleet::ResidentView| {
        let mig = resident.place.mig;
        let id = |of: fn(MigDevice) -> u32| mig.map_or("N/A".to_owned(), |mig| of(mig).to_string());
        let kind = if resident.mps { "M+C" } else { "C" };
        let parts = vec![
            leaf("GPU instance ID", "gpu_instance_id", id(|mig| mig.gi)),
            leaf("Compute instance ID", "compute_instance_id", id(|mig| mig.ci)),
            leaf("Process ID", "pid", resident.pid.to_string()),
            leaf("Type", "type", kind).inset(),
            leaf("Name", "process_name", process_name(resident.pid)).inset(),
            leaf("Used GPU Memory", "used_memory", format!("{:.0} MiB", resident.held.mib()))
                .inset(),
        ];
        group("", "process_info", parts)
    };
    let all: Vec<Node> = residents.map(process).collect();
    match all.is_empty() {
        true => leaf("Processes", "processes", "None"),
        false => group("Processes", "processes", all),
    }
}
