//! Transformers as Hugging Face builds them, from a `config.json` or by hand.

mod config;
mod layers;
mod options;

pub use config::{ConfigError, parse};
pub use options::Options;

use crate::graph::{Attention, FlagKind, Graph, Loss, NodeId, Op, Shape};
use layers::{FeedForward, Norm, Stack};

/// Tokens of the fine-tuning runs in the catalogue.
const TOKENS: u32 = 512;

/// Masked-language BERT with its cased vocabulary, at 512 tokens.
pub fn bert(width: u32, layers: u32) -> Graph {
    bert_like(width, layers, TOKENS, 28_996)
}

/// GPT-2 at 512 tokens.
pub fn gpt2(width: u32, layers: u32) -> Graph {
    gpt2_like(width, layers, TOKENS, 50_257)
}

/// A BERT with the usual proportions.
pub(crate) fn bert_like(width: u32, layers: u32, tokens: u32, vocabulary: u32) -> Graph {
    let (hidden, heads) = (4 * width, (width / 64).max(1));
    let sizes = Sizes { width, layers, hidden, heads, vocabulary, positions: tokens.max(512) };
    sizes.bert(&Options { tokens, ..Options::default() })
}

/// A GPT-2 with the usual proportions.
pub(crate) fn gpt2_like(width: u32, layers: u32, tokens: u32, vocabulary: u32) -> Graph {
    let (hidden, heads) = (4 * width, (width / 64).max(1));
    let sizes = Sizes { width, layers, hidden, heads, vocabulary, positions: tokens.max(1024) };
    sizes.gpt2(&Options { tokens, ..Options::default() })
}

/// XLNet for classification at 512 tokens. Its relative attention is modelled coarsely and flagged.
pub fn xlnet(width: u32, layers: u32) -> Graph {
    let options = Options { tokens: TOKENS, ..Options::default() };
    let mut stack = Stack::new(&options);
    let mut last = stack.embed(32_000, width);
    last = stack.dropout(last);
    for _ in 0..layers {
        last = stack.layer(|stack| {
            let query = stack.linear(last, width, false);
            let key = stack.linear(last, width, false);
            let value = stack.linear(last, width, false);
            // Relative positions: a second product of the same size, and its shift.
            let relative = stack.linear(last, width, false);
            let heads = (width / 64).max(1);
            let attention = Attention { heads, keys: 2 * TOKENS, eager: true, dropout: true };
            let mixed = stack.builder.attention(&[query, key, value, relative], attention, width);
            let out = stack.linear(mixed, width, false);
            let normal = stack.drop_add_norm(out, last);
            let narrow = stack.feed_forward(normal, FeedForward::gelu(4 * width), width);
            stack.drop_add_norm(narrow, normal)
        });
    }
    let pooled = stack.builder.push(Op::Select, &[last], Shape::features(width));
    let summary = stack.linear(pooled, width, true);
    stack.linear(summary, 2, true);
    stack.builder.flag(FlagKind::Unverified, "XLNet's relative attention is modelled coarsely");
    stack.builder.flag(FlagKind::Assumption, "every batch is taken to be padded to 512 tokens");
    stack.finish(Loss::CrossEntropy)
}

/// The sizes of a BERT or a GPT-2.
struct Sizes {
    width: u32,
    layers: u32,
    hidden: u32,
    heads: u32,
    vocabulary: u32,
    positions: u32,
}

impl Sizes {
    fn bert(&self, options: &Options) -> Graph {
        let mut stack = Stack::new(options);
        let width = self.width;
        // Two more rows: the token types.
        let placed = stack.embed_placed(self.vocabulary, width, self.positions + 2);
        let normal = stack.norm(placed, Norm::Layer);
        let mut last = stack.dropout(normal);
        for _ in 0..self.layers {
            last = stack.layer(|stack| {
                let mixed = stack.self_attention(last, self.heads, self.heads, width, true);
                let out = stack.linear(mixed, width, true);
                let normal = stack.drop_add_norm(out, last);
                let narrow = stack.feed_forward(normal, FeedForward::gelu(self.hidden), width);
                stack.drop_add_norm(narrow, normal)
            });
        }
        let transformed = stack.linear(last, width, true);
        let active = stack.gelu(transformed);
        let normal = stack.norm(active, Norm::Layer);
        stack.tied_head(normal, self.vocabulary);
        stack.finish(Loss::CrossEntropy)
    }

    fn gpt2(&self, options: &Options) -> Graph {
        let mut stack = Stack::new(options);
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
                let narrow = stack.feed_forward(normal, FeedForward::gelu(self.hidden), width);
                stack.drop_add(narrow, sum)
            });
        }
        let normal = stack.norm(last, Norm::Layer);
        stack.tied_head(normal, self.vocabulary);
        // Measured runs agree with one fused GELU kernel, although the module dump names the written-out one.
        stack.builder.flag(FlagKind::Unverified, "GPT-2's GELU is taken to be one kernel");
        stack.finish(Loss::CausalLanguage)
    }
}

/// The sizes of a LLaMA.
struct Llama {
    width: u32,
    layers: u32,
    hidden: u32,
    heads: u32,
    key_heads: u32,
    head_width: u32,
    vocabulary: u32,
    tied: bool,
}

impl Llama {
    fn graph(&self, options: &Options) -> Graph {
        let mut stack = Stack::new(options);
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
                let active = stack.silu(gate);
                let up = stack.linear(normal, self.hidden, false);
                let product = stack.multiply(active, up);
                let narrow = stack.linear(product, width, false);
                stack.add(sum, narrow)
            });
        }
        let normal = stack.norm(last, Norm::Rms);
        if self.tied {
            stack.tied_head(normal, self.vocabulary);
        } else {
            stack.linear(normal, self.vocabulary, false);
        }
        stack.builder.flag(FlagKind::Unverified, "LLaMA was never compared with a measurement");
        stack.finish(Loss::CausalLanguage)
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

/// The sizes of a T5.
struct T5 {
    width: u32,
    layers: u32,
    decoder_layers: u32,
    hidden: u32,
    heads: u32,
    head_width: u32,
    vocabulary: u32,
    gated: bool,
}

impl T5 {
    fn graph(&self, options: &Options) -> Graph {
        let mut stack = Stack::new(options);
        let words = stack.embed(self.vocabulary, self.width);
        let mut last = stack.dropout(words);
        for _ in 0..self.layers {
            last = stack.layer(|stack| {
                let sum = self.attention(stack, last, None);
                self.feed_forward(stack, sum)
            });
        }
        let encoded = stack.norm(last, Norm::Rms);
        let target =
            stack.builder.push(Op::Select, &[words], Shape::sequence(options.tokens, self.width));
        let mut last = stack.dropout(target);
        for _ in 0..self.decoder_layers {
            last = stack.layer(|stack| {
                let own = self.attention(stack, last, None);
                let cross = self.attention(stack, own, Some(encoded));
                self.feed_forward(stack, cross)
            });
        }
        let normal = stack.norm(last, Norm::Rms);
        stack.tied_head(normal, self.vocabulary);
        stack.builder.flag(FlagKind::Unverified, "T5 was never compared with a measurement");
        stack.builder.flag(FlagKind::Assumption, "targets are as long as inputs");
        stack.finish(Loss::CrossEntropy)
    }

    fn attention(&self, stack: &mut Stack<'_>, input: NodeId, memory: Option<NodeId>) -> NodeId {
        let inner = self.heads * self.head_width;
        let normal = stack.norm(input, Norm::Rms);
        let source = memory.unwrap_or(normal);
        let query = stack.adapted(normal, inner, false);
        let key = stack.linear(source, inner, false);
        let value = stack.adapted(source, inner, false);
        let mixed = stack.attend(&[query, key, value], self.heads, inner, true);
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
