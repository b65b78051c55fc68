//! Layers that are alike are worked out once. What the next one does is what the one before did, with
//! tensors of its own, as long as it finds the same: its steps are copied.

use super::reuse::{Reused, shelved};
use super::script::{Mark, Size, Step, Tensor};
use super::trainer::Trainer;
use crate::graph::Graph;
use std::ops::Range;

/// What a layer finds when it begins.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Found {
    /// What it reads, forwards, or the gradient that reaches it.
    tensor: Tensor,
    handles: u32,
    size: Size,
    /// What a step may be written together with. A freed tensor is not.
    last_step: Option<Step>,
    multiplied: bool,
}

impl Found {
    /// The same, but for the tensor.
    fn like(&self, other: &Found) -> bool {
        Found { tensor: other.tensor, ..*self } == *other
    }
}

/// A layer's place in the script.
#[derive(Clone, Copy)]
struct Layer {
    begin: Mark,
    end: Mark,
    found: Option<Found>,
    /// It does what the layer before it does.
    alike: bool,
    copied: bool,
}

shelved!(Layer);

/// The layers that were written so far.
pub(super) struct Repeats {
    /// Layers may be copied.
    wanted: bool,
    forward: Reused<Layer>,
    /// Where the way back through the last layer began, and what it found.
    backward: Option<(Mark, Option<Found>)>,
    /// The handles to what it had made forwards, then; those of the layers copied from it are the same.
    handles: Reused<u32>,
    #[cfg(test)]
    copied_backward: usize,
}

impl Repeats {
    /// None yet.
    pub(super) fn new(graph: &Graph) -> Self {
        Repeats {
            // What is computed again on the way back is not written layer by layer.
            wanted: graph.checkpoints.is_empty(),
            forward: Reused::with_capacity(graph.blocks.len()),
            backward: None,
            handles: Reused::with_capacity(0),
            #[cfg(test)]
            copied_backward: 0,
        }
    }
}

impl Trainer<'_> {
    /// Runs the nodes from here on, recorded.
    pub(super) fn run_layers(&mut self, mut next: usize) {
        let graph = self.graph;
        if self.repeats.wanted {
            for layer in 0..graph.blocks.len() {
                let nodes = graph.blocks[layer].clone();
                self.run_nodes(next..nodes.start, true);
                self.run_layer(layer);
                next = nodes.end;
            }
        }
        self.run_nodes(next..graph.nodes().len(), true);
    }

    fn run_layer(&mut self, layer: usize) {
        let begin = self.memory.mark();
        let nodes = self.graph.blocks[layer].clone();
        let value = self.values[nodes.start - 1];
        let found = value.map(|value| self.found(value, self.forward_multiplied));
        let alike = self.facts.like_before[layer];
        let copied = alike && self.finds_the_same(begin, found);
        if copied {
            self.copy_forward(layer, begin);
        } else {
            self.run_nodes(nodes, true);
        }
        let end = self.memory.mark();
        self.repeats.forward.push(Layer { begin, end, found, alike, copied });
    }

    fn found(&self, tensor: Tensor, multiplied: bool) -> Found {
        let last_step = self.memory.last_step().filter(|step| !matches!(step, Step::Free(_)));
        let (handles, size) = (self.memory.handles_of(tensor), self.memory.size(tensor));
        Found { tensor, handles, size, last_step, multiplied }
    }

    /// Whether the two layers before were alike, and the last of them found the same.
    fn finds_the_same(&self, begin: Mark, found: Option<Found>) -> bool {
        let [.., first, second] = self.repeats.forward[..] else { return false };
        let (Some(found), Some(before)) = (found, second.found) else { return false };
        let made = begin.tensors - second.begin.tensors;
        second.alike
            && second.begin.tensors - first.begin.tensors == made
            && found.like(&before)
            && found.tensor.0 == before.tensor.0 + made
            && before.tensor.0 >= first.begin.tensors
    }

    fn copy_forward(&mut self, layer: usize, begin: Mark) {
        let before = self.repeats.forward[layer - 1].begin;
        let made = begin.tensors - before.tensors;
        let later = |tensor: Tensor| Tensor(tensor.0 + made);
        let read = self.read_by(layer - 1);
        self.memory.repeat(before..begin, later);
        // Of the layer before only its result is touched, as the one before it was by that layer.
        self.memory.copy_handles(read, later(read));
        let nodes = self.graph.blocks[layer].clone();
        let length = nodes.len();
        let result = nodes.start - 1;
        self.values[nodes.end - 1] = self.values[result].map(later);
        self.values[result] = self.values[result - length].map(later);
    }

    /// What a layer keeps that was copied, from the last that was not: few layers need it.
    fn keep_as_copied(&mut self, layer: usize) {
        let worked_out = self.repeats.forward[..layer].iter().rposition(|layer| !layer.copied);
        let Some(origin) = worked_out.filter(|_| self.repeats.forward[layer].copied) else {
            return;
        };
        let begin = |layer: usize| self.repeats.forward[layer].begin.tensors;
        let made = begin(layer) - begin(origin);
        let nodes = self.graph.blocks[layer].clone();
        let back = (layer - origin) * nodes.len();
        for index in nodes {
            self.kept[index] = self.kept[index - back].map(|tensor| Tensor(tensor.0 + made));
        }
    }

    /// What a layer read that has begun.
    fn read_by(&self, layer: usize) -> Tensor {
        self.repeats.forward[layer].found.expect("only layers that read a value are copied").tensor
    }

    /// Goes back through a layer as through the one behind it, if it finds the same.
    pub(super) fn repeat_backward(&mut self, layer: usize) -> bool {
        let Some(&Layer { begin: from, end: to, .. }) = self.repeats.forward.get(layer) else {
            return false;
        };
        let flow = self.flows[self.graph.blocks[layer].end - 1];
        let found = flow.map(|flow| self.found(flow, self.backward_multiplied));
        let begin = self.memory.mark();
        let own = from.tensors..to.tensors;
        let shift = self.shift_from_behind(layer, begin, found, own.clone());
        let behind = self.repeats.backward.replace((begin, found));
        if let (Some(shift), Some((start, _))) = (shift, behind) {
            self.copy_backward(layer, start..begin, shift);
            return true;
        }
        self.keep_as_copied(layer);
        self.repeats.handles.clear();
        self.repeats.handles.extend(self.memory.handles(own));
        false
    }

    /// Which tensors a layer has instead of those of the layer behind it, if all else is the same.
    fn shift_from_behind(
        &self,
        layer: usize,
        begin: Mark,
        found: Option<Found>,
        own: Range<u32>,
    ) -> Option<Shift> {
        let (start, other) = self.repeats.backward?;
        let (found, other) = (found?, other?);
        // A gradient may flow past every layer as it is; else the layer behind has made it.
        let flow_known = found.tensor == other.tensor || found.tensor.0 >= start.tensors;
        let shift = Shift {
            flow: (other.tensor, found.tensor),
            first_backwards: self.first_backwards,
            backwards: begin.tensors - start.tensors,
            forwards: own.len() as u32,
        };
        let same = flow_known
            && found.like(&other)
            && self.repeats.forward.get(layer + 1).is_some_and(|behind| behind.copied)
            && self.memory.handles(own).eq(self.repeats.handles.iter().copied());
        same.then_some(shift)
    }

    fn copy_backward(&mut self, layer: usize, steps: Range<Mark>, shift: Shift) {
        #[cfg(test)]
        (self.repeats.copied_backward += 1);
        // The layer before will find what this one found.
        self.memory.copy_handles(self.read_by(layer + 1), self.read_by(layer));
        self.memory.repeat(steps, |tensor| shift.of(tensor));
        let nodes = self.graph.blocks[layer].clone();
        let next_flow = self.flows[nodes.end - 1].take().map(|flow| shift.of(flow));
        self.flows[nodes.start - 1] = next_flow;
        self.copy_gradients(nodes, |gradient| shift.of(gradient));
    }
}

/// Which tensor a layer has, on the way back, instead of one of the layer behind it.
#[derive(Clone, Copy)]
struct Shift {
    /// The gradients that reached both.
    flow: (Tensor, Tensor),
    first_backwards: u32,
    /// What a layer makes on the way back, and has made on the way there.
    backwards: u32,
    forwards: u32,
}

impl Shift {
    fn of(self, tensor: Tensor) -> Tensor {
        match tensor {
            tensor if tensor == self.flow.0 => self.flow.1,
            Tensor(number) if number >= self.first_backwards => Tensor(number + self.backwards),
            Tensor(number) => Tensor(number - self.forwards),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hf::{self, Options};
    use crate::replay::script::{Rare, Recorder, SizeId};
    use crate::run::{Precision, RunConfig, Sharding};

    const CONFIGS: [&str; 4] = [
        r#"{"model_type":"bert","hidden_size":64,"num_hidden_layers":LAYERS,"num_attention_heads":4,
            "intermediate_size":256,"vocab_size":1000,"max_position_embeddings":128}"#,
        r#"{"model_type":"gpt2","n_embd":64,"n_layer":LAYERS,"n_head":4,"vocab_size":1000,"n_positions":128}"#,
        r#"{"model_type":"llama","hidden_size":64,"num_hidden_layers":LAYERS,"intermediate_size":128,
            "num_attention_heads":4,"vocab_size":1000}"#,
        r#"{"model_type":"t5","d_model":64,"num_layers":LAYERS,"d_ff":256,"num_heads":4,"d_kv":16,"vocab_size":1000}"#,
    ];

    /// Steps with sizes instead of their numbers: the same size may have two.
    fn told(script: &Recorder) -> impl Iterator<Item = (Step, Option<Size>)> {
        script.steps.iter().map(|step| {
            let unnamed = SizeId(0);
            let size = |id: SizeId| Some(script.sizes[id.0 as usize]);
            match *step {
                Step::Make(id, purpose) => (Step::Make(unnamed, purpose), size(id)),
                Step::Rare(Rare::Scratch(id)) => (Step::Rare(Rare::Scratch(unnamed)), size(id)),
                Step::Rare(Rare::Lend(id, purpose)) => {
                    (Step::Rare(Rare::Lend(unnamed, purpose)), size(id))
                }
                other => (other, None),
            }
        })
    }

    /// Copied layers are what they would be if each was worked out.
    #[test]
    fn copies_are_what_is_worked_out() {
        let mut copied = 0;
        for (config, layers) in
            CONFIGS.into_iter().flat_map(|config| (1..9).map(move |n| (config, n)))
        {
            let config = config.replace("LAYERS", &layers.to_string());
            for (lora_rank, precision, stage) in [
                (None, Precision::Fp32, 0),
                (None, Precision::Mixed, 3),
                (Some(8), Precision::Half, 1),
            ] {
                let options = Options { lora_rank, ..Options::default() };
                let graph = hf::parse(&config, &options).unwrap();
                let sharding = Sharding { stage, gpus: 4 };
                let run = RunConfig { precision, sharding, ..RunConfig::new(2) };
                let mut quick = Trainer::new(&graph, &run);
                let mut slow = Trainer::new(&graph, &run);
                slow.repeats.wanted = false;
                let [one, other] = [quick.write(), slow.write()];
                assert_eq!(
                    (one.left, &*one.gradients),
                    (other.left, &*other.gradients),
                    "{config}"
                );
                assert!(told(&quick.memory).eq(told(&slow.memory)), "{config}");
                assert!(slow.repeats.forward.is_empty());
                copied += quick.repeats.forward.iter().filter(|layer| layer.copied).count();
            }
        }
        assert!(copied > 200, "only {copied} layers were copied");
    }

    /// Of equal layers only the first two are worked out forwards, and the first and the last backwards.
    #[test]
    fn equal_layers_are_copied() {
        let config = CONFIGS[0].replace("LAYERS", "12");
        let graph = hf::parse(&config, &Options::default()).unwrap();
        let run = RunConfig::new(2);
        let mut trainer = Trainer::new(&graph, &run);
        trainer.write();
        let copied = trainer.repeats.forward.iter().filter(|layer| layer.copied).count();
        assert_eq!((copied, trainer.repeats.copied_backward), (10, 10));
    }
}
