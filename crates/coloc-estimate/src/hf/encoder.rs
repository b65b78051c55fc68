//! BERT and the families that are built like it.

use super::Options;
use super::head::{Head, Logits};
use super::layers::{FeedForward, Norm, Stack};
use crate::graph::{Activation, Graph, Loss, NodeId};

/// The sizes of an encoder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Encoder {
    pub(crate) width: u32,
    /// Width of the word table; ELECTRA's small models have a narrow one and widen it.
    pub(crate) embedding: u32,
    pub(crate) layers: u32,
    pub(crate) hidden: u32,
    pub(crate) function: Activation,
    pub(crate) heads: u32,
    pub(crate) vocabulary: u32,
    /// Rows of the tables of positions and of token types.
    pub(crate) placed: u32,
    pub(crate) head: Head,
    /// A sample's state passes through a product before its logits are made.
    pub(crate) pooled: bool,
    /// The last product's weight is the word table.
    pub(crate) tied: bool,
    pub(crate) eager: bool,
}

impl Encoder {
    /// The graph of its training.
    pub(crate) fn graph(&self, options: &Options) -> Graph {
        let mut stack = Stack::new(options, self.eager);
        let placed = stack.embed_placed(self.vocabulary, self.embedding, self.placed);
        let normal = stack.norm(placed, Norm::Layer);
        let mut last = stack.dropout(normal);
        if self.embedding != self.width {
            last = stack.linear(last, self.width, true);
        }
        for _ in 0..self.layers {
            last = stack.layer(|stack| self.layer(stack, last));
        }
        match self.head {
            Head::Language => last = self.transform(&mut stack, last, self.embedding),
            Head::Sample { labels } => return stack.finish_pooled(last, labels, self.pooled),
            Head::EachToken { .. } | Head::Bare => {}
        }
        let loss = Loss::CrossEntropy;
        let logits = Logits { vocabulary: self.vocabulary, tied: self.tied, loss };
        stack.finish_with(last, self.head, logits)
    }

    fn layer(&self, stack: &mut Stack<'_>, input: NodeId) -> NodeId {
        let width = self.width;
        let mixed = stack.self_attention(input, self.heads, self.heads, width, true);
        let out = stack.linear(mixed, width, true);
        let normal = stack.drop_add_norm(out, input);
        let net = FeedForward::plain(self.hidden, self.function);
        let narrow = stack.feed_forward(normal, net, width);
        stack.drop_add_norm(narrow, normal)
    }

    /// What a masked-language head does before its logits.
    fn transform(&self, stack: &mut Stack<'_>, last: NodeId, width: u32) -> NodeId {
        let transformed = stack.linear(last, width, true);
        let active = stack.builder.activate(transformed, Activation::GELU);
        stack.norm(active, Norm::Layer)
    }
}
