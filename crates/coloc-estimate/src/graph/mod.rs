//! The operation graph that every input becomes and every estimator reads.

mod build;
mod facts;
mod guess;
mod op;
pub mod text;

pub use build::GraphBuilder;
pub use op::{Activation, Attention, Conv, Op, Shape};

pub(crate) use facts::{Facts, Parameter};

use serde::Serialize;
use std::ops::Range;

/// A node of one graph. Nodes are in the order in which the program runs them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeId(pub u32);

impl NodeId {
    /// The node's place in the order of execution.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// One operation and the shape of its result for one sample.
#[derive(Clone, PartialEq, Debug)]
pub struct Node {
    /// What is computed.
    pub op: Op,
    /// The result for one sample, without the batch.
    pub shape: Shape,
    /// Its parameters are not trained: no gradient, no optimizer state.
    pub frozen: bool,
    edges: (u32, u32),
}

/// What the training loop does with the graph's result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Loss {
    /// Cross entropy over the last node's channels.
    CrossEntropy,
    /// Next-token prediction: the logits are shifted into a copy first.
    CausalLanguage,
    /// An element-wise loss, such as the mean squared error.
    Elementwise,
}

/// Something that makes an estimate less certain than its bound was calibrated for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Flag {
    /// A stable word for programs.
    pub kind: FlagKind,
    /// What was seen, for people.
    pub detail: String,
}

/// The reasons to widen a bound.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FlagKind {
    /// An operation whose memory behaviour is not known.
    UnknownOperation,
    /// A container whose inside the summary does not show.
    HiddenLayers,
    /// The summary's numbers contradict each other.
    SummaryMismatch,
    /// A choice that the input leaves open was made for it.
    Assumption,
    /// Modelled, but never compared with a measurement.
    Unverified,
    /// Does not fit the device.
    OutOfMemory,
}

/// Nodes of a graph; more is surely a mistake.
pub const MOST_NODES: usize = 200_000;
/// Reasons of one kind that are told; the doubt does not grow with their number.
const MOST_FLAGS: usize = 64;

/// See [`Graph::size`].
pub const MOST_NUMBERS: f64 = (1u64 << 50) as f64;

/// A training task's computation.
#[derive(Clone, PartialEq, Debug)]
pub struct Graph {
    nodes: Vec<Node>,
    edges: Vec<NodeId>,
    facts: Facts,
    /// What follows the last node.
    pub loss: Loss,
    /// Runs of nodes whose activations are computed again in the backward pass.
    pub checkpoints: Vec<Range<usize>>,
    /// Runs of nodes whose kept tensors are freed together, when the first has run backwards.
    pub blocks: Vec<Range<usize>>,
    /// Why an estimate of this graph is less certain.
    pub flags: Vec<Flag>,
}

impl Graph {
    /// Notes a reason for doubt, once, and no more of a kind than a user reads.
    pub fn flag(&mut self, kind: FlagKind, detail: impl Into<String>) {
        let flag = Flag { kind, detail: detail.into() };
        let same = self.flags.iter().filter(|known| known.kind == kind).count();
        if same < MOST_FLAGS && !self.flags.contains(&flag) {
            self.flags.push(flag);
        }
    }

    /// Every node in the order of execution.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// What follows from them.
    pub(crate) fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The nodes whose results `node` reads.
    pub fn inputs(&self, node: &Node) -> &[NodeId] {
        let (start, end) = node.edges;
        &self.edges[start as usize..end as usize]
    }

    /// The shape that `node` reads first; its own when it reads nothing.
    pub fn input_shape(&self, node: &Node) -> Shape {
        self.inputs(node).first().map_or(node.shape, |id| self.nodes[id.index()].shape)
    }

    /// The last node: what the loss reads.
    pub fn output(&self) -> &Node {
        self.nodes.last().expect("a graph is built with its input node")
    }

    /// Trainable and frozen numbers in all parameters.
    pub fn parameters(&self) -> u64 {
        let sizes = self.facts.parameters.iter().map(|parameter| parameter.elements);
        sizes.fold(0, u64::saturating_add)
    }

    /// Numbers that all nodes produce for one sample.
    pub fn activations(&self) -> u64 {
        self.nodes.iter().map(|node| node.shape.elements()).sum()
    }

    /// Numbers in all results for a batch and in all parameters, about. The numbers of a graph that passes
    /// [`MOST_NUMBERS`] cannot be added up, and no device holds them.
    pub fn size(&self, batch: u32) -> f64 {
        let of = |node: &Node| {
            let sides = [node.shape.channels, node.shape.height, node.shape.width, batch];
            let parameters: f64 =
                node.op.parameters(node.shape).iter().map(|size| size as f64).sum();
            // Every head gives a row of scores to each position, or at least their sum.
            let scores = match node.op {
                Op::Attention(Attention { heads, keys, eager, .. }) => {
                    let row = if eager { keys } else { 1 };
                    [heads, row, node.shape.height, node.shape.width, batch]
                        .map(f64::from)
                        .iter()
                        .product()
                }
                _ => 0.0,
            };
            sides.map(f64::from).iter().product::<f64>() + scores + parameters
        };
        self.nodes.iter().map(of).sum()
    }

    /// Whether any operation is a convolution.
    pub fn has_convolutions(&self) -> bool {
        self.facts.convolutions
    }

    /// Whether a convolution that needs a workspace has a channel count that is no multiple of four:
    /// then cuDNN's choice of plan is hard to foresee.
    pub fn has_odd_convolutions(&self) -> bool {
        self.nodes.iter().any(|node| match node.op {
            Op::Conv(conv) if !conv.pointwise() && !conv.depthwise() => {
                let first = self.inputs(node).iter().any(|id| id.index() == 0);
                node.shape.channels % 4 != 0 || (conv.input % 4 != 0 && !first)
            }
            _ => false,
        })
    }

    /// Whether any operation is an attention.
    pub fn has_attention(&self) -> bool {
        self.facts.attention
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_count_where_they_are_kept() {
        let graph = |words: &str| {
            let text = format!("tokens 1024\nembedding 10 48\nlinear 144\nattention {words}\n");
            text::parse(&text).unwrap().size(2)
        };
        let (heads, tokens, batch) = (16.0, 1024.0, 2.0);
        let more = graph("16 eager") - graph("16");
        assert_eq!(more, heads * tokens * (tokens - 1.0) * batch);
    }

    #[test]
    fn no_kind_of_doubt_crowds_out_another() {
        let mut graph = text::parse("input 8\n").unwrap();
        for number in 0..1000 {
            graph.flag(FlagKind::Assumption, format!("number {number}"));
        }
        graph.flag(FlagKind::Unverified, "seen");
        assert_eq!(graph.flags.len(), MOST_FLAGS + 1);
    }
}
