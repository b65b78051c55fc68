//! Lines become nodes.

use super::expand::{Item, Program, too_deep};
use super::{Line, TextError, words};
use crate::graph::{
    Activation, Attention, Conv, FlagKind, Graph, GraphBuilder, Loss, MOST_NODES, MOST_NUMBERS,
    NodeId, Op, Shape,
};
use rustc_hash::FxHashMap;

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
    let mut lowering = Lowering { program, builder, loss: Loss::CrossEntropy };
    let mut scope = Scope::new(lowering.builder.input());
    lowering.items(rest, &mut scope, 0)?;
    Ok(lowering.builder.finish(lowering.loss))
}

struct Scope<'a> {
    labels: FxHashMap<&'a str, NodeId>,
    values: FxHashMap<&'a str, String>,
    last: NodeId,
}

impl Scope<'_> {
    fn new(input: NodeId) -> Self {
        Scope {
            labels: [("in", input)].into_iter().collect(),
            values: FxHashMap::default(),
            last: input,
        }
    }
}

struct Lowering<'a> {
    program: &'a Program<'a>,
    builder: GraphBuilder,
    loss: Loss,
}

/// One line, with its parts told apart and parameters filled in.
pub(super) struct Call<'a> {
    line: &'a Line<'a>,
    label: Option<&'a str>,
    /// Where in the line the operation stands.
    place: usize,
    pub(super) operation: String,
    pub(super) arguments: Vec<String>,
    pub(super) inputs: Vec<NodeId>,
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
        if self.builder.len() > MOST_NODES {
            return Err(line.error(0, "the graph has more nodes than any net; check the repeats"));
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
                let width =
                    if call.inputs.len() == 1 { shape.channels / 3 } else { shape.channels };
                self.builder.attention(&call.inputs, attention, width)
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

impl Call<'_> {
    /// An error at the word that stands so many words behind the operation.
    pub(super) fn error(&self, behind: usize, problem: impl Into<String>) -> TextError {
        self.line.error(self.place + behind, problem)
    }

    fn has(&self, word: &str) -> bool {
        self.arguments.iter().any(|argument| argument == word)
    }

    fn number(&self, index: usize) -> Result<u32, TextError> {
        let number = self.arguments.get(index).and_then(|text| text.parse().ok());
        let small = |number: &u32| (1..=1 << 24).contains(number);
        number.filter(small).ok_or_else(|| {
            self.line.error(self.place + 1 + index, "expected a number, such as conv 64 k3")
        })
    }

    fn loss(&self) -> Result<Loss, TextError> {
        match self.arguments.first().map(String::as_str) {
            Some("cross-entropy") => Ok(Loss::CrossEntropy),
            Some("causal") => Ok(Loss::CausalLanguage),
            Some("elementwise") => Ok(Loss::Elementwise),
            _ => Err(self.line.error(1, "known losses are cross-entropy, causal, elementwise")),
        }
    }
}

fn unknown(name: &str) -> String {
    format!(
        "unknown operation {name:?}; known are conv, dwconv, deconv, linear, bn, ln, rmsnorm, maxpool, \
         avgpool, adaptive, gap, flatten, upsample, dropout, add, mul, concat, embedding, position, \
         attention, select, loss, the activation functions and the blocks that this file defines"
    )
}

fn read_call<'a>(line: &'a Line<'a>, scope: &Scope<'a>) -> Result<Call<'a>, TextError> {
    let labelled = line.words.len() > 2 && line.words[1].text == "=";
    let place = if labelled { 2 } else { 0 };
    let arrow = line.words.iter().position(|word| word.text == "<").unwrap_or(line.words.len());
    if arrow <= place {
        return Err(line.error(place, "expected an operation before <"));
    }
    let mut filled = Vec::new();
    for (index, word) in line.words[place..arrow].iter().enumerate() {
        filled.push(fill(word.text, scope).ok_or_else(|| {
            line.error(place + index, "unknown parameter; a block's parameters stand in its def")
        })?);
    }
    let mut inputs = Vec::new();
    for (index, word) in line.words.iter().enumerate().skip(arrow + 1) {
        let node = match word.text {
            "last" => scope.last,
            label => *scope.labels.get(label).ok_or_else(|| {
                line.error(index, format!("no line before this one is labelled {label:?}"))
            })?,
        };
        inputs.push(node);
    }
    if inputs.is_empty() {
        if arrow < line.words.len() {
            return Err(line.error(arrow, "labels of earlier lines, last or in follow <"));
        }
        inputs.push(scope.last);
    }
    let operation = filled.remove(0);
    let label = labelled.then(|| line.words[0].text);
    Ok(Call { line, label, place, operation, arguments: filled, inputs })
}

/// Replaces `$name` at the start or after a letter, as in `s$stride`.
fn fill(word: &str, scope: &Scope<'_>) -> Option<String> {
    match word.split_once('$') {
        None => Some(word.to_owned()),
        Some((before, name)) => Some(format!("{before}{}", scope.values.get(name)?)),
    }
}

fn shape_of_words(call: &Call<'_>) -> Result<Shape, TextError> {
    let text = call.arguments.first().map(String::as_str).unwrap_or_default();
    shape(text).ok_or_else(|| call.line.error(call.place + 1, "expected a shape such as 3x224x224"))
}

fn shape(text: &str) -> Option<Shape> {
    let sides: Vec<u32> = text.split('x').map(|side| side.parse().ok()).collect::<Option<_>>()?;
    let fits = sides.iter().all(|side| (1..=1 << 20).contains(side));
    match sides[..] {
        [features] if fits => Some(Shape::features(features)),
        [channels, height, width] if fits => Some(Shape::image(channels, height, width)),
        _ => None,
    }
}
