//! What each operation makes of its line.

use super::TextError;
use super::call::{Call, shape};
use super::lower::Lowering;
use crate::graph::{Activation, Attention, Conv, FlagKind, NodeId, Op, Shape};

impl Lowering<'_> {
    /// The node of a line.
    pub(super) fn operation(&mut self, call: &Call<'_>) -> Result<NodeId, TextError> {
        let name = call.operation.strip_suffix('!').unwrap_or(&call.operation);
        let in_place = name != call.operation;
        match name {
            "conv" | "deconv" | "dwconv" => self.conv(call, name),
            "linear" => self.linear(call),
            "bn" | "frozenbn" | "ln" | "rmsnorm" => Ok(self.normalise(call, name)),
            "maxpool" => self.pool(call, Op::MaxPool),
            "avgpool" => self.pool(call, Op::AvgPool),
            "gap" | "adaptive" | "upsample" => self.resize(call, name),
            "flatten" | "copy" | "select" => self.rearrange(call, name),
            "add" => self.join(call, Op::Add { in_place }),
            "mul" => self.join(call, Op::Multiply),
            "concat" => self.concat(call),
            "embedding" | "position" => self.table(call, name),
            "attention" => self.attention(call),
            "loss" | "flag" => self.remark(call, name),
            "dropout" => Ok(self.builder.same(Op::Dropout { in_place }, call.inputs[0])),
            name => {
                let function = Activation::from_name(name).filter(|_| !name.ends_with('!'));
                let function = function.ok_or_else(|| call.error(0, unknown(name)))?;
                Ok(self.builder.same(Op::Activate { function, in_place }, call.inputs[0]))
            }
        }
    }

    fn linear(&mut self, call: &Call<'_>) -> Result<NodeId, TextError> {
        let from = call.inputs[0];
        let shape = self.builder.shape(from);
        let tied = call.has("tied");
        let bias = !call.has("nobias") && !tied;
        let op = Op::Linear { input: shape.channels, bias, tied };
        Ok(self.builder.push(op, &[from], shape.with_channels(call.number(0)?)))
    }

    fn normalise(&mut self, call: &Call<'_>, name: &str) -> NodeId {
        let op = match name {
            "bn" => Op::BatchNorm,
            "frozenbn" => Op::FrozenBatchNorm,
            name => Op::LayerNorm { bias: name == "ln" },
        };
        self.builder.same(op, call.inputs[0])
    }

    fn conv(&mut self, call: &Call<'_>, name: &str) -> Result<NodeId, TextError> {
        let shape = self.builder.shape(call.inputs[0]);
        let channels = if name == "dwconv" { shape.channels } else { call.number(0)? };
        let kernel = call.pair('k')?.unwrap_or((1, 1));
        let stride = call.option('s')?.unwrap_or(1);
        let pad = call.pair('p')?.unwrap_or((0, 0));
        let groups = if name == "dwconv" { shape.channels } else { call.option('g')?.unwrap_or(1) };
        if !shape.channels.is_multiple_of(groups) || !channels.is_multiple_of(groups) {
            let problem = format!(
                "{groups} groups do not divide {} channels read and {channels} written",
                shape.channels
            );
            return Err(call.error(0, problem));
        }
        let transposed = name == "deconv";
        let side = |length: u32, kernel: u32, pad: u32| {
            let (length, kernel) = (u64::from(length), u64::from(kernel));
            let padded = length + 2 * u64::from(pad);
            let result = match transposed {
                true => ((length - 1) * u64::from(stride) + kernel).checked_sub(2 * u64::from(pad)),
                false => padded.checked_sub(kernel).map(|room| room / u64::from(stride) + 1),
            };
            result.filter(|side| *side > 0).and_then(|side| u32::try_from(side).ok())
        };
        let sides = (side(shape.height, kernel.0, pad.0), side(shape.width, kernel.1, pad.1));
        let (Some(height), Some(width)) = sides else {
            return Err(call.error(0, "the kernel is larger than what it reads"));
        };
        let bias = !call.has("nobias");
        let conv = Conv { input: shape.channels, kernel, stride, groups, bias, transposed };
        Ok(self.builder.conv(call.inputs[0], conv, Shape::image(channels, height, width)))
    }

    fn pool(&mut self, call: &Call<'_>, op: Op) -> Result<NodeId, TextError> {
        let shape = self.builder.shape(call.inputs[0]);
        let kernel = call.option('k')?.unwrap_or(2);
        let stride = call.option('s')?.unwrap_or(kernel);
        let pad = call.option('p')?.unwrap_or(0);
        if pad > kernel / 2 {
            return Err(call.error(0, "padding is at most half of the window"));
        }
        let side = |length: u32| {
            let room = (length.saturating_add(2 * pad)).checked_sub(kernel)?;
            Some(if call.has("ceil") { room.div_ceil(stride) } else { room / stride } + 1)
        };
        let (Some(height), Some(width)) = (side(shape.height), side(shape.width)) else {
            return Err(call.error(0, "the window is larger than what it reads"));
        };
        Ok(self.builder.push(op, &call.inputs[..1], Shape::image(shape.channels, height, width)))
    }

    /// Other positions of the same channels.
    fn resize(&mut self, call: &Call<'_>, name: &str) -> Result<NodeId, TextError> {
        let from = call.inputs[0];
        let Shape { channels, height, width } = self.builder.shape(from);
        let (op, result) = match name {
            "gap" => (Op::GlobalPool, Shape::features(channels)),
            "adaptive" => {
                let side = call.number(0)?;
                (Op::AvgPool, Shape::image(channels, side, side))
            }
            _ => {
                let times = call.number(0)?;
                let sides = [height, width].map(|side| side.saturating_mul(times));
                (Op::Upsample, Shape::image(channels, sides[0], sides[1]))
            }
        };
        Ok(self.builder.push(op, &[from], result))
    }

    /// The same numbers, or some of them, otherwise laid out.
    fn rearrange(&mut self, call: &Call<'_>, name: &str) -> Result<NodeId, TextError> {
        let from = call.inputs[0];
        let (op, result) = match name {
            "flatten" => {
                let features = u32::try_from(self.builder.shape(from).elements())
                    .map_err(|_| call.error(0, "too many features to flatten"))?;
                (Op::View, Shape::features(features))
            }
            "copy" => (Op::Copy, self.builder.shape(from)),
            _ => (Op::Select, shape_of_words(call)?),
        };
        Ok(self.builder.push(op, &[from], result))
    }

    fn join(&mut self, call: &Call<'_>, op: Op) -> Result<NodeId, TextError> {
        let (first, second) = (call.inputs[0], call.inputs[1]);
        let (shape, other) = (self.builder.shape(first), self.builder.shape(second));
        let broadcast = other.channels == shape.channels && other.positions() == 1;
        if shape != other && !broadcast {
            let sizes = format!("{shape} and {other} do not fit together");
            return Err(call.error(0, sizes));
        }
        Ok(self.builder.push(op, &[first, second], shape))
    }

    fn concat(&mut self, call: &Call<'_>) -> Result<NodeId, TextError> {
        let shape = self.builder.shape(call.inputs[0]);
        let mut channels = 0u32;
        for &input in &call.inputs {
            let part = self.builder.shape(input);
            if (part.height, part.width) != (shape.height, shape.width) {
                return Err(call.error(0, "the parts have different positions"));
            }
            channels = channels.saturating_add(part.channels);
        }
        Ok(self.builder.push(Op::Concat, &call.inputs, shape.with_channels(channels)))
    }

    fn table(&mut self, call: &Call<'_>, name: &str) -> Result<NodeId, TextError> {
        let from = call.inputs[0];
        let shape = self.builder.shape(from);
        if name == "position" {
            return Ok(self.builder.same(Op::AddTable { elements: shape.elements() }, from));
        }
        let (rows, width) = (call.number(0)?, call.number(1)?);
        Ok(self.builder.push(Op::Embedding { rows }, &[from], shape.with_channels(width)))
    }

    fn attention(&mut self, call: &Call<'_>) -> Result<NodeId, TextError> {
        let heads = call.number(0)?;
        let shape = self.builder.shape(call.inputs[0]);
        let packed = call.inputs.len() == 1;
        if packed && !shape.channels.is_multiple_of(3) {
            let problem = format!(
                "{} features are not query, key and value of the same width; give a multiple of 3, or < q k v",
                shape.channels
            );
            return Err(call.error(0, problem));
        }
        let width = if packed { shape.channels / 3 } else { shape.channels };
        if !width.is_multiple_of(heads) {
            let problem = format!("{heads} heads do not divide a width of {width}");
            return Err(call.error(1, problem));
        }
        let mut keys = shape.height;
        if let [_, key, value] = call.inputs[..] {
            let (key, value) = (self.builder.shape(key), self.builder.shape(value));
            if !key.channels.is_multiple_of(width / heads) {
                let problem =
                    format!("keys of {} features have no heads of {}", key.channels, width / heads);
                return Err(call.error(0, problem));
            }
            if key.positions() != value.positions() {
                return Err(call.error(0, "key and value have different positions"));
            }
            keys = key.height;
        }
        let (eager, dropout) = (call.has("eager"), !call.has("nodropout"));
        let attention = Attention { heads, keys, eager, dropout };
        Ok(self.builder.attention(&call.inputs, attention, width))
    }

    /// Lines that make no node.
    fn remark(&mut self, call: &Call<'_>, name: &str) -> Result<NodeId, TextError> {
        if name == "loss" {
            self.loss = call.loss()?;
            return Ok(call.inputs[0]);
        }
        let (kind, skip) = match call.arguments.first().map(String::as_str) {
            Some("hidden") => (FlagKind::HiddenLayers, 1),
            Some("mismatch") => (FlagKind::SummaryMismatch, 1),
            Some("unverified") => (FlagKind::Unverified, 1),
            _ => (FlagKind::Assumption, 0),
        };
        self.builder.flag(kind, call.arguments[skip..].join(" "));
        Ok(call.inputs[0])
    }
}

fn unknown(name: &str) -> String {
    format!(
        "unknown operation {name:?}; known are conv, dwconv, deconv, linear, bn, ln, rmsnorm, maxpool, \
         avgpool, adaptive, gap, flatten, upsample, dropout, add, mul, concat, embedding, position, \
         attention, select, loss, the activation functions and the blocks that this file defines"
    )
}

fn shape_of_words(call: &Call<'_>) -> Result<Shape, TextError> {
    let text = call.arguments.first().map(String::as_str).unwrap_or_default();
    shape(text).ok_or_else(|| call.error(1, "expected a shape such as 3x224x224"))
}
