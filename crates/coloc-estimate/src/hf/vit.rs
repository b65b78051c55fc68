//! Vision transformers, as torchvision, timm and Hugging Face build them.

use super::Options;
use super::head::Head;
use super::layers::{Norm, Stack};
use crate::graph::{Activation, Attention, Conv, FlagKind, Graph, GraphBuilder, Loss};
use crate::graph::{NodeId, Op, Shape};

/// How query, key and value come about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Projection {
    /// `MultiheadAttention`: one product for all three, on copies with the batch in second place.
    Turned,
    /// One product for all three.
    Packed,
    /// A product for each.
    Apart,
}

/// Which layers that work at random do something.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Chance {
    pub(crate) dropout: bool,
    pub(crate) attention_dropout: bool,
    /// Whole branches are left out of some samples.
    pub(crate) drop_path: bool,
}

/// The sizes of a vision transformer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Vit {
    /// Channels of an image.
    pub(crate) channels: u32,
    /// Rows and columns of patches.
    pub(crate) grid: (u32, u32),
    /// Side of a patch.
    pub(crate) patch: u32,
    pub(crate) width: u32,
    pub(crate) layers: u32,
    pub(crate) hidden: u32,
    pub(crate) function: Activation,
    pub(crate) heads: u32,
    /// Tokens before those of the patches: class, distillation.
    pub(crate) extra: u32,
    pub(crate) projection: Projection,
    /// The product for query, key and value adds a vector.
    pub(crate) biased: bool,
    pub(crate) chance: Chance,
    pub(crate) head: Head,
    /// Products that make logits: one for the class token and one for the distillation token, where both are trained.
    pub(crate) classifiers: u32,
    /// The head reads the mean of the patches, normalised afterwards, instead of the class token.
    pub(crate) mean: bool,
    pub(crate) eager: bool,
}

impl Vit {
    /// Tokens of an image.
    pub(crate) fn tokens(&self) -> u32 {
        self.grid.0.saturating_mul(self.grid.1).saturating_add(self.extra)
    }

    /// Numbers in the table of positions and in the tokens that are parameters: no layer shows them.
    pub(crate) fn tables(&self) -> u64 {
        (u64::from(self.tokens()) + u64::from(self.extra)) * u64::from(self.width)
    }

    /// The graph of its training.
    pub(crate) fn graph(&self, options: &Options) -> Graph {
        let sides = [self.grid.0, self.grid.1].map(|side| side.saturating_mul(self.patch));
        let builder = GraphBuilder::new(Shape::image(self.channels, sides[0], sides[1]));
        let mut stack = Stack::starting_with(builder, options, self.eager);
        let placed = self.embed(&mut stack);
        let mut last = if self.chance.dropout { stack.dropout(placed) } else { placed };
        for _ in 0..self.layers {
            last = stack.layer(|stack| {
                let sum = self.attention(stack, last);
                self.feed_forward(stack, sum)
            });
        }
        let detail = "vision transformers were never compared with a measurement";
        stack.builder.flag(FlagKind::Unverified, detail);
        self.finish(stack, last)
    }

    /// Patches by a convolution, tokens before them, positions added.
    fn embed(&self, stack: &mut Stack<'_>) -> NodeId {
        let input = stack.builder.input();
        let conv = Conv {
            input: self.channels,
            kernel: (self.patch, self.patch),
            stride: self.patch,
            groups: 1,
            bias: true,
            transposed: false,
        };
        let grid = Shape::image(self.width, self.grid.0, self.grid.1);
        let patches = stack.builder.conv(input, conv, grid);
        stack.freeze_for_lora();
        let tokens = Shape::sequence(self.tokens(), self.width);
        let op = if self.extra > 0 { Op::Concat } else { Op::View };
        let joined = stack.builder.push(op, &[patches], tokens);
        let placed = stack.builder.same(Op::AddTable { elements: self.tables() }, joined);
        stack.freeze_for_lora();
        placed
    }

    fn attention(&self, stack: &mut Stack<'_>, input: NodeId) -> NodeId {
        let (width, bias) = (self.width, self.biased);
        let normal = stack.norm(input, Norm::Layer);
        let inputs = match self.projection {
            Projection::Turned => {
                // As in the measured layers of PyTorch's own encoder.
                let turned = stack.builder.same(Op::Copy, normal);
                let packed = stack.adapted(turned, 3 * width, bias);
                vec![stack.builder.same(Op::Transpose, packed)]
            }
            Projection::Packed => vec![stack.adapted(normal, 3 * width, bias)],
            Projection::Apart => {
                let query = stack.adapted(normal, width, bias);
                let key = stack.linear(normal, width, bias);
                vec![query, key, stack.adapted(normal, width, bias)]
            }
        };
        let attention = Attention {
            heads: self.heads,
            keys: self.tokens(),
            eager: self.eager,
            dropout: self.chance.attention_dropout,
        };
        let mut mixed = stack.builder.attention(&inputs, attention, width);
        // The streaming kernel puts heads side by side itself.
        if self.eager || self.projection == Projection::Turned {
            mixed = stack.builder.same(Op::Copy, mixed);
        }
        let out = stack.linear(mixed, width, true);
        self.join(stack, out, input)
    }

    fn feed_forward(&self, stack: &mut Stack<'_>, input: NodeId) -> NodeId {
        let normal = stack.norm(input, Norm::Layer);
        let wide = stack.linear(normal, self.hidden, true);
        let mut active = stack.builder.activate(wide, self.function);
        if self.chance.dropout {
            active = stack.dropout(active);
        }
        let narrow = stack.linear(active, self.width, true);
        self.join(stack, narrow, input)
    }

    /// Adds a branch to what it began with.
    fn join(&self, stack: &mut Stack<'_>, mut branch: NodeId, skip: NodeId) -> NodeId {
        if self.chance.dropout {
            branch = stack.dropout(branch);
        }
        if self.chance.drop_path {
            // A product with a number for each sample: new tensors both ways, of which none is kept.
            branch = stack.builder.same(Op::Transpose, branch);
        }
        stack.add(skip, branch)
    }

    fn finish(&self, mut stack: Stack<'_>, last: NodeId) -> Graph {
        let Head::Sample { labels } = self.head else {
            stack.norm(last, Norm::Layer);
            return stack.finish_bare();
        };
        let features = Shape::features(self.width);
        if self.mean {
            let mean = stack.builder.push(Op::GlobalPool, &[last], features);
            let normal = stack.norm(mean, Norm::Layer);
            stack.linear(normal, labels, true);
        } else {
            let normal = stack.norm(last, Norm::Layer);
            let logits: Vec<NodeId> = (0..self.classifiers.max(1))
                .map(|_| {
                    let token = stack.builder.push(Op::Select, &[normal], features);
                    stack.linear(token, labels, true)
                })
                .collect();
            if let [first, second, ..] = logits[..] {
                stack.add(first, second);
            }
        }
        stack.finish(Loss::CrossEntropy)
    }
}
