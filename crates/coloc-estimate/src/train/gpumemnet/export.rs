//! From candle's tensors to the shipped form.

use super::data::Data;
use super::model::Model;
use crate::gpumemnet::{Dense, Encoder, EncoderLayer, Ensemble, Norm, TrainedNet as Net};
use candle_core::{IndexOp, Result};
use candle_nn::{BatchNorm, LayerNorm, Linear};

pub(super) fn export(model: &Model, data: Data) -> Result<Net> {
    let members = model.members.iter().map(|member| {
        let mut layers: Vec<Dense> =
            member.layers.iter().map(|(layer, norm)| fold(layer, norm)).collect::<Result<_>>()?;
        layers.push(dense(&member.last)?);
        Ok(layers)
    });
    let members = members.collect::<Result<_>>()?;
    let encoders = model.readings.iter().map(|reading| {
        let embed = reading.embed.iter().map(|(layer, norm)| fold(layer, norm));
        let layers = reading.layers.iter().map(|layer| {
            let [query, key, value, out] = &layer.parts;
            Ok(EncoderLayer {
                query: dense(query)?,
                key: dense(key)?,
                value: dense(value)?,
                out: dense(out)?,
                first_norm: norm(&layer.norms[0])?,
                wide: dense(&layer.wide)?,
                narrow: dense(&layer.narrow)?,
                second_norm: norm(&layer.norms[1])?,
            })
        });
        Ok(Encoder { embed: embed.collect::<Result<_>>()?, layers: layers.collect::<Result<_>>()? })
    });
    Ok(Net {
        encoders: encoders.collect::<Result<_>>()?,
        scaler: data.scaler,
        layer_scaler: data.layer_scaler,
        head: Ensemble { members },
    })
}

fn dense(layer: &Linear) -> Result<Dense> {
    let (_, inputs) = layer.weight().dims2()?;
    let bias = layer
        .bias()
        .map_or_else(|| layer.weight().i((.., 0))?.zeros_like(), |bias| Ok(bias.clone()))?;
    Ok(Dense { inputs, weights: layer.weight().flatten_all()?.to_vec1()?, bias: bias.to_vec1()? })
}

fn norm(norm: &LayerNorm) -> Result<Norm> {
    let shift = match norm.bias() {
        Some(bias) => bias.clone(),
        None => norm.weight().zeros_like()?,
    };
    Ok(Norm { scale: norm.weight().to_vec1()?, shift: shift.to_vec1()? })
}

/// A batch norm after a layer is the layer with other numbers.
fn fold(layer: &Linear, norm: &BatchNorm) -> Result<Dense> {
    let plain = dense(layer)?;
    let mean: Vec<f32> = norm.running_mean().to_vec1()?;
    let variance: Vec<f32> = norm.running_var().to_vec1()?;
    let (scale, shift): (Vec<f32>, Vec<f32>) = match norm.weight_and_bias() {
        Some((weight, bias)) => (weight.to_vec1()?, bias.to_vec1()?),
        None => (vec![1.0; mean.len()], vec![0.0; mean.len()]),
    };
    let mut folded = plain.clone();
    for row in 0..mean.len() {
        let factor = scale[row] / libm::sqrtf(variance[row] + 1e-5);
        let weights = &mut folded.weights[row * plain.inputs..(row + 1) * plain.inputs];
        weights.iter_mut().for_each(|weight| *weight *= factor);
        folded.bias[row] = (plain.bias[row] - mean[row]) * factor + shift[row];
    }
    Ok(folded)
}
