//! The training loop: parameters, rehearsal, iterations, optimizer steps.

use super::memory::{Memory, Purpose, Tensor};
use super::workspace::{ConvCall, Pass};
use crate::graph::{Conv, Graph, Loss, Node, NodeId, Op};
use crate::run::RunConfig;

/// cuBLAS takes this through the allocator, once for each thread that multiplies.
const CUBLAS_WORKSPACE: u64 = 8_519_680;

/// Tensors that one node keeps for its backward step. Eight are enough for every operation known.
#[derive(Clone, Copy, Default)]
pub(super) struct Kept {
    tensors: [Tensor; 8],
    count: u8,
}

impl Kept {
    pub(super) fn push(&mut self, tensor: Tensor) {
        let place = self.tensors.get_mut(usize::from(self.count));
        *place.expect("no operation keeps more than eight tensors") = tensor;
        self.count += 1;
    }
}

struct Parameter {
    gradient: Option<Tensor>,
    trained: bool,
    elements: u64,
}

/// A task in training.
pub(super) struct Trainer<'a, M> {
    pub(super) graph: &'a Graph,
    pub(super) run: &'a RunConfig,
    pub(super) memory: M,
    parameters: Vec<Parameter>,
    /// First parameter of each node, and one past the last node's.
    first_parameter: Vec<u32>,
    states: Vec<Tensor>,
    /// The last node that reads each node's value.
    pub(super) last_reader: Vec<u32>,
    /// A parameter stands upstream, so a gradient flows through.
    pub(super) differentiable: Vec<bool>,
    pub(super) values: Vec<Option<Tensor>>,
    pub(super) kept: Vec<Kept>,
    pub(super) flows: Vec<Option<Tensor>>,
    /// What each checkpointed run of nodes needs to be computed again.
    pub(super) held: Vec<Vec<(NodeId, Tensor)>>,
    forward_multiplied: bool,
    backward_multiplied: bool,
}

impl<'a, M: Memory> Trainer<'a, M> {
    pub(super) fn new(graph: &'a Graph, run: &'a RunConfig, memory: M) -> Self {
        let count = graph.nodes().len();
        let mut trainer = Trainer {
            graph,
            run,
            memory,
            parameters: Vec::with_capacity(2 * count),
            first_parameter: Vec::with_capacity(count + 1),
            states: Vec::new(),
            last_reader: vec![0; count],
            differentiable: vec![false; count],
            values: vec![None; count],
            kept: vec![Kept::default(); count],
            flows: vec![None; count],
            held: vec![Vec::new(); graph.checkpoints.len()],
            forward_multiplied: false,
            backward_multiplied: false,
        };
        trainer.create_parameters();
        trainer
    }

    /// Trains as the run says, and gives back the memory that saw it.
    pub(super) fn played(mut self) -> M {
        self.rehearse();
        self.train();
        self.memory
    }

    fn create_parameters(&mut self) {
        let width = self.run.precision.parameter_bytes();
        let ways = self.run.sharding.ways(3);
        for (index, node) in self.graph.nodes().iter().enumerate() {
            self.first_parameter.push(self.parameters.len() as u32);
            for elements in node.op.parameters(node.shape).iter() {
                let bytes = (elements * width).div_ceil(ways);
                self.memory.new_tensor(bytes, Purpose::Weights);
                let trained = !node.frozen;
                self.parameters.push(Parameter { gradient: None, trained, elements });
            }
            if node.op == Op::BatchNorm {
                let statistics = 4 * u64::from(node.shape.channels);
                for bytes in [statistics, statistics, 8] {
                    self.memory.new_tensor(bytes, Purpose::Weights);
                }
            }
            let own = !node.frozen && self.parameters.len() > self.first_parameter[index] as usize;
            let tied = matches!(node.op, Op::Linear { tied: true, .. });
            let inherited = |id: &NodeId| self.differentiable[id.index()];
            self.differentiable[index] =
                own || tied || self.graph.inputs(node).iter().any(inherited);
            for id in self.graph.inputs(node) {
                self.last_reader[id.index()] = index as u32;
            }
        }
        self.first_parameter.push(self.parameters.len() as u32);
    }

    /// The passes before training.
    fn rehearse(&mut self) {
        let Some(rehearsal) = self.run.rehearsal else { return };
        let batch = u64::from(rehearsal.batch);
        for _ in 0..rehearsal.passes {
            let input = self.new_input(batch);
            let result = self.forward(input, batch, rehearsal.recorded);
            for index in 0..self.kept.len() {
                self.drop_kept(index);
            }
            self.memory.drop(result);
            self.memory.drop(input);
        }
    }

    /// The iterations. The loop's variables drop the previous batch before the next is copied to the
    /// device; the previous result and loss live on until they are replaced.
    fn train(&mut self) {
        let (mut batch_held, mut result_held, mut loss_held) = (None, None, None);
        for batch in self.run.batches() {
            let batch = u64::from(batch);
            if let Some((old_input, old_labels)) = batch_held.take() {
                self.memory.drop(old_input);
                self.memory.drop(old_labels);
            }
            let input = self.new_input(batch);
            let labels = self.new_labels(batch);
            batch_held = Some((input, labels));
            self.clear_gradients();
            let result = self.forward(input, batch, true);
            if let Some(old) = result_held.replace(result) {
                self.memory.drop(old);
            }
            let kept = self.loss(batch);
            let loss = self.memory.new_tensor(4, Purpose::Activations);
            if let Some(old) = loss_held.replace(loss) {
                self.memory.drop(old);
            }
            self.backward(kept, batch);
            self.optimizer_step();
        }
    }

    fn new_input(&mut self, batch: u64) -> Tensor {
        let first = &self.graph.nodes()[0];
        let width = if first.op == Op::Tokens { 8 } else { self.run.precision.activation_bytes() };
        self.memory.new_tensor(batch * first.shape.elements() * width, Purpose::Activations)
    }

    fn new_labels(&mut self, batch: u64) -> Tensor {
        let shape = self.graph.output().shape;
        let numbers = match self.graph.loss {
            Loss::CrossEntropy | Loss::CausalLanguage => 2 * shape.positions(),
            Loss::Elementwise => shape.elements(),
        };
        self.memory.new_tensor(4 * batch * numbers, Purpose::Activations)
    }

    /// What the loss keeps for its backward step; losses are computed in 32 bits.
    fn loss(&mut self, batch: u64) -> Vec<Tensor> {
        let logits = 4 * batch * self.graph.output().shape.elements();
        let copies = match self.graph.loss {
            Loss::CrossEntropy => 1,
            Loss::CausalLanguage => 2,
            Loss::Elementwise => 0,
        };
        let mut kept: Vec<Tensor> =
            (0..copies).map(|_| self.memory.new_tensor(logits, Purpose::Activations)).collect();
        kept.push(self.memory.new_tensor(4, Purpose::Activations));
        kept
    }

    fn clear_gradients(&mut self) {
        for parameter in &mut self.parameters {
            if let Some(gradient) = parameter.gradient.take() {
                self.memory.drop(gradient);
            }
        }
    }

    fn optimizer_step(&mut self) {
        let width = self.run.precision.parameter_bytes();
        let ways = self.run.sharding.ways(1);
        let optimizer = self.run.optimizer;
        let sizes: Vec<u64> = self
            .parameters
            .iter()
            .filter(|parameter| parameter.trained)
            .map(|parameter| (parameter.elements * width).div_ceil(ways))
            .collect();
        if self.states.is_empty() {
            self.states.reserve(sizes.len() * optimizer.states());
            for &bytes in &sizes {
                for _ in 0..optimizer.states() {
                    self.states.push(self.memory.new_tensor(bytes, Purpose::Optimizer));
                }
            }
        }
        for _ in 0..optimizer.temporaries() {
            let step: Vec<Tensor> = sizes
                .iter()
                .map(|&bytes| self.memory.new_tensor(bytes, Purpose::Optimizer))
                .collect();
            step.into_iter().for_each(|tensor| self.memory.drop(tensor));
        }
    }

    /// The gradients of a node's parameters appear; a second one is added to the first.
    pub(super) fn new_gradients(&mut self, index: usize) {
        for which in self.parameter_range(index) {
            self.new_gradient(which);
        }
    }

    pub(super) fn parameter_range(&self, index: usize) -> std::ops::Range<usize> {
        self.first_parameter[index] as usize..self.first_parameter[index + 1] as usize
    }

    pub(super) fn new_gradient(&mut self, which: usize) {
        let parameter = &mut self.parameters[which];
        if !parameter.trained {
            return;
        }
        let width = self.run.precision.parameter_bytes();
        let bytes = (parameter.elements * width).div_ceil(self.run.sharding.ways(2));
        let gradient = self.memory.new_tensor(bytes, Purpose::Gradients);
        if parameter.gradient.is_some() {
            self.memory.drop(gradient);
        } else {
            parameter.gradient = Some(gradient);
        }
    }

    /// Bytes of a node's parameters, whole.
    pub(super) fn parameter_bytes(&self, index: usize) -> u64 {
        let width = self.run.precision.parameter_bytes();
        self.parameter_range(index).map(|which| self.parameters[which].elements * width).sum()
    }

    pub(super) fn tensor_bytes(&self, node: &Node, batch: u64) -> u64 {
        batch * node.shape.elements() * self.run.precision.activation_bytes()
    }

    pub(super) fn activation(&mut self, bytes: u64) -> Tensor {
        self.memory.new_tensor(bytes, Purpose::Activations)
    }

    pub(super) fn drop_kept(&mut self, index: usize) {
        let kept = &mut self.kept[index];
        for &tensor in &kept.tensors[..usize::from(kept.count)] {
            self.memory.drop(tensor);
        }
        kept.count = 0;
    }

    /// The first matrix product of the forward thread takes the library's workspace for good.
    pub(super) fn multiply_forward(&mut self) {
        if !std::mem::replace(&mut self.forward_multiplied, true) {
            self.memory.new_tensor(CUBLAS_WORKSPACE, Purpose::Workspace);
        }
    }

    /// The same for autograd's thread.
    pub(super) fn multiply_backward(&mut self) {
        if !std::mem::replace(&mut self.backward_multiplied, true) {
            self.memory.new_tensor(CUBLAS_WORKSPACE, Purpose::Workspace);
        }
    }

    pub(super) fn conv_scratch(&mut self, node: &Node, conv: Conv, batch: u64, pass: Pass) {
        let reads = self.graph.inputs(node).first();
        let first = reads.is_some_and(|id| self.graph.nodes()[id.index()].op == Op::Input);
        self.memory.convolve(ConvCall {
            conv,
            input: self.graph.input_shape(node),
            output: node.shape,
            batch,
            width: self.run.precision.activation_bytes(),
            first,
            pass,
        });
    }
}
