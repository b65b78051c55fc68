//! Rows of the transformer generator: an encoder with a classifier on the mean token.

use super::config::{Cells, Size};
use super::{DatasetError, Measured, Row, RowOutcome};
use crate::graph::{Activation, Attention, Graph, GraphBuilder, Loss, NodeId, Op, Shape};
use crate::run::{RunConfig, SummaryPasses};

struct Settings {
    classes: u32,
    width: u32,
    layers: u32,
    heads: u32,
    hidden: u32,
    tokens: u32,
    vocabulary: u32,
}

pub(super) fn row(cells: &Cells<'_>) -> Result<Row, DatasetError> {
    let settings = Settings {
        classes: cells.size("num_classes", Size::Width)?,
        width: cells.size("embedding_size", Size::Width)?,
        layers: cells.size("num_layers", Size::Layers)?,
        heads: cells.size("num_heads", Size::Width)?,
        hidden: cells.size("ff_hidden_size", Size::Width)?,
        tokens: cells.size("seq_length", Size::Length)?,
        vocabulary: cells.size("input_size", Size::Width)?,
    };
    let batch = cells.size("batch_size", Size::Batch)?;
    let samples: u32 = cells.number("num_samples")?;
    let dropout: f64 = cells.number("dropout_rate")?;
    let measured_mib = cells.measured_mib("max_gpu_mem_mib")?;
    let outcome = match (cells.text("status")?, measured_mib) {
        ("OOM_CRASH", _) => RowOutcome::OutOfMemory,
        (_, None) => RowOutcome::Skipped,
        _ => RowOutcome::Trained,
    };
    Ok(Row {
        line: cells.line,
        group: dropout.to_bits(),
        graph: Some(cells.countable("seq_length", graph(&settings), batch)?),
        run: RunConfig {
            last_batch: samples % batch,
            iterations: 3,
            summary_passes: Some(SummaryPasses { batch, passes: 1 }),
            ..RunConfig::new(batch)
        },
        measured_mib: measured_mib.unwrap_or(0.0),
        measured: Measured::default(),
        outcome,
        layers: Vec::new(),
        totals: (cells.number("total_activations")?, cells.number("total_parameters")?),
        activation: "ReLU".to_owned(),
    })
}

fn graph(settings: &Settings) -> Graph {
    let mut builder = GraphBuilder::tokens(settings.tokens);
    let input = builder.input();
    let sequence = Shape::sequence(settings.tokens, settings.width);
    let embedded = builder.push(Op::Embedding { rows: settings.vocabulary }, &[input], sequence);
    let table = u64::from(settings.tokens) * u64::from(settings.width);
    let placed = builder.same(Op::AddTable { elements: table }, embedded);
    let mut last = builder.same(Op::Dropout { in_place: false }, placed);
    for _ in 0..settings.layers {
        let start = builder.len();
        last = layer(&mut builder, last, settings);
        builder.block_since(start);
    }
    let mean = builder.push(Op::GlobalPool, &[last], Shape::features(settings.width));
    builder.linear(mean, settings.classes, true);
    builder.finish(Loss::CrossEntropy)
}

/// PyTorch's encoder layer: attention and a feed-forward net, each added back and normalised.
fn layer(builder: &mut GraphBuilder, input: NodeId, settings: &Settings) -> NodeId {
    let width = settings.width;
    // The batch is not first, so projections and attention work on copies.
    let turned = builder.same(Op::Copy, input);
    let projected = builder.linear(turned, 3 * width, true);
    let split = builder.same(Op::Transpose, projected);
    let attention =
        Attention { heads: settings.heads, keys: settings.tokens, eager: false, dropout: true };
    let attended = builder.attention(&[split], attention, width);
    let turned = builder.same(Op::Copy, attended);
    let mixed = builder.linear(turned, width, true);
    let normal = add_and_normalise(builder, mixed, input);
    let hidden = builder.linear(normal, settings.hidden, true);
    let active = builder.activate(hidden, Activation::ReLU);
    let dropped = builder.same(Op::Dropout { in_place: false }, active);
    let narrow = builder.linear(dropped, width, true);
    add_and_normalise(builder, narrow, normal)
}

fn add_and_normalise(builder: &mut GraphBuilder, branch: NodeId, skip: NodeId) -> NodeId {
    let dropped = builder.same(Op::Dropout { in_place: false }, branch);
    let shape = builder.shape(skip);
    let sum = builder.push(Op::Add { in_place: false }, &[skip, dropped], shape);
    builder.same(Op::LayerNorm { bias: true }, sum)
}
