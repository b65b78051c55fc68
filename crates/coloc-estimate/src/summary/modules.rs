//! A printed module tree, as Hugging Face models show themselves.

use super::{SummaryError, SummaryOptions, number};
use crate::graph::{Activation, FlagKind, Graph, GraphBuilder, Loss, Op, Shape};
use crate::hf;

/// As many as a config may say.
const MOST_LAYERS: u32 = 10_000;

/// One line `(name): Kind(arguments), 1,024 params`.
struct Module<'a> {
    name: &'a str,
    kind: &'a str,
    arguments: &'a str,
    parameters: u64,
}

pub(super) fn parse(
    text: &str,
    options: &SummaryOptions,
) -> Result<(Graph, Option<u32>), SummaryError> {
    let mut modules = Vec::new();
    let mut open = 0i64;
    for (index, line) in text.lines().enumerate() {
        open += line.matches('(').count() as i64 - line.matches(')').count() as i64;
        if let Some(module) = read_line(line) {
            modules.push(
                module
                    .map_err(|(column, problem)| SummaryError::new(index + 1, column, problem))?,
            );
        }
    }
    if open > 0 {
        let line = text.lines().count().max(1);
        let problem = "the tree ends with open brackets; is the file cut off?";
        return Err(SummaryError::new(line, 1, problem));
    }
    let layers = |kind: &str| modules.iter().filter(|module| module.kind == kind).count() as u32;
    let families = ["BertLayer", "GPT2Block", "XLNetLayer"].map(layers);
    if families.iter().any(|layers| *layers > MOST_LAYERS) {
        let problem = format!("the tree has more layers than any model has ({MOST_LAYERS})");
        return Err(SummaryError::new(1, 1, problem));
    }
    let width = modules
        .iter()
        .find(|module| module.kind == "Embedding")
        .and_then(|module| module.arguments.split(',').nth(1)?.trim().parse().ok())
        .filter(|width| (1..=1 << 16).contains(width));
    let graph = match (width, families) {
        (Some(width), [layers @ 1..=MOST_LAYERS, _, _]) => {
            hf::bert_like(width, layers, options.tokens, vocabulary(&modules))
        }
        (Some(width), [_, layers @ 1..=MOST_LAYERS, _]) => {
            hf::gpt2_like(width, layers, options.tokens, vocabulary(&modules))
        }
        (Some(width), [_, _, layers @ 1..=MOST_LAYERS]) => hf::xlnet(width, layers),
        _ => chain(&modules, options)?,
    };
    Ok((graph, None))
}

fn vocabulary(modules: &[Module<'_>]) -> u32 {
    modules
        .iter()
        .find(|module| module.kind == "Embedding")
        .and_then(|module| module.arguments.split(',').next()?.trim().parse().ok())
        .filter(|rows| (1..=1 << 24).contains(rows))
        .unwrap_or(32_000)
}

/// A net of no known family, read in the order in which it is printed.
fn chain(modules: &[Module<'_>], options: &SummaryOptions) -> Result<Graph, SummaryError> {
    let mut builder = GraphBuilder::tokens(options.tokens);
    let mut last = builder.input();
    builder.flag(FlagKind::SummaryMismatch, "a module tree of no known family is read as a chain");
    for module in modules {
        last = match module.kind {
            "Embedding" => {
                let mut sizes = module.arguments.split(',').map(|part| part.trim().parse::<u32>());
                let (Some(Ok(rows)), Some(Ok(width))) = (sizes.next(), sizes.next()) else {
                    continue;
                };
                if builder.shape(last).channels != 1 {
                    let elements = u64::from(rows) * u64::from(width);
                    builder.same(Op::AddTable { elements }, last)
                } else {
                    let shape = Shape::sequence(options.tokens, width.clamp(1, 1 << 20));
                    builder.push(Op::Embedding { rows: rows.clamp(1, 1 << 24) }, &[last], shape)
                }
            }
            "Linear" => match module.argument("out_features") {
                Some(output) => {
                    builder.linear(last, output, module.arguments.contains("bias=True"))
                }
                None => continue,
            },
            "LayerNorm" => builder.same(Op::LayerNorm { bias: true }, last),
            "Dropout" => builder.same(Op::Dropout { in_place: false }, last),
            kind => match Activation::from_name(kind) {
                Some(function) => builder.activate(last, function),
                None if module.parameters > 0 && module.arguments.is_empty() && module.leaf() => {
                    builder.flag(FlagKind::UnknownOperation, format!("{kind} is not known"));
                    builder.same(Op::Unknown { parameters: module.parameters }, last)
                }
                None => last,
            },
        };
    }
    if builder.len() == 1 {
        return Err(SummaryError::new(1, 1, "no layer of this tree is known"));
    }
    Ok(builder.finish(Loss::CrossEntropy))
}

impl Module<'_> {
    fn argument(&self, name: &str) -> Option<u32> {
        let value = self
            .arguments
            .split(',')
            .find_map(|part| part.trim().strip_prefix(name)?.strip_prefix('=')?.parse().ok());
        value.filter(|value| (1..=1 << 24).contains(value))
    }

    /// Prints its parameters on its own line, so it has no children.
    fn leaf(&self) -> bool {
        !self.name.is_empty()
    }
}

/// A line that opens a container has no parameters yet; one that closes it has no name.
fn read_line(line: &str) -> Option<Result<Module<'_>, (usize, String)>> {
    let trimmed = line.trim_start();
    let rest = trimmed.strip_prefix('(')?;
    let (name, rest) = rest.split_once("): ")?;
    let (kind, after) = rest.split_once('(')?;
    if after.trim().is_empty() {
        return Some(Ok(Module { name: "", kind, arguments: "", parameters: 0 }));
    }
    let column = line.chars().count() - after.chars().count() + 1;
    let Some((arguments, tail)) = after.rsplit_once(')') else {
        return Some(Err((column, format!("the arguments of {kind} are never closed"))));
    };
    let counted = tail.trim_start_matches(',').trim().strip_suffix("params");
    let parameters = counted.map_or(Some(0), |count| number(count.trim()));
    Some(match parameters {
        Some(parameters) => Ok(Module { name, kind, arguments, parameters }),
        None => Err((column, format!("expected a number of params after {kind}"))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Attention;

    fn tree(width: u32, layer: &str, layers: usize) -> String {
        let layers = format!("(0): {layer}(\n)\n").repeat(layers);
        format!("Net(\n(words): Embedding(10, {width})\n{layers})\n")
    }

    #[test]
    fn more_layers_than_any_model_has_are_refused() {
        let error = parse(&tree(64, "BertLayer", 10_001), &SummaryOptions::default()).unwrap_err();
        assert!(error.problem.contains("more layers"), "{error}");
    }

    /// Narrower than the usual head, a model still has one.
    #[test]
    fn a_narrow_model_has_a_head() {
        for layer in ["BertLayer", "GPT2Block", "XLNetLayer"] {
            let (graph, _) = parse(&tree(32, layer, 1), &SummaryOptions::default()).unwrap();
            let heads = graph.nodes().iter().find_map(|node| match node.op {
                Op::Attention(Attention { heads, .. }) => Some(heads),
                _ => None,
            });
            assert_eq!(heads, Some(1), "{layer}");
        }
    }
}
