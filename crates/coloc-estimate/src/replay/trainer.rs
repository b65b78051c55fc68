//! Trains a graph on a device: parameters, summary passes, iterations, optimizer steps.

use super::Replayed;
use super::memory::{Memory, Purpose, Tensor};
use super::workspace::{ConvCall, Pass, WorkspaceProvider};
use crate::graph::{Conv, Facts, Graph, Loss, Node, NodeId, Op, Parameter};
use crate::run::{ParameterWidths, RunConfig};

/// cuBLAS takes this through the allocator, once for each thread that multiplies.
const CUBLAS_WORKSPACE: u64 = 8_519_680;

/// A thread that multiplies matrices: each takes the library's workspace once, for good.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Thread {
    Forward,
    Backward,
}

/// What the training loop's variables hold from one iteration to the next.
struct Variables {
    input: Tensor,
    labels: Tensor,
    result: Tensor,
    loss: Tensor,
}

/// A training under way.
pub(super) struct Trainer<'a> {
    pub(super) graph: &'a Graph,
    pub(super) facts: &'a Facts,
    pub(super) run: &'a RunConfig,
    pub(super) widths: ParameterWidths,
    pub(super) memory: Memory<'a>,
    /// Samples of the pass under way.
    pub(super) batch: u64,
    /// The gradient of each parameter, once it is made.
    gradients: Vec<Option<Tensor>>,
    pub(super) values: Vec<Option<Tensor>>,
    /// What each node keeps for its backward step.
    pub(super) kept: Vec<Vec<Tensor>>,
    pub(super) flows: Vec<Option<Tensor>>,
    /// What each checkpointed run of nodes needs to be computed again.
    pub(super) held: Vec<Vec<(NodeId, Tensor)>>,
    multiplied: [bool; 2],
}

impl<'a> Trainer<'a> {
    pub(super) fn new(
        graph: &'a Graph,
        run: &'a RunConfig,
        workspaces: &'a dyn WorkspaceProvider,
    ) -> Self {
        let count = graph.nodes().len();
        let facts = graph.facts();
        Trainer {
            graph,
            facts,
            run,
            widths: run.parameter_widths(),
            memory: Memory::new(run.limit.map(|limit| limit.0), workspaces),
            batch: 0,
            gradients: vec![None; facts.parameters.len()],
            values: vec![None; count],
            kept: vec![Vec::new(); count],
            flows: vec![None; count],
            held: vec![Vec::new(); graph.checkpoints.len()],
            multiplied: [false; 2],
        }
    }

    /// Trains as the run says.
    pub(super) fn train(&mut self) -> Replayed {
        self.create_parameters();
        if let Some(summary_passes) = self.run.summary_passes {
            self.batch = u64::from(summary_passes.batch);
            (0..summary_passes.passes).for_each(|_| self.play_summary_pass());
        }
        let mut variables = None;
        for (iteration, batch) in self.run.batches().enumerate() {
            self.batch = u64::from(batch);
            variables = Some(self.iterate(variables));
            if iteration == 0 {
                self.create_states();
            }
            (0..self.run.optimizer.temporaries()).for_each(|_| self.optimizer_temporaries());
        }
        self.memory.replayed()
    }

    fn create_parameters(&mut self) {
        let (facts, widths, sharding) = (self.facts, self.widths, self.run.sharding);
        for &Parameter { elements, trained, has_statistics } in &facts.parameters {
            let mut stays = |bytes| self.memory.make(bytes, Purpose::Weights);
            stays(sharding.share(elements * widths.weight, 3));
            if trained {
                stays(sharding.share(elements * widths.master, 1));
            }
            if has_statistics {
                stays(4 * elements);
                stays(4 * elements);
                stays(8);
            }
        }
    }

    /// The optimizer's share of each parameter that is trained.
    fn optimizer_sizes(&self) -> impl Iterator<Item = u64> + use<'a> {
        let (width, sharding) = (self.widths.state, self.run.sharding);
        let trained = self.facts.parameters.iter().filter(|parameter| parameter.trained);
        trained.map(move |parameter| sharding.share(parameter.elements * width, 1))
    }

    fn create_states(&mut self) {
        for bytes in self.optimizer_sizes() {
            for _ in 0..self.run.optimizer.states() {
                self.memory.make(bytes, Purpose::Optimizer);
            }
        }
    }

    /// A tensor for each parameter, all at once, while the optimizer steps.
    fn optimizer_temporaries(&mut self) {
        let temporaries: Vec<Tensor> = self
            .optimizer_sizes()
            .map(|bytes| self.memory.make(bytes, Purpose::Optimizer))
            .collect();
        temporaries.into_iter().rev().for_each(|tensor| self.memory.drop(tensor));
    }

    /// A forward pass before training, whose result is thrown away.
    fn play_summary_pass(&mut self) {
        let input = self.activation(self.input_size());
        let result = self.forward(input);
        (0..self.kept.len()).for_each(|index| self.drop_kept(index));
        let held = self.held.iter_mut().flat_map(std::mem::take);
        held.for_each(|(_, tensor)| self.memory.drop(tensor));
        self.memory.drop(result);
        self.memory.drop(input);
    }

    /// One iteration, from the batch to the last gradient. The loop's variables drop the previous batch
    /// before the next is copied to the device; the previous result and loss live on until they are replaced.
    fn iterate(&mut self, before: Option<Variables>) -> Variables {
        if let Some(Variables { input, labels, .. }) = before {
            self.memory.drop(input);
            self.memory.drop(labels);
        }
        let input = self.activation(self.input_size());
        let labels = self.activation(self.labels_size());
        let gradients = self.gradients.iter_mut().filter_map(Option::take);
        gradients.for_each(|gradient| self.memory.drop(gradient));
        let result = self.forward(input);
        if let Some(Variables { result, .. }) = before {
            self.memory.drop(result);
        }
        let kept = self.loss();
        let loss = self.activation(4);
        if let Some(Variables { loss, .. }) = before {
            self.memory.drop(loss);
        }
        self.backward(kept);
        Variables { input, labels, result, loss }
    }

    fn input_size(&self) -> u64 {
        let first = &self.graph.nodes()[0];
        let tokens = matches!(first.op, Op::Tokens);
        let width = if tokens { 8 } else { self.run.precision.activation_bytes() };
        self.batch * first.shape.elements() * width
    }

    fn labels_size(&self) -> u64 {
        let shape = self.graph.output().shape;
        let numbers = match self.graph.loss {
            Loss::CrossEntropy | Loss::CausalLanguage => 2 * shape.positions(),
            Loss::Elementwise => shape.elements(),
        };
        self.batch * 4 * numbers
    }

    /// What the loss keeps for its backward step; losses are computed in 32 bits.
    fn loss(&mut self) -> Vec<Tensor> {
        let logits = self.batch * 4 * self.graph.output().shape.elements();
        let copies = match self.graph.loss {
            Loss::CrossEntropy => 1,
            Loss::CausalLanguage => 2,
            Loss::Elementwise => 0,
        };
        let mut kept: Vec<Tensor> = (0..copies).map(|_| self.activation(logits)).collect();
        kept.push(self.activation(4));
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
        let gradient = self.memory.make(bytes, Purpose::Gradients);
        match &mut self.gradients[which] {
            Some(_) => self.memory.drop(gradient),
            none => *none = Some(gradient),
        }
    }

    /// Numbers in a node's parameters, whole.
    pub(super) fn parameter_numbers(&self, index: usize) -> u64 {
        self.facts.parameters[self.facts.parameters_of(index)]
            .iter()
            .map(|parameter| parameter.elements)
            .sum()
    }

    pub(super) fn tensor_size(&self, node: &Node) -> u64 {
        self.batch * node.shape.elements() * self.run.precision.activation_bytes()
    }

    pub(super) fn activation(&mut self, size: u64) -> Tensor {
        self.memory.make(size, Purpose::Activations)
    }

    pub(super) fn drop_kept(&mut self, index: usize) {
        let kept = &mut self.kept[index];
        kept.drain(..).rev().for_each(|tensor| self.memory.drop(tensor));
    }

    /// A thread multiplies matrices.
    pub(super) fn multiply(&mut self, thread: Thread) {
        if !std::mem::replace(&mut self.multiplied[thread as usize], true) {
            self.memory.make(CUBLAS_WORKSPACE, Purpose::Workspace);
        }
    }

    pub(super) fn conv_scratch(&mut self, node: &Node, conv: Conv, pass: Pass) {
        let reads = self.graph.inputs(node).first();
        let first = reads.is_some_and(|id| self.graph.nodes()[id.index()].op == Op::Input);
        self.memory.convolve(&ConvCall {
            conv,
            input: self.graph.input_shape(node),
            output: node.shape,
            batch: self.batch,
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
    use crate::replay::NoWorkspace;
    use crate::run::{Precision, Sharding};

    /// Adapters stand beside frozen products that need no gradient themselves.
    #[test]
    fn every_adapter_has_a_gradient() {
        let config = r#"{"model_type":"llama","hidden_size":64,"num_hidden_layers":2,
            "intermediate_size":128,"num_attention_heads":4,"vocab_size":1000}"#;
        let options = Options { lora_rank: Some(8), ..Options::default() };
        let graph = hf::parse(config, &options).unwrap();
        let run = RunConfig::new(2);
        let mut trainer = Trainer::new(&graph, &run, &NoWorkspace);
        trainer.train();
        let gradients = trainer.gradients.iter().flatten().count();
        assert_eq!(gradients, trainer.optimizer_sizes().count());
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
            let mut trainer = Trainer::new(&graph, &run, &NoWorkspace);
            trainer.train();
            let states = [Purpose::Weights, Purpose::Gradients, Purpose::Optimizer];
            let live: u64 = states.iter().map(|&purpose| trainer.memory.live(purpose)).sum();
            let found = live as f64 / parameters;
            assert!((found - bytes).abs() < 1e-6, "{precision:?}, stage {stage}: {found}");
        }
    }
}
