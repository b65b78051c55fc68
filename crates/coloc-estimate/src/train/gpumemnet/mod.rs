//! Trains GPUMemNet's ensembles.

mod data;
mod export;
mod model;

use super::{TrainError, fold_of};
use crate::dataset::{Kind, Prediction, Row, RowOutcome, Scores, score};
use crate::gpumemnet::{GpuMemNet, TrainedNet as Net};
use candle_core::{DType, Device, Result};
use candle_nn::{AdamW, Optimizer, ParamsAdamW, VarBuilder, VarMap, loss};
use data::Data;
use export::export;
use model::Model;

/// Which of the two architectures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Architecture {
    /// Small nets over sums.
    Mlp,
    /// Two encoders over the layers in order, with the first as head.
    Transformer,
}

const BATCH: usize = 128;
const RATE: f64 = 6e-3;

/// Passes over the data. Steps of the transformer ensemble cost far more.
fn epochs(architecture: Architecture) -> usize {
    match architecture {
        Architecture::Mlp => 120,
        Architecture::Transformer => 80,
    }
}

/// How fast weights fade. With the few convolutional rows it helps on those that are held out.
fn decay(kind: Kind) -> f64 {
    match kind {
        Kind::Cnn => 0.3,
        Kind::Mlp | Kind::Transformer => 0.0,
    }
}

fn train(rows: &[&Row], kind: Kind, architecture: Architecture) -> Result<Net> {
    let device = Device::Cpu;
    let data = Data::new(rows, kind, architecture);
    let vars = VarMap::new();
    let builder = VarBuilder::from_varmap(&vars, DType::F32, &device);
    let model = Model::new(architecture, kind, data.scaler.mean.len(), &builder)?;
    model::initialise(&vars)?;
    let settings = ParamsAdamW { lr: RATE, weight_decay: decay(kind), ..ParamsAdamW::default() };
    let mut optimizer = AdamW::new(vars.all_vars(), settings)?;
    let mut order: Vec<usize> = (0..rows.len()).collect();
    let epochs = epochs(architecture);
    for epoch in 0..epochs {
        // A cosine from the first rate to nearly nothing.
        let turn = std::f64::consts::PI * epoch as f64 / epochs as f64;
        optimizer.set_learning_rate(RATE * (0.5 + 0.5 * libm::cos(turn)) + 1e-5);
        order.sort_by_key(|&index| fold_of(index as u64 ^ ((epoch as u64) << 32), u64::MAX));
        for which in order.chunks(BATCH).filter(|which| which.len() > 1) {
            let batch = data.batch(which, &device)?;
            let loss = loss::cross_entropy(&model.forward(&batch, true)?, &batch.classes)?;
            optimizer.backward_step(&loss)?;
        }
    }
    export(&model, data)
}

fn usable(row: &Row) -> bool {
    row.graph.is_some() && matches!(row.outcome, RowOutcome::Trained | RowOutcome::OutOfMemory)
}

/// Trains on every row; the bytes are the shipped form.
pub fn learn(
    rows: &[Row],
    kind: Kind,
    architecture: Architecture,
) -> std::result::Result<Vec<u8>, TrainError> {
    let rows: Vec<&Row> = rows.iter().filter(|row| usable(row)).collect();
    Ok(train(&rows, kind, architecture)?.to_bytes())
}

/// Scores of held-out rows, a fresh net for each fold.
pub fn cross_validate(
    rows: &[Row],
    kind: Kind,
    architecture: Architecture,
    folds: u64,
) -> std::result::Result<Scores, TrainError> {
    let mut predictions: Vec<Option<Prediction>> = vec![None; rows.len()];
    for held in 0..folds {
        let inside = |row: &&Row| usable(row) && fold_of(row.group, folds) != held;
        let seen: Vec<&Row> = rows.iter().filter(inside).collect();
        let nets = GpuMemNet::new(train(&seen, kind, architecture)?, kind);
        for (row, prediction) in rows.iter().zip(&mut predictions) {
            if fold_of(row.group, folds) == held {
                *prediction = nets.predict(row);
            }
        }
    }
    Ok(score(rows, &predictions))
}
