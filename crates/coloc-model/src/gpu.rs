//! GPU models: what their data sheets say.

use crate::Bytes;
use crate::mig::MigTable;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};

/// A kind of device. Copies are cheap: it points into the table of known models, or to a description
/// of a board that the table does not have.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct GpuModel(&'static Sheet);

/// One row of the table of known models.
#[derive(Debug)]
struct Sheet {
    name: &'static str,
    memory_mib: u64,
    sms: u32,
    idle_watts: f64,
    limit_watts: f64,
    mig: Option<&'static MigTable>,
}

const fn sheet(
    name: &'static str,
    memory_mib: u64,
    sms: u32,
    idle_watts: f64,
    limit_watts: f64,
    mig: Option<&'static MigTable>,
) -> Sheet {
    Sheet { name, memory_mib, sms, idle_watts, limit_watts, mig }
}

/// A board without a reading of its idle power, and without a table of partitions.
const fn newer(name: &'static str, memory_mib: u64, sms: u32, limit_watts: f64) -> Sheet {
    sheet(name, memory_mib, sms, limit_watts * IDLE_SHARE, limit_watts, None)
}

/// Memory, SMs and board power limits are from their makers' data sheets (a K80 counts as one of its two
/// dies); idle power is a typical reading, not a promise. `CPU` is a block of host cores that can
/// stand in for a device. Of boards below `CPU` no reading of idle power was at hand: it is taken to be
/// [`IDLE_SHARE`] of the limit. Their memory is what drivers report, with ECC where it is on by default. The B200 can be
/// partitioned, but the sizes of its instances are not known here; the MI300X is AMD's, with compute units for SMs,
/// and has neither MPS nor MIG.
static SHEETS: [Sheet; 20] = [
    sheet("A100-40GB", 40_960, 108, 52.0, 400.0, Some(&MigTable::A100_40)),
    sheet("A100-80GB", 81_920, 108, 60.0, 400.0, Some(&MigTable::A100_80)),
    sheet("H100-80GB", 81_559, 132, 70.0, 700.0, Some(&MigTable::H100_80)),
    sheet("H200-141GB", 143_771, 132, 75.0, 700.0, Some(&MigTable::H200_141)),
    sheet("A30-24GB", 24_576, 56, 30.0, 165.0, Some(&MigTable::A30_24)),
    sheet("V100-16GB", 16_384, 80, 40.0, 300.0, None),
    sheet("V100-32GB", 32_768, 80, 40.0, 300.0, None),
    sheet("P100-16GB", 16_384, 56, 30.0, 250.0, None),
    sheet("K80-12GB", 12_288, 13, 30.0, 150.0, None),
    sheet("T4-16GB", 16_384, 40, 10.0, 70.0, None),
    sheet("RTX3090-24GB", 24_576, 82, 25.0, 350.0, None),
    sheet("RTX4090-24GB", 24_564, 128, 20.0, 450.0, None),
    sheet("CPU", 131_072, 20, 40.0, 120.0, None),
    newer("L40S-48GB", 46_068, 142, 350.0),
    newer("A6000-48GB", 49_140, 84, 300.0),
    newer("A10-24GB", 23_028, 72, 150.0),
    newer("L4-24GB", 23_034, 58, 72.0),
    newer("B200-180GB", 183_359, 148, 1000.0),
    newer("RTX5090-32GB", 32_607, 170, 575.0),
    newer("MI300X-192GB", 196_592, 304, 750.0),
];

/// Every model that a fleet may name.
pub static KNOWN_MODELS: [GpuModel; 20] = {
    let mut models = [GpuModel(&SHEETS[0]); 20];
    let mut i = 0;
    while i < models.len() {
        models[i] = GpuModel(&SHEETS[i]);
        i += 1;
    }
    models
};

/// Boards that a driver described and the table does not have. They live as long as the process: a
/// machine has a handful of kinds, and a model must stay cheap to copy.
static DESCRIBED: Mutex<Vec<&'static Sheet>> = Mutex::new(Vec::new());

/// What a driver says of a board.
#[derive(Clone, PartialEq, Debug)]
pub struct BoardDescription {
    /// The driver's name for it, such as `NVIDIA L40S`.
    pub name: String,
    /// Memory of the device.
    pub memory: Bytes,
    /// Streaming multiprocessors; 0 when unknown.
    pub sms: u32,
    /// The board's power limit; 0 when unknown.
    pub limit_watts: f64,
}

/// How far the memory that a driver reports may lie below the data sheet's (ECC, firmware).
const MEMORY_TOLERANCE: f64 = 0.08;
/// Idle power of a board that was not measured, as a share of its limit; about what the table's have.
const IDLE_SHARE: f64 = 0.12;

impl GpuModel {
    /// The model of a board as its driver describes it. A board that the table does not have gets a model
    /// of its own, without MIG, whose idle power is a guess.
    pub fn of_board(board: &BoardDescription) -> GpuModel {
        known_board(board).unwrap_or_else(|| described(board))
    }

    /// The A100 with 40 GB, on which the published collocation results were measured.
    pub const A100_40GB: GpuModel = GpuModel(&SHEETS[0]);

    /// The name used in fleet specs.
    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// Memory of the device.
    #[inline]
    pub fn memory(self) -> Bytes {
        Bytes::from_mib(self.0.memory_mib)
    }

    /// Streaming multiprocessors.
    pub fn sms(self) -> u32 {
        self.0.sms
    }

    /// Power draw with no process on the device.
    #[inline]
    pub fn idle_watts(self) -> f64 {
        self.0.idle_watts
    }

    /// The board's power limit.
    #[inline]
    pub fn limit_watts(self) -> f64 {
        self.0.limit_watts
    }

    /// Clients of MPS that the device takes, by drivers up to CUDA 13.0: 48 since Volta, 16 before.
    pub fn mps_clients(self) -> u32 {
        if matches!(self.0.name, "P100-16GB" | "K80-12GB") { 16 } else { 48 }
    }

    /// How the device can be partitioned, if it can.
    pub fn mig(self) -> Option<&'static MigTable> {
        self.0.mig
    }
}

/// The table's model whose chip the name has as a word and whose memory is about the same.
fn known_board(board: &BoardDescription) -> Option<GpuModel> {
    let name = board.name.to_ascii_uppercase().replace("RTX ", "RTX");
    let words: Vec<&str> = name.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    KNOWN_MODELS.iter().copied().find(|model| {
        let chip = model.name().split('-').next().unwrap_or_default();
        let off = board.memory.mib() / model.memory().mib() - 1.0;
        let rtx = format!("RTX{chip}");
        let is_it = words.contains(&chip) || words.contains(&rtx.as_str());
        is_it && off.abs() < MEMORY_TOLERANCE
    })
}

fn described(board: &BoardDescription) -> GpuModel {
    let chip = board.name.trim().trim_start_matches("NVIDIA ").trim_start_matches("GeForce ");
    let chip: String = chip
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '_' })
        .take(48)
        .collect();
    let name = format!("{chip}-{:.0}GB", board.memory.gib());
    let mut known = DESCRIBED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(sheet) = known.iter().find(|sheet| sheet.name == name) {
        return GpuModel(sheet);
    }
    let watts = if board.limit_watts.is_finite() { board.limit_watts.max(0.0) } else { 0.0 };
    let sheet: &'static Sheet = Box::leak(Box::new(Sheet {
        name: Box::leak(name.into_boxed_str()),
        memory_mib: board.memory.mib() as u64,
        sms: board.sms,
        idle_watts: watts * IDLE_SHARE,
        limit_watts: watts,
        mig: None,
    }));
    known.push(sheet);
    GpuModel(sheet)
}

impl PartialEq for GpuModel {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.0, other.0) || self.0.name == other.0.name
    }
}

impl Eq for GpuModel {}

impl PartialOrd for GpuModel {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for GpuModel {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.name.cmp(other.0.name)
    }
}

impl fmt::Display for GpuModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A model name that the table does not have.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("unknown GPU model {name:?}; known models: {}", known_names())]
pub struct UnknownModel {
    /// The name that was asked for.
    pub name: String,
}

fn known_names() -> String {
    KNOWN_MODELS.map(GpuModel::name).join(", ")
}

impl FromStr for GpuModel {
    type Err = UnknownModel;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let described = DESCRIBED.lock().unwrap_or_else(PoisonError::into_inner);
        KNOWN_MODELS
            .iter()
            .copied()
            .chain(described.iter().map(|sheet| GpuModel(sheet)))
            .find(|model| model.name().eq_ignore_ascii_case(name))
            .ok_or_else(|| UnknownModel { name: name.to_owned() })
    }
}

impl TryFrom<String> for GpuModel {
    type Error = UnknownModel;
    fn try_from(name: String) -> Result<Self, Self::Error> {
        name.parse()
    }
}

impl From<GpuModel> for String {
    fn from(model: GpuModel) -> String {
        model.name().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn board(name: &str, mib: u64) -> BoardDescription {
        BoardDescription {
            name: name.to_owned(),
            memory: Bytes::from_mib(mib),
            sms: 142,
            limit_watts: 350.0,
        }
    }

    #[test]
    fn boards_are_known_by_the_names_that_drivers_give_them() {
        for (name, mib, model) in [
            ("NVIDIA A100-SXM4-40GB", 40_960, "A100-40GB"),
            ("NVIDIA A100-PCIE-40GB", 40_536, "A100-40GB"),
            ("NVIDIA A100 80GB PCIe", 81_920, "A100-80GB"),
            ("NVIDIA H100 80GB HBM3", 81_559, "H100-80GB"),
            ("NVIDIA H200", 143_771, "H200-141GB"),
            ("Tesla V100-SXM2-16GB", 16_160, "V100-16GB"),
            ("Tesla V100-SXM2-32GB", 32_510, "V100-32GB"),
            ("Tesla P100-PCIE-16GB", 16_280, "P100-16GB"),
            ("Tesla K80", 11_441, "K80-12GB"),
            ("Tesla T4", 15_360, "T4-16GB"),
            ("NVIDIA GeForce RTX 3090", 24_576, "RTX3090-24GB"),
            ("NVIDIA GeForce RTX 4090", 24_564, "RTX4090-24GB"),
            ("NVIDIA A30", 24_576, "A30-24GB"),
            ("NVIDIA L40S", 46_068, "L40S-48GB"),
            ("NVIDIA RTX A6000", 49_140, "A6000-48GB"),
            ("NVIDIA A10", 23_028, "A10-24GB"),
            ("NVIDIA L4", 23_034, "L4-24GB"),
            ("NVIDIA B200", 183_359, "B200-180GB"),
            ("NVIDIA GeForce RTX 5090", 32_607, "RTX5090-32GB"),
        ] {
            assert_eq!(GpuModel::of_board(&board(name, mib)).name(), model, "{name}");
        }
    }

    #[test]
    fn an_unknown_board_gets_a_model_of_its_own() {
        let model = GpuModel::of_board(&board("NVIDIA L20", 46_068));
        assert_eq!((model.name(), model.sms()), ("L20-45GB", 142));
        assert_eq!(model.memory(), Bytes::from_mib(46_068));
        assert_eq!(GpuModel::of_board(&board("NVIDIA L20", 46_068)), model);
        assert_eq!("l20-45gb".parse(), Ok(model));
        // The same chip with other memory is another board.
        let other = GpuModel::of_board(&board("NVIDIA A100-SXM4-64GB", 65_536));
        assert_eq!(other.name(), "A100_SXM4_64GB-64GB");
    }
}
