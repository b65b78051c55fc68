//! Fields of queries by name.

use crate::tool::ToolError;
use coloc_emu::board::{DRIVER_VERSION, VBIOS_VERSION};
use coloc_emu::fleet::ResidentView;
use coloc_emu::fleet::{Gpu, Reading, State};
use coloc_emu::{DriverError, Identity, Place};

/// A value with its unit, which is shown only if asked for.
pub(super) struct Value {
    pub(super) text: String,
    pub(super) unit: &'static str,
}

fn plain(text: impl Into<String>) -> Option<Value> {
    Some(Value { text: text.into(), unit: "" })
}

fn with(unit: &'static str, text: impl Into<String>) -> Option<Value> {
    Some(Value { text: text.into(), unit })
}

fn unavailable() -> Option<Value> {
    plain("[N/A]")
}

/// NVML's number in words.
pub(super) fn compute_mode(mode: u32) -> &'static str {
    match mode {
        0 => "Default",
        2 => "Prohibited",
        3 => "Exclusive_Process",
        _ => "[Unknown]",
    }
}

/// On or off.
pub(super) fn enabled(on: bool) -> &'static str {
    if on { "Enabled" } else { "Disabled" }
}

/// What a query sees of a GPU.
pub(super) struct Seen<'a> {
    state: &'a State,
    index: u32,
    gpu: &'a Gpu,
    reading: Reading,
}

impl<'a> Seen<'a> {
    pub(super) fn new(state: &'a State, index: u32) -> Result<Self, DriverError> {
        let gpu = state.live_gpu(index)?;
        Ok(Seen { state, index, gpu, reading: gpu.reading() })
    }

    /// The value of a field; `None` if there is no such field.
    pub(super) fn field(&self, name: &str) -> Result<Option<Value>, DriverError> {
        let Seen { state, index, gpu, reading } = self;
        let memory = state.memory(Place::whole(*index))?;
        let mib = |bytes: coloc_model::Bytes| with("MiB", format!("{:.0}", bytes.mib()));
        let (corrected, uncorrected) = gpu.ecc_errors();
        let value = match name {
            "timestamp" => plain(timestamp()),
            "index" => plain(index.to_string()),
            "count" => plain(state.gpu_count().to_string()),
            "name" | "gpu_name" => plain(gpu.board().name),
            "uuid" | "gpu_uuid" => plain(gpu.uuid()),
            "serial" | "gpu_serial" => plain(Gpu::serial(*index)),
            "driver_version" => plain(DRIVER_VERSION),
            "vbios_version" => plain(VBIOS_VERSION),
            "pci.bus_id" | "gpu_bus_id" => plain(gpu.bus_id(*index)),
            "pci.domain" => plain(format!("0x{:04X}", gpu.node())),
            "pci.bus" => plain(format!("0x{:02X}", Gpu::bus(*index))),
            "pci.device" => plain("0x00"),
            "pci.device_id" => plain(format!("0x{:08X}", gpu.board().pci_id)),
            "pci.sub_device_id" => plain("0x146310DE"),
            "compute_cap" => {
                let (major, minor) = gpu.board().capability;
                plain(format!("{major}.{minor}"))
            }
            "memory.total" => mib(memory.total),
            "memory.used" => mib(memory.used),
            "memory.free" => mib(memory.free()),
            "memory.reserved" => with("MiB", "0"),
            name if name.starts_with("utilization.") && gpu.mig_enabled() => unavailable(),
            // Nothing here encodes or decodes.
            "utilization.encoder"
            | "utilization.decoder"
            | "utilization.jpeg"
            | "utilization.ofa" => with("%", "0"),
            "utilization.gpu" => with("%", reading.gpu_percent.to_string()),
            "utilization.memory" => with("%", reading.memory_percent.to_string()),
            "temperature.gpu" => plain(reading.celsius.to_string()),
            name if name.trim_start_matches("enforced.").starts_with("power.") => {
                return Ok(self.power(name));
            }
            "pstate" => plain(format!("P{}", reading.performance_state)),
            "mig.mode.current" | "mig.mode.pending" => match gpu.model().mig() {
                Some(_) => plain(enabled(gpu.mig_enabled())),
                None => unavailable(),
            },
            "compute_mode" => plain(compute_mode(gpu.compute_mode())),
            "persistence_mode" => plain(enabled(gpu.persistence())),
            "ecc.mode.current" | "ecc.mode.pending" | "accounting.mode" => plain("Enabled"),
            "ecc.errors.corrected.volatile.total" | "ecc.errors.corrected.aggregate.total" => {
                plain(corrected.to_string())
            }
            "ecc.errors.uncorrected.volatile.total" | "ecc.errors.uncorrected.aggregate.total" => {
                plain(uncorrected.to_string())
            }
            "display_mode" | "display_active" => plain("Disabled"),
            _ => return Ok(self.clocks_and_links(name)),
        };
        Ok(value)
    }

    fn power(&self, name: &str) -> Option<Value> {
        let Seen { gpu, reading, .. } = self;
        match name {
            "power.draw" | "power.draw.instant" | "power.draw.average" => {
                with("W", format!("{:.2}", f64::from(reading.milliwatts) / 1000.0))
            }
            "power.limit" | "enforced.power.limit" => {
                with("W", format!("{:.2}", gpu.limit_watts()))
            }
            "power.default_limit" | "power.max_limit" => {
                with("W", format!("{:.2}", gpu.model().limit_watts()))
            }
            "power.min_limit" => with("W", format!("{:.2}", gpu.board().lowest_limit_watts)),
            "power.management" => plain("Enabled"),
            _ => None,
        }
    }

    fn clocks_and_links(&self, all: &str) -> Option<Value> {
        let Seen { gpu, reading, .. } = self;
        let name = all;
        let mhz = |clock: u32| with("MHz", clock.to_string());
        match name {
            "clocks.sm" | "clocks.current.sm" | "clocks.gr" | "clocks.current.graphics" => {
                mhz(reading.sm_mhz)
            }
            "clocks.mem" | "clocks.current.memory" => mhz(reading.memory_mhz),
            "clocks.max.sm" | "clocks.max.gr" | "clocks.max.graphics" => mhz(gpu.board().sm_mhz),
            "clocks.max.mem" | "clocks.max.memory" => mhz(gpu.board().memory_mhz),
            "pcie.link.gen.current" | "pcie.link.gen.max" | "pcie.link.gen.gpucurrent" => {
                plain(gpu.board().pcie_generation.to_string())
            }
            "pcie.link.width.current" | "pcie.link.width.max" => plain("16"),
            "fan.speed" | "temperature.memory" | "encoder.stats.sessionCount" => unavailable(),
            _ => {
                let name = name.strip_prefix("clocks_throttle_reasons.");
                let name = name.or_else(|| all.strip_prefix("clocks_event_reasons."))?;
                self.reason_for_clocks(name)
            }
        }
    }

    /// Why clocks are as they are: NVML's bits, or one of them by name.
    fn reason_for_clocks(&self, name: &str) -> Option<Value> {
        const IDLE: u64 = 1;
        const POWER_CAP: u64 = 4;
        let reading = &self.reading;
        let now = match (reading.performance_state, reading.power_capped) {
            (0, true) => POWER_CAP,
            (0, false) => 0,
            _ => IDLE,
        };
        let bits = |bits: u64| plain(format!("0x{bits:016X}"));
        let is = |bit: u64| plain(if now & bit != 0 { "Active" } else { "Not Active" });
        match name {
            "active" => bits(now),
            "supported" => bits(IDLE | POWER_CAP),
            "gpu_idle" => is(IDLE),
            "sw_power_cap" => is(POWER_CAP),
            "applications_clocks_setting" => is(0x2),
            "hw_slowdown" => is(0x8),
            "sync_boost" => is(0x10),
            "sw_thermal_slowdown" => is(0x20),
            "hw_thermal_slowdown" => is(0x40),
            "hw_power_brake_slowdown" => is(0x80),
            _ => None,
        }
    }
}

/// The fields of `--query-gpu`, for users who ask which there are. One a line, other names of it after it.
pub(super) const HELP: &str = "timestamp
driver_version
count
name gpu_name
index
serial gpu_serial
uuid gpu_uuid
vbios_version
compute_cap
compute_mode
persistence_mode
display_mode
display_active
accounting.mode
pstate
fan.speed
pci.bus_id gpu_bus_id
pci.domain
pci.bus
pci.device
pci.device_id
pci.sub_device_id
pcie.link.gen.current
pcie.link.gen.gpucurrent
pcie.link.gen.max
pcie.link.width.current
pcie.link.width.max
memory.total
memory.reserved
memory.used
memory.free
utilization.gpu
utilization.memory
utilization.encoder
utilization.decoder
utilization.jpeg
utilization.ofa
temperature.gpu
temperature.memory
power.management
power.draw
power.draw.average
power.draw.instant
power.limit
enforced.power.limit
power.default_limit
power.min_limit
power.max_limit
clocks.gr clocks.current.graphics
clocks.sm clocks.current.sm
clocks.mem clocks.current.memory
clocks.max.gr clocks.max.graphics
clocks.max.sm
clocks.max.mem clocks.max.memory
clocks_event_reasons.supported clocks_throttle_reasons.supported
clocks_event_reasons.active clocks_throttle_reasons.active
clocks_event_reasons.gpu_idle clocks_throttle_reasons.gpu_idle
clocks_event_reasons.applications_clocks_setting clocks_throttle_reasons.applications_clocks_setting
clocks_event_reasons.sw_power_cap clocks_throttle_reasons.sw_power_cap
clocks_event_reasons.sw_thermal_slowdown clocks_throttle_reasons.sw_thermal_slowdown
clocks_event_reasons.hw_slowdown clocks_throttle_reasons.hw_slowdown
clocks_event_reasons.hw_thermal_slowdown clocks_throttle_reasons.hw_thermal_slowdown
clocks_event_reasons.hw_power_brake_slowdown clocks_throttle_reasons.hw_power_brake_slowdown
clocks_event_reasons.sync_boost clocks_throttle_reasons.sync_boost
ecc.mode.current
ecc.mode.pending
ecc.errors.corrected.volatile.total
ecc.errors.corrected.aggregate.total
ecc.errors.uncorrected.volatile.total
ecc.errors.uncorrected.aggregate.total
encoder.stats.sessionCount
mig.mode.current
mig.mode.pending";

/// The value of a field about a process; `None` if there is no such field.
pub(super) fn app_field(
    state: &State,
    resident: &ResidentView,
    name: &str,
) -> Result<Option<Value>, ToolError> {
    let gpu = state.live_gpu(resident.place.gpu)?;
    Ok(match name {
        "timestamp" => plain(timestamp()),
        "pid" => plain(resident.pid.to_string()),
        "process_name" | "name" => plain(process_name(resident.pid)),
        "used_memory" | "used_gpu_memory" => with("MiB", format!("{:.0}", resident.held.mib())),
        "gpu_name" => plain(gpu.board().name),
        "gpu_uuid" => plain(gpu.uuid_of(resident.place.mig)?),
        "gpu_serial" => plain(Gpu::serial(resident.place.gpu)),
        "gpu_bus_id" => plain(gpu.bus_id(resident.place.gpu)),
        _ => None,
    })
}

/// What a process was started as.
pub(super) fn process_name(pid: i32) -> String {
    Identity::of(pid).map_or_else(|| "[Not Found]".to_owned(), Identity::name)
}

/// Now, in the form of nvidia-smi, in UTC.
pub(super) fn timestamp() -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = now.unwrap_or_default();
    let (days, seconds) = (now.as_secs() / 86_400, now.as_secs() % 86_400);
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let millis = now.subsec_millis();
    format!("{year:04}/{month:02}/{day:02} {hour:02}:{minute:02}:{second:02}.{millis:03}")
}

/// Year, month and day of a day since 1970, in the Gregorian calendar. Years are counted from March, so that a
/// leap day is the last of its year.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let era = days / 146_097;
    let of_era = days % 146_097;
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_become_dates() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(11_016), (2000, 2, 29));
        assert_eq!(civil(20_453), (2025, 12, 31));
        assert_eq!(civil(20_454), (2026, 1, 1));
    }
}
