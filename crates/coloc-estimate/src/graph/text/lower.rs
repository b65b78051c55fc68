//! Lines become nodes.

use super::call::{Call, Scope, read_call, shape, shape_of_words};
use super::expand::{Item, MOST_LINES, MOST_TEXT, Program, too_deep};
use super::{Line, TextError, words};
use crate::graph::{
    Activation, Attention, Conv, FlagKind, Graph, GraphBuilder, Loss, MOST_NUMBERS, NodeId, Op,
    Shape,
};

/// Builds the graph of a program.
pub(super) fn lower(program: &Program<'_>) -> Result<Graph, TextError> {
    let nothing = TextError {
        line: 1,
        column: 1,
        problem: "a graph begins with its input: input 3x224x224, input 784 or tokens 512".into(),
    };
    let Some((Item::Line(first), rest)) = program.items.split_first() else {
        return Err(nothing);
    };
    if let (Some(more), "input" | "tokens") = (first.words.get(2), first.words[0].text) {
        return Err(first.error(2, format!("{:?} means nothing here; one size follows", more.text)));
    }
    let builder = match (first.words[0].text, first.words.get(1)) {
        ("input", Some(word)) => {
            let shape = shape(word.text).ok_or_else(|| {
                first.error(1, "expected channels x height x width or features, such as 3x224x224")
            })?;
            GraphBuilder::new(shape)
        }
        ("tokens", Some(word)) => {
            let tokens = word.text.parse().ok().filter(|tokens| (1..=1 << 20).contains(tokens));
            let wanted = || first.error(1, "expected a length from 1 to 1048576");
            GraphBuilder::tokens(tokens.ok_or_else(wanted)?)
        }
        _ => return Err(first.error(0, nothing.problem)),
    };
    let mut lowering = Lowering { program, builder, loss: Loss::CrossEntropy, lines: 0, text: 0 };
    let mut scope = Scope::new(lowering.builder.input());
    lowering.items(rest, &mut scope, 0)?;
    Ok(lowering.builder.finish(lowering.loss))
}

struct Lowering<'a> {
    program: &'a Program<'a>,
    builder: GraphBuilder,
    loss: Loss,
    /// Lines gone through, repetitions and blocks included.
    lines: usize,
    /// Bytes in their words.
    text: usize,
}

impl<'a> Lowering<'a> {
    fn items(
        &mut self,
        items: &'a [Item<'a>],
        scope: &mut Scope<'a>,
        depth: usize,
    ) -> Result<(), TextError> {
        for item in items {
            match item {
                Item::Line(line) => self.line(line, scope, depth)?,
                Item::Repeat(times, items) => {
                    for _ in 0..*times {
                        self.items(items, scope, depth)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn line(
        &mut self,
        line: &'a Line<'a>,
        scope: &mut Scope<'a>,
        depth: usize,
    ) -> Result<(), TextError> {
        let call = read_call(line, scope)?;
        // Not every line makes a node, a node may read many, and a parameter may be long.
        self.lines += 1;
        self.text += call.length();
        if self.lines > MOST_LINES || self.text > MOST_TEXT {
            return Err(line.error(0, "the graph is larger than any net; check the repeats"));
        }
        let program = self.program;
        let result = if let Some(block) = program.blocks.get(call.operation.as_str()) {
            if too_deep(depth) {
                return Err(line.error(call.place, "this block ends up calling itself"));
            }
            if call.arguments.len() != block.parameters.len() {
                let wanted = block.parameters.join(" ");
                return Err(line.error(call.place, format!("this block takes: {wanted}")));
            }
            if call.inputs.len() != 1 {
                return Err(call.error(0, "a block reads one result; name one label after <"));
            }
            let mut inner = Scope::new(call.inputs[0]);
            inner.values = block.parameters.iter().copied().zip(call.arguments).collect();
            self.items(&block.items, &mut inner, depth + 1)?;
            inner.last
        } else {
            words::check(&call)?;
            self.operation(&call)?
        };
        let shape = self.builder.shape(result);
        let sides = [shape.channels, shape.height, shape.width].map(f64::from);
        if sides.iter().product::<f64>() > MOST_NUMBERS {
            let problem = format!("a sample of {shape} is more than any device holds");
            return Err(line.error(call.place, problem));
        }
        scope.last = result;
        if let Some(label) = call.label {
            scope.labels.insert(label, result);
        }
        Ok(())
    }

    fn operation(&mut self, call: &Call<'_>) -> Result<NodeId, TextError> {
        let from = call.inputs[0];
        let shape = self.builder.shape(from);
        let in_place = call.operation.ends_with('!');
        let name = call.operation.strip_suffix('!').unwrap_or(&call.operation);
        Ok(match name {
            "loss" => {
                self.loss = call.loss()?;
                from
            }
            "conv" | "deconv" | "dwconv" => self.conv(call, name, shape)?,
            "linear" => {
                let bias = !call.has("nobias");
                let flat = call.has("tied");
                let op = Op::Linear { input: shape.channels, bias: bias && !flat, tied: flat };
                self.builder.push(op, &[from], shape.with_channels(call.number(0)?))
            }
            "bn" => self.builder.same(Op::BatchNorm, from),
            "frozenbn" => self.builder.same(Op::FrozenBatchNorm, from),
            "ln" => self.builder.same(Op::LayerNorm { bias: true }, from),
            "rmsnorm" => self.builder.same(Op::LayerNorm { bias: false }, from),
            "dropout" => self.builder.same(Op::Dropout { in_place }, from),
            "maxpool" => self.pool(call, Op::MaxPool, shape)?,
            "avgpool" => self.pool(call, Op::AvgPool, shape)?,
            "gap" => self.builder.push(Op::GlobalPool, &[from], Shape::features(shape.channels)),
            "adaptive" => {
                let side = call.number(0)?;
                let result = Shape::image(shape.channels, side, side);
                self.builder.push(Op::AvgPool, &[from], result)
            }
            "upsample" => {
                let times = call.number(0)?;
                let larger = Shape::image(
                    shape.channels,
                    shape.height.saturating_mul(times),
                    shape.width.saturating_mul(times),
                );
                self.builder.push(Op::Upsample, &[from], larger)
            }
            "flatten" => {
                let features = u32::try_from(shape.elements())
                    .map_err(|_| call.line.error(call.place, "too many features to flatten"))?;
                self.builder.push(Op::View, &[from], Shape::features(features))
            }
            "copy" => self.builder.same(Op::Copy, from),
            "select" => {
                let result = shape_of_words(call)?;
                self.builder.push(Op::Select, &[from], result)
            }
            "add" => self.join(call, Op::Add { in_place })?,
            "mul" => self.join(call, Op::Multiply)?,
            "concat" => self.concat(call)?,
            "embedding" => {
                let (rows, width) = (call.number(0)?, call.number(1)?);
                let result = shape.with_channels(width);
                self.builder.push(Op::Embedding { rows }, &[from], result)
            }
            "position" => self.builder.same(Op::AddTable { elements: shape.elements() }, from),
            "attention" => {
                let attention = Attention {
                    heads: call.number(0)?,
                    keys: shape.height,
                    eager: call.has("eager"),
                    dropout: !call.has("nodropout"),
                };
                self.builder.attention(&call.inputs, attention, attention_width(call, shape)?)
            }
            "flag" => {
                let kind = call.arguments.first().map(String::as_str);
                let (kind, skip) = match kind {
                    Some("hidden") => (FlagKind::HiddenLayers, 1),
                    Some("mismatch") => (FlagKind::SummaryMismatch, 1),
                    Some("unverified") => (FlagKind::Unverified, 1),
                    _ => (FlagKind::Assumption, 0),
                };
                self.builder.flag(kind, call.arguments[skip..].join(" "));
                from
            }
            name => match Activation::from_name(name).filter(|_| !name.ends_with('!')) {
                Some(function) => self.builder.same(Op::Activate { function, in_place }, from),
                None => return Err(call.line.error(call.place, unknown(name))),
            },
        })
    }

    fn conv(&mut self, call: &Call<'_>, name: &str, shape: Shape) -> Result<NodeId, TextError> {
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
            return Err(call.line.error(call.place, "the kernel is larger than what it reads"));
        };
        let bias = !call.has("nobias");
        let conv = Conv { input: shape.channels, kernel, stride, groups, bias, transposed };
        Ok(self.builder.conv(call.inputs[0], conv, Shape::image(channels, height, width)))
    }

    fn pool(&mut self, call: &Call<'_>, op: Op, shape: Shape) -> Result<NodeId, TextError> {
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
            return Err(call.line.error(call.place, "the window is larger than what it reads"));
        };
        Ok(self.builder.push(op, &call.inputs[..1], Shape::image(shape.channels, height, width)))
    }

    fn join(&mut self, call: &Call<'_>, op: Op) -> Result<NodeId, TextError> {
        let (first, second) = (call.inputs[0], call.inputs[1]);
        let (shape, other) = (self.builder.shape(first), self.builder.shape(second));
        let broadcast = other.channels == shape.channels && other.positions() == 1;
        if shape != other && !broadcast {
            let sizes = format!("{shape} and {other} do not fit together");
            return Err(call.line.error(call.place, sizes));
        }
        Ok(self.builder.push(op, &[first, second], shape))
    }

    fn concat(&mut self, call: &Call<'_>) -> Result<NodeId, TextError> {
        let shape = self.builder.shape(call.inputs[0]);
        let mut channels = 0u32;
        for &input in &call.inputs {
            let part = self.builder.shape(input);
            if (part.height, part.width) != (shape.height, shape.width) {
                return Err(call.line.error(call.place, "the parts have different positions"));
            }
            channels = channels.saturating_add(part.channels);
        }
        Ok(self.builder.push(Op::Concat, &call.inputs, shape.with_channels(channels)))
    }
}

/// The width of what an attention gives; query, key and value stand side by side if it reads one result.
fn attention_width(call: &Call<'_>, shape: Shape) -> Result<u32, TextError> {
    match (call.inputs.len(), shape.channels) {
        (1, width) if width.is_multiple_of(3) => Ok(width / 3),
        (1, width) => {
            let problem = format!("query, key and value do not fit side by side into {width}");
            Err(call.error(0, problem))
        }
        (_, width) => Ok(width),
    }
}

fn unknown(name: &str) -> String {
    format!(
        "unknown operation {name:?}; known are conv, dwconv, deconv, linear, bn, ln, rmsnorm, maxpool, \
         avgpool, adaptive, gap, flatten, upsample, dropout, add, mul, concat, embedding, position, \
         attention, select, loss, the activation functions and the blocks that this file defines"
    )
}
