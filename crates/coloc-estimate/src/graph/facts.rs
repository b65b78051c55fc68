//! What follows from a graph's nodes, whatever they are trained with: worked out once, asked by every estimate.

use super::{Graph, Node, NodeId, Op};
use std::ops::Range;

/// A parameter tensor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Parameter {
    /// Numbers in it.
    pub(crate) elements: u64,
    pub(crate) trained: bool,
    /// It is the last of a batch normalisation, whose running statistics come next.
    pub(crate) has_statistics: bool,
}

/// See the module.
#[derive(Clone, PartialEq, Default, Debug)]
pub(crate) struct Facts {
    /// Every parameter, in order of creation.
    pub(crate) parameters: Vec<Parameter>,
    /// First parameter of each node, and one past the last node's.
    first_parameter: Vec<u32>,
    /// The last node that reads each node's value.
    pub(crate) last_reader: Vec<u32>,
    /// A parameter that is trained stands upstream of a node, so a gradient flows through.
    pub(crate) differentiable: Vec<bool>,
    pub(super) convolutions: bool,
    pub(super) attention: bool,
    pub(super) unknown: bool,
}

impl Facts {
    pub(super) fn of(graph: &Graph) -> Self {
        let count = graph.nodes.len();
        let mut facts = Facts {
            last_reader: vec![0; count],
            differentiable: vec![false; count],
            first_parameter: Vec::with_capacity(count + 1),
            ..Facts::default()
        };
        for (index, node) in graph.nodes.iter().enumerate() {
            facts.add(index, node, graph.inputs(node));
        }
        facts.first_parameter.push(facts.parameters.len() as u32);
        facts
    }

    fn add(&mut self, index: usize, node: &Node, inputs: &[NodeId]) {
        match node.op {
            Op::Conv(_) => self.convolutions = true,
            Op::Attention(_) => self.attention = true,
            Op::Unknown { .. } => self.unknown = true,
            _ => {}
        }
        let first = self.parameters.len();
        self.first_parameter.push(first as u32);
        let sizes = node.op.parameters(node.shape);
        let trained = !node.frozen;
        let parameter = |elements| Parameter { elements, trained, has_statistics: false };
        self.parameters.extend(sizes.iter().map(parameter));
        if let (Op::BatchNorm, [.., last]) = (&node.op, &mut self.parameters[first..]) {
            last.has_statistics = true;
        }
        let own = trained && self.parameters.len() > first;
        let tied = matches!(node.op, Op::Linear { tied: true, .. });
        let inherited = |id: &NodeId| self.differentiable[id.index()];
        self.differentiable[index] = own || tied || inputs.iter().any(inherited);
        for id in inputs {
            self.last_reader[id.index()] = index as u32;
        }
    }

    /// The parameters of a node.
    pub(crate) fn parameters_of(&self, node: usize) -> Range<usize> {
        self.first_parameter[node] as usize..self.first_parameter[node + 1] as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{GraphBuilder, Loss, Shape};

    #[test]
    fn running_statistics_come_after_their_own_normalisation() {
        let mut builder = GraphBuilder::new(Shape::features(8));
        let wide = builder.linear(builder.last(), 4, true);
        builder.same(Op::BatchNorm, wide);
        let graph = builder.finish(Loss::CrossEntropy);
        let parameters = graph.facts.parameters.iter();
        let found: Vec<(u64, bool)> =
            parameters.map(|parameter| (parameter.elements, parameter.has_statistics)).collect();
        assert_eq!(found, [(32, false), (4, false), (4, false), (4, true)]);
        assert_eq!(graph.facts.parameters_of(2), 2..4);
    }
}
