//! Decoders: GPT-2 and LLaMA with its kin.

use super::Options;
use super::head::{Head, Logits};
use super::layers::{FeedForward, Norm, Stack};
use crate::graph::{Activation, FlagKind, Graph, Loss, NodeId, Op};

/// The sizes of a GPT-2.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Gpt2 {
    pub(crate) width: u32,
    pub(crate) layers: u32,
    pub(crate) hidden: u32,
    pub(crate) heads: u32,
    pub(crate) vocabulary: u32,
    pub(crate) positions: u32,
    pub(crate) head: Head,
    pub(crate) tied: bool,
    pub(crate) eager: bool,
}

impl Gpt2 {
    /// The graph of its training.
    pub(crate) fn graph(&self, options: &Options) -> Graph {
        let mut stack = Stack::new(options, self.eager);
        let width = self.width;
        let placed = stack.embed_placed(self.vocabulary, width, self.positions);
        let mut last = stack.dropout(placed);
        for _ in 0..self.layers {
            last = stack.layer(|stack| {
                let normal = stack.norm(last, Norm::Layer);
                let mixed = stack.packed_attention(normal, self.heads, width);
                let out = stack.linear(mixed, width, true);
                let sum = stack.drop_add(out, last);
                let normal = stack.norm(sum, Norm::Layer);
                let net = FeedForward::plain(self.hidden, Activation::GELU);
                let narrow = stack.feed_forward(normal, net, width);
                stack.drop_add(narrow, sum)
            });
        }
        let normal = stack.norm(last, Norm::Layer);
        // Measured runs agree with one fused GELU kernel, although the module dump names the written-out one.
        stack.builder.flag(FlagKind::Unverified, "GPT-2's GELU is taken to be one kernel");
        let loss = Loss::CausalLanguage;
        let logits = Logits { vocabulary: self.vocabulary, tied: self.tied, loss };
        stack.finish_with(normal, self.head, logits)
    }
}

/// The sizes of a LLaMA.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Llama {
    pub(crate) width: u32,
    pub(crate) layers: u32,
    pub(crate) hidden: u32,
    pub(crate) heads: u32,
    pub(crate) key_heads: u32,
    pub(crate) head_width: u32,
    pub(crate) vocabulary: u32,
    pub(crate) head: Head,
    pub(crate) tied: bool,
    pub(crate) eager: bool,
}

impl Llama {
    /// The graph of its training.
    pub(crate) fn graph(&self, options: &Options) -> Graph {
        let mut stack = Stack::new(options, self.eager);
        let width = self.width;
        let mut last = stack.embed(self.vocabulary, width);
        for _ in 0..self.layers {
            last = stack.layer(|stack| {
                let normal = stack.norm(last, Norm::Rms);
                let mixed = self.attention(stack, normal);
                let out = stack.linear(mixed, width, false);
                let sum = stack.add(last, out);
                let normal = stack.norm(sum, Norm::Rms);
                let gate = stack.linear(normal, self.hidden, false);
                let active = stack.builder.activate(gate, Activation::SiLU);
                let up = stack.linear(normal, self.hidden, false);
                let product = stack.multiply(active, up);
                let narrow = stack.linear(product, width, false);
                stack.add(sum, narrow)
            });
        }
        let normal = stack.norm(last, Norm::Rms);
        stack.builder.flag(FlagKind::Unverified, "LLaMA was never compared with a measurement");
        let loss = Loss::CausalLanguage;
        let logits = Logits { vocabulary: self.vocabulary, tied: self.tied, loss };
        stack.finish_with(normal, self.head, logits)
    }

    fn attention(&self, stack: &mut Stack<'_>, input: NodeId) -> NodeId {
        let query = stack.adapted(input, self.heads * self.head_width, false);
        let key = stack.linear(input, self.key_heads * self.head_width, false);
        let value = stack.adapted(input, self.key_heads * self.head_width, false);
        // Rotary positions make rotated copies of query and key.
        let query = stack.builder.same(Op::Transpose, query);
        let key = stack.builder.same(Op::Transpose, key);
        stack.attend(&[query, key, value], self.heads, self.heads * self.head_width, false)
    }
}
