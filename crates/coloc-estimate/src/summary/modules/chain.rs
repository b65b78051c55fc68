//! A net of no known family, read in the order in which it is printed.

use super::module::Module;
use super::{SummaryError, SummaryOptions, Tree};
use crate::graph::{Activation, Attention, FlagKind, Graph, GraphBuilder, Loss, NodeId, Op, Shape};

/// How far back a product may find what it reads.
const NEAR: u32 = 64;
/// Features of an attention head, which no tree shows.
const HEAD_WIDTH: u32 = 64;

/// A chain under construction.
struct Chain {
    builder: GraphBuilder,
    last: NodeId,
    tokens: u32,
    /// Projections that wait for the others of their attention.
    query: Option<NodeId>,
    key: Option<NodeId>,
    value: Option<NodeId>,
}

pub(super) fn build(tree: &Tree<'_>, options: &SummaryOptions) -> Result<Graph, SummaryError> {
    let builder = GraphBuilder::tokens(options.tokens);
    let last = builder.input();
    let tokens = options.tokens;
    let mut chain = Chain { builder, last, tokens, query: None, key: None, value: None };
    let detail = "a module tree of no known family is read as a chain";
    chain.builder.flag(FlagKind::SummaryMismatch, detail);
    for module in &tree.modules {
        if is_convolution(module.kind) {
            return Err(SummaryError::new(
                module.line,
                module.indent + 1,
                "a printed module does not say how large its images are; print it with torchsummary's \
                 summary(model, (3, 224, 224)) or torchinfo's summary(model, input_size=(32, 3, 224, 224), \
                 col_names=[\"input_size\", \"output_size\", \"num_params\", \"kernel_size\"])",
            ));
        }
        if !module.container {
            chain.add(module);
        }
    }
    if chain.builder.len() == 1 {
        return Err(SummaryError::new(1, 1, "no layer of this tree is known"));
    }
    let mut graph = chain.builder.finish(Loss::CrossEntropy);
    tree.check(&mut graph, 0, 0, 0);
    Ok(graph)
}

fn is_convolution(kind: &str) -> bool {
    // Conv1D with a capital D is a matrix product.
    let convolves = kind.contains("Conv1d") || kind.contains("Conv2d") || kind.contains("Conv3d");
    convolves || kind.starts_with("ConvTranspose")
}

impl Chain {
    fn add(&mut self, module: &Module<'_>) {
        if let Some((read, written)) = module.product() {
            return self.product(module, read, written);
        }
        self.last = match module.kind {
            "Embedding" => self.embed(module),
            "Dropout" => self.builder.same(Op::Dropout { in_place: false }, self.last),
            "Identity" => self.last,
            _ if module.is_norm() => {
                let bias = !module.kind.contains("RMS") && !module.kind.starts_with("T5");
                self.builder.same(Op::LayerNorm { bias }, self.last)
            }
            kind => match Activation::from_name(kind) {
                Some(function) => self.builder.activate(self.last, function),
                None => self.unknown(module),
            },
        };
    }

    fn unknown(&mut self, module: &Module<'_>) -> NodeId {
        self.builder.flag(FlagKind::UnknownOperation, format!("{} is not known", module.kind));
        let parameters = module.parameters.unwrap_or(0);
        self.builder.same(Op::Unknown { parameters }, self.last)
    }

    fn embed(&mut self, module: &Module<'_>) -> NodeId {
        let (Some(rows), Some(width)) = (module.placed(0), module.placed(1)) else {
            return self.unknown(module);
        };
        if self.builder.shape(self.last).channels != 1 {
            let elements = u64::from(rows) * u64::from(width);
            return self.builder.same(Op::AddTable { elements }, self.last);
        }
        let shape = Shape::sequence(self.tokens, width.min(1 << 20));
        self.builder.push(Op::Embedding { rows }, &[self.last], shape)
    }

    /// Reads the nearest result that has as many features.
    fn product(&mut self, module: &Module<'_>, read: u32, written: u32) {
        if module.kind == "NonDynamicallyQuantizableLinear" {
            self.packed_attention(read);
        }
        let nearest = (self.last.0.saturating_sub(NEAR)..=self.last.0).rev().map(NodeId);
        let fits = |&node: &NodeId| self.builder.shape(node).channels == read;
        let source = nearest.into_iter().find(fits).unwrap_or(self.last);
        let shape = self.builder.shape(source).with_channels(written);
        let op = Op::Linear { input: read, bias: module.bias(), tied: false };
        self.last = self.builder.push(op, &[source], shape);
        match module.name {
            "query" | "q_proj" | "q_lin" | "q" | "wq" => self.query = Some(self.last),
            "key" | "k_proj" | "k_lin" | "k" | "wk" => self.key = Some(self.last),
            "value" | "v_proj" | "v_lin" | "v" | "wv" => self.value = Some(self.last),
            "qkv" | "qkv_proj" | "query_key_value" | "Wqkv" | "c_attn"
                if written.is_multiple_of(3) =>
            {
                return self.attend(&[self.last], written / 3);
            }
            _ => return,
        }
        if let (Some(query), Some(key), Some(value)) = (self.query, self.key, self.value) {
            (self.query, self.key, self.value) = (None, None, None);
            let width = self.builder.shape(query).channels;
            self.attend(&[query, key, value], width);
        }
    }

    /// A `MultiheadAttention` shows its last product alone; the first, for all three, is its own parameter.
    fn packed_attention(&mut self, width: u32) {
        let op = Op::Linear { input: width, bias: true, tied: false };
        let shape = self.builder.shape(self.last).with_channels(width.saturating_mul(3));
        let packed = self.builder.push(op, &[self.last], shape);
        self.attend(&[packed], width);
    }

    fn attend(&mut self, inputs: &[NodeId], width: u32) {
        let keys = self.builder.shape(inputs[inputs.len().min(2) - 1]).height;
        let heads = (width / HEAD_WIDTH).max(1);
        let detail =
            format!("attention is taken to keep its scores, with heads of {HEAD_WIDTH} features");
        self.builder.flag(FlagKind::Assumption, detail);
        let attention = Attention { heads, keys, eager: true, dropout: true };
        self.last = self.builder.attention(inputs, attention, width);
    }
}
