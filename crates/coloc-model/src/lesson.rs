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
    pub temper: Option<Temper>,
}

/// How a kind of task takes neighbours and is one, against what is believed of tasks that nobody measured.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Temper {
    /// How much others slow it.
    pub sensitivity: f64,
    /// How much it slows others.
    pub pressure: f64,
}

impl Temper {
    /// As the model expects.
    pub const USUAL: Temper = Temper { sensitivity: 1.0, pressure: 1.0 };
}

impl Default for Temper {
    fn default() -> Self {
        Temper::USUAL
    }
}
