//! What a process holds on the device beside PyTorch's allocator: a constant per software image.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use crate::graph::{Graph, Op};
use coloc_model::Loads;

/// The constant of one software environment, by what the task loads.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct Environment {
    /// Context and cuBLAS, in MiB.
    pub base_mib: f64,
    /// More when a convolution loads cuDNN.
    pub convolution_mib: f64,
    /// More when batch normalisation is used too.
    pub batch_norm_mib: f64,
    /// How far above the constant the measurements reach that it was learned from; bounds allow for it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub spread_mib: f64,
}

fn is_zero(mib: &f64) -> bool {
    *mib == 0.0
}

/// The libraries that a graph loads.
pub fn loads_of(graph: &Graph) -> Loads {
    if !graph.has_convolutions() {
        return Loads::Plain;
    }
    match graph.nodes().iter().any(|node| node.op == Op::BatchNorm) {
        true => Loads::BatchNorm,
        false => Loads::Convolutions,
    }
}

impl Environment {
    /// What `graph` holds beside the allocator, in MiB.
    pub fn constant_mib(&self, graph: &Graph) -> f64 {
        self.base_mib + self.libraries_mib(graph)
    }

    /// The part of it that the graph's libraries add to the base.
    pub fn libraries_mib(&self, graph: &Graph) -> f64 {
        self.total_mib(loads_of(graph)) - self.base_mib
    }

    /// What a task holds that loads these.
    pub fn total_mib(&self, loads: Loads) -> f64 {
        let parts = [self.base_mib, self.convolution_mib, self.batch_norm_mib];
        parts[..=loads as usize].iter().sum()
    }
}

/// A measured run beside its replay.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Observation {
    /// What it loads.
    pub loads: Loads,
    /// Measured minus replayed memory, in MiB.
    pub difference_mib: f64,
}

/// An environment that was learned.
#[derive(Clone, PartialEq, Debug)]
pub struct Lesson {
    /// Its constants.
    pub environment: Environment,
    /// The environment whose parts stand for those that no run tells, and which they are.
    pub borrowed: Option<(String, Vec<Loads>)>,
}

/// Nothing can be learned.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum LearnError {
    /// There is nothing to learn from.
    #[error("no measured run that can be learned from")]
    NoRuns,
    /// What is measured contains what is replayed.
    #[error(
        "measured {measured:.0} MiB, but the allocator alone holds {replayed:.0} MiB in the replay: \
         check batch, optimizer and precision, and that the peak of the whole run was measured"
    )]
    BelowReplay {
        /// Measured, in MiB.
        measured: f64,
        /// Replayed, in MiB.
        replayed: f64,
    },
}

/// Learns the parts of a constant from measured runs. A part that no run tells is that of the known
/// environment whose other parts come closest.
pub fn learn(
    observations: &[Observation],
    known: &BTreeMap<String, Environment>,
) -> Result<Lesson, LearnError> {
    let of = |loads: Loads| -> Vec<f64> {
        let alike = observations.iter().filter(|seen| seen.loads == loads);
        alike.map(|seen| seen.difference_mib).collect()
    };
    let totals = Loads::ALL.map(|loads| learn_constant(&of(loads)));
    if totals.iter().all(Option::is_none) {
        return Err(LearnError::NoRuns);
    }
    let missing: Vec<Loads> =
        Loads::ALL.into_iter().filter(|loads| totals[*loads as usize].is_none()).collect();
    let closest = closest(&totals, known).filter(|_| !missing.is_empty());
    let model = closest.map(|(_, model)| *model).unwrap_or_default();
    let filled = fill(totals, &model);
    let mut environment = Environment {
        base_mib: filled[0],
        convolution_mib: filled[1] - filled[0],
        batch_norm_mib: filled[2] - filled[1],
        spread_mib: 0.0,
    };
    let above = |seen: &Observation| seen.difference_mib - environment.total_mib(seen.loads);
    environment.spread_mib = observations.iter().map(above).fold(0.0, f64::max);
    let borrowed = closest.map(|(name, _)| (name.clone(), missing));
    Ok(Lesson { environment, borrowed })
}

/// The environment that differs least where something is known.
fn closest<'a>(
    totals: &[Option<f64>; 3],
    known: &'a BTreeMap<String, Environment>,
) -> Option<(&'a String, &'a Environment)> {
    let distance = |model: &Environment| -> f64 {
        let far = |loads: Loads| Some((totals[loads as usize]? - model.total_mib(loads)).abs());
        Loads::ALL.into_iter().filter_map(far).sum()
    };
    known.iter().min_by(|(_, a), (_, b)| distance(a).total_cmp(&distance(b)))
}

/// Totals of which an unknown one differs from the known one before it, or else after it, as in the model. None is
/// below nothing or above the known one after it.
fn fill(totals: [Option<f64>; 3], model: &Environment) -> [f64; 3] {
    let of = |place: usize| model.total_mib(Loads::ALL[place]);
    let known = |place: usize| totals[place].map(|total| (place, total));
    [0, 1, 2].map(|place| {
        if let Some(total) = totals[place] {
            return total;
        }
        let after = (place + 1..3).find_map(known);
        let beside = (0..place).rev().find_map(known).or(after);
        let total = beside.map_or(0.0, |(beside, total)| total + of(place) - of(beside));
        total.clamp(0.0, after.map_or(f64::INFINITY, |(_, total)| total.max(0.0)))
    })
}

/// The most frequent difference between measured and replayed memory, to the MiB: the part that the
/// allocator does not see. The smallest wins a tie; where no two are alike, the one in the middle is
/// taken, the higher of two. `None` without differences.
pub fn learn_constant(differences_mib: &[f64]) -> Option<f64> {
    let mut counts: BTreeMap<i64, usize> = BTreeMap::new();
    for difference in differences_mib {
        *counts.entry(difference.round() as i64).or_default() += 1;
    }
    let most = counts.values().copied().max()?;
    let chosen = match most {
        1 => counts.keys().nth(counts.len() / 2),
        most => counts.iter().find(|(_, count)| **count == most).map(|(mib, _)| mib),
    };
    chosen.map(|mib| *mib as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learned::calibration;

    fn observations(of: &[(Loads, f64)]) -> Vec<Observation> {
        of.iter().map(|&(loads, difference_mib)| Observation { loads, difference_mib }).collect()
    }

    fn lesson(of: &[(Loads, f64)]) -> Lesson {
        learn(&observations(of), &calibration().environments).unwrap()
    }

    #[test]
    fn the_constant_is_the_mode() {
        assert_eq!(learn_constant(&[]), None);
        assert_eq!(learn_constant(&[1429.2, 1428.8, 1449.0, 1427.0]), Some(1429.0));
        assert_eq!(learn_constant(&[5.0, 3.0, 5.0, 3.0]), Some(3.0));
        assert_eq!(learn_constant(&[1400.0, 1431.0, 1429.0]), Some(1429.0), "no two are alike");
    }

    #[test]
    fn each_part_comes_from_the_runs_that_show_it() {
        let all = [
            (Loads::Plain, 700.0),
            (Loads::Plain, 700.0),
            (Loads::Plain, 712.0),
            (Loads::Convolutions, 800.0),
            (Loads::BatchNorm, 830.0),
        ];
        let Lesson { environment, borrowed } = lesson(&all);
        let Environment { base_mib, convolution_mib, batch_norm_mib, spread_mib } = environment;
        assert_eq!((base_mib, convolution_mib, batch_norm_mib), (700.0, 100.0, 30.0));
        assert_eq!((spread_mib, borrowed), (12.0, None));
    }

    #[test]
    fn parts_that_nobody_measured_are_those_of_the_closest_environment() {
        let Lesson { environment, borrowed } = lesson(&[(Loads::Plain, 1500.0)]);
        assert_eq!((environment.base_mib, environment.convolution_mib), (1500.0, 250.0));
        let (from, parts) = borrowed.unwrap();
        assert_eq!((from.as_str(), &parts[..]), ("gpumemnet", &Loads::ALL[1..]));

        let Lesson { environment, borrowed } = lesson(&[(Loads::BatchNorm, 530.0)]);
        assert_eq!((environment.base_mib, environment.convolution_mib), (486.0, 44.0));
        assert_eq!(borrowed.unwrap().0, "carma");

        let Lesson { environment, .. } =
            lesson(&[(Loads::Plain, 1400.0), (Loads::BatchNorm, 1410.0)]);
        assert_eq!((environment.convolution_mib, environment.batch_norm_mib), (10.0, 0.0));

        let Lesson { environment, .. } = lesson(&[(Loads::BatchNorm, 30.0)]);
        assert_eq!((environment.base_mib, environment.total_mib(Loads::BatchNorm)), (0.0, 30.0));
        assert_eq!(learn(&[], &calibration().environments), Err(LearnError::NoRuns));
    }
}
