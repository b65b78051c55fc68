//! Layer summaries in three dialects, as people print them before training.

mod convolutions;
mod modules;
mod table;
mod torchinfo;
mod vision;
mod wiring;

use crate::graph::{FlagKind, Graph, MOST_NODES};

/// The longest text that is read: a summary of any real net is far shorter.
const LONGEST: usize = 4 << 20;

/// As many layers as a config may say: no model has more.
const MOST_LAYERS: usize = 10_000;

/// What the reader of a summary has to be told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SummaryOptions {
    /// Tokens of a sample, for transformers.
    pub tokens: u32,
}

impl Default for SummaryOptions {
    fn default() -> Self {
        SummaryOptions { tokens: 512 }
    }
}

/// Which dialect a summary is written in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dialect {
    /// The table of torchsummary.
    Torchsummary,
    /// A printed module with parameter counts.
    ModuleTree,
    /// The tree of torchinfo.
    Torchinfo,
}

impl Dialect {
    /// The dialect of a text, by the first line that only one of them has.
    pub fn of(text: &str) -> Option<Self> {
        text.lines().take(200).find_map(|line| {
            let line = line.trim();
            if line.starts_with("Layer (type:depth-idx)") {
                Some(Dialect::Torchinfo)
            } else if line.starts_with("Layer (type)") {
                Some(Dialect::Torchsummary)
            } else if line.starts_with('(') && line.contains("): ") {
                Some(Dialect::ModuleTree)
            } else {
                None
            }
        })
    }
}

/// A summary as a graph.
#[derive(Clone, PartialEq, Debug)]
pub struct Summary {
    /// The dialect that it was written in.
    pub dialect: Dialect,
    /// The computation.
    pub graph: Graph,
    /// The batch that the summary was printed for, if it says.
    pub batch: Option<u32>,
}

/// A summary could not be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("line {line}, column {column}: {problem}")]
pub struct SummaryError {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What is wrong and what would be right.
    pub problem: String,
}

impl SummaryError {
    fn new(line: usize, column: usize, problem: impl Into<String>) -> Self {
        SummaryError { line, column, problem: problem.into() }
    }
}

/// Reads a summary in any of the dialects.
pub fn parse(text: &str, options: &SummaryOptions) -> Result<Summary, SummaryError> {
    // Editors of some systems begin a text with a mark of its byte order.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.len() > LONGEST {
        let problem =
            format!("a summary of {} MiB is not read; is this the right file?", text.len() >> 20);
        return Err(SummaryError::new(1, 1, problem));
    }
    let dialect = Dialect::of(text).ok_or_else(|| {
        SummaryError::new(
            1,
            1,
            "not a summary: expected a torchsummary table, a printed module tree or a torchinfo tree",
        )
    })?;
    let (graph, batch) = match dialect {
        Dialect::Torchsummary => table::parse(text)?,
        Dialect::ModuleTree => modules::parse(text, options)?,
        Dialect::Torchinfo => torchinfo::parse(text)?,
    };
    Ok(Summary { dialect, graph, batch })
}

/// Parameters that no line of a summary shows, as a share of all: vectors that belong to containers.
const UNSEEN_SHARE: f64 = 0.001;

/// Whether a graph has as many parameters as a text counts.
fn counts_agree(built: u64, counted: u64, slack: u64) -> bool {
    let unseen = (counted as f64 * UNSEEN_SHARE) as u64;
    built.abs_diff(counted) <= unseen.saturating_add(slack)
}

/// Flags a graph whose parameters are not those that the text counts. Layers that the text hides were guessed,
/// and are flagged already.
fn check_parameters(graph: &mut Graph, counted: u64) {
    let built = graph.parameters();
    let guessed = graph.flags.iter().any(|flag| flag.kind == FlagKind::HiddenLayers);
    if !guessed && !counts_agree(built, counted, 0) {
        let detail = format!("the model read has {built} parameters, the text says {counted}");
        graph.flag(FlagKind::SummaryMismatch, detail);
    }
}

/// Refuses one layer more than any net has.
fn within_limit(layers: usize, line: usize) -> Result<(), SummaryError> {
    if layers < MOST_NODES {
        return Ok(());
    }
    let problem = format!("more than {MOST_NODES} layers; no net has as many");
    Err(SummaryError::new(line, 1, problem))
}

/// A number with commas as thousands separators.
fn number(text: &str) -> Option<u64> {
    let digits: String = text.chars().filter(|c| *c != ',').collect();
    digits.parse().ok().filter(|number| *number <= 1 << 48)
}

/// `[32, 64, 112, 112]` as numbers; a batch of -1 reads as 0.
fn shape_list(text: &str) -> Option<Vec<u32>> {
    let inside = text.trim().strip_prefix('[')?.strip_suffix(']')?;
    let sides = inside.split(',').map(|side| match side.trim() {
        "-1" => Some(0),
        side => side.parse().ok().filter(|side| *side <= 1 << 24),
    });
    sides.collect()
}
