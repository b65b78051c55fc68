//! Trains GPUMemNet's ensembles.

use super::{TrainError, fold_of};
use crate::dataset::{Kind, Prediction, Row, Scores, Standing, score};
use crate::gpumemnet::{
    Classes, Dense, Encoder, EncoderLayer, Ensemble, GpuMemNet, Norm, Scaler, TrainedNet as Net,
    extra_features, layer_sequence, plain_features, position,
};
use candle_core::{D, DType, Device, IndexOp, Result, Tensor};
use candle_nn::{
    AdamW, BatchNorm, LayerNorm, Linear, Module, ModuleT, Optimizer, ParamsAdamW, VarBuilder,
    VarMap, batch_norm, layer_norm, linear, loss, ops,
};

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
const EMBEDDED: [(usize, usize); 2] = [(6, 3), (4, 2)];
const HIDDEN: usize = 4;

/// Passes over the data. Steps of the transformer ensemble cost far more, and it needs fewer.
fn epochs(architecture: Architecture) -> usize {
    match architecture {
        Architecture::Mlp => 120,
        Architecture::Transformer => 40,
    }
}

/// Depths of the ensemble's members.
fn depths(kind: Kind) -> Vec<usize> {
    match kind {
        Kind::Cnn => (1..=8).chain(4..=8).chain(4..=6).collect(),
        Kind::Mlp | Kind::Transformer => (1..=7).chain(1..=6).collect(),
    }
}

struct Member {
    layers: Vec<(Linear, BatchNorm)>,
    last: Linear,
}

impl Member {
    fn new(inputs: usize, depth: usize, classes: usize, vars: &VarBuilder<'_>) -> Result<Self> {
        let mut layers = Vec::new();
        let mut width = inputs;
        for index in 0..depth {
            let next = (8usize >> index.min(3)).max(4);
            let vars = vars.pp(index);
            layers
                .push((linear(width, next, vars.pp("l"))?, batch_norm(next, 1e-5, vars.pp("n"))?));
            width = next;
        }
        Ok(Member { layers, last: linear(width, classes, vars.pp("last"))? })
    }

    fn forward(&self, input: &Tensor, train: bool) -> Result<Tensor> {
        let mut values = input.clone();
        for (layer, norm) in &self.layers {
            values = norm.forward_t(&layer.forward(&values)?, train)?.relu()?;
        }
        self.last.forward(&values)
    }
}

struct Attending {
    parts: [Linear; 4],
    norms: [LayerNorm; 2],
    wide: Linear,
    narrow: Linear,
}

struct Reading {
    embed: Vec<(Linear, BatchNorm)>,
    layers: Vec<Attending>,
    width: usize,
}

impl Reading {
    fn new(width: usize, layers: usize, vars: &VarBuilder<'_>) -> Result<Self> {
        let sizes = [(4, width), (width, width)];
        let embed = sizes.iter().enumerate().map(|(index, &(from, to))| {
            let vars = vars.pp(format!("embed{index}"));
            Ok((linear(from, to, vars.pp("l"))?, batch_norm(to, 1e-5, vars.pp("n"))?))
        });
        let embed = embed.collect::<Result<_>>()?;
        let layers = (0..layers).map(|index| {
            let vars = vars.pp(format!("layer{index}"));
            let part = |name: &str| linear(width, width, vars.pp(name));
            Ok(Attending {
                parts: [part("q")?, part("k")?, part("v")?, part("o")?],
                norms: [
                    layer_norm(width, 1e-5, vars.pp("n1"))?,
                    layer_norm(width, 1e-5, vars.pp("n2"))?,
                ],
                wide: linear(width, HIDDEN, vars.pp("w"))?,
                narrow: linear(HIDDEN, width, vars.pp("s"))?,
            })
        });
        Ok(Reading { embed, layers: layers.collect::<Result<_>>()?, width })
    }

    /// `tokens` is rows by length by features; `mask` is 1 where there is a layer.
    fn forward(&self, tokens: &Tensor, mask: &Tensor, train: bool) -> Result<Tensor> {
        let (rows, length, _) = tokens.dims3()?;
        let mut values = tokens.flatten(0, 1)?;
        for (layer, norm) in &self.embed {
            values = norm.forward_t(&layer.forward(&values)?, train)?.relu()?;
        }
        let places: Vec<f32> = (0..length)
            .flat_map(|place| (0..self.width).map(move |index| position(place, index, self.width)))
            .collect();
        let places = Tensor::from_vec(places, (1, length, self.width), tokens.device())?;
        let mut values = values.reshape((rows, length, self.width))?.broadcast_add(&places)?;
        let hidden = ((mask - 1.0)? * 1e9)?.unsqueeze(1)?;
        for layer in &self.layers {
            let [query, key, value, out] = &layer.parts;
            let scores = query.forward(&values)?.matmul(&key.forward(&values)?.t()?)?;
            let scores = (scores * (1.0 / (self.width as f64).sqrt()))?.broadcast_add(&hidden)?;
            let mixed = ops::softmax(&scores, D::Minus1)?.matmul(&value.forward(&values)?)?;
            let normal = layer.norms[0].forward(&(&values + out.forward(&mixed)?)?)?;
            let fed = layer.narrow.forward(&layer.wide.forward(&normal)?.relu()?)?;
            values = layer.norms[1].forward(&(normal + fed)?)?;
        }
        values.broadcast_mul(&mask.unsqueeze(2)?)?.sum(1)
    }
}

struct Model {
    readings: Vec<Reading>,
    members: Vec<Member>,
}

/// Rows as tensors.
struct Batch {
    plain: Tensor,
    tokens: Option<(Tensor, Tensor)>,
    classes: Tensor,
}

impl Model {
    fn new(
        architecture: Architecture,
        kind: Kind,
        plain: usize,
        vars: &VarBuilder<'_>,
    ) -> Result<Self> {
        let mut inputs = plain;
        let mut readings = Vec::new();
        if architecture == Architecture::Transformer {
            for (index, (width, layers)) in EMBEDDED.into_iter().enumerate() {
                readings.push(Reading::new(width, layers, &vars.pp(format!("reading{index}")))?);
                inputs += width;
            }
        }
        let classes = Classes::of(kind).count();
        let members = depths(kind).into_iter().enumerate().map(|(index, depth)| {
            Member::new(inputs, depth, classes, &vars.pp(format!("member{index}")))
        });
        Ok(Model { readings, members: members.collect::<Result<_>>()? })
    }

    fn forward(&self, batch: &Batch, train: bool) -> Result<Tensor> {
        let mut parts = Vec::new();
        if let Some((tokens, mask)) = &batch.tokens {
            for reading in &self.readings {
                parts.push(reading.forward(tokens, mask, train)?);
            }
        }
        parts.push(batch.plain.clone());
        let input = Tensor::cat(&parts, 1)?;
        let mut sum = self.members[0].forward(&input, train)?;
        for member in &self.members[1..] {
            sum = (sum + member.forward(&input, train)?)?;
        }
        sum * (1.0 / self.members.len() as f64)
    }
}

/// Everything that is scaled and cut into batches.
struct Data {
    scaler: Scaler,
    layer_scaler: Scaler,
    plain: Vec<Vec<f32>>,
    sequences: Vec<Vec<Vec<f32>>>,
    classes: Vec<u32>,
}

impl Data {
    fn new(rows: &[&Row], kind: Kind, architecture: Architecture) -> Self {
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

    fn batch(&self, which: &[usize], device: &Device) -> Result<Batch> {
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

fn train(rows: &[&Row], kind: Kind, architecture: Architecture) -> Result<Net> {
    let device = Device::Cpu;
    let data = Data::new(rows, kind, architecture);
    let vars = VarMap::new();
    let builder = VarBuilder::from_varmap(&vars, DType::F32, &device);
    let model = Model::new(architecture, kind, data.scaler.mean.len(), &builder)?;
    let settings = ParamsAdamW { lr: RATE, weight_decay: 0.0, ..ParamsAdamW::default() };
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

fn export(model: &Model, data: Data) -> Result<Net> {
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

fn usable(row: &Row) -> bool {
    row.graph.is_some() && matches!(row.standing, Standing::Trained | Standing::OutOfMemory)
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
