//! Lines become nodes.

use super::call::{Scope, read_call, shape};
use super::expand::{Item, MOST_LINES, MOST_TEXT, Program, too_deep};
use super::{Line, TextError, words};
use crate::graph::{Graph, GraphBuilder, Loss, MOST_NUMBERS};

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

pub(super) struct Lowering<'a> {
    program: &'a Program<'a>,
    pub(super) builder: GraphBuilder,
    pub(super) loss: Loss,
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
}
