//! The pieces that the families share.

use super::Options;
use crate::graph::{Activation, Attention, Graph, GraphBuilder, Loss, NodeId, Op, Shape};

/// Which normalisation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Norm {
    Layer,
    Rms,
}

/// A feed-forward net.
#[derive(Clone, Copy)]
pub(super) struct FeedForward {
    hidden: u32,
    function: Activation,
    gated: bool,
    bias: bool,
    dropout: bool,
}

impl FeedForward {
    pub(super) fn plain(hidden: u32, function: Activation) -> Self {
        FeedForward { hidden, function, gated: false, bias: true, dropout: false }
    }

    pub(super) fn relu(hidden: u32) -> Self {
        let function = Activation::ReLU;
        FeedForward { hidden, function, gated: false, bias: false, dropout: true }
    }

    pub(super) fn gated_gelu(hidden: u32) -> Self {
        let function = Activation::NewGELU;
        FeedForward { hidden, function, gated: true, bias: false, dropout: true }
    }
}

/// A transformer under construction.
pub(super) struct Stack<'a> {
    pub(super) builder: GraphBuilder,
    options: &'a Options,
    /// Attention scores are materialised.
    eager: bool,
}

impl<'a> Stack<'a> {
    pub(super) fn new(options: &'a Options, eager: bool) -> Self {
        Self::starting_with(GraphBuilder::tokens(options.tokens), options, eager)
    }

    /// With another input than tokens.
    pub(super) fn starting_with(builder: GraphBuilder, options: &'a Options, eager: bool) -> Self {
        Stack { builder, options, eager }
    }

    pub(super) fn finish(self, loss: Loss) -> Graph {
        self.builder.finish(loss)
    }

    /// A layer: what it keeps is freed together, or computed again.
    pub(super) fn layer(&mut self, build: impl FnOnce(&mut Self) -> NodeId) -> NodeId {
        let start = self.builder.len();
        let result = build(self);
        if self.options.checkpointing {
            self.builder.checkpoint_since(start);
        } else {
            self.builder.block_since(start);
        }
        result
    }

    pub(super) fn embed(&mut self, rows: u32, width: u32) -> NodeId {
        let input = self.builder.input();
        let shape = Shape::sequence(self.options.tokens, width);
        let words = self.builder.push(Op::Embedding { rows }, &[input], shape);
        self.freeze_for_lora();
        words
    }

    /// Words and, added to them, a table of positions.
    pub(super) fn embed_placed(&mut self, rows: u32, width: u32, positions: u32) -> NodeId {
        let words = self.embed(rows, width);
        let elements = u64::from(positions) * u64::from(width);
        let placed = self.builder.same(Op::AddTable { elements }, words);
        self.freeze_for_lora();
        placed
    }

    pub(super) fn linear(&mut self, from: NodeId, output: u32, bias: bool) -> NodeId {
        let result = self.builder.linear(from, output, bias);
        self.freeze_for_lora();
        result
    }

    /// A projection with a low-rank adapter beside it, if asked for.
    pub(super) fn adapted(&mut self, from: NodeId, output: u32, bias: bool) -> NodeId {
        let plain = self.linear(from, output, bias);
        let Some(rank) = self.options.lora_rank else { return plain };
        let down = self.builder.linear(from, rank, false);
        let up = self.builder.linear(down, output, false);
        self.add(plain, up)
    }

    pub(super) fn freeze_for_lora(&mut self) {
        if self.options.lora_rank.is_some() {
            self.builder.freeze_last();
        }
    }

    pub(super) fn norm(&mut self, from: NodeId, norm: Norm) -> NodeId {
        let result = self.builder.same(Op::LayerNorm { bias: norm == Norm::Layer }, from);
        self.freeze_for_lora();
        result
    }

    pub(super) fn dropout(&mut self, from: NodeId) -> NodeId {
        self.builder.same(Op::Dropout { in_place: false }, from)
    }

    pub(super) fn add(&mut self, first: NodeId, second: NodeId) -> NodeId {
        let shape = self.builder.shape(first);
        self.builder.push(Op::Add { in_place: false }, &[first, second], shape)
    }

    pub(super) fn multiply(&mut self, first: NodeId, second: NodeId) -> NodeId {
        let shape = self.builder.shape(first);
        self.builder.push(Op::Multiply, &[first, second], shape)
    }

    pub(super) fn drop_add(&mut self, branch: NodeId, skip: NodeId) -> NodeId {
        let dropped = self.dropout(branch);
        self.add(skip, dropped)
    }

    pub(super) fn drop_add_norm(&mut self, branch: NodeId, skip: NodeId) -> NodeId {
        let sum = self.drop_add(branch, skip);
        self.norm(sum, Norm::Layer)
    }

    /// Query, key and value projected apart.
    pub(super) fn self_attention(
        &mut self,
        from: NodeId,
        heads: u32,
        key_heads: u32,
        width: u32,
        bias: bool,
    ) -> NodeId {
        let narrow = width / heads.max(1) * key_heads;
        let query = self.adapted(from, width, bias);
        let key = self.linear(from, narrow, bias);
        let value = self.adapted(from, narrow, bias);
        self.attend(&[query, key, value], heads, width, true)
    }

    /// Query, key and value as slices of one projection.
    pub(super) fn packed_attention(&mut self, from: NodeId, heads: u32, width: u32) -> NodeId {
        let packed = self.adapted(from, 3 * width, true);
        self.attend(&[packed], heads, width, true)
    }

    /// Attention and the copy that puts heads side by side again.
    pub(super) fn attend(
        &mut self,
        inputs: &[NodeId],
        heads: u32,
        width: u32,
        dropout: bool,
    ) -> NodeId {
        let keys = self.builder.shape(inputs[inputs.len().min(2) - 1]).height;
        let attention = Attention { heads, keys, eager: self.eager, dropout };
        let mixed = self.builder.attention(inputs, attention, width);
        self.builder.same(Op::Copy, mixed)
    }

    pub(super) fn feed_forward(&mut self, from: NodeId, net: FeedForward, width: u32) -> NodeId {
        let wide = self.linear(from, net.hidden, net.bias);
        let mut active = self.builder.activate(wide, net.function);
        if net.gated {
            let up = self.linear(from, net.hidden, net.bias);
            active = self.multiply(active, up);
        }
        if net.dropout {
            active = self.dropout(active);
        }
        self.linear(active, width, net.bias)
    }

    /// Logits from the embedding's own table.
    pub(super) fn tied_head(&mut self, from: NodeId, vocabulary: u32) -> NodeId {
        let shape = self.builder.shape(from);
        let op = Op::Linear { input: shape.channels, bias: false, tied: true };
        let logits = self.builder.push(op, &[from], shape.with_channels(vocabulary));
        self.freeze_for_lora();
        logits
    }
}
