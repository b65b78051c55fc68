//! What a process holds on the device beside PyTorch's allocator: a constant per software image.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use crate::graph::{Graph, Op};

/// The constant of one software environment, by what the task loads.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Environment {
    /// Context and cuBLAS, in MiB.
    pub base_mib: f64,
    /// More when a convolution loads cuDNN.
    pub convolution_mib: f64,
    /// More when batch normalisation is used too.
    pub batch_norm_mib: f64,
}

impl Environment {
    /// What `graph` holds beside the allocator, in MiB.
    pub fn constant_mib(&self, graph: &Graph) -> f64 {
        self.base_mib + self.libraries_mib(graph)
    }

    /// The part of it that the graph's libraries add to the base.
    pub fn libraries_mib(&self, graph: &Graph) -> f64 {
        if !graph.has_convolutions() {
            return 0.0;
        }
        let normalised = graph.nodes().iter().any(|node| node.op == Op::BatchNorm);
        self.convolution_mib + if normalised { self.batch_norm_mib } else { 0.0 }
    }
}

/// The most frequent difference between measured and replayed memory, to the MiB: the part that the
/// allocator does not see. The smallest wins a tie. `None` without differences.
pub fn learn_constant(differences_mib: &[f64]) -> Option<f64> {
    let mut counts: BTreeMap<i64, usize> = BTreeMap::new();
    for difference in differences_mib {
        *counts.entry(difference.round() as i64).or_default() += 1;
    }
    let most = counts.values().copied().max()?;
    counts.into_iter().find(|(_, count)| *count == most).map(|(mib, _)| mib as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_constant_is_the_mode() {
        assert_eq!(learn_constant(&[]), None);
        assert_eq!(learn_constant(&[1429.2, 1428.8, 1449.0, 1427.0]), Some(1429.0));
        assert_eq!(learn_constant(&[5.0, 3.0, 5.0, 3.0]), Some(3.0));
    }
}
