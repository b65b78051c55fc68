//! Finds the branches that a flat list of layers has lost.
//!
//! A convolution's parameter count tells how many channels it read: when the layer before has another
//! number, it reads an earlier one. Containers say how branches end: residual blocks add, inception
//! blocks put side by side, squeeze blocks multiply.

use super::convolutions::{explain, input_shape};
use super::table::{FOLDED, Row};
use crate::graph::{Activation, Conv, FlagKind, Graph, GraphBuilder, Loss, NodeId, Op, Shape};

/// Builds the graph of a list of rows.
pub(super) struct Wiring {
    builder: GraphBuilder,
    last: NodeId,
    /// Where the block that is being read began.
    block_input: NodeId,
    /// What the newest convolutions read, newest last.
    conv_inputs: Vec<NodeId>,
    newest_conv: Option<NodeId>,
    /// What the newest global mean read.
    pooled: NodeId,
}

impl Wiring {
    /// Reads all rows.
    pub(super) fn of(rows: &[Row<'_>], batch: u32, input_mib: Option<f64>) -> Self {
        let builder = GraphBuilder::new(input_shape(rows, batch, input_mib));
        let input = builder.input();
        let mut wiring = Wiring {
            builder,
            last: input,
            block_input: input,
            conv_inputs: Vec::new(),
            newest_conv: None,
            pooled: input,
        };
        for index in 0..rows.len() {
            wiring.add(rows, index);
        }
        wiring
    }

    /// The graph.
    pub(super) fn finish(self) -> Graph {
        self.builder.finish(Loss::CrossEntropy)
    }

    fn add(&mut self, rows: &[Row<'_>], index: usize) {
        let row = &rows[index];
        if row.folded {
            self.builder.flag(FlagKind::Assumption, FOLDED);
        }
        if row.several {
            return self.unknown(row);
        }
        let next = rows.get(index + 1).map_or("", |next| next.kind);
        match row.kind {
            "Conv2d" | "Conv1d" | "ConvTranspose2d" => self.conv(row),
            "Linear" | "NonDynamicallyQuantizableLinear" => self.linear(row),
            "BatchNorm1d" | "BatchNorm2d" | "BatchNorm3d" => self.same(Op::BatchNorm),
            "BatchNormAct2d" => self.norm_with_activation(),
            "LayerNorm" => self.same(Op::LayerNorm { bias: true }),
            "Dropout" | "Dropout2d" => self.dropout(row),
            "MaxPool2d" | "MaxPool3d" => self.push(Op::MaxPool, row.shape),
            "AvgPool2d" | "AvgPool3d" => self.push(Op::AvgPool, row.shape),
            "AdaptiveAvgPool2d" | "AdaptiveAvgPool3d" => self.adaptive_pool(row),
            "Upsample" => self.push(Op::Upsample, row.shape),
            "Flatten" | "Identity" | "SelectAdaptivePool2d" | "StochasticDepth" | "Sequential" => {}
            "BasicBlock" | "Bottleneck" => self.close_residual(row, false),
            "Block" | "InvertedResidual" | "MBConv" | "DepthwiseSeparableConv" => {
                self.close_residual(row, true);
            }
            "SqueezeExcitation" | "SqueezeExcite" => self.close_squeeze(row),
            "BasicConv2d" => self.activate(Activation::ReLU, true),
            "SeparableConv2d" | "ConvBnAct" | "Conv2dNormActivation" => {}
            kind if kind.starts_with("Inception") && !kind.ends_with("Aux") => {
                self.close_concat(row)
            }
            kind => match Activation::from_name(kind) {
                Some(function) => self.activation(function, row, next),
                None => self.unknown(row),
            },
        }
    }

    fn push(&mut self, op: Op, shape: Shape) {
        self.last = self.builder.push(op, &[self.last], shape);
    }

    fn same(&mut self, op: Op) {
        self.last = self.builder.same(op, self.last);
    }

    fn activate(&mut self, function: Activation, in_place: bool) {
        self.same(Op::Activate { function, in_place });
    }

    /// Libraries overwrite where they can; the table does not say.
    fn activation(&mut self, function: Activation, row: &Row<'_>, next: &str) {
        if matches!(next, "BasicBlock" | "Bottleneck") {
            self.add_skip(row.shape);
        }
        if matches!(next, "BatchNormAct2d") {
            // timm prints a norm's own activation before the norm itself.
            return self.pending_activation(function);
        }
        let usual = matches!(
            function,
            Activation::ReLU | Activation::ReLU6 | Activation::SiLU | Activation::Hardswish
        );
        let block_start = self.last == self.block_input && self.last != self.builder.input();
        let in_place = usual && !block_start;
        self.activate(function, in_place);
    }

    fn pending_activation(&mut self, function: Activation) {
        self.same(Op::BatchNorm);
        self.activate(function, true);
        self.builder.flag(FlagKind::Assumption, "activations of BatchNormAct2d work in place");
    }

    /// A norm whose activation was printed before it is there already.
    fn norm_with_activation(&mut self) {
        let done = self.builder.op(self.last).is_some_and(|op| matches!(op, Op::Activate { .. }));
        if !done {
            self.same(Op::BatchNorm);
        }
    }

    fn dropout(&mut self, row: &Row<'_>) {
        if self.builder.shape(self.last).elements() != row.shape.elements() {
            // A pool between the rows is a function call that the table does not show.
            self.push(Op::MaxPool, row.shape);
            self.builder.flag(FlagKind::Assumption, "a pooling call is missing from the summary");
        }
        self.same(Op::Dropout { in_place: false });
    }

    fn adaptive_pool(&mut self, row: &Row<'_>) {
        self.pooled = self.last;
        let op = if row.shape.positions() == 1 { Op::GlobalPool } else { Op::AvgPool };
        self.push(op, row.shape);
    }

    fn linear(&mut self, row: &Row<'_>) {
        let features = self.builder.shape(self.last).elements().min(u64::from(u32::MAX)) as u32;
        let outputs = u64::from(row.shape.channels);
        let flat = self.builder.shape(self.last).channels;
        let fits = |inputs: u32| {
            let weights = outputs * u64::from(inputs);
            row.parameters == weights || row.parameters == weights + outputs
        };
        let inputs = [flat, features].into_iter().find(|inputs| fits(*inputs));
        let bias = row.parameters.is_multiple_of(outputs.max(1))
            && inputs.is_none_or(|inputs| row.parameters != outputs * u64::from(inputs));
        let inputs = inputs.unwrap_or_else(|| {
            let detail =
                "a linear layer reads another number of features than the row before gives";
            self.builder.flag(FlagKind::SummaryMismatch, detail);
            (row.parameters / outputs.max(1)).saturating_sub(1).clamp(1, 1 << 24) as u32
        });
        if inputs != flat {
            self.push(Op::View, Shape::features(inputs));
        }
        let op = Op::Linear { input: inputs, bias, tied: false };
        self.push(op, row.shape);
    }

    fn conv(&mut self, row: &Row<'_>) {
        let Some(found) = self.find_conv(row) else { return self.unknown(row) };
        let mut source = found.source;
        let shape = self.builder.shape(source);
        if row.shape.positions() == 1 && shape.positions() > 1 && found.conv.kernel == (1, 1) {
            // timm takes the mean in a function call.
            self.pooled = source;
            let mean = Shape::features(shape.channels);
            source = self.builder.push(Op::GlobalPool, &[source], mean);
        }
        self.conv_inputs.push(source);
        self.last = self.builder.conv(source, found.conv, row.shape);
        self.newest_conv = Some(self.last);
    }

    /// The nearest layer that explains a convolution's parameters.
    fn find_conv(&self, row: &Row<'_>) -> Option<FoundConv> {
        let try_source = |source: NodeId, taps: &[u32]| {
            let conv = explain(row, self.builder.shape(source), taps)?;
            Some(FoundConv { source, conv })
        };
        let squares = [1, 3, 5, 7, 11].map(|side| side * side);
        let earlier = (0..self.last.0).rev().take(64).map(NodeId);
        // 1x3 and 3x1 stand side by side in inception's last blocks, 1x7 and 7x1 in a row.
        let sibling = self.conv_inputs.last().and_then(|&source| {
            let twin = self.builder.op(self.newest_conv?)?;
            matches!(twin, Op::Conv(conv) if conv.kernel == (1, 3)).then_some(source)
        });
        try_source(self.last, &squares)
            .or_else(|| earlier.clone().find_map(|source| try_source(source, &[1, 9, 25])))
            .or_else(|| sibling.and_then(|source| try_source(source, &[3])))
            .or_else(|| try_source(self.last, &[3, 7]))
    }

    /// The branch that was not joined yet, or the block's input.
    fn add_skip(&mut self, shape: Shape) {
        let main = self
            .builder
            .unread_after(self.block_input)
            .into_iter()
            .find(|&node| node != self.last && self.builder.shape(node) == shape);
        let (main, skip) = match main {
            Some(main) => (main, self.last),
            None => (self.last, self.residual_input()),
        };
        if self.builder.shape(skip) == self.builder.shape(main) && skip != main {
            self.last = self.builder.push(Op::Add { in_place: true }, &[main, skip], shape);
        }
    }

    /// What a residual block read: where the block before ended; for the first, what the convolutions
    /// before read.
    fn residual_input(&self) -> NodeId {
        if self.block_input != self.builder.input() {
            return self.block_input;
        }
        let shape = self.builder.shape(self.last);
        let same = |node: &&NodeId| self.builder.shape(**node) == shape;
        self.conv_inputs.iter().rev().take(3).rfind(same).copied().unwrap_or(self.block_input)
    }

    fn close_residual(&mut self, row: &Row<'_>, sum_at_end: bool) {
        if sum_at_end {
            self.add_skip(row.shape);
        }
        self.block_input = self.last;
    }

    fn close_squeeze(&mut self, row: &Row<'_>) {
        let (gate, image) = (self.last, self.pooled);
        if self.builder.shape(image) == row.shape {
            self.last = self.builder.push(Op::Multiply, &[image, gate], row.shape);
        } else {
            self.unknown(row);
        }
    }

    /// Branches side by side; channels that no branch explains are the block's input, pooled.
    fn close_concat(&mut self, row: &Row<'_>) {
        let mut parts: Vec<NodeId> = self
            .builder
            .unread_after(self.block_input)
            .into_iter()
            .filter(|&node| self.builder.shape(node).positions() == row.shape.positions())
            .collect();
        let channels = parts.iter().map(|&part| self.builder.shape(part).channels);
        let channels = channels.fold(0, u32::saturating_add);
        let missing = row.shape.channels.checked_sub(channels);
        match missing {
            Some(0) => {}
            Some(missing) => {
                let input = self.block_input;
                if self.builder.shape(input).channels == missing {
                    let pooled = row.shape.with_channels(missing);
                    parts.push(self.builder.push(Op::MaxPool, &[input], pooled));
                } else {
                    let detail = format!("{} of {} channels are unexplained", missing, row.kind);
                    self.builder.flag(FlagKind::SummaryMismatch, detail);
                }
            }
            None => {
                let detail = format!("the branches of {} have too many channels", row.kind);
                self.builder.flag(FlagKind::SummaryMismatch, detail);
            }
        }
        self.last = self.builder.push(Op::Concat, &parts, row.shape);
        self.block_input = self.last;
    }

    fn unknown(&mut self, row: &Row<'_>) {
        self.builder.flag(FlagKind::UnknownOperation, format!("{} is not known", row.kind));
        self.push(Op::Unknown { parameters: row.parameters }, row.shape);
    }
}

struct FoundConv {
    source: NodeId,
    conv: Conv,
}
