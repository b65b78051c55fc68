//! T5: an encoder and a decoder that reads it.

use super::Options;
use super::head::{Head, Logits};
use super::layers::{FeedForward, Norm, Stack};
use crate::graph::{FlagKind, Graph, GraphBuilder, Loss, NodeId, Op, Shape};

/// The sizes of a T5.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct T5 {
    pub(crate) width: u32,
    pub(crate) layers: u32,
    /// None for a model that is an encoder alone.
    pub(crate) decoder_layers: Option<u32>,
    pub(crate) hidden: u32,
    pub(crate) heads: u32,
    pub(crate) head_width: u32,
    /// Distances that have a row in the table of relative positions.
    pub(crate) buckets: u32,
    pub(crate) vocabulary: u32,
    pub(crate) gated: bool,
    pub(crate) head: Head,
    pub(crate) tied: bool,
    pub(crate) eager: bool,
}

impl T5 {
    /// The graph of its training.
    pub(crate) fn graph(&self, options: &Options) -> Graph {
        let mut stack = Stack::new(options, self.eager);
        let words = stack.embed(self.vocabulary, self.width);
        let mut last = stack.dropout(words);
        for index in 0..self.layers {
            last = stack.layer(|stack| {
                let placed = (index == 0).then(|| self.placed(stack));
                let sum = self.attention(stack, last, None, placed);
                self.feed_forward(stack, sum)
            });
        }
        let mut normal = stack.norm(last, Norm::Rms);
        if let Some(layers) = self.decoder_layers {
            let decoded = self.decode(&mut stack, words, normal, layers);
            normal = stack.norm(decoded, Norm::Rms);
            stack.builder.flag(FlagKind::Assumption, "targets are as long as inputs");
        }
        stack.builder.flag(FlagKind::Unverified, "T5 was never compared with a measurement");
        if let Head::Sample { labels } = self.head {
            return stack.finish_pooled(normal, labels, true);
        }
        let loss = Loss::CrossEntropy;
        let logits = Logits { vocabulary: self.vocabulary, tied: self.tied, loss };
        stack.finish_with(normal, self.head, logits)
    }

    fn decode(&self, stack: &mut Stack<'_>, words: NodeId, encoded: NodeId, layers: u32) -> NodeId {
        let shape = stack.builder.shape(words);
        let target = stack.builder.push(Op::Select, &[words], shape);
        let mut last = stack.dropout(target);
        for index in 0..layers {
            last = stack.layer(|stack| {
                let first = index == 0;
                let placed = first.then(|| self.placed(stack));
                let masked = first.then(|| self.masked(stack));
                let own = self.attention(stack, last, None, placed);
                let cross = self.attention(stack, own, Some(encoded), masked);
                self.feed_forward(stack, cross)
            });
        }
        last
    }

    /// What the first layer of a stack makes and all add to their scores: a number for each distance and head, and the
    /// padding of each sample. The others find it and make nothing of their own; it lives as long as the first layer.
    fn placed(&self, stack: &mut Stack<'_>) -> NodeId {
        let input = stack.builder.input();
        let rows = self.buckets;
        let bias =
            stack.builder.push(Op::Embedding { rows }, &[input], self.scores(&stack.builder));
        stack.freeze_for_lora();
        bias
    }

    /// The same between decoder and encoder, where distances do not count.
    fn masked(&self, stack: &mut Stack<'_>) -> NodeId {
        let input = stack.builder.input();
        stack.builder.push(Op::Select, &[input], self.scores(&stack.builder))
    }

    fn scores(&self, builder: &GraphBuilder) -> Shape {
        let tokens = builder.shape(builder.input()).height;
        Shape::image(self.heads, tokens, tokens)
    }

    fn attention(
        &self,
        stack: &mut Stack<'_>,
        input: NodeId,
        memory: Option<NodeId>,
        bias: Option<NodeId>,
    ) -> NodeId {
        let inner = self.heads * self.head_width;
        let normal = stack.norm(input, Norm::Rms);
        let source = memory.unwrap_or(normal);
        let query = stack.adapted(normal, inner, false);
        let key = stack.linear(source, inner, false);
        let value = stack.adapted(source, inner, false);
        let mut inputs = vec![query, key, value];
        inputs.extend(bias);
        let mixed = stack.attend(&inputs, self.heads, inner, true);
        let out = stack.linear(mixed, self.width, false);
        stack.drop_add(out, input)
    }

    fn feed_forward(&self, stack: &mut Stack<'_>, input: NodeId) -> NodeId {
        let normal = stack.norm(input, Norm::Rms);
        let net = if self.gated {
            FeedForward::gated_gelu(self.hidden)
        } else {
            FeedForward::relu(self.hidden)
        };
        let narrow = stack.feed_forward(normal, net, self.width);
        stack.drop_add(narrow, input)
    }
}
