//! The two architectures, in candle.

use super::Architecture;
use super::data::Batch;
use crate::dataset::Kind;
use crate::gpumemnet::{Classes, SUM_SCALE, position};
use crate::train::fold_of;
use candle_core::{D, Result, Tensor};
use candle_nn::{
    BatchNorm, LayerNorm, Linear, Module, ModuleT, VarBuilder, VarMap, batch_norm, layer_norm,
    linear, ops,
};

const EMBEDDED: [(usize, usize); 2] = [(6, 3), (4, 2)];
const HIDDEN: usize = 4;

/// Depths of the ensemble's members.
fn depths(kind: Kind) -> Vec<usize> {
    match kind {
        Kind::Cnn => (1..=8).chain(4..=8).chain(4..=6).collect(),
        Kind::Mlp | Kind::Transformer => (1..=7).chain(1..=6).collect(),
    }
}

pub(super) struct Member {
    pub(super) layers: Vec<(Linear, BatchNorm)>,
    pub(super) last: Linear,
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

pub(super) struct Attending {
    pub(super) parts: [Linear; 4],
    pub(super) norms: [LayerNorm; 2],
    pub(super) wide: Linear,
    pub(super) narrow: Linear,
}

pub(super) struct Reading {
    pub(super) embed: Vec<(Linear, BatchNorm)>,
    pub(super) layers: Vec<Attending>,
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
        values.broadcast_mul(&mask.unsqueeze(2)?)?.sum(1)? * f64::from(SUM_SCALE)
    }
}

pub(super) struct Model {
    pub(super) readings: Vec<Reading>,
    pub(super) members: Vec<Member>,
}

impl Model {
    pub(super) fn new(
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

    pub(super) fn forward(&self, batch: &Batch, train: bool) -> Result<Tensor> {
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

/// First values that are the same in every training: Xavier's range for matrices, norms that change
/// nothing, no biases. candle's own cannot be repeated.
pub(super) fn initialise(vars: &VarMap) -> Result<()> {
    let data = vars.data().lock().expect("no other thread holds the variables");
    let mut names: Vec<&String> = data.keys().collect();
    names.sort_unstable();
    let mut drawn = 0u64;
    for name in names {
        let var = &data[name];
        if let [outputs, inputs] = *var.dims() {
            let reach = libm::sqrt(6.0 / (inputs + outputs) as f64);
            let mut draw = || {
                drawn += 1;
                reach * (2.0 * fold_of(drawn, 1 << 32) as f64 / (1u64 << 32) as f64 - 1.0)
            };
            let values: Vec<f32> = (0..inputs * outputs).map(|_| draw() as f32).collect();
            var.set(&Tensor::from_vec(values, (outputs, inputs), var.device())?)?;
        } else if name.ends_with("bias") {
            var.set(&var.zeros_like()?)?;
        }
    }
    Ok(())
}
