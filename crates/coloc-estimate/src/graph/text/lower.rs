//! Lines become nodes.

use super::expand::{Item, Program, too_deep};
use super::{Line, TextError, words};
use crate::graph::{Graph, GraphBuilder, Loss, MOST_NODES, MOST_NUMBERS, NodeId, Shape};
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

pub(super) struct Lowering<'a> {
    program: &'a Program<'a>,
    pub(super) builder: GraphBuilder,
    pub(super) loss: Loss,
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
}

impl Call<'_> {
    /// An error at the word that stands so many words behind the operation.
    pub(super) fn error(&self, behind: usize, problem: impl Into<String>) -> TextError {
        self.line.error(self.place + behind, problem)
    }

    pub(super) fn has(&self, word: &str) -> bool {
        self.arguments.iter().any(|argument| argument == word)
    }

    pub(super) fn number(&self, index: usize) -> Result<u32, TextError> {
        let number = self.arguments.get(index).and_then(|text| text.parse().ok());
        let small = |number: &u32| (1..=1 << 24).contains(number);
        number.filter(small).ok_or_else(|| {
            self.line.error(self.place + 1 + index, "expected a number, such as conv 64 k3")
        })
    }

    pub(super) fn loss(&self) -> Result<Loss, TextError> {
        match self.arguments.first().map(String::as_str) {
            Some("cross-entropy") => Ok(Loss::CrossEntropy),
            Some("causal") => Ok(Loss::CausalLanguage),
            Some("elementwise") => Ok(Loss::Elementwise),
            _ => Err(self.line.error(1, "known losses are cross-entropy, causal, elementwise")),
        }
    }
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

/// `3x224x224` or `784`.
pub(super) fn shape(text: &str) -> Option<Shape> {
    let sides: Vec<u32> = text.split('x').map(|side| side.parse().ok()).collect::<Option<_>>()?;
    let fits = sides.iter().all(|side| (1..=1 << 20).contains(side));
    match sides[..] {
        [features] if fits => Some(Shape::features(features)),
        [channels, height, width] if fits => Some(Shape::image(channels, height, width)),
        _ => None,
    }
}
