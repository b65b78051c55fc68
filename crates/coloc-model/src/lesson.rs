//! What was measured of tasks of one kind.

use crate::{Bytes, Fraction};
use serde::{Deserialize, Serialize};

/// What was found out about tasks of one kind.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Lesson {
    /// How busy one keeps a GPU that it has to itself.
    pub sm: Option<Fraction>,
    /// The most memory it held.
    pub peak: Option<Bytes>,
    /// How it takes neighbours, and is one.
    #[serde(alias = "temper")]
    pub interference: Option<InterferenceProfile>,
}

/// How a kind of task takes neighbours and is one, against what is believed of tasks that were not measured.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct InterferenceProfile {
    /// How much others slow it.
    pub sensitivity: f64,
    /// How much it slows others.
    pub pressure: f64,
}

impl InterferenceProfile {
    /// As the model expects.
    pub const USUAL: InterferenceProfile = InterferenceProfile { sensitivity: 1.0, pressure: 1.0 };
}

impl Default for InterferenceProfile {
    fn default() -> Self {
        InterferenceProfile::USUAL
    }
}
