//! What a graph looks like to the learned parts: sums over its operations and replays of it.

use crate::graph::{Activation, Conv, Graph, Node, Op};
use crate::replay::{ConvCall, CopyRule, NoWorkspace, Pass, Replayed, WorkspaceProvider, replay};
use crate::run::RunConfig;

const MIB: f64 = 1_048_576.0;

/// Winograd's transformed tiles in the backward passes of 3x3 kernels, padded copies elsewhere:
/// the other plan that cuDNN often takes.
struct Tiles;

impl WorkspaceProvider for Tiles {
    fn plans(&self, call: &ConvCall) -> [u64; 2] {
        if call.first || call.conv.depthwise() {
            return [0, 0];
        }
        match call.pass {
            Pass::Forward => [copies(call), 0],
            Pass::BackwardData | Pass::BackwardFilter => [tiles(call), 0],
        }
    }
}

fn copies(call: &ConvCall) -> u64 {
    call.copy_bytes(call.input, 8) + call.copy_bytes(call.output, 8) + call.weight_bytes()
}

fn tiles(call: &ConvCall) -> u64 {
    if call.conv.kernel != (3, 3) || call.conv.stride != 1 {
        return copies(call);
    }
    let side = |length: u32| u64::from(length.div_ceil(4));
    let count = call.batch * side(call.output.height) * side(call.output.width);
    let (read, written) = (u64::from(call.input.channels), u64::from(call.output.channels));
    36 * call.width * (count * (read + written) + read * written)
}

/// Replays of one graph under different ideas of what cuDNN does.
pub(crate) struct Replays {
    /// What the rule says: the estimate itself, or its start.
    pub(crate) rule: Replayed,
    bare: Replayed,
    tiles: Replayed,
    eager: Replayed,
}

impl Replays {
    /// The others beside the rule's.
    pub(crate) fn beside(rule: Replayed, graph: &Graph, run: &RunConfig) -> Self {
        Replays {
            rule,
            bare: replay(graph, run, &NoWorkspace),
            tiles: replay(graph, run, &Tiles),
            eager: replay(graph, run, &CopyRule { eager_output: true }),
        }
    }
}

#[derive(Default)]
struct Sums {
    activations: f64,
    largest_activation: f64,
    parameters: f64,
    largest_parameter: f64,
    multiplications: f64,
    convolutions: f64,
    nodes: f64,
    conv_output: f64,
    conv_channels: f64,
    weighted_channels: f64,
    narrowest: f64,
    widest: f64,
    aligned: f64,
    positions: f64,
    largest_copy: f64,
    largest_tiles: f64,
    last_side: f64,
    normalisations: f64,
    dropouts: f64,
    keeps_input: f64,
    prelu: f64,
    joins: f64,
}

impl Sums {
    fn of(graph: &Graph, batch: u64) -> Self {
        let mut sums = Sums { narrowest: f64::MAX, ..Sums::default() };
        for node in graph.nodes() {
            sums.add(graph, node, batch);
        }
        if sums.convolutions == 0.0 {
            sums.narrowest = 0.0;
        }
        sums
    }

    fn add(&mut self, graph: &Graph, node: &Node, batch: u64) {
        let mib = 4.0 * batch as f64 * node.shape.elements() as f64 / MIB;
        let parameters: u64 = node.op.parameters(node.shape).iter().sum();
        let parameter_mib = 4.0 * parameters as f64 / MIB;
        self.activations += mib;
        self.largest_activation = self.largest_activation.max(mib);
        self.parameters += parameter_mib;
        self.largest_parameter = self.largest_parameter.max(parameter_mib);
        self.multiplications += batch as f64 * node.op.multiplications(node.shape) / 1e9;
        self.nodes += 1.0;
        match node.op {
            Op::Conv(conv) => self.add_conv(graph, node, conv, batch, mib),
            Op::BatchNorm | Op::LayerNorm { .. } => self.normalisations += 1.0,
            Op::Dropout { .. } => self.dropouts += 1.0,
            Op::Activate { function, .. } => {
                self.keeps_input += f64::from(u8::from(!function.keeps_output()));
                self.prelu += f64::from(u8::from(function == Activation::PReLU));
            }
            Op::Add { .. } | Op::Concat => self.joins += 1.0,
            _ => {}
        }
    }

    fn add_conv(&mut self, graph: &Graph, node: &Node, conv: Conv, batch: u64, mib: f64) {
        let channels = f64::from(node.shape.channels);
        self.convolutions += 1.0;
        self.conv_output += mib;
        self.conv_channels += channels;
        self.weighted_channels += channels * mib;
        self.narrowest = self.narrowest.min(channels);
        self.widest = self.widest.max(channels);
        self.aligned += f64::from(u8::from(node.shape.channels.is_multiple_of(4)));
        self.positions += batch as f64 * node.shape.positions() as f64;
        self.last_side = f64::from(node.shape.height);
        let call = ConvCall {
            conv,
            input: graph.input_shape(node),
            output: node.shape,
            batch,
            width: 4,
            first: false,
            pass: Pass::BackwardFilter,
        };
        self.largest_copy = self.largest_copy.max(copies(&call) as f64 / MIB);
        self.largest_tiles = self.largest_tiles.max(tiles(&call) as f64 / MIB);
    }
}

/// Describes a graph by its operations; the order is part of the shipped forests.
pub(crate) fn shape_features(graph: &Graph, run: &RunConfig) -> Vec<f64> {
    let sums = Sums::of(graph, u64::from(run.batch));
    let convolutions = sums.convolutions.max(1.0);
    let described = vec![
        sums.parameters,
        sums.activations,
        sums.largest_activation,
        sums.largest_parameter,
        sums.multiplications,
        sums.multiplications / sums.nodes,
        sums.convolutions,
        sums.nodes,
        sums.conv_output,
        sums.conv_channels / convolutions,
        sums.weighted_channels / sums.conv_output.max(1e-9),
        sums.narrowest,
        sums.widest,
        sums.aligned / convolutions,
        sums.positions / convolutions,
        sums.largest_copy,
        sums.largest_tiles,
        sums.last_side,
        sums.normalisations,
        sums.dropouts,
        sums.keeps_input / sums.nodes,
        sums.prelu,
        sums.joins,
        f64::from(run.batch),
        sums.parameters / sums.activations.max(1e-9),
        graph.nodes()[0].shape.elements() as f64,
    ];
    rounded(described)
}

/// Describes a graph by its operations and by its replays.
pub(crate) fn residual_features(graph: &Graph, run: &RunConfig, replays: &Replays) -> Vec<f64> {
    let rule = replays.rule.reserved.mib().max(1.0);
    let mut described = shape_features(graph, run);
    for other in [&replays.bare, &replays.tiles, &replays.eager] {
        described.push(other.reserved.mib() / rule);
        described.push(other.allocated.mib() / rule);
    }
    described.push(replays.rule.reserved.mib());
    described.push(replays.rule.allocated.mib() / rule);
    described.push(f64::from(u8::from(replays.rule.ran_out)));
    for index in RELATIVE {
        described.push(described[index] / rule);
    }
    rounded(described)
}

/// Shape features that also matter relative to the replay: parameters, activations, the largest of
/// them, the largest workspaces.
const RELATIVE: [usize; 5] = [0, 1, 2, 15, 16];

/// Forests compare in 32 bits.
fn rounded(mut values: Vec<f64>) -> Vec<f64> {
    values.iter_mut().for_each(|value| *value = f64::from(*value as f32));
    values
}
