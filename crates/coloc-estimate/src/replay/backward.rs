//! Backward: the gradients that flow, and the memory that each step frees.

use super::memory::Tensor;
use super::trainer::{Thread, Trainer};
use super::workspace::Pass;
use crate::graph::{Activation, Attention, Conv, Loss, Node, NodeId, Op};

impl Trainer<'_> {
    /// From the loss back to the first parameter.
    pub(super) fn backward(&mut self, kept_by_loss: Vec<Tensor>) {
        let last = self.graph.nodes().len() - 1;
        self.flows[last] = Some(self.loss_gradient(kept_by_loss));
        let graph = self.graph;
        let mut segment = graph.checkpoints.len();
        let mut end = last + 1;
        for nodes in graph.blocks.iter().rev() {
            for index in (nodes.end..end).rev() {
                self.node_back(index, &mut segment);
                self.drop_kept(index);
            }
            // Measured transformers hold more than autograd's rule of freeing after each operation
            // explains; freeing a layer at a time meets the measurements.
            nodes.clone().rev().for_each(|index| self.node_back(index, &mut segment));
            nodes.clone().rev().for_each(|index| self.drop_kept(index));
            end = nodes.start;
        }
        for index in (1..end).rev() {
            self.node_back(index, &mut segment);
            self.drop_kept(index);
        }
        if let Some(flow) = self.flows[0].take() {
            self.memory.drop(flow);
        }
    }

    /// One node back, after the checkpointed run that it ends was computed again.
    fn node_back(&mut self, index: usize, segment: &mut usize) {
        if *segment > 0 && self.graph.checkpoints[*segment - 1].end == index + 1 {
            *segment -= 1;
            self.recompute(*segment);
        }
        if let Some(flow) = self.flows[index].take() {
            self.gather_weights(index);
            self.step_back(index, flow);
        }
    }

    /// The gradient of the loss, one tensor per step of the loss.
    fn loss_gradient(&mut self, kept: Vec<Tensor>) -> Tensor {
        let logits = self.batch * 4 * self.graph.output().shape.elements();
        let steps = match self.graph.loss {
            Loss::Elementwise => 1,
            Loss::CrossEntropy => 2,
            Loss::CausalLanguage => 3,
        };
        let one = self.activation(4);
        let first = self.activation(logits);
        let mut flow = first;
        for step in 1..steps {
            let next = self.activation(logits);
            if step == 1 {
                kept.iter().for_each(|&tensor| self.memory.drop(tensor));
            }
            self.memory.drop(flow);
            flow = next;
        }
        self.memory.drop(one);
        if steps == 1 {
            kept.iter().for_each(|&tensor| self.memory.drop(tensor));
        }
        flow
    }

    fn step_back(&mut self, index: usize, flow: Tensor) {
        let node = &self.graph.nodes()[index];
        let inputs = self.graph.inputs(node);
        let shares_flow =
            matches!(node.op, Op::Add { .. } | Op::View | Op::Copy | Op::AddTable { .. });
        let mut gradients = [None; 4];
        let mut more = Vec::new();
        match node.op {
            Op::Conv(conv) => gradients[0] = self.conv_back(index, node, conv),
            Op::Attention(attention) => {
                self.attention_back(node, attention);
                for (slot, &id) in gradients.iter_mut().zip(inputs) {
                    *slot = self.new_flow(id);
                }
                if let ([packed], Some(parts)) = (inputs, gradients[0]) {
                    gradients[0] = self.unpack_back(*packed, parts);
                }
            }
            Op::Concat => more = self.concat_back(inputs, flow),
            _ if shares_flow => {
                for (slot, &id) in gradients.iter_mut().zip(inputs) {
                    *slot = self.facts.differentiable[id.index()].then(|| self.memory.share(flow));
                }
                self.new_gradients(index);
            }
            _ => {
                if matches!(node.op, Op::Linear { .. }) {
                    self.multiply(Thread::Backward);
                }
                for (slot, &id) in gradients.iter_mut().zip(inputs) {
                    *slot = self.new_flow(id);
                }
                self.scratch_back(node);
                self.new_gradients(index);
            }
        }
        self.memory.drop(flow);
        for (gradient, &id) in gradients.iter().zip(inputs) {
            if let Some(gradient) = *gradient {
                self.accumulate(id, gradient);
            }
        }
        for (gradient, id) in more {
            self.accumulate(id, gradient);
        }
    }

    /// The gradient of an argument; none where nothing upstream is trained.
    fn new_flow(&mut self, id: NodeId) -> Option<Tensor> {
        let node = &self.graph.nodes()[id.index()];
        self.facts.differentiable[id.index()].then(|| self.activation(self.tensor_size(node)))
    }

    /// Temporaries beside the gradients.
    fn scratch_back(&mut self, node: &Node) {
        let size = self.tensor_size(node);
        match node.op {
            // A broadcast factor's gradient is a full product first, then summed.
            Op::Multiply => self.memory.scratch(size),
            Op::Activate { function: Activation::PReLU, .. } => self.memory.scratch(size),
            Op::Activate { function: Activation::NewGELU, .. } => {
                let held = self.activation(size);
                self.memory.scratch(size);
                self.memory.drop(held);
            }
            _ => {}
        }
    }

    fn conv_back(&mut self, index: usize, node: &Node, conv: Conv) -> Option<Tensor> {
        let flow = self.new_flow(self.graph.inputs(node)[0]);
        if flow.is_some() {
            self.conv_scratch(node, conv, Pass::BackwardData);
        }
        for which in self.facts.parameters_of(index) {
            self.new_gradient(which);
            if which == self.facts.parameters_of(index).start && !node.frozen {
                self.conv_scratch(node, conv, Pass::BackwardFilter);
            }
        }
        flow
    }

    fn attention_back(&mut self, node: &Node, attention: Attention) {
        self.multiply(Thread::Backward);
        if attention.eager {
            let width = self.run.precision.activation_bytes();
            let rows = u64::from(attention.heads) * node.shape.positions();
            let size = self.batch * rows * u64::from(attention.keys) * width;
            let scores = self.activation(size);
            self.memory.scratch(size);
            self.memory.drop(scores);
        }
    }

    /// Query, key and value were slices of one tensor: each slice's gradient is padded with zeros to
    /// the whole and added up.
    fn unpack_back(&mut self, packed: NodeId, parts: Tensor) -> Option<Tensor> {
        let sum = self.new_flow(packed);
        for _ in 0..2 {
            if let Some(padded) = self.new_flow(packed) {
                self.memory.drop(padded);
            }
        }
        self.memory.drop(parts);
        sum
    }

    /// The parts of a concatenation's gradient are views of it.
    fn concat_back(&mut self, inputs: &[NodeId], flow: Tensor) -> Vec<(Tensor, NodeId)> {
        inputs
            .iter()
            .filter(|id| self.facts.differentiable[id.index()])
            .map(|&id| (self.memory.share(flow), id))
            .collect()
    }

    /// Adds a gradient to what a node already has: in place when nothing else holds that tensor.
    fn accumulate(&mut self, id: NodeId, gradient: Tensor) {
        let index = id.index();
        let Some(old) = self.flows[index] else {
            self.flows[index] = Some(gradient);
            return;
        };
        let size = self.tensor_size(&self.graph.nodes()[index]);
        if self.memory.sole(old) && self.memory.size(old) == size {
            self.memory.drop(gradient);
            return;
        }
        let sum = self.activation(size);
        self.memory.drop(old);
        self.memory.drop(gradient);
        self.flows[index] = Some(sum);
    }
}
