//! Rows of the fully connected generator.

use super::config::{Cells, Size};
use super::layers::{self, Layer};
use super::{DatasetError, Row, RowOutcome, SAMPLES};
use crate::graph::{Activation, FlagKind, Graph, GraphBuilder, Loss, Op, Shape};
use crate::run::{RunConfig, SummaryPasses};

/// Full batches of an epoch that leave every kind of mark on the allocator, and epochs after which little changes.
const FULL_BATCHES: u32 = 3;
const EPOCHS: u32 = 3;

pub(super) fn row(cells: &Cells<'_>) -> Result<Row, DatasetError> {
    let layers = layers::parse(cells.text("Activations-Params")?)
        .map_err(|problem| cells.problem("Activations-Params", problem))?;
    if layers.iter().any(|layer| layer.kind == "linear" && layer.activations == 0) {
        let problem = "a linear layer that gives 0 numbers makes no net".to_owned();
        return Err(cells.problem("Activations-Params", problem));
    }
    let input = cells.setting_size("input", Size::Width)?;
    let batch = cells.size("Batch Size", Size::Batch)?;
    let graph = match layers.is_empty() {
        true => None,
        false => Some(cells.countable("Activations-Params", graph(input, &layers), batch)?),
    };
    let measured_mib = cells.measured_mib("Max GPU Memory (MiB)")?;
    let outcome = match &graph {
        None => RowOutcome::Skipped,
        Some(_) if measured_mib.is_none() => RowOutcome::Skipped,
        Some(_) if cannot_train(&layers, batch) => RowOutcome::Crashed,
        Some(_) => RowOutcome::Trained,
    };
    Ok(Row {
        line: cells.line,
        group: cells.group,
        graph,
        run: run(batch),
        measured_mib: measured_mib.unwrap_or(0.0),
        measured: cells.measured(),
        outcome,
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
        epochs: EPOCHS,
        summary_passes: Some(SummaryPasses { batch: 2, passes: 1 }),
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
