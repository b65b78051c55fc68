//! The table that every user of `nvidia-smi` knows.

use super::fields::{compute_mode, process_name, timestamp};
use crate::tool::ToolError;
use coloc_emu::Place;
use coloc_emu::board::{CUDA_VERSION, DRIVER_VERSION};
use coloc_emu::fleet::State;

const WIDTH: usize = 89;

fn rule() -> String {
    format!("+{}+", "-".repeat(WIDTH))
}

fn row(text: &str) -> String {
    format!("|{text:<WIDTH$}|")
}

/// What is on the GPUs, and that it is emulated.
pub(super) fn render(state: &State, gpus: &[u32]) -> Result<String, ToolError> {
    let cuda = format!("{}.{}", CUDA_VERSION / 1000, CUDA_VERSION % 1000 / 10);
    let mut lines = vec![
        timestamp(),
        rule(),
        row(&format!(
            " NVIDIA-SMI {DRIVER_VERSION}   Driver Version: {DRIVER_VERSION}   CUDA Version: {cuda}  emulated by coloc"
        )),
        rule(),
        row(
            " GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC",
        ),
        row(
            " Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M.",
        ),
        row(
            "                                         |                        |               MIG M.",
        ),
        format!("|{}|", "=".repeat(WIDTH)),
    ];
    for &index in gpus {
        lines.extend(gpu_rows(state, index)?);
        lines.push(rule());
    }
    lines.push(String::new());
    lines.extend(process_rows(state, gpus)?);
    Ok(lines.join("\n"))
}

fn gpu_rows(state: &State, index: u32) -> Result<Vec<String>, ToolError> {
    let gpu = state.gpu(index)?;
    if gpu.is_lost() {
        return Ok(vec![row(&format!(
            "{index:>4}  ERR! GPU is lost. Reboot the system to recover this GPU"
        ))]);
    }
    let reading = gpu.reading();
    let memory = state.memory(Place::whole(index))?;
    let on = if gpu.persistence() { "On" } else { "Off" };
    let utilization = match gpu.mig_enabled() {
        true => "N/A".to_owned(),
        false => format!("{}%", reading.gpu_percent),
    };
    let mig = match gpu.model().mig() {
        Some(_) => super::fields::enabled(gpu.mig_enabled()),
        None => "N/A",
    };
    let power =
        format!("{:.0}W / {:.0}W", f64::from(reading.milliwatts) / 1000.0, gpu.limit_watts());
    let used = format!("{:.0}MiB / {:.0}MiB", memory.used.mib(), memory.total.mib());
    let mode = compute_mode(gpu.compute_mode());
    Ok(vec![
        row(&format!(
            "{index:>4}  {:<26} {on:>7} | {:<18} Off | {:>20} ",
            gpu.board().name,
            gpu.bus_id(index),
            gpu.ecc_errors().1
        )),
        row(&format!(
            " N/A   {:>2}C    P{}    {power:>20} | {used:>22} | {utilization:>6} {mode:>13} ",
            reading.celsius, reading.performance_state
        )),
        row(&format!("{:41}| {:22} | {mig:>20} ", "", "")),
    ])
}

fn process_rows(state: &State, gpus: &[u32]) -> Result<Vec<String>, ToolError> {
    let mut lines = vec![
        rule(),
        row(" Processes:"),
        row(
            "  GPU   GI   CI              PID   Type   Process name                        GPU Memory",
        ),
        format!("|{}|", "=".repeat(WIDTH)),
    ];
    let mut any = false;
    for &index in gpus {
        for resident in state.residents(Place::whole(index)) {
            any = true;
            let id = |of: Option<u32>| of.map_or("N/A".to_owned(), |id| id.to_string());
            let (gi, ci) = (
                id(resident.place.mig.map(|mig| mig.gi)),
                id(resident.place.mig.map(|mig| mig.ci)),
            );
            let kind = if resident.mps { "M+C" } else { "C" };
            let name: String = process_name(resident.pid).chars().take(34).collect();
            let held = format!("{:.0}MiB", resident.held.mib());
            lines.push(row(&format!(
                "{index:>5}  {gi:>3}  {ci:>3}  {:>15}  {kind:>5}   {name:<34} {held:>11}",
                resident.pid
            )));
        }
    }
    if !any {
        lines.push(row("  No running processes found"));
    }
    lines.push(rule());
    Ok(lines)
}
