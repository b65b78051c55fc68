//! What the daemon's own process takes, by the names that exporters use.

use super::writer::Writer;
use std::fmt;

/// Writes what the kernel tells. What it does not tell has no series.
pub(super) fn write(to: &mut Writer<'_>) -> fmt::Result {
    if let Some(seconds) = cpu_seconds() {
        to.counter("process_cpu_seconds", "Processor time of the daemon", seconds)?;
    }
    if let Some(bytes) = resident_bytes() {
        to.gauge("process_resident_memory_bytes", "Host memory of the daemon", bytes)?;
    }
    if let Ok(files) = std::fs::read_dir("/proc/self/fd") {
        to.gauge("process_open_fds", "Open files of the daemon", files.count() as f64)?;
    }
    Ok(())
}

/// Ticks in a second, in what Linux tells programs.
const TICKS: f64 = 100.0;

fn cpu_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the program may have spaces and parentheses in it; what follows has none.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let user: f64 = fields.nth(11)?.parse().ok()?;
    let system: f64 = fields.next()?.parse().ok()?;
    Some((user + system) / TICKS)
}

fn resident_bytes() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: f64 = line.trim().trim_end_matches(" kB").parse().ok()?;
    Some(kib * 1024.0)
}
