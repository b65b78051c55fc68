//! From the layers of a tree to a graph.

use super::super::convolutions::explain;
use super::super::table::{FOLDED, Row};
use super::Entry;
use crate::graph::{Activation, Conv, FlagKind, Graph, GraphBuilder, Loss, NodeId, Op, Shape};
use rustc_hash::FxHashMap;

/// Lays the layers of a tree one behind the other, each on the nearest result of the shape that it reads.
pub(super) fn build(entries: &[Entry<'_>], input: Shape, batch: u32) -> Graph {
    let mut builder = GraphBuilder::new(input);
    let mut last = builder.input();
    let mut givers = Givers::default();
    for (index, entry) in entries.iter().enumerate() {
        let has_children = entries.get(index + 1).is_some_and(|next| next.depth > entry.depth);
        let Some(output) = &entry.output else { continue };
        if has_children {
            continue;
        }
        if output.len() > 4 {
            builder.flag(FlagKind::Assumption, FOLDED);
        }
        let read = entry.input.as_ref().map_or(builder.shape(last), |sides| shape(sides, batch));
        let source = if builder.shape(last) == read {
            last
        } else {
            // Another branch, or a reshape: the nearest layer that gives this shape.
            let giver = givers.nearest(&builder, read);
            giver.unwrap_or_else(|| builder.push(Op::View, &[last], read))
        };
        last = lower(&mut builder, source, entry, shape(output, batch));
    }
    builder.finish(Loss::CrossEntropy)
}

/// The newest node of each shape.
#[derive(Default)]
struct Givers {
    newest: FxHashMap<Shape, NodeId>,
    /// How many nodes are in it.
    known: u32,
}

impl Givers {
    fn nearest(&mut self, builder: &GraphBuilder, shape: Shape) -> Option<NodeId> {
        for node in (self.known..builder.len() as u32).map(NodeId) {
            self.newest.insert(builder.shape(node), node);
        }
        self.known = builder.len() as u32;
        self.newest.get(&shape).copied()
    }
}

fn lower(builder: &mut GraphBuilder, source: NodeId, entry: &Entry<'_>, output: Shape) -> NodeId {
    let read = builder.shape(source);
    match entry.kind {
        "Conv2d" | "ConvTranspose2d" => match convolution(entry, read, output) {
            Some(conv) => builder.conv(source, conv, output),
            None => unknown(builder, source, entry, output),
        },
        "Linear" => {
            let weights = u64::from(read.channels) * u64::from(output.channels);
            let op =
                Op::Linear { input: read.channels, bias: entry.parameters > weights, tied: false };
            builder.push(op, &[source], output)
        }
        "BatchNorm2d" | "BatchNorm1d" => builder.same(Op::BatchNorm, source),
        "LayerNorm" => builder.same(Op::LayerNorm { bias: true }, source),
        "Dropout" => builder.same(Op::Dropout { in_place: false }, source),
        "MaxPool2d" => builder.push(Op::MaxPool, &[source], output),
        "AvgPool2d" | "AdaptiveAvgPool2d" => builder.push(Op::AvgPool, &[source], output),
        "Identity" | "Flatten" => source,
        kind => match Activation::from_name(kind) {
            Some(function) => {
                let in_place = function == Activation::ReLU;
                builder.same(Op::Activate { function, in_place }, source)
            }
            None => hidden(builder, source, entry, output),
        },
    }
}

/// A convolution by its kernel, else by its parameters.
fn convolution(entry: &Entry<'_>, read: Shape, output: Shape) -> Option<Conv> {
    let transposed = entry.kind == "ConvTranspose2d";
    let Some(kernel) = entry.kernel else {
        let row = Row { shape: output, ..Row::new(entry.kind, &[], entry.parameters) };
        let squares = [1, 2, 3, 4, 5, 7, 9, 11].map(|side| side * side);
        return explain(&row, read, &squares).filter(|_| !transposed);
    };
    let written = u64::from(output.channels);
    // Kernels and channels of absurd sizes have more weights than can be counted.
    let taps = u64::from(kernel.0) * u64::from(kernel.1);
    let full = taps.saturating_mul(written).saturating_mul(u64::from(read.channels));
    let groups = |weights: u64| {
        let groups = full.checked_div(weights).filter(|groups| groups * weights == full)?;
        u32::try_from(groups).ok().filter(|groups| read.channels.is_multiple_of(*groups))
    };
    let biased = entry.parameters.checked_sub(written).and_then(groups);
    let (groups, bias) = match (groups(entry.parameters), biased) {
        (Some(groups), _) => (groups, false),
        (None, Some(groups)) => (groups, true),
        // Counted elsewhere, or not at all: the count of all parameters tells.
        (None, None) => (1, false),
    };
    let stride = (read.height / output.height.max(1)).max(1);
    Some(Conv { input: read.channels, kernel, stride, groups, bias, transposed })
}

fn unknown(builder: &mut GraphBuilder, source: NodeId, entry: &Entry<'_>, output: Shape) -> NodeId {
    builder.flag(FlagKind::UnknownOperation, format!("{} is not known", entry.kind));
    builder.push(Op::Unknown { parameters: entry.parameters }, &[source], output)
}

/// One layer of a block whose inside is not shown.
struct Inside {
    channels: u32,
    side: u32,
    depthwise: bool,
}

/// What a container that is printed without its children usually holds.
fn inside(entry: &Entry<'_>, read: Shape, output: Shape) -> Option<Vec<Inside>> {
    let layer = |channels: u32, side| Inside { channels, side, depthwise: false };
    match entry.kind {
        "Bottleneck" => {
            let narrow = (output.channels / 4).max(1);
            Some(vec![layer(narrow, 1), layer(narrow, 3), layer(output.channels, 1)])
        }
        "InvertedResidual" | "MBConv" => {
            let wide = read.channels.saturating_mul(6);
            let each = Inside { channels: wide, side: 3, depthwise: true };
            Some(vec![layer(wide, 1), each, layer(output.channels, 1)])
        }
        kind if entry.parameters > 0 && (kind.contains("Block") || kind == "Sequential") => {
            let squared = u64::from(output.channels) * u64::from(output.channels) * 9;
            let layers = (entry.parameters / squared.max(1)).clamp(2, 8);
            Some((0..layers).map(|_| layer(output.channels, 3)).collect())
        }
        _ => None,
    }
}

/// Whether a container is printed without its children.
pub(super) fn is_hidden(entry: &Entry<'_>) -> bool {
    let any = Shape::features(1);
    inside(entry, any, any).is_some()
}

/// A container whose inside is below the printed depth, or a layer that is not known.
fn hidden(builder: &mut GraphBuilder, source: NodeId, entry: &Entry<'_>, output: Shape) -> NodeId {
    let read = builder.shape(source);
    let Some(layers) = inside(entry, read, output) else {
        return unknown(builder, source, entry, output);
    };
    let detail = format!("the inside of {} is not shown", entry.kind);
    builder.flag(FlagKind::HiddenLayers, detail);
    let mut last = source;
    // The first layer that looks around may step over positions.
    let strides = layers.iter().position(|layer| layer.side > 1).unwrap_or(0);
    for (index, layer) in layers.iter().enumerate() {
        let shape = if index < strides { read } else { output };
        let input = builder.shape(last).channels;
        let stride = if index == strides { (read.height / output.height.max(1)).max(1) } else { 1 };
        let groups = if layer.depthwise { input } else { 1 };
        let kernel = (layer.side, layer.side);
        let conv = Conv { input, kernel, stride, groups, bias: false, transposed: false };
        last = builder.conv(last, conv, shape.with_channels(layer.channels));
        last = builder.same(Op::BatchNorm, last);
        last = builder.same(Op::Activate { function: Activation::ReLU, in_place: true }, last);
    }
    last
}

/// Without the batch; shapes of other leading sizes (regions, boxes) count by their share of it, and sides
/// beyond three as rows.
pub(super) fn shape(sides: &[u32], batch: u32) -> Shape {
    let lead = sides.first().copied().unwrap_or(1).max(1);
    let side = |index: usize| sides.get(index).copied().unwrap_or(1).max(1);
    let times = lead.div_ceil(batch.max(1)).max(1);
    match sides.len() {
        0 | 1 => Shape::features(times),
        2 => Shape::image(side(1), times, 1),
        3 if lead == batch => Shape::sequence(side(1), side(2)),
        3 => Shape::image(side(0), side(1), side(2)),
        count => {
            let rows = (2..count - 1).map(side).fold(times, u32::saturating_mul);
            Shape::image(side(1), rows, side(count - 1))
        }
    }
}
