//! How fast tasks run on one kind of device, compared with the device that their run time refers to.

use crate::{GpuModel, Millis, SignatureId};
use std::collections::BTreeMap;

/// Speeds by what runs and on which model. What is not in the table runs at speed 1.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct SpeedTable {
    speeds: BTreeMap<(SignatureId, GpuModel), f64>,
    spread: BTreeMap<(SignatureId, GpuModel), f64>,
}

impl SpeedTable {
    /// Notes a speed; zero means that it does not run there.
    pub fn insert(&mut self, signature: SignatureId, model: GpuModel, speed: f64) {
        self.speeds.insert((signature, model), speed);
    }

    /// Notes the speed of a gang that is spread over nodes, against that of one that is not.
    pub fn insert_spread(&mut self, signature: SignatureId, model: GpuModel, speed: f64) {
        self.spread.insert((signature, model), speed);
    }

    /// Speed of a gang that is spread over nodes against that of one that is not, if known.
    pub fn spread(&self, signature: SignatureId, model: GpuModel) -> Option<f64> {
        self.spread.get(&(signature, model)).copied()
    }

    /// These speeds where there are any, else those of another table.
    #[must_use]
    pub fn or(mut self, mut others: SpeedTable) -> Self {
        others.speeds.append(&mut self.speeds);
        others.spread.append(&mut self.spread);
        others
    }

    /// How fast it runs there; `None` if it does not.
    #[inline]
    pub fn speed(&self, signature: SignatureId, model: GpuModel) -> Option<f64> {
        let speed = self.speeds.get(&(signature, model)).copied().unwrap_or(1.0);
        (speed > 0.0).then_some(speed)
    }

    /// What does not run on which model.
    pub fn barred(&self) -> impl Iterator<Item = (SignatureId, GpuModel)> + '_ {
        let zero = self.speeds.iter().filter(|&(_, &speed)| speed <= 0.0);
        zero.map(|(&(signature, model), _)| (signature, model))
    }

    /// How long it takes there, if it takes `span` at speed 1.
    pub fn time(&self, signature: SignatureId, model: GpuModel, span: Millis) -> Option<Millis> {
        self.speed(signature, model).map(|speed| Millis((span.0 as f64 / speed).ceil() as u64))
    }
}
