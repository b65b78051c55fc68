//! Puts a graph together node by node.

use super::{Activation, Attention, Conv, Facts, FlagKind, Graph, Loss, Node, NodeId, Op, Shape};

/// Builds a graph in the order of execution; every method returns the new node.
#[derive(Clone, Debug)]
pub struct GraphBuilder {
    graph: Graph,
    /// Which nodes are read by others.
    read: Vec<bool>,
}

impl GraphBuilder {
    /// Begins with a batch of floats.
    pub fn new(input: Shape) -> Self {
        Self::starting_with(Op::Input, input)
    }

    /// Begins with sequences of token numbers.
    pub fn tokens(length: u32) -> Self {
        Self::starting_with(Op::Tokens, Shape::sequence(length, 1))
    }

    fn starting_with(op: Op, shape: Shape) -> Self {
        let first = Node { op, shape, frozen: false, edges: (0, 0) };
        GraphBuilder {
            graph: Graph {
                nodes: vec![first],
                edges: Vec::new(),
                facts: Facts::default(),
                loss: Loss::CrossEntropy,
                checkpoints: Vec::new(),
                blocks: Vec::new(),
                flags: Vec::new(),
            },
            read: vec![false],
        }
    }

    /// The input node.
    pub const fn input(&self) -> NodeId {
        NodeId(0)
    }

    /// The newest node.
    pub fn last(&self) -> NodeId {
        NodeId(self.graph.nodes.len() as u32 - 1)
    }

    /// How many nodes there are.
    pub fn len(&self) -> usize {
        self.graph.nodes.len()
    }

    /// Never: there is always the input.
    pub const fn is_empty(&self) -> bool {
        false
    }

    /// The shape of a node.
    pub fn shape(&self, node: NodeId) -> Shape {
        self.graph.nodes[node.index()].shape
    }

    /// The operation of a node.
    pub fn op(&self, node: NodeId) -> Option<&Op> {
        self.graph.nodes.get(node.index()).map(|node| &node.op)
    }

    /// Nodes after `node` that no other node reads yet, oldest first.
    pub fn unread_after(&self, node: NodeId) -> Vec<NodeId> {
        let after = (node.0 + 1..self.graph.nodes.len() as u32).map(NodeId);
        after.filter(|node| !self.read[node.index()]).collect()
    }

    /// Appends any operation.
    pub fn push(&mut self, op: Op, inputs: &[NodeId], shape: Shape) -> NodeId {
        let start = self.graph.edges.len() as u32;
        self.graph.edges.extend_from_slice(inputs);
        inputs.iter().for_each(|input| self.read[input.index()] = true);
        self.read.push(false);
        let edges = (start, self.graph.edges.len() as u32);
        self.graph.nodes.push(Node { op, shape, frozen: false, edges });
        self.last()
    }

    /// Appends an operation that keeps the shape.
    pub fn same(&mut self, op: Op, from: NodeId) -> NodeId {
        self.push(op, &[from], self.shape(from))
    }

    /// Appends a matrix product.
    pub fn linear(&mut self, from: NodeId, output: u32, bias: bool) -> NodeId {
        let shape = self.shape(from);
        let op = Op::Linear { input: shape.channels, bias, tied: false };
        self.push(op, &[from], shape.with_channels(output))
    }

    /// Appends a convolution, given its result's shape.
    pub fn conv(&mut self, from: NodeId, conv: Conv, shape: Shape) -> NodeId {
        self.push(Op::Conv(conv), &[from], shape)
    }

    /// Appends an element-wise function with a result of its own.
    pub fn activate(&mut self, from: NodeId, function: Activation) -> NodeId {
        self.same(Op::Activate { function, in_place: false }, from)
    }

    /// Appends an attention over `queries`, with keys and values from the other inputs, if any.
    pub fn attention(&mut self, inputs: &[NodeId], attention: Attention, width: u32) -> NodeId {
        let shape = self.shape(inputs[0]).with_channels(width);
        self.push(Op::Attention(attention), inputs, shape)
    }

    /// The newest node's parameters are not trained.
    pub fn freeze_last(&mut self) {
        let last = self.last().index();
        self.graph.nodes[last].frozen = true;
    }

    /// Activations of the nodes from `start` to now are computed again in the backward pass.
    pub fn checkpoint_since(&mut self, start: usize) {
        self.graph.checkpoints.push(start..self.graph.nodes.len());
    }

    /// What the nodes from `start` to now keep is freed together.
    pub fn block_since(&mut self, start: usize) {
        self.graph.blocks.push(start..self.graph.nodes.len());
    }

    /// Notes a reason for doubt, once.
    pub fn flag(&mut self, kind: FlagKind, detail: impl Into<String>) {
        self.graph.flag(kind, detail);
    }

    /// Ends with this loss.
    pub fn finish(mut self, loss: Loss) -> Graph {
        self.graph.loss = loss;
        self.graph.facts = Facts::of(&self.graph);
        self.graph
    }
}
