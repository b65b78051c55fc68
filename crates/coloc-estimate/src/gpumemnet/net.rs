//! Inference of nets this small needs no framework.

use super::features::LAYER_FEATURES;
use super::{extra_features, layer_sequence, plain_features};
use crate::dataset::Row;

const MAGIC: [u8; 4] = *b"CGN1";

/// A sum over some thirty layers becomes about as large as the scaled features beside it; else the head
/// hardly sees them when its training starts.
pub(crate) const SUM_SCALE: f32 = 1.0 / 32.0;

/// The bytes are not a net.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("not a net of this version: {0}; retrain with `coloc estimate train`")]
pub struct NetError(&'static str);

/// Mean and reciprocal spread of each feature.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Scaler {
    pub(crate) mean: Vec<f32>,
    pub(crate) factor: Vec<f32>,
}

impl Scaler {
    pub(crate) fn apply(&self, features: &[f64]) -> Vec<f32> {
        let scales = self.mean.iter().zip(&self.factor);
        features
            .iter()
            .zip(scales)
            .map(|(value, (mean, factor))| (*value as f32 - mean) * factor)
            .collect()
    }
}

/// A matrix and a vector.
#[derive(Clone, PartialEq, Default, Debug)]
pub(crate) struct Dense {
    pub(crate) inputs: usize,
    /// Row by row.
    pub(crate) weights: Vec<f32>,
    pub(crate) bias: Vec<f32>,
}

impl Dense {
    fn apply(&self, input: &[f32]) -> Vec<f32> {
        let rows = self.weights.chunks_exact(self.inputs);
        rows.zip(&self.bias).map(|(row, bias)| bias + dot(row, input)).collect()
    }
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn relu(values: &mut [f32]) {
    values.iter_mut().for_each(|value| *value = value.max(0.0));
}

/// Nets whose answers are averaged. Batch norms are folded into the layers.
#[derive(Clone, PartialEq, Default, Debug)]
pub(crate) struct Ensemble {
    pub(crate) members: Vec<Vec<Dense>>,
}

impl Ensemble {
    fn logits(&self, input: &[f32]) -> Vec<f32> {
        let mut sum: Vec<f32> = Vec::new();
        for member in &self.members {
            let mut values = input.to_vec();
            for (index, layer) in member.iter().enumerate() {
                values = layer.apply(&values);
                if index + 1 < member.len() {
                    relu(&mut values);
                }
            }
            sum.resize(values.len(), 0.0);
            sum.iter_mut().zip(&values).for_each(|(sum, value)| *sum += value);
        }
        sum
    }
}

/// Scale and shift after normalising a vector.
#[derive(Clone, PartialEq, Default, Debug)]
pub(crate) struct Norm {
    pub(crate) scale: Vec<f32>,
    pub(crate) shift: Vec<f32>,
}

impl Norm {
    fn apply(&self, values: &[f32]) -> Vec<f32> {
        let count = values.len() as f32;
        let mean = values.iter().sum::<f32>() / count;
        let variance =
            values.iter().map(|value| (value - mean) * (value - mean)).sum::<f32>() / count;
        let factor = 1.0 / libm::sqrtf(variance + 1e-5);
        let scaled = values.iter().zip(self.scale.iter().zip(&self.shift));
        scaled.map(|(value, (scale, shift))| (value - mean) * factor * scale + shift).collect()
    }
}

/// Attention over the layers and a feed-forward net, each added back and normalised.
#[derive(Clone, PartialEq, Default, Debug)]
pub(crate) struct EncoderLayer {
    pub(crate) query: Dense,
    pub(crate) key: Dense,
    pub(crate) value: Dense,
    pub(crate) out: Dense,
    pub(crate) first_norm: Norm,
    pub(crate) wide: Dense,
    pub(crate) narrow: Dense,
    pub(crate) second_norm: Norm,
}

impl EncoderLayer {
    fn apply(&self, tokens: &[Vec<f32>]) -> Vec<Vec<f32>> {
        let project = |dense: &Dense| tokens.iter().map(|token| dense.apply(token)).collect();
        let (queries, keys, values): (Vec<_>, Vec<_>, Vec<_>) =
            (project(&self.query), project(&self.key), project(&self.value));
        tokens
            .iter()
            .zip(&queries)
            .map(|(token, query)| {
                let mixed = self.out.apply(&attend(query, &keys, &values));
                let normal = self.first_norm.apply(&add(token, &mixed));
                let mut wide = self.wide.apply(&normal);
                relu(&mut wide);
                self.second_norm.apply(&add(&normal, &self.narrow.apply(&wide)))
            })
            .collect()
    }
}

fn add(a: &[f32], b: &[f32]) -> Vec<f32> {
    a.iter().zip(b).map(|(a, b)| a + b).collect()
}

fn attend(query: &[f32], keys: &[Vec<f32>], values: &[Vec<f32>]) -> Vec<f32> {
    let scale = 1.0 / libm::sqrtf(query.len() as f32);
    let scores: Vec<f32> = keys.iter().map(|key| dot(query, key) * scale).collect();
    let largest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let weights: Vec<f32> = scores.iter().map(|score| libm::expf(score - largest)).collect();
    let total: f32 = weights.iter().sum();
    let mut mixed = vec![0.0; query.len()];
    for (weight, value) in weights.iter().zip(values) {
        mixed.iter_mut().zip(value).for_each(|(sum, value)| *sum += weight / total * value);
    }
    mixed
}

/// Reads a sequence of layers into one vector.
#[derive(Clone, PartialEq, Default, Debug)]
pub(crate) struct Encoder {
    pub(crate) embed: Vec<Dense>,
    pub(crate) layers: Vec<EncoderLayer>,
}

impl Encoder {
    fn apply(&self, tokens: &[Vec<f32>]) -> Vec<f32> {
        let embedded = tokens.iter().enumerate().map(|(place, token)| {
            let values = self.embed.iter().fold(token.clone(), |values, layer| {
                let mut next = layer.apply(&values);
                relu(&mut next);
                next
            });
            let width = values.len();
            let placed = values
                .iter()
                .enumerate()
                .map(|(index, value)| value + position(place, index, width));
            placed.collect()
        });
        let mut tokens: Vec<Vec<f32>> = embedded.collect();
        for layer in &self.layers {
            tokens = layer.apply(&tokens);
        }
        let width = self.embed.last().map_or(0, |layer| layer.bias.len());
        let mut sum = tokens.iter().fold(vec![0.0; width], |sum, token| add(&sum, token));
        sum.iter_mut().for_each(|value| *value *= SUM_SCALE);
        sum
    }
}

/// The fixed code of a place in the sequence.
pub(crate) fn position(place: usize, index: usize, width: usize) -> f32 {
    let exponent = (index / 2 * 2) as f32 / width as f32;
    let angle = place as f32 / libm::powf(10_000.0, exponent);
    if index.is_multiple_of(2) { libm::sinf(angle) } else { libm::cosf(angle) }
}

/// A trained classifier.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Net {
    /// Of the plain features, or of those beside the sequence.
    pub(crate) scaler: Scaler,
    /// Of a layer's features; empty for the MLP ensemble.
    pub(crate) layer_scaler: Scaler,
    pub(crate) encoders: Vec<Encoder>,
    pub(crate) head: Ensemble,
}

impl Net {
    pub(crate) fn class(&self, row: &Row) -> usize {
        let mut input = Vec::new();
        if self.encoders.is_empty() {
            input.extend(self.scaler.apply(&plain_features(row)));
        } else {
            let sequence: Vec<Vec<f32>> =
                layer_sequence(row).iter().map(|layer| self.layer_scaler.apply(layer)).collect();
            for encoder in &self.encoders {
                input.extend(encoder.apply(&sequence));
            }
            input.extend(self.scaler.apply(&extra_features(row)));
        }
        let logits = self.head.logits(&input);
        let best = logits.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
        best.map_or(0, |(class, _)| class)
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, NetError> {
        let mut cursor =
            Cursor(bytes.strip_prefix(&MAGIC).ok_or(NetError("its first bytes are others"))?);
        let net = Net {
            scaler: cursor.scaler()?,
            layer_scaler: cursor.scaler()?,
            encoders: cursor.many(Cursor::encoder)?,
            head: Ensemble { members: cursor.many(|cursor| cursor.many(Cursor::dense))? },
        };
        let fits =
            net.layer_scaler.mean.is_empty() || net.layer_scaler.mean.len() == LAYER_FEATURES;
        if fits && cursor.0.is_empty() { Ok(net) } else { Err(NetError("its sizes do not fit")) }
    }
}

struct Cursor<'a>(&'a [u8]);

impl Cursor<'_> {
    fn word(&mut self) -> Result<[u8; 4], NetError> {
        let (word, rest) = self.0.split_first_chunk::<4>().ok_or(NetError("it ends early"))?;
        self.0 = rest;
        Ok(*word)
    }

    fn count(&mut self) -> Result<usize, NetError> {
        let count = u32::from_le_bytes(self.word()?) as usize;
        if count <= self.0.len() { Ok(count) } else { Err(NetError("a count is too large")) }
    }

    fn many<T>(
        &mut self,
        mut read: impl FnMut(&mut Self) -> Result<T, NetError>,
    ) -> Result<Vec<T>, NetError> {
        (0..self.count()?).map(|_| read(self)).collect()
    }

    fn floats(&mut self) -> Result<Vec<f32>, NetError> {
        self.many(|cursor| cursor.word().map(f32::from_le_bytes))
    }

    fn scaler(&mut self) -> Result<Scaler, NetError> {
        Ok(Scaler { mean: self.floats()?, factor: self.floats()? })
    }

    fn dense(&mut self) -> Result<Dense, NetError> {
        let (weights, bias) = (self.floats()?, self.floats()?);
        if bias.is_empty() || weights.is_empty() || weights.len() % bias.len() != 0 {
            return Err(NetError("a layer's sizes do not fit"));
        }
        Ok(Dense { inputs: weights.len() / bias.len(), weights, bias })
    }

    fn norm(&mut self) -> Result<Norm, NetError> {
        Ok(Norm { scale: self.floats()?, shift: self.floats()? })
    }

    fn encoder(&mut self) -> Result<Encoder, NetError> {
        let embed = self.many(Cursor::dense)?;
        let layers = self.many(|cursor| {
            Ok(EncoderLayer {
                query: cursor.dense()?,
                key: cursor.dense()?,
                value: cursor.dense()?,
                out: cursor.dense()?,
                first_norm: cursor.norm()?,
                wide: cursor.dense()?,
                narrow: cursor.dense()?,
                second_norm: cursor.norm()?,
            })
        })?;
        Ok(Encoder { embed, layers })
    }
}

#[cfg(feature = "train")]
impl Net {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        let floats = |bytes: &mut Vec<u8>, values: &[f32]| {
            bytes.extend((values.len() as u32).to_le_bytes());
            values.iter().for_each(|value| bytes.extend(value.to_le_bytes()));
        };
        let dense = |bytes: &mut Vec<u8>, layer: &Dense| {
            floats(bytes, &layer.weights);
            floats(bytes, &layer.bias);
        };
        let norm = |bytes: &mut Vec<u8>, norm: &Norm| {
            floats(bytes, &norm.scale);
            floats(bytes, &norm.shift);
        };
        for scaler in [&self.scaler, &self.layer_scaler] {
            floats(&mut bytes, &scaler.mean);
            floats(&mut bytes, &scaler.factor);
        }
        bytes.extend((self.encoders.len() as u32).to_le_bytes());
        for encoder in &self.encoders {
            bytes.extend((encoder.embed.len() as u32).to_le_bytes());
            encoder.embed.iter().for_each(|layer| dense(&mut bytes, layer));
            bytes.extend((encoder.layers.len() as u32).to_le_bytes());
            for layer in &encoder.layers {
                for part in [&layer.query, &layer.key, &layer.value, &layer.out] {
                    dense(&mut bytes, part);
                }
                norm(&mut bytes, &layer.first_norm);
                dense(&mut bytes, &layer.wide);
                dense(&mut bytes, &layer.narrow);
                norm(&mut bytes, &layer.second_norm);
            }
        }
        bytes.extend((self.head.members.len() as u32).to_le_bytes());
        for member in &self.head.members {
            bytes.extend((member.len() as u32).to_le_bytes());
            member.iter().for_each(|layer| dense(&mut bytes, layer));
        }
        bytes
    }
}
