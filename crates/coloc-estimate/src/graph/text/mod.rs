//! A small text format for graphs, with branches.
//!
//! ```text
//! input 3x224x224            # or: tokens 512
//! def block out stride       # a named run of lines with parameters
//!   conv $out k3 s$stride p1 nobias
//!   bn
//!   a = relu!                # ! works in place; a is a label
//!   conv $out k3 p1 nobias
//!   add! < last in           # < names inputs; `in` is the block's input, `last` the line before
//! end
//! block 64 1
//! repeat 3
//!   block 64 1
//! end
//! gap
//! linear 1000
//! ```
//! Each line works on the result of the line before unless `<` says otherwise.

mod expand;
mod lower;

use super::Graph;

/// The text is not a graph.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("line {line}, column {column}: {problem}")]
pub struct TextError {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What is wrong and what would be right.
    pub problem: String,
}

/// A word and where it stands.
#[derive(Clone, Debug)]
struct Word<'a> {
    text: &'a str,
    column: usize,
}

/// A line without its comment.
#[derive(Clone, Debug)]
struct Line<'a> {
    number: usize,
    words: Vec<Word<'a>>,
}

impl Line<'_> {
    fn error(&self, word: usize, problem: impl Into<String>) -> TextError {
        let column = self.words.get(word).or(self.words.last()).map_or(1, |word| word.column);
        TextError { line: self.number, column, problem: problem.into() }
    }
}

/// Reads a graph.
pub fn parse(text: &str) -> Result<Graph, TextError> {
    let lines = lines(text);
    let program = expand::Program::read(&lines)?;
    lower::lower(&program)
}

fn lines(text: &str) -> Vec<Line<'_>> {
    let words = |line: &'_ str| -> Vec<(usize, usize)> {
        let mut found = Vec::new();
        let mut start = None;
        for (at, character) in line.char_indices().chain([(line.len(), ' ')]) {
            match (character.is_whitespace(), start) {
                (false, None) => start = Some(at),
                (true, Some(from)) => {
                    found.push((from, at));
                    start = None;
                }
                _ => {}
            }
        }
        found
    };
    text.lines()
        .enumerate()
        .map(|(index, full)| {
            let line = full.split('#').next().unwrap_or_default();
            let words = words(line)
                .into_iter()
                .map(|(from, to)| Word {
                    text: &line[from..to],
                    column: line[..from].chars().count() + 1,
                })
                .collect();
            Line { number: index + 1, words }
        })
        .filter(|line: &Line<'_>| !line.words.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Op, Shape};

    #[test]
    fn blocks_labels_and_branches_make_a_graph() {
        let graph = parse(
            "input 3x32x32\n\
             def block out stride\n  conv $out k3 s$stride p1 nobias\n  bn\n  relu!\n  m = bn\n  \
             skip = conv $out k1 s$stride < in\n  add! < m skip\nend\n\
             block 16 2 # halves\nrepeat 2\n  block 16 1\nend\ngap\nlinear 10\n",
        )
        .unwrap();
        assert_eq!(graph.output().shape, Shape::features(10));
        let adds = graph.nodes().iter().filter(|node| matches!(node.op, Op::Add { .. })).count();
        assert_eq!(adds, 3);
        let add = graph.nodes().iter().find(|node| matches!(node.op, Op::Add { .. })).unwrap();
        assert_eq!(add.shape, Shape::image(16, 16, 16));
        assert_eq!(graph.inputs(add).len(), 2);
    }

    #[test]
    fn errors_name_line_and_column() {
        let cases = [
            ("", 1, 1),
            ("conv 3 k3\n", 1, 1),
            ("input 3x8x8\nconv x k3\n", 2, 6),
            ("input 3x8x8\nadd < a b\n", 2, 7),
            ("input 3x8x8\nfly 3\n", 2, 1),
            ("input 3x8x8\ndef a x\nbn\n", 2, 1),
            ("input 3x8x8\nend\n", 2, 1),
            ("input 3x8x8\ndef a\na\nend\na\n", 3, 1),
            ("input 3x8x8\nrepeat 99999999\nbn\nend\n", 2, 8),
            ("input 3x8x8\nconv 4 k9\n", 2, 1),
        ];
        for (text, line, column) in cases {
            let error = parse(text).unwrap_err();
            assert_eq!((error.line, error.column), (line, column), "{text:?}: {error}");
        }
    }
}
