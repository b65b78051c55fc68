//! Rows as scaled numbers, cut into batches.

use super::Architecture;
use crate::dataset::{Kind, Row};
use crate::gpumemnet::{Classes, Scaler, extra_features, layer_sequence, plain_features};
use candle_core::{Device, Result, Tensor};

/// Rows as tensors.
pub(super) struct Batch {
    pub(super) plain: Tensor,
    pub(super) tokens: Option<(Tensor, Tensor)>,
    pub(super) classes: Tensor,
}

/// Everything that is scaled and cut into batches.
pub(super) struct Data {
    pub(super) scaler: Scaler,
    pub(super) layer_scaler: Scaler,
    plain: Vec<Vec<f32>>,
    sequences: Vec<Vec<Vec<f32>>>,
    classes: Vec<u32>,
}

impl Data {
    pub(super) fn new(rows: &[&Row], kind: Kind, architecture: Architecture) -> Self {
        let plain: Vec<Vec<f64>> = rows
            .iter()
            .map(|row| match architecture {
                Architecture::Mlp => plain_features(row),
                Architecture::Transformer => extra_features(row),
            })
            .collect();
        let scaler = scaler(plain.iter().map(Vec::as_slice));
        let raw: Vec<_> = match architecture {
            Architecture::Mlp => Vec::new(),
            Architecture::Transformer => rows.iter().map(|row| layer_sequence(row)).collect(),
        };
        let layer_scaler = scaler_of_layers(&raw);
        let sequences = raw
            .iter()
            .map(|layers| layers.iter().map(|layer| layer_scaler.apply(layer)).collect())
            .collect();
        let classes = Classes::of(kind);
        Data {
            plain: plain.iter().map(|features| scaler.apply(features)).collect(),
            scaler,
            layer_scaler,
            sequences,
            classes: rows.iter().map(|row| classes.class(row) as u32).collect(),
        }
    }

    pub(super) fn batch(&self, which: &[usize], device: &Device) -> Result<Batch> {
        let width = self.scaler.mean.len();
        let plain: Vec<f32> = which.iter().flat_map(|&index| self.plain[index].clone()).collect();
        let classes: Vec<u32> = which.iter().map(|&index| self.classes[index]).collect();
        let tokens = if self.sequences.is_empty() {
            None
        } else {
            let length = which.iter().map(|&index| self.sequences[index].len()).max().unwrap_or(1);
            let (mut tokens, mut mask) = (Vec::new(), Vec::new());
            for &index in which {
                for place in 0..length {
                    let layer = self.sequences[index].get(place);
                    mask.push(if layer.is_some() { 1f32 } else { 0.0 });
                    tokens.extend(layer.cloned().unwrap_or_else(|| vec![0.0; 4]));
                }
            }
            let tokens = Tensor::from_vec(tokens, (which.len(), length, 4), device)?;
            Some((tokens, Tensor::from_vec(mask, (which.len(), length), device)?))
        };
        Ok(Batch {
            plain: Tensor::from_vec(plain, (which.len(), width), device)?,
            tokens,
            classes: Tensor::from_vec(classes, which.len(), device)?,
        })
    }
}

fn scaler_of_layers(sequences: &[Vec<[f64; 4]>]) -> Scaler {
    scaler(sequences.iter().flatten().map(|layer| layer.as_slice()))
}

fn scaler<'a>(rows: impl Iterator<Item = &'a [f64]> + Clone) -> Scaler {
    let Some(width) = rows.clone().next().map(<[f64]>::len) else { return Scaler::default() };
    let count = rows.clone().count() as f64;
    let column = |index: usize| rows.clone().map(move |row| row[index]);
    let means: Vec<f64> = (0..width).map(|index| column(index).sum::<f64>() / count).collect();
    let factor = means.iter().enumerate().map(|(index, mean)| {
        let variance =
            column(index).map(|value| (value - mean) * (value - mean)).sum::<f64>() / count;
        if variance > 1e-12 { (1.0 / libm::sqrt(variance)) as f32 } else { 0.0 }
    });
    Scaler { factor: factor.collect(), mean: means.iter().map(|mean| *mean as f32).collect() }
}
