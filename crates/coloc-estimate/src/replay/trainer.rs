//! Writes a training's script: parameters, the batch, forward, loss, backward, optimizer.

use super::allocator::Blocks;
use super::memory::Purpose;
use super::repeats::Repeats;
use super::reuse::{Reused, shelved};
use super::script::{
    OLD_INPUT, OLD_LABELS, OLD_LOSS, OLD_RESULT, Part, Rare, Recorder, Script, Size, Step, Tensor,
    Thread,
};
use super::workspace::{ConvCall, Pass};
use crate::graph::{Conv, Facts, Graph, Loss, Node, NodeId, Op, Parameter};
use crate::run::{ParameterWidths, RunConfig};

/// How many tensors a node makes in one iteration, roughly: the script's first guess of its length.
const TENSORS_PER_NODE: usize = 6;

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

    pub(super) fn clear(&mut self) {
        self.count = 0;
    }

    /// Other tensors in place of these.
    pub(super) fn map(mut self, other: impl Fn(Tensor) -> Tensor) -> Self {
        let kept = &mut self.tensors[..usize::from(self.count)];
        kept.iter_mut().for_each(|tensor| *tensor = other(*tensor));
        self
    }
}

shelved!(Kept, Option<Tensor>, u32);

/// An iteration that was written down: see [`Script`].
pub(super) struct Written {
    iteration: Part,
    forward: Part,
    pub(super) left: Vec<(Tensor, Tensor)>,
    pub(super) gradients: Reused<Tensor>,
}

/// An iteration that is being written down.
pub(super) struct Trainer<'a> {
    pub(super) graph: &'a Graph,
    pub(super) facts: &'a Facts,
    pub(super) run: &'a RunConfig,
    pub(super) widths: ParameterWidths,
    pub(super) memory: Recorder,
    /// Bytes of parameters, the optimizer's copies of them and running statistics.
    weights: Blocks,
    /// The gradient of each parameter, once it is made.
    gradients: Reused<Option<Tensor>>,
    pub(super) values: Reused<Option<Tensor>>,
    pub(super) kept: Reused<Kept>,
    pub(super) flows: Reused<Option<Tensor>>,
    /// What each checkpointed run of nodes needs to be computed again.
    pub(super) held: Vec<Vec<(NodeId, Tensor)>>,
    pub(super) forward_multiplied: bool,
    pub(super) backward_multiplied: bool,
    pub(super) repeats: Repeats,
    /// The first tensor that is made after the forward pass.
    pub(super) first_backwards: u32,
}

impl<'a> Trainer<'a> {
    pub(super) fn new(graph: &'a Graph, run: &'a RunConfig) -> Self {
        let count = graph.nodes().len();
        let facts = graph.facts();
        let mut trainer = Trainer {
            graph,
            facts,
            run,
            widths: run.parameter_widths(),
            memory: Recorder::with_capacity(count * TENSORS_PER_NODE),
            weights: Blocks::with_capacity(2 * count),
            gradients: Reused::filled(None, facts.parameters.len()),
            values: Reused::filled(None, count),
            kept: Reused::filled(Kept::default(), count),
            flows: Reused::filled(None, count),
            held: vec![Vec::new(); graph.checkpoints.len()],
            forward_multiplied: false,
            backward_multiplied: false,
            repeats: Repeats::new(graph),
            first_backwards: 0,
        };
        trainer.create_parameters();
        trainer
    }

    fn create_parameters(&mut self) {
        let (widths, sharding) = (self.widths, self.run.sharding);
        for &Parameter { elements, trained, has_statistics } in &self.facts.parameters {
            self.weights.push(sharding.share(elements * widths.weight, 3));
            if trained && widths.master > 0 {
                self.weights.push(sharding.share(elements * widths.master, 1));
            }
            if has_statistics {
                [4 * elements, 4 * elements, 8]
                    .into_iter()
                    .for_each(|bytes| self.weights.push(bytes));
            }
        }
    }

    /// Writes one iteration and what surrounds it.
    pub(super) fn script(mut self) -> Script {
        let Written { iteration, forward, left, gradients } = self.write();
        Script {
            tensors: self.memory.next().0 as usize,
            trained: self.optimizer_sizes(),
            input: self.input_size(),
            steps: self.memory.steps,
            calls: self.memory.calls,
            sizes: self.memory.sizes,
            weights: self.weights,
            iteration,
            forward,
            left,
            gradients,
        }
    }

    /// Writes one iteration. The loop's variables drop the previous batch before the next is copied to the
    /// device; the previous result and loss live on until they are replaced.
    pub(super) fn write(&mut self) -> Written {
        let iteration = self.memory.begin();
        let returns_input = self.returns_input();
        let old_result = if returns_input { self.memory.share(OLD_INPUT) } else { OLD_RESULT };
        self.memory.drop(OLD_INPUT);
        self.memory.drop(OLD_LABELS);
        let input = self.activation(self.input_size());
        let labels = self.activation(self.labels_size());
        self.memory.steps.push(Step::Rare(Rare::ZeroGradients));
        let forward = self.memory.begin();
        let result = self.forward(input);
        let forward = self.memory.end(forward);
        self.first_backwards = self.memory.mark().tensors;
        self.memory.drop(old_result);
        let kept = self.loss();
        let loss = self.activation(Size::fixed(4));
        self.memory.drop(OLD_LOSS);
        self.backward(kept);
        let mut left = vec![(input, OLD_INPUT), (labels, OLD_LABELS), (loss, OLD_LOSS)];
        if !returns_input {
            left.push((result, OLD_RESULT));
        }
        let mut gradients = Reused::with_capacity(self.gradients.len());
        gradients.extend(self.gradients.iter().copied().flatten());
        Written { iteration: self.memory.end(iteration), forward, left, gradients }
    }

    /// The optimizer's share of each parameter that is trained.
    fn optimizer_sizes(&self) -> Blocks {
        let (width, sharding) = (self.widths.state, self.run.sharding);
        let trained = self.facts.parameters.iter().filter(|parameter| parameter.trained);
        let mut blocks = Blocks::with_capacity(self.facts.parameters.len());
        trained.for_each(|parameter| blocks.push(sharding.share(parameter.elements * width, 1)));
        blocks
    }

    /// Whether the graph's result is the very tensor that it reads: nothing but views and overwriting.
    fn returns_input(&self) -> bool {
        let mut node = self.graph.output();
        loop {
            let in_place = matches!(
                node.op,
                Op::View
                    | Op::Add { in_place: true }
                    | Op::Dropout { in_place: true }
                    | Op::Activate { in_place: true, .. }
            );
            match self.graph.inputs(node).first() {
                Some(id) if in_place => node = &self.graph.nodes()[id.index()],
                _ => return std::ptr::eq(node, &self.graph.nodes()[0]),
            }
        }
    }

    fn input_size(&self) -> Size {
        let first = &self.graph.nodes()[0];
        let tokens = matches!(first.op, Op::Tokens);
        let width = if tokens { 8 } else { self.run.precision.activation_bytes() };
        Size::per_sample(first.shape.elements() * width)
    }

    fn labels_size(&self) -> Size {
        let shape = self.graph.output().shape;
        let numbers = match self.graph.loss {
            Loss::CrossEntropy | Loss::CausalLanguage => 2 * shape.positions(),
            Loss::Elementwise => shape.elements(),
        };
        Size::per_sample(4 * numbers)
    }

    /// What the loss keeps for its backward step; losses are computed in 32 bits.
    fn loss(&mut self) -> Vec<Tensor> {
        let logits = Size::per_sample(4 * self.graph.output().shape.elements());
        let copies = match self.graph.loss {
            Loss::CrossEntropy => 1,
            Loss::CausalLanguage => 2,
            Loss::Elementwise => 0,
        };
        let mut kept: Vec<Tensor> = (0..copies).map(|_| self.activation(logits)).collect();
        kept.push(self.activation(Size::fixed(4)));
        kept
    }

    /// The gradients of a node's parameters appear; a second one is added to the first.
    pub(super) fn new_gradients(&mut self, index: usize) {
        for which in self.facts.parameters_of(index) {
            self.new_gradient(which);
        }
    }

    pub(super) fn new_gradient(&mut self, which: usize) {
        let Parameter { elements, trained, .. } = self.facts.parameters[which];
        if !trained {
            return;
        }
        let whole = elements * self.widths.gradient;
        let bytes = self.run.sharding.share(whole, 2);
        let gradient = self.memory.make(Size::fixed(bytes), Purpose::Gradients);
        match &mut self.gradients[which] {
            Some(_) => self.memory.drop(gradient),
            none => *none = Some(gradient),
        }
    }

    /// The gradients of a layer's parameters are those of the next layer's, but other tensors.
    pub(super) fn copy_gradients(
        &mut self,
        nodes: std::ops::Range<usize>,
        other: impl Fn(Tensor) -> Tensor,
    ) {
        let behind = self.facts.parameters_of_all(nodes.end..nodes.end + nodes.len());
        for (which, behind) in self.facts.parameters_of_all(nodes).zip(behind) {
            self.gradients[which] = self.gradients[behind].map(&other);
        }
    }

    /// Numbers in a node's parameters, whole.
    pub(super) fn parameter_numbers(&self, index: usize) -> u64 {
        self.facts.parameters[self.facts.parameters_of(index)]
            .iter()
            .map(|parameter| parameter.elements)
            .sum()
    }

    pub(super) fn tensor_size(&self, node: &Node) -> Size {
        Size::per_sample(node.shape.elements() * self.run.precision.activation_bytes())
    }

    pub(super) fn activation(&mut self, size: Size) -> Tensor {
        self.memory.make(size, Purpose::Activations)
    }

    pub(super) fn drop_kept(&mut self, index: usize) {
        let kept = &mut self.kept[index];
        for &tensor in kept.tensors[..usize::from(kept.count)].iter().rev() {
            self.memory.drop(tensor);
        }
        kept.clear();
    }

    /// The forward thread multiplies matrices.
    pub(super) fn multiply_forward(&mut self) {
        if !std::mem::replace(&mut self.forward_multiplied, true) {
            self.memory.steps.push(Step::Rare(Rare::Multiply(Thread::Forward)));
        }
    }

    /// The same for autograd's thread.
    pub(super) fn multiply_backward(&mut self) {
        if !std::mem::replace(&mut self.backward_multiplied, true) {
            self.memory.steps.push(Step::Rare(Rare::Multiply(Thread::Backward)));
        }
    }

    pub(super) fn conv_scratch(&mut self, node: &Node, conv: Conv, pass: Pass) {
        let reads = self.graph.inputs(node).first();
        let first = reads.is_some_and(|id| self.graph.nodes()[id.index()].op == Op::Input);
        self.memory.convolve(ConvCall {
            conv,
            input: self.graph.input_shape(node),
            output: node.shape,
            batch: 1,
            width: self.run.precision.activation_bytes(),
            first,
            pass,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::text;
    use crate::hf::{self, Options};
    use crate::run::{Precision, Sharding};

    /// Adapters stand beside frozen products that need no gradient themselves.
    #[test]
    fn every_adapter_has_a_gradient() {
        let config = r#"{"model_type":"llama","hidden_size":64,"num_hidden_layers":2,
            "intermediate_size":128,"num_attention_heads":4,"vocab_size":1000}"#;
        let options = Options { lora_rank: Some(8), ..Options::default() };
        let graph = hf::parse(config, &options).unwrap();
        let script = Trainer::new(&graph, &RunConfig::new(2)).script();
        let gradients = script.gradients.len();
        assert_eq!(gradients, script.trained.sizes.len());
        assert!(gradients > 0, "adapters are trained");
    }

    /// Bytes of state for each parameter on one GPU, worked out by hand for Adam.
    #[test]
    fn zero_in_16_bits_divides_what_its_stage_says() {
        let graph = text::parse("input 4096\nlinear 4096 nobias\nlinear 4096 nobias\n").unwrap();
        let parameters = graph.parameters() as f64;
        let [first, second, third] = [4.0 + 12.0 / 8.0, 2.0 + 14.0 / 8.0, 16.0 / 8.0];
        for (precision, stage, bytes) in [
            (Precision::Fp32, 0, 16.0),
            (Precision::Fp32, 3, third),
            (Precision::Half, 0, 8.0),
            (Precision::Mixed, 0, 16.0),
            (Precision::Half, 1, first),
            (Precision::Mixed, 1, first),
            (Precision::Half, 2, second),
            (Precision::Mixed, 2, second),
            (Precision::Half, 3, third),
            (Precision::Mixed, 3, third),
        ] {
            let sharding = Sharding { stage, gpus: 8 };
            let run = RunConfig { precision, sharding, ..RunConfig::new(1) };
            let mut trainer = Trainer::new(&graph, &run);
            let written = trainer.write();
            let size = |gradient: &Tensor| trainer.memory.size(*gradient).of(1);
            let gradients: u64 = written.gradients.iter().map(size).sum();
            let states = trainer.optimizer_sizes().bytes * run.optimizer.states() as u64;
            let found = (trainer.weights.bytes + gradients + states) as f64 / parameters;
            assert!((found - bytes).abs() < 1e-6, "{precision:?}, stage {stage}: {found}");
        }
    }
}
