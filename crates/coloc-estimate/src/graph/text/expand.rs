//! Definitions and repetitions.

use super::{Line, TextError};
use rustc_hash::FxHashMap;

/// Nested calls; deeper means that a block calls itself.
const DEEPEST: usize = 16;
/// Lines of a graph when repetitions and blocks are written out; more is surely a mistake.
pub(super) const MOST_LINES: usize = 200_000;
/// Bytes in all of their words.
pub(super) const MOST_TEXT: usize = 16 << 20;

/// A line or a run of lines.
#[derive(Debug)]
pub(super) enum Item<'a> {
    Line(&'a Line<'a>),
    Repeat(u32, Vec<Item<'a>>),
}

/// A named run with parameters.
#[derive(Debug)]
pub(super) struct Block<'a> {
    pub(super) parameters: Vec<&'a str>,
    pub(super) items: Vec<Item<'a>>,
}

/// A whole text, with its blocks set aside.
#[derive(Debug)]
pub(super) struct Program<'a> {
    pub(super) blocks: FxHashMap<&'a str, Block<'a>>,
    pub(super) items: Vec<Item<'a>>,
}

impl<'a> Program<'a> {
    pub(super) fn read(lines: &'a [Line<'a>]) -> Result<Self, TextError> {
        let mut blocks = FxHashMap::default();
        let mut rest = lines;
        let mut items = Vec::new();
        while let Some((line, after)) = rest.split_first() {
            rest = after;
            if line.words[0].text == "def" {
                let (name, block) = read_block(line, &mut rest)?;
                if blocks.insert(name, block).is_some() {
                    return Err(line.error(1, format!("{name:?} is defined twice")));
                }
            } else {
                items.push(read_item(line, &mut rest, 0)?);
            }
        }
        Ok(Program { blocks, items })
    }
}

fn read_block<'a>(
    line: &'a Line<'a>,
    rest: &mut &'a [Line<'a>],
) -> Result<(&'a str, Block<'a>), TextError> {
    let Some(name) = line.words.get(1) else {
        return Err(line.error(0, "a definition needs a name: def NAME parameter…"));
    };
    let parameters = line.words[2..].iter().map(|word| word.text).collect();
    Ok((name.text, Block { parameters, items: read_until_end(line, rest, 0)? }))
}

fn read_item<'a>(
    line: &'a Line<'a>,
    rest: &mut &'a [Line<'a>],
    depth: usize,
) -> Result<Item<'a>, TextError> {
    match line.words[0].text {
        "def" => Err(line.error(0, "definitions cannot be nested; close the one before with end")),
        "end" => Err(line.error(0, "this end closes nothing")),
        "repeat" => {
            let times = line.words.get(1).and_then(|word| word.text.parse().ok());
            let times = times.filter(|times| (1..=10_000).contains(times)).ok_or_else(|| {
                line.error(1, "repeat needs a number from 1 to 10000: repeat TIMES")
            })?;
            nothing_behind(line, 2)?;
            let items = read_until_end(line, rest, depth)?;
            if items.is_empty() {
                return Err(line.error(0, "there is nothing between this repeat and its end"));
            }
            Ok(Item::Repeat(times, items))
        }
        _ => Ok(Item::Line(line)),
    }
}

fn read_until_end<'a>(
    opening: &'a Line<'a>,
    rest: &mut &'a [Line<'a>],
    depth: usize,
) -> Result<Vec<Item<'a>>, TextError> {
    if depth > DEEPEST {
        return Err(opening.error(0, "repetitions are nested too deeply"));
    }
    let mut items = Vec::new();
    while let Some((line, after)) = rest.split_first() {
        *rest = after;
        if line.words[0].text == "end" {
            nothing_behind(line, 1)?;
            return Ok(items);
        }
        items.push(read_item(line, rest, depth + 1)?);
    }
    Err(opening.error(0, "this is never closed; add a line with end"))
}

fn nothing_behind(line: &Line<'_>, word: usize) -> Result<(), TextError> {
    match line.words.get(word) {
        Some(more) => Err(line.error(word, format!("{:?} means nothing here", more.text))),
        None => Ok(()),
    }
}

/// Whether a block may be entered from this depth.
pub(super) fn too_deep(depth: usize) -> bool {
    depth > DEEPEST
}
