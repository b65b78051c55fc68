//! What the driver says of each board beyond its data sheet: names, identifiers, clocks.

use coloc_model::{GpuModel, KNOWN_MODELS};

/// The driver version that the emulator reports.
pub const DRIVER_VERSION: &str = "575.57.08";
/// The NVML version that goes with it.
pub const NVML_VERSION: &str = "12.575.57.08";
/// The CUDA version of the driver, as `1000 * major + 10 * minor`.
pub const CUDA_VERSION: i32 = 12_090;

/// The VBIOS version that every board reports.
pub const VBIOS_VERSION: &str = "92.00.EM.00.01";

/// A board as drivers describe it.
#[derive(Debug)]
pub struct Board {
    model: &'static str,
    /// The marketing name.
    pub name: &'static str,
    /// PCI device and vendor id.
    pub pci_id: u32,
    /// Compute capability.
    pub capability: (u32, u32),
    /// Highest SM clock in MHz.
    pub sm_mhz: u32,
    /// Memory clock in MHz.
    pub memory_mhz: u32,
    /// FP32 cores in one SM.
    pub cores_per_sm: u32,
    /// Memory bus width in bits.
    pub bus_bits: u32,
    /// PCIe generation.
    pub pcie_generation: u32,
    /// Lowest power limit that can be set, in watts.
    pub lowest_limit_watts: f64,
}

#[allow(clippy::too_many_arguments)] // One row of a table, in the table's order.
const fn board(
    model: &'static str,
    name: &'static str,
    device: u32,
    capability: (u32, u32),
    sm_mhz: u32,
    memory_mhz: u32,
    cores_per_sm: u32,
    bus_bits: u32,
    pcie_generation: u32,
    lowest_limit_watts: f64,
) -> Board {
    let pci_id = device << 16 | 0x10DE;
    Board {
        model,
        name,
        pci_id,
        capability,
        sm_mhz,
        memory_mhz,
        cores_per_sm,
        bus_bits,
        pcie_generation,
        lowest_limit_watts,
    }
}

#[rustfmt::skip] // One row a line.
static BOARDS: [Board; 18] = [
    board("A100-40GB", "NVIDIA A100-SXM4-40GB", 0x20B0, (8, 0), 1410, 1215, 64, 5120, 4, 100.0),
    board("A100-80GB", "NVIDIA A100-SXM4-80GB", 0x20B2, (8, 0), 1410, 1593, 64, 5120, 4, 100.0),
    board("H100-80GB", "NVIDIA H100 80GB HBM3", 0x2330, (9, 0), 1980, 2619, 128, 5120, 5, 200.0),
    board("H200-141GB", "NVIDIA H200", 0x2335, (9, 0), 1980, 3201, 128, 6144, 5, 200.0),
    board("A30-24GB", "NVIDIA A30", 0x20B7, (8, 0), 1440, 1215, 64, 3072, 4, 100.0),
    board("V100-16GB", "Tesla V100-SXM2-16GB", 0x1DB1, (7, 0), 1530, 877, 64, 4096, 3, 150.0),
    board("V100-32GB", "Tesla V100-SXM2-32GB", 0x1DB5, (7, 0), 1530, 877, 64, 4096, 3, 150.0),
    board("P100-16GB", "Tesla P100-SXM2-16GB", 0x15F9, (6, 0), 1480, 715, 64, 4096, 3, 150.0),
    board("K80-12GB", "Tesla K80", 0x102D, (3, 7), 875, 2505, 192, 384, 3, 100.0),
    board("T4-16GB", "Tesla T4", 0x1EB8, (7, 5), 1590, 5001, 64, 256, 3, 60.0),
    board("RTX3090-24GB", "NVIDIA GeForce RTX 3090", 0x2204, (8, 6), 2100, 9751, 128, 384, 4, 100.0),
    board("RTX4090-24GB", "NVIDIA GeForce RTX 4090", 0x2684, (8, 9), 3105, 10501, 128, 384, 4, 150.0),
    board("L40S-48GB", "NVIDIA L40S", 0x26B9, (8, 9), 2520, 9001, 128, 384, 4, 100.0),
    board("A6000-48GB", "NVIDIA RTX A6000", 0x2230, (8, 6), 2100, 8001, 128, 384, 4, 100.0),
    board("A10-24GB", "NVIDIA A10", 0x2236, (8, 6), 1695, 6251, 128, 384, 4, 100.0),
    board("L4-24GB", "NVIDIA L4", 0x27B8, (8, 9), 2040, 6251, 128, 192, 4, 40.0),
    board("B200-180GB", "NVIDIA B200", 0x2901, (10, 0), 1965, 3996, 128, 8192, 5, 200.0),
    board("RTX5090-32GB", "NVIDIA GeForce RTX 5090", 0x2B85, (12, 0), 3090, 14001, 128, 512, 5, 400.0),
];

impl Board {
    /// The board of a model; `None` for what is no NVIDIA device.
    pub fn of(model: GpuModel) -> Option<&'static Board> {
        BOARDS.iter().find(|board| board.model == model.name())
    }

    /// NVML's number for the architecture.
    pub fn architecture(&self) -> u32 {
        match self.capability {
            (3, _) => 2,
            (5, _) => 3,
            (6, _) => 4,
            (7, 0) => 5,
            (7, _) => 6,
            (8, 9) => 8,
            (8, _) => 7,
            (9, _) => 9,
            _ => 10,
        }
    }

    /// Energy counters came with Volta.
    pub fn counts_energy(&self) -> bool {
        self.capability >= (7, 0)
    }

    /// NVML's own profiling metrics came with Hopper.
    pub fn has_gpm(&self) -> bool {
        self.capability >= (9, 0)
    }

    /// The most processes that one MPS server takes.
    pub fn mps_clients(&self) -> u32 {
        if self.capability >= (7, 0) { 48 } else { 16 }
    }
}

/// The model with this number in the shared state.
pub(crate) fn model_at(index: u32) -> GpuModel {
    KNOWN_MODELS.get(index as usize).copied().unwrap_or(GpuModel::A100_40GB)
}

/// A model's number in the shared state.
pub(crate) fn model_index(model: GpuModel) -> u32 {
    KNOWN_MODELS.iter().position(|known| *known == model).unwrap_or(0) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_gpu_has_a_board() {
        for model in KNOWN_MODELS {
            let is_nvidias = !matches!(model.name(), "CPU" | "MI300X-192GB");
            assert_eq!(Board::of(model).is_some(), is_nvidias, "{model}");
            assert_eq!(model_at(model_index(model)), model);
        }
    }
}
