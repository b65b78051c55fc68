//! The tree of torchinfo: depth by indentation, input and output shapes in columns.

mod lower;

use super::convolutions::input_shape;
use super::table::Row;
use super::wiring::Wiring;
use super::{SummaryError, check_parameters, number, shape_list, vision, within_limit};
use crate::graph::{FlagKind, Graph};
use lower::{build, is_hidden, shape};

struct Entry<'a> {
    depth: usize,
    kind: &'a str,
    input: Option<Vec<u32>>,
    output: Option<Vec<u32>>,
    kernel: Option<(u32, u32)>,
    parameters: u64,
}

/// Where the columns stand, in characters.
struct Columns {
    input: Option<usize>,
    output: usize,
    parameters: usize,
    kernel: Option<usize>,
}

/// What a whole text says.
struct Tree<'a> {
    entries: Vec<Entry<'a>>,
    total: u64,
    input_mib: Option<f64>,
    /// The column of input shapes is there.
    has_inputs: bool,
}

pub(super) fn parse(text: &str) -> Result<(Graph, Option<u32>), SummaryError> {
    let tree = read(text)?;
    let batch = tree.entries.iter().find_map(|entry| entry.output.as_ref()?.first().copied());
    let (rows, samples) = (rows(&tree.entries), batch.unwrap_or(1));
    // The last row is the model itself, if it has parameters of its own.
    let whole = tree.entries.first().is_some_and(|entry| entry.depth == 0 && entry.row().is_some());
    let layers = &rows[..rows.len() - usize::from(whole)];
    if let Some(graph) = vision::find(layers, samples, tree.input_mib, tree.total) {
        return Ok((graph, batch.filter(|batch| *batch > 0)));
    }
    if !tree.has_inputs {
        return without_inputs(&tree, &rows, batch);
    }
    let entries = &tree.entries;
    let Some(first) = entries.first().and_then(|entry| entry.input.clone()) else {
        return Err(SummaryError::new(1, 1, "the first layer of the tree has no input shape"));
    };
    let batch = batch_of(entries, &first);
    let samples = batch.unwrap_or(1);
    let mut graph = build(entries, shape(&first, samples), samples);
    check_parameters(&mut graph, tree.total);
    Ok((graph, batch.filter(|batch| *batch > 0)))
}

fn read(text: &str) -> Result<Tree<'_>, SummaryError> {
    let mut columns = None;
    let mut entries: Vec<Entry<'_>> = Vec::new();
    let (mut total, mut input_mib) = (None, None);
    for (index, line) in text.lines().enumerate() {
        if line.starts_with("Layer (type:depth-idx)") {
            let wanted = "the header lacks Output Shape or Param #; print with col_names=[\"input_size\", \
                \"output_size\", \"num_params\", \"kernel_size\"]";
            let known = Columns::read(line);
            columns = Some(known.ok_or_else(|| SummaryError::new(index + 1, 1, wanted))?);
        } else if let Some(rest) = line.strip_prefix("Total params:") {
            total = number(rest.trim());
        } else if let Some(rest) = line.strip_prefix("Input size (MB):") {
            input_mib =
                rest.trim().parse().ok().filter(|mb| *mb > 0.0).map(|mb: f64| mb / 1.048_576);
        } else if let (Some(columns), None) = (&columns, total)
            && !line.starts_with(['=', '-'])
            && !line.trim().is_empty()
        {
            let entry = columns.entry(line).ok_or_else(|| {
                SummaryError::new(index + 1, 1, "this line is no layer of the tree")
            })?;
            within_limit(entries.len(), index + 1)?;
            entries.push(entry);
        }
    }
    match (total, columns) {
        (Some(total), Some(columns)) => {
            Ok(Tree { entries, total, input_mib, has_inputs: columns.input.is_some() })
        }
        _ => {
            let line = text.lines().count().max(1);
            let problem = "the tree ends before its line with Total params; is the file cut off?";
            Err(SummaryError::new(line, 1, problem))
        }
    }
}

/// Without input shapes a tree says what torchsummary's table does.
fn without_inputs(
    tree: &Tree<'_>,
    rows: &[Row<'_>],
    batch: Option<u32>,
) -> Result<(Graph, Option<u32>), SummaryError> {
    if rows.is_empty() {
        return Err(SummaryError::new(1, 1, "the tree has no layers with an output shape"));
    }
    let samples = batch.unwrap_or(1);
    let leaves = tree.entries.iter().zip(tree.entries.iter().skip(1).map(Some).chain([None]));
    let mut hidden = leaves
        .filter(|(entry, next)| next.is_none_or(|next| next.depth <= entry.depth))
        .filter(|(entry, _)| entry.output.is_some());
    // Blocks that show nothing of themselves have no branches to be found.
    let mut graph = if hidden.any(|(entry, _)| is_hidden(entry)) {
        build(&tree.entries, input_shape(rows, samples, tree.input_mib), samples)
    } else {
        Wiring::of(rows, samples, tree.input_mib).finish()
    };
    let detail = "the tree has no input shapes, so branches are found by counts of parameters; print with \
        col_names=[\"input_size\", \"output_size\", \"num_params\", \"kernel_size\"]";
    graph.flag(FlagKind::Assumption, detail);
    check_parameters(&mut graph, tree.total);
    Ok((graph, batch.filter(|batch| *batch > 0)))
}

/// In a table containers stand behind what they hold, and the model itself is no row.
fn rows<'a>(entries: &[Entry<'a>]) -> Vec<Row<'a>> {
    let mut rows = Vec::with_capacity(entries.len());
    let mut open: Vec<&Entry<'a>> = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        while open.last().is_some_and(|container| container.depth >= entry.depth) {
            rows.extend(open.pop().and_then(Entry::row));
        }
        if entries.get(index + 1).is_some_and(|next| next.depth > entry.depth) {
            open.push(entry);
        } else {
            rows.extend(entry.row());
        }
    }
    rows.extend(open.into_iter().rev().filter_map(Entry::row));
    rows
}

impl<'a> Entry<'a> {
    /// As a row of a table; the model itself and plain containers are none.
    fn row(&self) -> Option<Row<'a>> {
        let plain = self.depth == 0 || matches!(self.kind, "Sequential" | "ModuleList");
        let sides = self.output.as_ref().filter(|_| !plain || self.parameters > 0)?;
        Some(Row::new(self.kind, sides.get(1..).unwrap_or_default(), self.parameters))
    }
}

impl Columns {
    fn read(header: &str) -> Option<Self> {
        let at = |name: &str| header.find(name).map(|byte| header[..byte].chars().count());
        Some(Columns {
            input: at("Input Shape"),
            output: at("Output Shape")?,
            parameters: at("Param #")?,
            kernel: at("Kernel Shape"),
        })
    }

    fn entry<'a>(&self, line: &'a str) -> Option<Entry<'a>> {
        let starts = [self.input, Some(self.output), Some(self.parameters), self.kernel];
        let field = |start: usize| {
            let end = starts.iter().flatten().filter(|other| **other > start).min();
            let from = byte_at(line, start);
            let to = end.map_or(line.len(), |end| byte_at(line, *end));
            line[from..to].trim()
        };
        let first = starts.iter().flatten().min().copied()?;
        let name = line[..byte_at(line, first)].trim_end();
        let bare = name.trim_start_matches(['│', '├', '└', '─', ' ']);
        let depth = (name.chars().count() - bare.chars().count()).div_ceil(5);
        let kind = bare.split(':').next()?.trim();
        let parameters = field(self.parameters).split_whitespace().next().unwrap_or("--");
        let kernel = self.kernel.and_then(|start| shape_list(field(start)));
        Some(Entry {
            depth,
            kind,
            input: self.input.and_then(|start| shape_list(field(start))),
            output: shape_list(field(self.output)),
            kernel: kernel.and_then(|sides| Some((*sides.first()?, *sides.get(1)?))),
            // Parameters that are not trained stand in brackets.
            parameters: number(parameters.trim_matches(['(', ')'])).unwrap_or(0),
        })
        .filter(|entry| !entry.kind.is_empty())
    }
}

fn byte_at(line: &str, character: usize) -> usize {
    line.char_indices().nth(character).map_or(line.len(), |(byte, _)| byte)
}

/// The batch that a tree was printed for.
fn batch_of(entries: &[Entry<'_>], input: &[u32]) -> Option<u32> {
    let lead = input.first().copied();
    if input.len() != 3 {
        return lead;
    }
    // Of three sides the first is the batch where all layers have it: sequences.
    let shapes = || entries.iter().flat_map(|entry| [&entry.input, &entry.output]).flatten();
    if shapes().all(|sides| sides.first().copied() == lead) {
        return lead;
    }
    // Else it is a single image; the first layer with four sides knows better.
    shapes().find(|sides| sides.len() == 4).and_then(|sides| sides.first().copied())
}

#[cfg(test)]
mod tests;
