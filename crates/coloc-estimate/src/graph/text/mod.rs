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

mod call;
mod expand;
mod lower;
mod operations;
mod words;

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
    // Editors of some systems begin a text with a mark of its byte order.
    let lines = lines(text.strip_prefix('\u{feff}').unwrap_or(text));
    let program = expand::Program::read(&lines)?;
    lower::lower(&program)
}

fn lines(text: &str) -> Vec<Line<'_>> {
    text.lines()
        .enumerate()
        .map(|(index, full)| {
            let line = full.split('#').next().unwrap_or_default();
            Line { number: index + 1, words: words(line) }
        })
        .filter(|line: &Line<'_>| !line.words.is_empty())
        .collect()
}

/// Columns are counted along the way: from the start for each word takes forever in a long line.
fn words(line: &str) -> Vec<Word<'_>> {
    let mut found = Vec::new();
    let mut start = None;
    let end = [(line.len(), ' ')];
    for (column, (at, character)) in (1..).zip(line.char_indices().chain(end)) {
        match (character.is_whitespace(), start) {
            (false, None) => start = Some((at, column)),
            (true, Some((from, column))) => {
                found.push(Word { text: &line[from..at], column });
                start = None;
            }
            _ => {}
        }
    }
    found
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
            ("input 3x8x8\nrepeat 9\nend\n", 2, 1),
            ("input 3x8x8\nconv 4 k9\n", 2, 1),
            ("\u{feff}input 3x8x8\nfly 3\n", 2, 1),
        ];
        for (text, line, column) in cases {
            let error = parse(text).unwrap_err();
            assert_eq!((error.line, error.column), (line, column), "{text:?}: {error}");
        }
    }

    #[test]
    fn words_that_nobody_reads_are_refused() {
        let cases = [
            ("conv 256 k3 p1 groups32", 16, "groups32"),
            ("conv 256 blah", 10, "blah"),
            ("conv 256 K3", 10, "K3"),
            ("conv 256 k3 k5", 13, "twice"),
            ("conv 256 k3 p99999", 13, "p99999"),
            ("conv 64 s0", 9, "s0"),
            ("conv 64 k0", 9, "k0"),
            ("conv 64 s1x2", 9, "one number"),
            ("conv 64 g5", 1, "5 groups"),
            ("conv 64 k3x", 9, "k3x"),
            ("conv! 64 k3", 1, "in place"),
            ("relu blah", 6, "blah"),
            ("relu!!", 1, "unknown"),
            ("relu < in in", 1, "one result"),
            ("relu <", 6, "follow <"),
            ("bn 64", 4, "64"),
            ("linear 10 20", 11, "20"),
            ("maxpool 2", 9, "\"2\""),
            ("maxpool k2 p2", 1, "half"),
            ("upsample 16777216", 1, "8x134217728x134217728"),
            ("loss causal now", 13, "now"),
            ("attention 2", 1, "multiple of 3"),
            ("attention 3 < in in in", 11, "3 heads do not divide a width of 8"),
        ];
        for (line, column, said) in cases {
            let error = parse(&format!("input 8x8x8\n{line}\n")).unwrap_err();
            assert_eq!((error.line, error.column), (2, column), "{line:?}: {error}");
            assert!(error.problem.contains(said), "{line:?}: {error}");
        }
        for text in [
            "input 3x8x8 blah\nbn\n",
            "input 8\nrepeat 2 x\nbn\nend\n",
            "input 8\ndef a\nend\ndef a\nend\n",
        ] {
            parse(text).unwrap_err();
        }
    }

    /// Neither lines without a result nor results that are read many times get around the limit.
    #[test]
    fn what_is_larger_than_any_net_is_refused_at_once() {
        let start = std::time::Instant::now();
        let nested = |line: &str| {
            let (open, close) = ("repeat 10000\n".repeat(4), "end\n".repeat(4));
            parse(&format!("input 8\n{open}{line}\n{close}")).unwrap_err()
        };
        let wide = format!("concat <{}", " in".repeat(1000));
        let long = format!("flag {}", "x".repeat(10_000));
        for line in ["bn", "loss causal", "flag words", &wide, &long] {
            let error = nested(line);
            assert_eq!(error.line, 6, "{error}");
            assert!(error.problem.contains("larger than any net"), "{error}");
        }
        let mut calls = "input 8\ndef a0\nend\n".to_owned();
        for depth in 1..16 {
            let call = format!("a{}\n", depth - 1).repeat(10);
            calls += &format!("def a{depth}\n{call}end\n");
        }
        assert!(parse(&(calls + "a15\n")).unwrap_err().problem.contains("larger than any net"));
        parse(&format!("input 8\nflag {}\n", "x ".repeat(500_000))).unwrap();
        // Without limits, or with columns counted anew for each word, this takes minutes.
        assert!(start.elapsed() < std::time::Duration::from_secs(60));
    }

    #[test]
    fn attention_reads_keys_that_fit_its_heads() {
        let with = |key: u32, value: &str| {
            parse(&format!(
                "tokens 6\nembedding 9 16\nq = linear 16\nk = linear {key}\nv = linear {key}\n\
                 o = select 16x2x1 < q\nattention 4 < q k {value}\n"
            ))
        };
        assert!(
            with(16, "v").is_ok() && with(8, "v").is_ok(),
            "two query heads may share a key head"
        );
        assert!(with(6, "v").unwrap_err().problem.contains("heads of 4"));
        assert!(with(16, "o").unwrap_err().problem.contains("different positions"));
        let cross = "tokens 6\nembedding 9 16\no = select 16x2x1\nattention 4 < o in in\n";
        let short = "tokens 6\ne = embedding 9 16\no = select 16x2x1\nattention 4 < o e e\n";
        assert!(parse(cross).is_err(), "tokens are no keys");
        let graph = parse(short).unwrap();
        assert!(matches!(graph.output().op, Op::Attention(attention) if attention.keys == 6));
    }

    #[test]
    fn a_byte_order_mark_is_no_word_and_shapes_read_as_they_are_written() {
        assert!(parse("\u{feff}input 3x8x8\r\nconv 4 k3\r\n").is_ok());
        let error = parse("input 8x8x8\na = conv 4 k3\nadd < a in\n").unwrap_err();
        assert!(error.problem.starts_with("4x6x6 and 8x8x8 do not fit"), "{error}");
    }
}
