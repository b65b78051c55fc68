//! Forward: which tensors an operation makes, and which of them autograd keeps.

use super::memory::{Purpose, Tensor};
use super::trainer::{Thread, Trainer};
use super::workspace::Pass;
use crate::graph::{Activation, Attention, Node, NodeId, Op};
use std::ops::Range;

/// cublasLt's workspace for a product with a bias.
const CUBLAS_LT_WORKSPACE: u64 = 1 << 20;

impl Trainer<'_> {
    /// Runs every node and returns the last one's result.
    pub(super) fn forward(&mut self, input: Tensor) -> Tensor {
        self.values[0] = Some(self.memory.share(input));
        let mut next = 1;
        for segment in 0..self.graph.checkpoints.len() {
            let range = self.graph.checkpoints[segment].clone();
            self.run_nodes(next..range.start, true);
            self.hold_inputs(segment, &range);
            self.run_nodes(range.clone(), false);
            next = range.end;
        }
        let last = self.graph.nodes().len() - 1;
        self.run_nodes(next..last + 1, true);
        self.values[last].take().expect("the last node has no reader that could drop it")
    }

    /// Computes a checkpointed run again, this time recorded.
    pub(super) fn recompute(&mut self, segment: usize) {
        let range = self.graph.checkpoints[segment].clone();
        let held = std::mem::take(&mut self.held[segment]);
        for &(id, tensor) in &held {
            self.values[id.index()] = Some(tensor);
        }
        self.run_nodes(range.clone(), true);
        let outside = held.iter().map(|(id, _)| id.index());
        for index in outside.chain([range.end - 1]) {
            if let Some(tensor) = self.values[index].take() {
                self.memory.drop(tensor);
            }
        }
    }

    fn hold_inputs(&mut self, segment: usize, range: &Range<usize>) {
        let mut outside: Vec<NodeId> = self.graph.nodes()[range.clone()]
            .iter()
            .flat_map(|node| self.graph.inputs(node))
            .copied()
            .filter(|id| id.index() < range.start)
            .collect();
        outside.sort_unstable();
        outside.dedup();
        for id in outside {
            let value = self.value(id);
            let tensor = self.memory.share(value);
            self.held[segment].push((id, tensor));
        }
    }

    pub(super) fn run_nodes(&mut self, range: Range<usize>, recorded: bool) {
        for index in range {
            let node = &self.graph.nodes()[index];
            self.gather_weights(index);
            let value = self.compute(index, node, recorded);
            self.values[index] = Some(value);
            for id in self.graph.inputs(node) {
                if self.facts.last_reader[id.index()] as usize == index
                    && let Some(tensor) = self.values[id.index()].take()
                {
                    self.memory.drop(tensor);
                }
            }
        }
    }

    /// ZeRO 3 assembles a layer's weights just before they are used.
    #[inline(always)]
    pub(super) fn gather_weights(&mut self, index: usize) {
        if self.run.sharding.ways(3) > 1 {
            let bytes = self.parameter_numbers(index) * self.widths.weight;
            self.memory.scratch(bytes);
        }
    }

    fn value(&self, id: NodeId) -> Tensor {
        self.values[id.index()].expect("a value lives until its last reader has run")
    }

    fn argument(&self, node: &Node) -> Tensor {
        self.value(self.graph.inputs(node)[0])
    }

    fn keep(&mut self, index: usize, tensor: Tensor) {
        let shared = self.memory.share(tensor);
        self.kept[index].push(shared);
    }

    fn keep_new(&mut self, index: usize, size: u64) {
        let tensor = self.activation(size);
        self.kept[index].push(tensor);
    }

    fn keep_arguments(&mut self, index: usize, node: &Node) {
        for position in 0..self.graph.inputs(node).len() {
            let tensor = self.value(self.graph.inputs(node)[position]);
            self.keep(index, tensor);
        }
    }

    fn compute(&mut self, index: usize, node: &Node, recorded: bool) -> Tensor {
        let size = self.tensor_size(node);
        match node.op {
            Op::Linear { bias, .. } => self.compute_linear(index, node, bias, recorded),
            Op::Conv(conv) => {
                let result = self.activation(size);
                self.conv_scratch(node, conv, Pass::Forward);
                if recorded {
                    self.keep_arguments(index, node);
                    self.keep_cast_weights(index);
                }
                result
            }
            Op::Activate { function, in_place } => {
                self.compute_activation(index, node, function, in_place, recorded)
            }
            Op::Attention(attention) => self.compute_attention(index, node, attention, recorded),
            Op::View => {
                let argument = self.argument(node);
                self.memory.share(argument)
            }
            Op::Add { in_place: true } => {
                let argument = self.argument(node);
                self.memory.share(argument)
            }
            Op::Dropout { in_place: true } => {
                if recorded {
                    self.keep_new(index, size);
                }
                let argument = self.argument(node);
                self.memory.share(argument)
            }
            _ => {
                let result = self.activation(size);
                if recorded {
                    self.keep_for(index, node, result);
                }
                result
            }
        }
    }

    /// What the plain operations keep.
    fn keep_for(&mut self, index: usize, node: &Node, result: Tensor) {
        let numbers = node.shape.elements();
        match node.op {
            Op::BatchNorm => {
                self.keep_arguments(index, node);
                let statistics = 4 * u64::from(node.shape.channels);
                self.keep_new(index, statistics);
                self.keep_new(index, statistics);
            }
            Op::LayerNorm { bias } => {
                self.keep_arguments(index, node);
                let statistics = self.batch * 4 * node.shape.positions();
                self.keep_new(index, statistics);
                if bias {
                    self.keep_new(index, statistics);
                } else {
                    // An RMS norm is written out in Python: the normalised copy is kept too.
                    self.keep_new(index, self.tensor_size(node));
                }
            }
            Op::Dropout { in_place: false } => self.keep_new(index, self.batch * numbers),
            Op::MaxPool => {
                self.keep_arguments(index, node);
                self.keep_new(index, self.batch * 8 * numbers);
            }
            Op::AvgPool | Op::Multiply | Op::Embedding { .. } => self.keep_arguments(index, node),
            Op::FrozenBatchNorm => self.keep_new(index, 0),
            Op::Unknown { .. } => {
                self.keep_arguments(index, node);
                self.keep(index, result);
            }
            _ => {}
        }
    }

    fn compute_linear(&mut self, index: usize, node: &Node, bias: bool, recorded: bool) -> Tensor {
        let result = self.activation(self.tensor_size(node));
        if bias {
            self.memory.scratch(CUBLAS_LT_WORKSPACE);
        }
        self.multiply(Thread::Forward);
        if recorded && !node.frozen {
            self.keep_arguments(index, node);
        }
        if recorded {
            self.keep_cast_weights(index);
        }
        result
    }

    /// Under autocast the 16-bit copy of the weights is what autograd keeps.
    #[inline]
    fn keep_cast_weights(&mut self, index: usize) {
        if self.widths.cast > 0 {
            let size = self.parameter_numbers(index) * self.widths.cast;
            let copy = self.memory.make(size, Purpose::Weights);
            self.kept[index].push(copy);
        }
    }

    fn compute_activation(
        &mut self,
        index: usize,
        node: &Node,
        function: Activation,
        in_place: bool,
        recorded: bool,
    ) -> Tensor {
        let size = self.tensor_size(node);
        let argument = self.argument(node);
        if in_place {
            // Overwriting loses the argument: functions whose gradient needs it keep a clone.
            if recorded && function.keeps_output() {
                self.keep(index, argument);
            } else if recorded {
                self.keep_new(index, size);
            }
            return self.memory.share(argument);
        }
        if function == Activation::NewGELU {
            return self.compute_new_gelu(index, argument, size, recorded);
        }
        let result = self.activation(size);
        if recorded {
            self.keep(index, if function.keeps_output() { result } else { argument });
        }
        result
    }

    /// 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), one kernel per step.
    fn compute_new_gelu(
        &mut self,
        index: usize,
        argument: Tensor,
        size: u64,
        recorded: bool,
    ) -> Tensor {
        let half = self.activation(size);
        let mut step = self.activation(size);
        for _ in 0..3 {
            let next = self.activation(size);
            self.memory.drop(step);
            step = next;
        }
        let tanh = self.activation(size);
        self.memory.drop(step);
        let shifted = self.activation(size);
        let result = self.activation(size);
        if recorded {
            for tensor in [argument, half, tanh, shifted] {
                self.keep(index, tensor);
            }
        }
        for tensor in [half, tanh, shifted] {
            self.memory.drop(tensor);
        }
        result
    }

    fn compute_attention(
        &mut self,
        index: usize,
        node: &Node,
        attention: Attention,
        recorded: bool,
    ) -> Tensor {
        let width = self.run.precision.activation_bytes();
        let rows = u64::from(attention.heads) * node.shape.positions();
        self.multiply(Thread::Forward);
        if attention.eager {
            // Only where they are kept is it certain that they can be counted.
            let scores = rows * u64::from(attention.keys);
            let score_size = self.batch * scores * width;
            let raw = self.activation(score_size);
            let softmax = self.activation(score_size);
            self.memory.drop(raw);
            let (mask, dropped) = if attention.dropout {
                let dropped = self.activation(score_size);
                (Some(self.activation(self.batch * scores)), dropped)
            } else {
                (None, self.memory.share(softmax))
            };
            let result = self.activation(self.tensor_size(node));
            for tensor in [Some(softmax), mask, Some(dropped)].into_iter().flatten() {
                if recorded {
                    self.kept[index].push(tensor);
                } else {
                    self.memory.drop(tensor);
                }
            }
            if recorded {
                self.keep_arguments(index, node);
            }
            return result;
        }
        let result = self.activation(self.tensor_size(node));
        let row_sums = self.activation(self.batch * 4 * rows);
        if recorded {
            self.keep_arguments(index, node);
            self.keep(index, result);
            self.kept[index].push(row_sums);
        } else {
            self.memory.drop(row_sums);
        }
        result
    }
}
