//! The machines: nodes and the GPUs in them, from a spec such as `15x4xV100-16GB`.

use crate::{GpuId, GpuModel, NodeId, UnknownModel};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Range;
use std::str::FromStr;

/// The most GPUs that a fleet may have: beyond any site, and small enough to be worked with.
pub const MOST_GPUS: u64 = 100_000;

/// One GPU and the node it sits in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Gpu {
    /// The kind of device.
    pub model: GpuModel,
    /// Its server.
    pub node: NodeId,
}

/// A server: a run of GPUs with consecutive ids.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Node {
    gpus: Range<u32>,
}

impl Node {
    /// The node's GPUs.
    pub fn gpus(&self) -> impl DoubleEndedIterator<Item = GpuId> + ExactSizeIterator + use<> {
        self.gpus.clone().map(GpuId)
    }

    /// The ids of its GPUs.
    pub fn range(&self) -> Range<u32> {
        self.gpus.clone()
    }

    /// How many GPUs it has.
    pub fn len(&self) -> usize {
        self.gpus.len()
    }

    /// A node without GPUs does not exist; here for completeness.
    pub fn is_empty(&self) -> bool {
        self.gpus.is_empty()
    }
}

/// All machines that one scheduler manages.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Fleet {
    gpus: Vec<Gpu>,
    nodes: Vec<Node>,
}

/// A fleet could not be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FleetError {
    /// A group of the spec is not of the form `[NODESx][GPUSx]MODEL`.
    #[error(
        "cannot read fleet group {group:?}; expected GPUSxMODEL or NODESxGPUSxMODEL, \
         such as 4xA100-40GB or 15x4xV100-16GB"
    )]
    Group {
        /// The group as written.
        group: String,
    },
    /// A model is not in the table.
    #[error(transparent)]
    Model(#[from] UnknownModel),
    /// A count is zero or the total is absurd.
    #[error("a fleet has 1 to {MOST_GPUS} GPUs, not {gpus}")]
    Size {
        /// The total that was asked for.
        gpus: u64,
    },
}

/// A fleet as a TOML file: `[[node]]` tables with `gpus = 4`, `model = "A100-40GB"`, `count = 15`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FleetFile {
    node: Vec<NodeGroup>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NodeGroup {
    model: String,
    gpus: u64,
    #[serde(default = "one")]
    count: u64,
}

fn one() -> u64 {
    1
}

impl Fleet {
    fn from_groups(
        groups: impl IntoIterator<Item = (u64, u64, GpuModel)>,
    ) -> Result<Self, FleetError> {
        let mut fleet = Fleet { gpus: Vec::new(), nodes: Vec::new() };
        let mut total = 0u64;
        for (nodes, gpus, model) in groups {
            let added = nodes.saturating_mul(gpus);
            total = total.saturating_add(added);
            if added == 0 || total > MOST_GPUS {
                return Err(FleetError::Size { gpus: if added == 0 { 0 } else { total } });
            }
            for _ in 0..nodes {
                let node = NodeId::from(fleet.nodes.len());
                let first = fleet.gpus.len() as u32;
                fleet.gpus.extend((0..gpus).map(|_| Gpu { model, node }));
                fleet.nodes.push(Node { gpus: first..first + gpus as u32 });
            }
        }
        if total == 0 {
            return Err(FleetError::Size { gpus: 0 });
        }
        Ok(fleet)
    }

    /// One server with these GPUs, of which at least one must be.
    pub fn server(models: &[GpuModel]) -> Result<Self, FleetError> {
        let gpus = models.len() as u64;
        if gpus == 0 || gpus > MOST_GPUS {
            return Err(FleetError::Size { gpus });
        }
        let node = NodeId(0);
        let gpus = models.iter().map(|&model| Gpu { model, node }).collect();
        Ok(Fleet { gpus, nodes: vec![Node { gpus: 0..models.len() as u32 }] })
    }

    /// How many GPUs there are.
    pub fn len(&self) -> usize {
        self.gpus.len()
    }

    /// A fleet without GPUs cannot be made; here for completeness.
    pub fn is_empty(&self) -> bool {
        self.gpus.is_empty()
    }

    /// The GPUs in id order.
    pub fn gpus(&self) -> &[Gpu] {
        &self.gpus
    }

    /// The nodes in id order.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// One GPU.
    pub fn gpu(&self, id: GpuId) -> &Gpu {
        &self.gpus[id.index()]
    }

    /// One node.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    /// Every GPU id, in order.
    pub fn ids(&self) -> impl Iterator<Item = GpuId> + use<> {
        (0..self.gpus.len() as u32).map(GpuId)
    }

    /// GPUs on the node that has the most.
    pub fn widest_node(&self) -> usize {
        self.nodes.iter().map(Node::len).max().unwrap_or(0)
    }
}

impl FromStr for Fleet {
    type Err = FleetError;

    fn from_str(spec: &str) -> Result<Self, Self::Err> {
        let groups = spec.split(',').map(|group| {
            let fail = || FleetError::Group { group: group.to_owned() };
            let mut rest = group.trim();
            let mut counts = Vec::new();
            while let Some((count, tail)) = rest.split_once(['x', 'X']) {
                if count.is_empty() || !count.bytes().all(|b| b.is_ascii_digit()) {
                    break;
                }
                counts.push(count.parse::<u64>().map_err(|_| fail())?);
                rest = tail;
            }
            let (nodes, gpus) = match counts[..] {
                [gpus] => (1, gpus),
                [nodes, gpus] => (nodes, gpus),
                _ => return Err(fail()),
            };
            Ok((nodes, gpus, rest.parse()?))
        });
        Fleet::from_groups(groups.collect::<Result<Vec<_>, FleetError>>()?)
    }
}

impl TryFrom<FleetFile> for Fleet {
    type Error = FleetError;

    fn try_from(file: FleetFile) -> Result<Self, Self::Error> {
        let groups = file
            .node
            .into_iter()
            .map(|group| Ok::<_, FleetError>((group.count, group.gpus, group.model.parse()?)));
        Fleet::from_groups(groups.collect::<Result<Vec<_>, _>>()?)
    }
}

impl fmt::Display for Fleet {
    /// The shortest spec that names this fleet. A server with several kinds of GPUs, which a spec cannot
    /// say, has a `+` between them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shape = |node: &Node| {
            let gpus = &self.gpus[node.gpus.start as usize..node.gpus.end as usize];
            let kinds = gpus.chunk_by(|a, b| a.model == b.model);
            kinds.map(|run| format!("{}x{}", run.len(), run[0].model)).collect::<Vec<_>>().join("+")
        };
        let shapes: Vec<String> = self.nodes.iter().map(shape).collect();
        let mut groups: Vec<String> = Vec::new();
        for run in shapes.chunk_by(|a, b| a == b) {
            groups.push(match run.len() {
                1 => run[0].clone(),
                nodes => format!("{nodes}x{}", run[0]),
            });
        }
        f.pad(&groups.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn specs_round_trip() {
        for (spec, gpus, nodes) in [
            ("4xA100-40GB", 4, 1),
            ("15x4xV100-16GB", 60, 15),
            ("2xV100-16GB,4xT4-16GB", 6, 2),
            ("1xRTX3090-24GB", 1, 1),
            ("2x1xCPU", 2, 2),
        ] {
            let fleet: Fleet = spec.parse().expect(spec);
            assert_eq!((fleet.len(), fleet.nodes().len()), (gpus, nodes), "{spec}");
            assert_eq!(fleet.to_string(), spec);
        }
    }

    #[test]
    fn bad_specs_say_what_is_wrong() {
        for spec in ["", "A100-40GB", "4x", "0xA100-40GB", "4xB200", "1x2x3xT4-16GB", "-1xT4-16GB"]
        {
            assert!(spec.parse::<Fleet>().is_err(), "{spec}");
        }
        let huge = "99999999999999999999xT4-16GB".parse::<Fleet>();
        assert!(matches!(huge, Err(FleetError::Group { .. })));
        let large = "4000000000x4000000000xT4-16GB".parse::<Fleet>();
        assert!(matches!(large, Err(FleetError::Size { .. })));
        for spec in ["1000000000xA100-40GB", "100001xT4-16GB", "50000x2xT4-16GB,1xT4-16GB"] {
            let error = spec.parse::<Fleet>().expect_err(spec).to_string();
            assert!(error.contains("1 to 100000 GPUs"), "{error}");
        }
        assert!("50000x2xT4-16GB".parse::<Fleet>().is_ok());
    }

    #[test]
    fn a_server_may_have_several_kinds() {
        let models = ["A100-40GB", "A100-40GB", "T4-16GB"].map(|name| name.parse().expect("known"));
        let fleet = Fleet::server(&models).expect("three GPUs");
        assert_eq!((fleet.len(), fleet.nodes().len()), (3, 1));
        assert_eq!(fleet.to_string(), "2xA100-40GB+1xT4-16GB");
        assert!(Fleet::server(&[]).is_err());
    }

    proptest! {
        #[test]
        fn parsing_a_spec_never_panics(spec in "[0-9xX,A-Za-z.-]{0,40}") {
            let _ = spec.parse::<Fleet>();
        }
    }
}
