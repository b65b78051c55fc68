//! `topo -m`: how GPUs are connected.

use super::{Arguments, unknown};
use crate::tool::{Answer, fleet, print};

const LEGEND: &str = "
Legend:

  X    = Self
  SYS  = Connection between nodes of the fleet, as if by the interconnect between NUMA nodes
  NODE = Connection within a node of the fleet

NVLink is not emulated.";

pub(super) fn run(arguments: &mut Arguments) -> Answer {
    match arguments.next().as_deref() {
        Some("-m" | "--matrix") => {}
        other => return Err(unknown(other.unwrap_or("topo"))),
    }
    let emulator = fleet()?;
    let state = emulator.lock()?;
    let nodes: Vec<u32> = state.gpus().iter().map(coloc_emu::fleet::Gpu::node).collect();
    drop(state);
    let names: String = (0..nodes.len()).map(|at| format!("\tGPU{at}")).collect();
    let mut lines = vec![format!("{names}\tCPU Affinity\tNUMA Affinity")];
    for (at, node) in nodes.iter().enumerate() {
        let cell = |(other, to): (usize, &u32)| match () {
            () if other == at => "\t X ",
            () if to == node => "\tNODE",
            () => "\tSYS",
        };
        let cells: String = nodes.iter().enumerate().map(cell).collect();
        lines.push(format!("GPU{at}{cells}\tN/A\tN/A"));
    }
    print(&format!("{}\n{LEGEND}", lines.join("\n")))
}
