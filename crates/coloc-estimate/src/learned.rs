//! What was learned from measurements and ships with the crate.

use crate::boost::Forest;
use crate::bounds::Margin;
use crate::environment::Environment;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// The environment that the training data were measured in.
pub const DEFAULT_ENVIRONMENT: &str = "gpumemnet";

/// Constants that training wrote down.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Calibration {
    /// Constants by software environment.
    pub environments: BTreeMap<String, Environment>,
    /// Margins by family.
    pub margins: Margins,
}

/// The margin of each family of graphs.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Margins {
    /// Matrix products only.
    pub dense: Margin,
    /// Convolutions.
    pub convolutions: Margin,
    /// Attention.
    pub attention: Margin,
}

/// The forests that correct and complete a replay.
#[derive(Clone, Debug, Default)]
pub struct Forests {
    /// Logarithm of measured over replayed memory, for odd convolutions.
    pub residual: Forest,
    /// Expected absolute error of that logarithm, for all convolutions.
    pub spread: Forest,
    /// SM activity, without and with convolutions.
    pub smact: [Forest; 2],
    /// SM occupancy, without and with convolutions.
    pub smocc: [Forest; 2],
}

/// The shipped constants.
pub fn calibration() -> &'static Calibration {
    static CALIBRATION: OnceLock<Calibration> = OnceLock::new();
    CALIBRATION.get_or_init(|| {
        serde_json::from_str(include_str!("../models/calibration.json"))
            .expect("the shipped calibration was written by this crate")
    })
}

/// The shipped forests.
pub fn forests() -> &'static Forests {
    static FORESTS: OnceLock<Forests> = OnceLock::new();
    FORESTS.get_or_init(|| {
        let read = |bytes: &[u8]| {
            Forest::from_bytes(bytes).expect("the shipped forests were written by this crate")
        };
        Forests {
            residual: read(include_bytes!("../models/cnn_residual.forest")),
            spread: read(include_bytes!("../models/cnn_spread.forest")),
            smact: [
                read(include_bytes!("../models/mlp_smact.forest")),
                read(include_bytes!("../models/cnn_smact.forest")),
            ],
            smocc: [
                read(include_bytes!("../models/mlp_smocc.forest")),
                read(include_bytes!("../models/cnn_smocc.forest")),
            ],
        }
    })
}
