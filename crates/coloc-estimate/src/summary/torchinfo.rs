//! The tree of torchinfo: depth by indentation, input and output shapes in columns.

use super::{SummaryError, number, shape_list};
use crate::graph::{Activation, Conv, FlagKind, Graph, GraphBuilder, Loss, NodeId, Op, Shape};
use rustc_hash::FxHashMap;

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
    input: usize,
    output: usize,
    parameters: usize,
    kernel: Option<usize>,
}

pub(super) fn parse(text: &str) -> Result<(Graph, Option<u32>), SummaryError> {
    let mut columns = None;
    let mut entries: Vec<Entry<'_>> = Vec::new();
    let mut total = None;
    for (index, line) in text.lines().enumerate() {
        if line.starts_with("Layer (type:depth-idx)") {
            columns = Columns::read(line);
        } else if let Some(rest) = line.strip_prefix("Total params:") {
            total = number(rest.trim());
        } else if let (Some(columns), None) = (&columns, total)
            && !line.starts_with(['=', '-'])
            && !line.trim().is_empty()
        {
            let entry = columns.entry(line).ok_or_else(|| {
                SummaryError::new(index + 1, 1, "this line is no layer of the tree")
            })?;
            entries.push(entry);
        }
    }
    if columns.is_none() {
        return Err(SummaryError::new(
            1,
            1,
            "the header lacks the columns Input Shape, Output Shape and Param #",
        ));
    }
    if total.is_none() {
        let line = text.lines().count().max(1);
        let problem = "the tree ends before its line with Total params; is the file cut off?";
        return Err(SummaryError::new(line, 1, problem));
    }
    let Some(first) = entries.first().and_then(|entry| entry.input.clone()) else {
        return Err(SummaryError::new(1, 1, "the first layer of the tree has no input shape"));
    };
    // An input without a batch is a single image; the first layer with four sides knows better.
    let shapes = entries.iter().flat_map(|entry| [&entry.input, &entry.output]).flatten();
    let batch = match first.len() {
        3 => shapes
            .into_iter()
            .find(|sides| sides.len() == 4)
            .and_then(|sides| sides.first().copied()),
        _ => first.first().copied(),
    };
    Ok((build(&entries, &first, batch.unwrap_or(1)), batch.filter(|batch| *batch > 0)))
}

impl Columns {
    fn read(header: &str) -> Option<Self> {
        let at = |name: &str| header.find(name).map(|byte| header[..byte].chars().count());
        Some(Columns {
            input: at("Input Shape")?,
            output: at("Output Shape")?,
            parameters: at("Param #")?,
            kernel: at("Kernel Shape"),
        })
    }

    fn entry<'a>(&self, line: &'a str) -> Option<Entry<'a>> {
        let starts = [Some(self.input), Some(self.output), Some(self.parameters), self.kernel];
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
        let parameters = field(self.parameters);
        let parameters = parameters.split_whitespace().next().unwrap_or("--");
        let kernel = self.kernel.and_then(|start| shape_list(field(start)));
        Some(Entry {
            depth,
            kind,
            input: shape_list(field(self.input)),
            output: shape_list(field(self.output)),
            kernel: kernel.and_then(|sides| Some((*sides.first()?, *sides.get(1)?))),
            parameters: number(parameters).unwrap_or(0),
        })
        .filter(|entry| !entry.kind.is_empty())
    }
}

fn byte_at(line: &str, character: usize) -> usize {
    line.char_indices().nth(character).map_or(line.len(), |(byte, _)| byte)
}

fn build(entries: &[Entry<'_>], input: &[u32], batch: u32) -> Graph {
    let mut builder = GraphBuilder::new(shape(input, batch));
    let mut last = builder.input();
    let mut givers = Givers::default();
    for (index, entry) in entries.iter().enumerate() {
        let has_children = entries.get(index + 1).is_some_and(|next| next.depth > entry.depth);
        let Some(output) = &entry.output else { continue };
        if has_children {
            continue;
        }
        let read = entry.input.as_ref().map_or(builder.shape(last), |sides| shape(sides, batch));
        let source = if builder.shape(last) == read {
            last
        } else {
            // Another branch, or a reshape: the nearest layer that gives this shape.
            let giver = givers.nearest(&builder, read);
            giver.unwrap_or_else(|| builder.push(Op::View, &[last], read))
        };
        last = lower(&mut builder, source, entry, shape(output, batch));
    }
    builder.finish(Loss::CrossEntropy)
}

/// The newest node of each shape.
#[derive(Default)]
struct Givers {
    newest: FxHashMap<Shape, NodeId>,
    /// How many nodes are in it.
    known: u32,
}

impl Givers {
    fn nearest(&mut self, builder: &GraphBuilder, shape: Shape) -> Option<NodeId> {
        for node in (self.known..builder.len() as u32).map(NodeId) {
            self.newest.insert(builder.shape(node), node);
        }
        self.known = builder.len() as u32;
        self.newest.get(&shape).copied()
    }
}

fn lower(builder: &mut GraphBuilder, source: NodeId, entry: &Entry<'_>, output: Shape) -> NodeId {
    let read = builder.shape(source);
    match entry.kind {
        "Conv2d" | "ConvTranspose2d" => {
            let taps = entry.kernel.unwrap_or((3, 3));
            let weights = u64::from(taps.0) * u64::from(taps.1);
            let full = [output.channels, read.channels]
                .into_iter()
                .fold(weights, |product, side| product.saturating_mul(side.into()));
            let conv = Conv {
                input: read.channels,
                kernel: taps,
                stride: (read.height / output.height.max(1)).max(1),
                groups: if entry.parameters > 0 && entry.parameters < full / 2 {
                    read.channels
                } else {
                    1
                },
                bias: entry.parameters > full,
                transposed: entry.kind == "ConvTranspose2d",
            };
            builder.conv(source, conv, output)
        }
        "Linear" => {
            let weights = u64::from(read.channels) * u64::from(output.channels);
            let op =
                Op::Linear { input: read.channels, bias: entry.parameters > weights, tied: false };
            builder.push(op, &[source], output)
        }
        "BatchNorm2d" | "BatchNorm1d" => builder.same(Op::BatchNorm, source),
        "LayerNorm" => builder.same(Op::LayerNorm { bias: true }, source),
        "Dropout" => builder.same(Op::Dropout { in_place: false }, source),
        "MaxPool2d" => builder.push(Op::MaxPool, &[source], output),
        "AvgPool2d" | "AdaptiveAvgPool2d" => builder.push(Op::AvgPool, &[source], output),
        "Identity" | "Flatten" => source,
        kind => match Activation::from_name(kind) {
            Some(function) => {
                let in_place = function == Activation::ReLU;
                builder.same(Op::Activate { function, in_place }, source)
            }
            None => hidden(builder, source, entry, output),
        },
    }
}

/// A container whose inside is below the printed depth, or a layer that is not known: its parameters
/// are spread over layers of its output's size, as many as such blocks usually keep.
fn hidden(builder: &mut GraphBuilder, source: NodeId, entry: &Entry<'_>, output: Shape) -> NodeId {
    let block = entry.kind.contains("Block") || entry.kind == "Sequential";
    let detail = format!("the inside of {} is not shown", entry.kind);
    if !block || entry.parameters == 0 {
        let detail = format!("{} is not known", entry.kind);
        builder.flag(FlagKind::UnknownOperation, detail);
        return builder.push(Op::Unknown { parameters: entry.parameters }, &[source], output);
    }
    builder.flag(FlagKind::HiddenLayers, detail);
    let read = builder.shape(source);
    let squared = u64::from(output.channels) * u64::from(output.channels) * 9;
    let layers = (entry.parameters / squared.max(1)).clamp(2, 8) as u32;
    let mut last = source;
    for layer in 0..layers {
        let input = builder.shape(last).channels;
        let stride = if layer == 0 { (read.height / output.height.max(1)).max(1) } else { 1 };
        let conv =
            Conv { input, kernel: (3, 3), stride, groups: 1, bias: false, transposed: false };
        last = builder.conv(last, conv, output);
        last = builder.same(Op::BatchNorm, last);
        last = builder.same(Op::Activate { function: Activation::ReLU, in_place: true }, last);
    }
    last
}

/// Without the batch; shapes of other leading sizes (regions, boxes) count by their share of it.
fn shape(sides: &[u32], batch: u32) -> Shape {
    let lead = sides.first().copied().unwrap_or(1).max(1);
    let times = if sides.len() == 3 { 1 } else { lead.div_ceil(batch.max(1)).max(1) };
    let side = |index: usize| sides.get(index).copied().unwrap_or(1).max(1);
    match sides.len() {
        0 | 1 => Shape::features(times),
        2 => Shape::image(side(1), times, 1),
        3 => Shape::image(side(0), side(1), side(2)),
        _ => Shape::image(side(1), side(2).saturating_mul(times), side(3)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Entries that look for their shape among all nodes before them would take minutes.
    #[test]
    fn a_long_tree_takes_no_longer_for_each_entry() {
        let mut text =
            "Layer (type:depth-idx)  Input Shape     Output Shape    Param #\n".to_owned();
        for entry in 1..20_000 {
            let (input, output) = (format!("[1, {entry}, 9, 9]"), "[1, 1, 9, 9]");
            text += &format!("{:24}{input:16}{output:16}99\n", "Block: 1-1");
        }
        let start = std::time::Instant::now();
        let (graph, _) = parse(&(text + "Total params: 1\n")).unwrap();
        assert!(graph.nodes().len() > 400_000);
        assert!(start.elapsed() < std::time::Duration::from_secs(60));
    }

    /// Kernels and channels of the largest size have more weights than can be counted.
    #[test]
    fn sizes_beyond_counting_are_read() {
        let most = 1u32 << 24;
        let header = "Layer (type:depth-idx)  Kernel Shape          Input Shape                Output Shape               Param #";
        let line = |kernel: &str, input: &str, output: &str| {
            format!("{:24}{kernel:22}{input:27}{output:27}1", "Conv2d: 1-1")
        };
        let (kernel, shape) = (format!("[{most}, {most}]"), format!("[1, {most}, 8, 8]"));
        let text = format!("{header}\n{}\nTotal params: 1\n", line(&kernel, &shape, &shape));
        let (graph, batch) = parse(&text).unwrap();
        assert_eq!(batch, Some(1));
        assert!(matches!(graph.output().op, Op::Conv(conv) if conv.kernel == (most, most)));
    }
}
