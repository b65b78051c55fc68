//! One line, before it is known what it computes.

use super::{Line, TextError};
use crate::graph::{Loss, NodeId, Shape};
use rustc_hash::FxHashMap;

/// What names mean within a block.
pub(super) struct Scope<'a> {
    pub(super) labels: FxHashMap<&'a str, NodeId>,
    pub(super) values: FxHashMap<&'a str, String>,
    pub(super) last: NodeId,
}

impl Scope<'_> {
    pub(super) fn new(input: NodeId) -> Self {
        Scope {
            labels: [("in", input)].into_iter().collect(),
            values: FxHashMap::default(),
            last: input,
        }
    }
}

/// One line, with its parts told apart and parameters filled in.
pub(super) struct Call<'a> {
    pub(super) line: &'a Line<'a>,
    pub(super) label: Option<&'a str>,
    /// Where in the line the operation stands.
    pub(super) place: usize,
    pub(super) operation: String,
    pub(super) arguments: Vec<String>,
    pub(super) inputs: Vec<NodeId>,
}

impl Call<'_> {
    /// An error at the word that stands so many words behind the operation.
    pub(super) fn error(&self, behind: usize, problem: impl Into<String>) -> TextError {
        self.line.error(self.place + behind, problem)
    }

    /// Bytes in its words, parameters filled in.
    pub(super) fn length(&self) -> usize {
        let words = self.line.words.iter().map(|word| word.text.len() + 1);
        words.chain(self.arguments.iter().map(String::len)).sum()
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

/// Tells a line's parts apart.
pub(super) fn read_call<'a>(line: &'a Line<'a>, scope: &Scope<'a>) -> Result<Call<'a>, TextError> {
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

/// `3x224x224`, or features alone.
pub(super) fn shape(text: &str) -> Option<Shape> {
    let sides: Vec<u32> = text.split('x').map(|side| side.parse().ok()).collect::<Option<_>>()?;
    let fits = sides.iter().all(|side| (1..=1 << 20).contains(side));
    match sides[..] {
        [features] if fits => Some(Shape::features(features)),
        [channels, height, width] if fits => Some(Shape::image(channels, height, width)),
        _ => None,
    }
}
