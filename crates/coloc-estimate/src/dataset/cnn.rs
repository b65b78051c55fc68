//! Rows of the convolutional generator: seven topologies of 3x3 blocks.

use super::config::{Cells, Size};
use super::layers::{self, Layer};
use super::{DEVICE_ROOM, DatasetError, Row, RowOutcome, SAMPLES};
use crate::graph::{Activation, Conv, Graph, GraphBuilder, Loss, NodeId, Op, Shape};
use crate::run::{RunConfig, SummaryPasses};

/// The generator never goes wider.
const WIDEST: f64 = 2048.0;
/// Channels that a dense layer adds.
const GROWTH: u32 = 32;
/// Less was reported only when nothing was measured.
const LEAST_MIB: f64 = 1500.0;

struct Settings<'a> {
    channels: u32,
    classes: u32,
    depth: u32,
    topology: &'a str,
    base: u32,
    size: u32,
    function: Activation,
    dropout: bool,
    normalised: bool,
}

pub(super) fn row(cells: &Cells<'_>) -> Result<Row, DatasetError> {
    let text = cells.text("Activations-Params")?;
    let layers = if text.trim().is_empty() {
        Vec::new()
    } else {
        layers::parse(text).map_err(|problem| cells.problem("Activations-Params", problem))?
    };
    let settings = settings(cells)?;
    let batch = cells.setting_size("batch", Size::Batch)?;
    let graph = match layers.is_empty() {
        true => None,
        false => Some(cells.countable("Filename", graph(&settings, &layers), batch)?),
    };
    let measured_mib = cells.measured_mib("Max GPU Memory (MiB)")?.unwrap_or(0.0);
    let outcome = match cells.text("Status")? {
        _ if graph.is_none() => RowOutcome::Skipped,
        "OOM_CRASH" => RowOutcome::OutOfMemory,
        _ if measured_mib < LEAST_MIB => RowOutcome::Skipped,
        _ => RowOutcome::Trained,
    };
    let total = |column| cells.number::<f64>(column).unwrap_or(0.0);
    Ok(Row {
        line: cells.line,
        group: cells.group,
        graph,
        run: RunConfig {
            last_batch: SAMPLES % batch,
            iterations: 3,
            summary_passes: Some(SummaryPasses { batch: 2, passes: 1 }),
            limit: Some(DEVICE_ROOM),
            ..RunConfig::new(batch)
        },
        measured_mib,
        measured: cells.measured(),
        outcome,
        totals: (total("Total Activations"), total("Total Parameters")),
        activation: cells.text("Activation Function")?.to_owned(),
        layers,
    })
}

fn settings<'a>(cells: &Cells<'a>) -> Result<Settings<'a>, DatasetError> {
    let function = cells.setting("act")?;
    Ok(Settings {
        channels: cells.setting_size("input_channels", Size::Width)?,
        classes: cells.setting_size("num_classes", Size::Width)?,
        depth: cells.setting_size("depth", Size::Layers)?,
        topology: cells.setting("arch")?,
        base: cells.setting_size("base_filters", Size::Width)?,
        size: cells.setting_size("input_size", Size::Length)?,
        function: Activation::from_name(function).ok_or_else(|| {
            cells.problem("Filename", format!("unknown activation function {function:?}"))
        })?,
        dropout: cells.mentions("_dropout:True")?,
        normalised: cells.mentions("batchnorm:True")?,
    })
}

fn graph(settings: &Settings<'_>, layers: &[Layer]) -> Graph {
    let size = settings.size;
    let mut net =
        Net { builder: GraphBuilder::new(Shape::image(settings.channels, size, size)), settings };
    let last = match settings.topology {
        "residual" => net.residual(),
        "dense" => net.dense(layers),
        _ => net.chain(),
    };
    let channels = net.builder.shape(last).channels;
    let pooled = net.builder.push(Op::GlobalPool, &[last], Shape::features(channels));
    let scores = net.builder.linear(pooled, settings.classes, true);
    net.builder.activate(scores, Activation::Softmax);
    net.builder.finish(Loss::CrossEntropy)
}

struct Net<'a> {
    builder: GraphBuilder,
    settings: &'a Settings<'a>,
}

impl Net<'_> {
    fn conv(&mut self, from: NodeId, channels: u32, kernel: u32, stride: u32) -> NodeId {
        let shape = self.builder.shape(from);
        let side = |length: u32| (length.max(1) - 1) / stride + 1;
        let conv = Conv {
            input: shape.channels,
            kernel: (kernel, kernel),
            stride,
            groups: 1,
            bias: true,
            transposed: false,
        };
        let result = Shape::image(channels, side(shape.height), side(shape.width));
        self.builder.conv(from, conv, result)
    }

    fn block(&mut self, from: NodeId, channels: u32, stride: u32) -> NodeId {
        let mut last = self.conv(from, channels, 3, stride);
        if self.settings.normalised {
            last = self.builder.same(Op::BatchNorm, last);
        }
        last = self.builder.activate(last, self.settings.function);
        if self.settings.dropout {
            last = self.builder.same(Op::Dropout { in_place: false }, last);
        }
        last
    }

    fn chain(&mut self) -> NodeId {
        let mut last = self.builder.input();
        for index in 0..self.settings.depth {
            let channels = chain_channels(self.settings, index);
            last = self.block(last, channels, 1);
        }
        last
    }

    fn residual(&mut self) -> NodeId {
        let (depth, base) = (self.settings.depth, self.settings.base);
        let growth = root(WIDEST / f64::from(base), f64::from(depth));
        let mut side = self.settings.size;
        let mut last = self.builder.input();
        for index in 0..depth / 2 {
            let channels = grown(base, growth, index);
            let stride = if index % 2 == 1 && side > 7 { 2 } else { 1 };
            let mut skip = last;
            if self.builder.shape(last).channels != channels || stride != 1 {
                skip = self.conv(last, channels, 1, stride);
                if self.settings.normalised {
                    skip = self.builder.same(Op::BatchNorm, skip);
                }
            }
            let first = self.block(last, channels, stride);
            let second = self.block(first, channels, 1);
            let shape = self.builder.shape(second);
            last = self.builder.push(Op::Add { in_place: false }, &[second, skip], shape);
            if stride == 2 {
                side /= 2;
            }
            if side <= 7 {
                break;
            }
        }
        last
    }

    /// Blocks of four layers that read everything before them. Whether a transition follows a block
    /// is told by the layer list.
    fn dense(&mut self, layers: &[Layer]) -> NodeId {
        let convs: Vec<&Layer> = layers.iter().filter(|layer| layer.kind == "conv2d").collect();
        let blocks = self.settings.depth / 4;
        let mut seen = 0;
        let mut last = self.builder.input();
        for block in 0..blocks {
            let mut features = vec![last];
            for _ in 0..4 {
                let joined = self.concat(&features);
                features.push(self.block(joined, GROWTH, 1));
                seen += 1;
            }
            last = self.concat(&features);
            let shape = self.builder.shape(last);
            let half = shape.channels / 2;
            let weights = u64::from(shape.channels) * u64::from(half) + u64::from(half);
            let expected = u64::from(half) * shape.positions();
            let transition = convs.get(seen).is_some_and(|conv| {
                conv.activations == expected && conv.parameters == weights && block + 1 < blocks
            });
            if transition {
                last = self.transition(last, half);
                seen += 1;
            }
        }
        last
    }

    fn transition(&mut self, from: NodeId, channels: u32) -> NodeId {
        let mut last = self.conv(from, channels, 1, 1);
        if self.settings.normalised {
            last = self.builder.same(Op::BatchNorm, last);
        }
        last = self.builder.activate(last, Activation::ReLU);
        let shape = self.builder.shape(last);
        if shape.height > 1 {
            let pooled = Shape::image(channels, shape.height / 2, shape.width / 2);
            last = self.builder.push(Op::AvgPool, &[last], pooled);
        }
        last
    }

    fn concat(&mut self, parts: &[NodeId]) -> NodeId {
        let shape = self.builder.shape(parts[0]);
        let channels = parts.iter().map(|&part| self.builder.shape(part).channels).sum();
        self.builder.push(Op::Concat, parts, shape.with_channels(channels))
    }
}

fn root(value: f64, degree: f64) -> f64 {
    libm::pow(value, 1.0 / degree)
}

fn grown(base: u32, growth: f64, steps: u32) -> u32 {
    (f64::from(base) * libm::pow(growth, f64::from(steps))).min(WIDEST) as u32
}

/// Width of block `index` in a topology without branches.
fn chain_channels(settings: &Settings<'_>, index: u32) -> u32 {
    let (depth, base) = (settings.depth, settings.base);
    let span = WIDEST / f64::from(base);
    let narrowing = depth / 2;
    let widening = depth - narrowing;
    match settings.topology {
        "pyramid" => grown(base, root(span, f64::from(depth)), index),
        "gradual" => grown(base, root(span, f64::from(2 * depth)), index),
        "bottleneck" if index == 0 => 2 * base,
        "bottleneck" => {
            let growth = if depth <= 2 { 2.0 } else { root(span, f64::from(depth - 1)) };
            grown(base, growth, index - 1)
        }
        "hourglass" if index < narrowing => grown(base, root(span, f64::from(narrowing)), index),
        "hourglass" => grown(base, root(span, f64::from(widening)), depth - index - 1).max(base),
        _ => base,
    }
}
