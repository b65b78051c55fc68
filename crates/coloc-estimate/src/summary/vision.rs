//! Vision transformers in a list of rows: found by their blocks, and believed where all parameters are explained.

use super::table::Row;
use super::{MOST_LAYERS, counts_agree};
use crate::graph::{Activation, FlagKind, Graph};
use crate::hf::{Chance, Head, Options, Projection, Vit};

/// Features of an attention head where no row tells.
pub(super) const HEAD_WIDTH: u32 = 64;
/// No model is wider: sums of parameters stay countable.
pub(super) const WIDEST: u32 = 1 << 20;

/// The class of a block, and how such blocks make query, key and value: torchvision, timm, Hugging Face.
pub(super) fn projection(block: &str) -> Option<Projection> {
    match block {
        "EncoderBlock" => Some(Projection::Turned),
        "Block" => Some(Projection::Packed),
        "ViTLayer" | "DeiTLayer" => Some(Projection::Apart),
        _ => None,
    }
}

/// Classes whose rows say nothing that others do not.
fn is_container(kind: &str) -> bool {
    let named = ["Attention", "Mlp", "MLPBlock", "PatchEmbed", "Encoder", "Sequential"];
    named.contains(&kind)
        || ["VisionTransformer", "ViT", "DeiT"].iter().any(|start| kind.starts_with(start))
}

/// The graph of a vision transformer; none where the rows are those of another net, or do not add up.
pub(super) fn find(
    rows: &[Row<'_>],
    batch: u32,
    input_mib: Option<f64>,
    total: u64,
) -> Option<Graph> {
    let mut ends = rows.iter().enumerate().filter(|(_, row)| projection(row.kind).is_some());
    let (first, row) = ends.next()?;
    let (last, layers) = ends.fold((first, 1), |(_, count), (index, _)| (index, count + 1));
    let (tokens, width) = sequence(row).filter(|(_, width)| *width <= WIDEST)?;
    let (begin, block) = blocks(rows, first, last, layers)?;
    let patches = Patches::read(&rows[..begin], tokens, width)?;
    let inside = Inside::read(block, tokens, width)?;
    let ending = Ending::read(&rows[last + 1..], width)?;
    // A rate is only printed by its class: without one there is an Identity.
    let drop_path = rows[begin..=last].iter().any(|row| is_drop_path(row.kind));
    let vit = Vit {
        channels: patches.channels,
        grid: patches.grid,
        patch: patches.side,
        width,
        layers: layers as u32,
        hidden: inside.hidden,
        function: inside.function,
        heads: inside.heads.unwrap_or((width / HEAD_WIDTH).max(1)),
        extra: patches.extra,
        projection: projection(row.kind)?,
        biased: inside.biased,
        chance: Chance { drop_path, ..Chance::default() },
        head: ending.head,
        classifiers: ending.classifiers,
        mean: ending.mean,
        eager: inside.eager,
    };
    let mut graph = vit.graph(&Options::default());
    // torchsummary's total leaves out what is no layer's weight or bias.
    let unprinted = vit.tables() + layers as u64 * inside.unprinted;
    let built = graph.parameters();
    let adds_up = [0, unprinted].iter().any(|left_out| {
        built.checked_sub(*left_out).is_some_and(|built| counts_agree(built, total, 0))
    });
    if !adds_up || !patches.fill(input_mib, batch) {
        return None;
    }
    for assumption in inside.assumptions(row.kind, width) {
        graph.flag(FlagKind::Assumption, assumption);
    }
    Some(graph)
}

/// Where the first block begins, and the rows of one. All must be alike.
fn blocks<'a, 'b>(
    rows: &'a [Row<'b>],
    first: usize,
    last: usize,
    layers: usize,
) -> Option<(usize, &'a [Row<'b>])> {
    let behind = &rows[first + 1..=last];
    let block = match layers {
        1 => {
            let is_norm = |row: &Row<'_>| row.kind == "LayerNorm";
            let begin = rows[..first].iter().position(is_norm).unwrap_or(first);
            &rows[begin..=first]
        }
        layers if layers > MOST_LAYERS => return None,
        layers => &behind[..behind.len() / (layers - 1)],
    };
    let begin = (first + 1).checked_sub(block.len())?;
    let all = &rows[begin..=last];
    let alike = |other: &[Row<'_>]| {
        other.len() == block.len()
            && other.iter().zip(block).all(|(a, b)| {
                let same = a.kind == b.kind || passes(a.kind) && passes(b.kind);
                same && (a.shape, a.parameters) == (b.shape, b.parameters)
            })
    };
    (all.len() == block.len() * layers && all.chunks(block.len()).all(alike))
        .then_some((begin, block))
}

/// The first block leaves nothing out: its rate is nothing.
fn passes(kind: &str) -> bool {
    kind == "Identity" || is_drop_path(kind)
}

pub(super) fn is_drop_path(kind: &str) -> bool {
    matches!(kind, "DropPath" | "StochasticDepth")
}

/// Tokens and their width: a table's rows have the length second.
fn sequence(row: &Row<'_>) -> Option<(u32, u32)> {
    let shape = row.shape;
    (shape.width == 1 && shape.height > 1 && !row.folded).then_some((shape.channels, shape.height))
}

/// What becomes of an image.
struct Patches {
    channels: u32,
    grid: (u32, u32),
    side: u32,
    extra: u32,
}

impl Patches {
    fn read(rows: &[Row<'_>], tokens: u32, width: u32) -> Option<Self> {
        let known = |row: &Row<'_>| {
            matches!(row.kind, "Conv2d" | "Identity" | "Dropout") || is_container(row.kind)
        };
        let mut weighted = rows.iter().filter(|row| row.parameters > 0);
        let (first, second) = (weighted.next()?, weighted.next());
        // The tables of positions and of the class, where a tree shows them.
        let tables = second.is_none_or(|row| row.kind.ends_with("Embeddings"));
        if !rows.iter().all(known) || !tables || weighted.next().is_some() {
            return None;
        }
        let grid = match (first.kind, sequence(first)) {
            ("Conv2d", _) if first.shape.channels == width => {
                (first.shape.height, first.shape.width)
            }
            // Printed without the convolution that it holds.
            (kind, Some((patches, wide))) if kind != "Conv2d" && wide == width => {
                let side = patches.isqrt();
                (side * side == patches).then_some((side, side))?
            }
            _ => return None,
        };
        let extra = tokens.checked_sub(grid.0.checked_mul(grid.1)?).filter(|extra| *extra <= 2)?;
        let weights = first.parameters.checked_sub(width.into())?;
        let taps = weights.checked_div(width.into())?;
        let squares = |channels: u64| {
            let side = (taps / channels).isqrt();
            let whole = channels * side * side * u64::from(width) == weights;
            (whole && (1..=1 << 10).contains(&side)).then_some((channels as u32, side as u32))
        };
        let (channels, side) = [3, 1, 4].into_iter().find_map(squares)?;
        Some(Patches { channels, grid, side, extra })
    }

    /// Whether an image of whole patches, none over another, is as large as the text says, to its two digits.
    fn fill(&self, input_mib: Option<f64>, batch: u32) -> bool {
        let sides = [self.grid.0, self.grid.1].map(|side| f64::from(side) * f64::from(self.side));
        let numbers = f64::from(self.channels) * sides[0] * sides[1] * f64::from(batch.max(1));
        let mib = numbers / 262_144.0;
        input_mib.is_none_or(|said| (said - mib).abs() <= 0.01 + 0.01 * mib)
    }
}

/// What a block holds.
struct Inside {
    hidden: u32,
    function: Activation,
    heads: Option<u32>,
    biased: bool,
    eager: bool,
    /// Parameters that are there and that no row counts.
    unprinted: u64,
    /// Rows of its products are there.
    shown: bool,
}

impl Inside {
    fn read(rows: &[Row<'_>], tokens: u32, width: u32) -> Option<Self> {
        let (mut function, mut heads, mut eager) = (None, None, false);
        let (mut unprinted, mut shown) = (0, false);
        let mut counted = 0u64;
        let (wide, square) = (u64::from(width), u64::from(width) * u64::from(width));
        for row in rows {
            counted = counted.checked_add(row.parameters)?;
            match row.kind {
                "MultiheadAttention" if row.parameters == 0 => unprinted = 4 * (square + wide),
                "LayerNorm" | "MultiheadAttention" => {}
                "Linear" => shown = true,
                "Identity" | "Dropout" | "Softmax" => {
                    let (each, shape) = (row.shape.width, row.shape);
                    if row.folded || shape.height != tokens || each == 1 {
                        continue;
                    }
                    // Queries and keys by heads, or scores, which only some ways to compute have.
                    let scores = each == tokens && row.kind != "Identity";
                    if scores || shape.channels.checked_mul(each) == Some(width) {
                        heads = Some(shape.channels).filter(|heads| width.is_multiple_of(*heads));
                    }
                    eager |= scores;
                }
                kind if is_drop_path(kind) || is_container(kind) || projection(kind).is_some() => {}
                kind => function = Some(Activation::from_name(kind)?),
            }
        }
        // Four products of the width, two norms, and two products of another width.
        let others = counted.checked_add(unprinted)?.checked_sub(4 * square + 6 * wide)?;
        let hidden = |others: u64| {
            let hidden = others / (2 * wide + 1);
            let whole = hidden > 0 && hidden * (2 * wide + 1) == others;
            u32::try_from(hidden).ok().filter(|hidden| whole && *hidden <= 1 << 24)
        };
        let biased = others.checked_sub(3 * wide).and_then(hidden);
        let plain = hidden(others);
        let read_as = biased.or(plain)?;
        let function = function.unwrap_or(Activation::GELU);
        let biased = biased.is_some();
        Some(Inside { hidden: read_as, function, heads, biased, eager, unprinted, shown })
    }

    /// What the rows leave open.
    fn assumptions(&self, block: &str, width: u32) -> Vec<String> {
        let mut assumed = vec![
            "no row tells a rate of dropout; taken to be none, as these models have it unless told otherwise"
                .to_owned(),
        ];
        if self.heads.is_none() {
            let heads = (width / HEAD_WIDTH).max(1);
            assumed.push(format!("no row tells the number of heads; taken to be {heads}"));
        }
        if self.unprinted > 0 {
            assumed.push(
                "the table leaves out what MultiheadAttention holds; four products are filled in"
                    .to_owned(),
            );
        }
        if !self.shown {
            assumed.push(format!("the inside of {block} is not shown; its parameters are those of attention and a feed-forward net"));
        }
        assumed
    }
}

/// The head that the products behind the last block are: one for each token that is classified.
pub(super) fn head(labels: &[u32]) -> Option<Head> {
    match *labels {
        [] => Some(Head::Bare),
        [labels] => Some(Head::Sample { labels }),
        [first, second] if first == second => Some(Head::Sample { labels: first }),
        _ => None,
    }
}

/// What follows the last block.
struct Ending {
    head: Head,
    classifiers: u32,
    mean: bool,
}

impl Ending {
    fn read(rows: &[Row<'_>], width: u32) -> Option<Self> {
        let mut norm = None;
        let mut logits = Vec::new();
        for row in rows {
            match row.kind {
                "LayerNorm" if norm.is_none() => norm = Some(row),
                "Linear" if row.shape.positions() == 1 && logits.len() < 2 => {
                    let labels = row.shape.channels;
                    let weights = u64::from(labels) * (u64::from(width) + 1);
                    logits.push(Some(labels).filter(|_| row.parameters == weights)?);
                }
                "Identity" | "Dropout" => {}
                kind if is_container(kind) => {}
                _ => return None,
            }
        }
        let mean = sequence(norm?).is_none();
        let head = head(&logits)?;
        Some(Ending { head, classifiers: logits.len() as u32, mean })
    }
}

#[cfg(test)]
mod tests;
