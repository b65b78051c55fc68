//! XLNet, coarsely.

use super::Options;
use super::layers::{FeedForward, Stack};
use crate::graph::{Activation, Attention, FlagKind, Graph, Loss, Op, Shape};

/// The sizes of an XLNet for classification.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct XlNet {
    pub(crate) width: u32,
    pub(crate) layers: u32,
    pub(crate) hidden: u32,
    pub(crate) vocabulary: u32,
}

impl XlNet {
    /// The graph of its training. Its relative attention is modelled coarsely and flagged.
    pub(crate) fn graph(&self, options: &Options) -> Graph {
        let XlNet { width, hidden, .. } = *self;
        let mut stack = Stack::new(options, true);
        let mut last = stack.embed(self.vocabulary, width);
        last = stack.dropout(last);
        let keys = options.tokens.saturating_mul(2);
        let attention = Attention { heads: (width / 64).max(1), keys, eager: true, dropout: true };
        for _ in 0..self.layers {
            last = stack.layer(|stack| {
                let query = stack.linear(last, width, false);
                let key = stack.linear(last, width, false);
                let value = stack.linear(last, width, false);
                // Relative positions: a second product of the same size, and its shift.
                let relative = stack.linear(last, width, false);
                let mixed =
                    stack.builder.attention(&[query, key, value, relative], attention, width);
                let out = stack.linear(mixed, width, false);
                let normal = stack.drop_add_norm(out, last);
                let net = FeedForward::plain(hidden, Activation::GELU);
                let narrow = stack.feed_forward(normal, net, width);
                stack.drop_add_norm(narrow, normal)
            });
        }
        let pooled = stack.builder.push(Op::Select, &[last], Shape::features(width));
        let summary = stack.linear(pooled, width, true);
        stack.linear(summary, 2, true);
        stack.builder.flag(FlagKind::Unverified, "XLNet's relative attention is modelled coarsely");
        let padded = format!("every batch is taken to be padded to {} tokens", options.tokens);
        stack.builder.flag(FlagKind::Assumption, padded);
        stack.finish(Loss::CrossEntropy)
    }
}
