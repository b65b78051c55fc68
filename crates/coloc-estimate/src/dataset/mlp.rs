//! Rows of the fully connected generator.

use super::config::Cells;
use super::layers::{self, Layer};
use super::{DatasetError, Row, SAMPLES, Standing};
use crate::graph::{Activation, FlagKind, Graph, GraphBuilder, Loss, Op, Shape};
use crate::run::{Rehearsal, RunConfig};

/// Full batches of an epoch that leave every kind of mark on the allocator.
const FULL_BATCHES: u32 = 3;

pub(super) fn row(cells: &Cells<'_>) -> Result<Row, DatasetError> {
    let layers = layers::parse(cells.text("Activations-Params")?)
        .map_err(|problem| cells.problem("Activations-Params", problem))?;
    let input: u32 = cells.setting_number("input")?;
    let batch: u32 = cells.number("Batch Size")?;
    if batch == 0 {
        return Err(cells.problem("Batch Size", "a batch has at least one sample".to_owned()));
    }
    let graph = (!layers.is_empty()).then(|| graph(input, &layers));
    let standing = match &graph {
        None => Standing::Skipped,
        Some(_) if cannot_train(&layers, batch) => Standing::Crashed,
        Some(_) => Standing::Trained,
    };
    Ok(Row {
        line: cells.line,
        group: cells.line,
        graph,
        run: run(batch),
        measured_mib: cells.number("Max GPU Memory (MiB)")?,
        measured: cells.measured(),
        standing,
        totals: (cells.number("Total Activations")?, cells.number("Total Parameters")?),
        activation: cells.text("Activation Function")?.to_owned(),
        layers,
    })
}

/// A loss over one class fails on its labels' shape; BatchNorm refuses a last batch of one.
fn cannot_train(layers: &[Layer], batch: u32) -> bool {
    let plain = layers.iter().all(|layer| matches!(layer.kind.as_str(), "linear" | "ReLU"));
    let normalised = layers.iter().any(|layer| layer.kind == "batch_normalization");
    let one_class = plain && layers.last().is_some_and(|layer| layer.activations == 1);
    one_class || (normalised && SAMPLES % batch == 1)
}

fn run(batch: u32) -> RunConfig {
    let full = (SAMPLES / batch).min(FULL_BATCHES);
    RunConfig {
        last_batch: SAMPLES % batch,
        full_batches: full,
        rehearsal: Some(Rehearsal { batch: 2, passes: 1 }),
        ..RunConfig::new(batch)
    }
}

fn graph(input: u32, layers: &[Layer]) -> Graph {
    let mut builder = GraphBuilder::new(Shape::features(input));
    let mut last = builder.input();
    for layer in layers {
        last = match layer.kind.as_str() {
            "linear" => builder.linear(last, layer.activations as u32, true),
            "batch_normalization" => builder.same(Op::BatchNorm, last),
            "dropout" => builder.same(Op::Dropout { in_place: false }, last),
            "Identity" => builder.same(Op::View, last),
            other => match Activation::from_name(other) {
                Some(function) => builder.activate(last, function),
                None => {
                    builder.flag(FlagKind::UnknownOperation, other);
                    builder.same(Op::Unknown { parameters: layer.parameters }, last)
                }
            },
        };
    }
    builder.finish(Loss::CrossEntropy)
}
