//! GPU models: what their data sheets say.

use crate::Bytes;
use crate::mig::MigTable;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// A kind of device. Copies are cheap: it points into the table of known models.
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

/// Memory, SMs and board power limits are from NVIDIA's data sheets (a K80 counts as one of its two
/// dies); idle power is a typical reading, not a promise. `CPU` is a block of host cores that can
/// stand in for a device.
static SHEETS: [Sheet; 13] = [
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
];

/// Every model that a fleet may name.
pub static KNOWN_MODELS: [GpuModel; 13] = {
    let mut models = [GpuModel(&SHEETS[0]); 13];
    let mut i = 0;
    while i < models.len() {
        models[i] = GpuModel(&SHEETS[i]);
        i += 1;
    }
    models
};

impl GpuModel {
    /// The A100 with 40 GB, on which the published collocation results were measured.
    pub const A100_40GB: GpuModel = GpuModel(&SHEETS[0]);

    /// The name used in fleet specs.
    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// Memory of the device.
    pub fn memory(self) -> Bytes {
        Bytes::from_mib(self.0.memory_mib)
    }

    /// Streaming multiprocessors.
    pub fn sms(self) -> u32 {
        self.0.sms
    }

    /// Power draw with no process on the device.
    pub fn idle_watts(self) -> f64 {
        self.0.idle_watts
    }

    /// The board's power limit.
    pub fn limit_watts(self) -> f64 {
        self.0.limit_watts
    }

    /// How the device can be partitioned, if it can.
    pub fn mig(self) -> Option<&'static MigTable> {
        self.0.mig
    }
}

impl PartialEq for GpuModel {
    fn eq(&self, other: &Self) -> bool {
        self.0.name == other.0.name
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
        KNOWN_MODELS
            .iter()
            .copied()
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
