//! How a task is trained: everything that its graph does not say.

use coloc_model::Bytes;
use serde::Serialize;
use std::str::FromStr;

/// A word on the command line is not one of those that are known.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("unknown {what} {text:?}; known are {known}")]
pub struct UnknownWord {
    what: &'static str,
    text: String,
    known: &'static str,
}

impl UnknownWord {
    /// `text` is none of the words that `what` may be.
    pub(crate) fn new(what: &'static str, text: &str, known: &'static str) -> Self {
        UnknownWord { what, text: text.to_owned(), known }
    }
}

/// What the optimizer holds beside weights and gradients.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Optimizer {
    /// Plain gradient descent.
    Sgd,
    /// Gradient descent with momentum.
    SgdMomentum,
    /// Momentum and weight decay, as in the ImageNet examples: a copy of the gradients at each step.
    SgdMomentumDecay,
    /// Two moments, fused over all parameters.
    Adam,
    /// Adam with decoupled decay; the same memory.
    AdamW,
    /// One running sum.
    Adagrad,
    /// One running mean.
    RmsProp,
    /// One moment.
    Lion,
}

impl Optimizer {
    /// Copies of the weights that stay.
    pub const fn states(self) -> usize {
        match self {
            Self::Sgd => 0,
            Self::SgdMomentum | Self::SgdMomentumDecay => 1,
            Self::Adagrad | Self::RmsProp | Self::Lion => 1,
            Self::Adam | Self::AdamW => 2,
        }
    }

    /// Copies of the weights that live during a step.
    pub const fn temporaries(self) -> usize {
        match self {
            Self::Sgd | Self::SgdMomentum => 0,
            _ => 1,
        }
    }
}

impl FromStr for Optimizer {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text.to_ascii_lowercase().as_str() {
            "sgd" => Self::Sgd,
            "sgdm" | "momentum" => Self::SgdMomentum,
            "sgdm-decay" | "sgd-imagenet" => Self::SgdMomentumDecay,
            "adam" => Self::Adam,
            "adamw" => Self::AdamW,
            "adagrad" => Self::Adagrad,
            "rmsprop" => Self::RmsProp,
            "lion" => Self::Lion,
            _ => {
                let known = "adam, adamw, sgd, sgdm, sgdm-decay, adagrad, rmsprop, lion";
                return Err(UnknownWord::new("optimizer", text, known));
            }
        })
    }
}

/// The numbers' width.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Precision {
    /// 32 bits everywhere.
    #[default]
    Fp32,
    /// 16 bits everywhere, optimizer included; under ZeRO the optimizer keeps 32.
    Half,
    /// 32-bit weights, 16-bit activations (autocast); under ZeRO the same as `Half`.
    Mixed,
}

impl Precision {
    /// Bytes of a number in an activation.
    pub const fn activation_bytes(self) -> u64 {
        match self {
            Self::Fp32 => 4,
            Self::Half | Self::Mixed => 2,
        }
    }
}

impl FromStr for Precision {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text.to_ascii_lowercase().as_str() {
            "fp32" | "float32" | "tf32" => Self::Fp32,
            "bf16" | "fp16" | "half" | "bfloat16" | "float16" => Self::Half,
            "amp" | "mixed" | "bf16-mixed" | "16-mixed" | "fp16-mixed" => Self::Mixed,
            _ => return Err(UnknownWord::new("precision", text, "fp32, fp16, bf16, mixed")),
        })
    }
}

/// Forward passes before training, recorded by autograd, as scripts do that print a summary.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SummaryPasses {
    /// Samples in each pass.
    pub batch: u32,
    /// How many passes.
    pub passes: u32,
}

/// What ZeRO divides among the GPUs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sharding {
    /// 0: nothing; 1: optimizer states; 2: gradients too; 3: parameters too.
    pub stage: u8,
    /// GPUs that share.
    pub gpus: u32,
}

impl Sharding {
    /// How many ways something is divided that stage `from` and later divide.
    pub const fn ways(self, from: u8) -> u64 {
        if self.stage >= from && self.gpus > 1 { self.gpus as u64 } else { 1 }
    }

    /// The share of one GPU in so many bytes that stage `from` and later divide.
    pub const fn share(self, bytes: u64, from: u8) -> u64 {
        // A division takes longer than all else that is done for a parameter.
        match self.ways(from) {
            1 => bytes,
            ways => bytes.div_ceil(ways),
        }
    }
}

/// Bytes of the numbers that belong to a parameter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ParameterWidths {
    /// In the weight that the passes use.
    pub weight: u64,
    /// In the gradient.
    pub gradient: u64,
    /// In the optimizer's own copy of the weight; 0 when it works on the weight itself.
    pub master: u64,
    /// In each of the optimizer's states.
    pub state: u64,
    /// In the copy of a weight that autocast makes for a pass; 0 without autocast.
    pub cast: u64,
}

/// How a graph is trained.
#[derive(Clone, PartialEq, Debug)]
pub struct RunConfig {
    /// Samples per iteration on one GPU.
    pub batch: u32,
    /// Samples of the last, partial batch of an epoch; 0 when there is none.
    pub last_batch: u32,
    /// Full batches replayed per epoch, at least one.
    pub full_batches: u32,
    /// Epochs replayed; two show what one leaves behind.
    pub epochs: u32,
    /// Iterations replayed at most.
    pub iterations: u32,
    /// The optimizer.
    pub optimizer: Optimizer,
    /// The numbers' width.
    pub precision: Precision,
    /// Passes before training.
    pub summary_passes: Option<SummaryPasses>,
    /// ZeRO.
    pub sharding: Sharding,
    /// Room for the allocator on the device; without it nothing is ever short.
    pub limit: Option<Bytes>,
}

impl RunConfig {
    /// Two epochs of one full batch with Adam in 32 bits.
    pub fn new(batch: u32) -> Self {
        RunConfig {
            batch,
            last_batch: 0,
            full_batches: 1,
            epochs: 2,
            iterations: u32::MAX,
            optimizer: Optimizer::Adam,
            precision: Precision::Fp32,
            summary_passes: None,
            sharding: Sharding::default(),
            limit: None,
        }
    }

    /// How wide a parameter's numbers are. ZeRO in 16 bits is DeepSpeed's: weights and gradients of 16 bits,
    /// and an optimizer that keeps weights and states of 32.
    pub fn parameter_widths(&self) -> ParameterWidths {
        let same = |bytes, cast| ParameterWidths {
            weight: bytes,
            gradient: bytes,
            master: 0,
            state: bytes,
            cast,
        };
        match self.precision {
            Precision::Fp32 => same(4, 0),
            Precision::Half | Precision::Mixed if self.sharding.ways(1) > 1 => {
                ParameterWidths { weight: 2, gradient: 2, master: 4, state: 4, cast: 0 }
            }
            Precision::Half => same(2, 0),
            Precision::Mixed => same(4, 2),
        }
    }

    /// The sizes of the batches, in order.
    pub fn batches(&self) -> impl Iterator<Item = u32> + '_ {
        let batches = (0..self.epochs).flat_map(|_| {
            let full = (0..self.full_batches).map(|_| self.batch);
            full.chain((self.last_batch > 0).then_some(self.last_batch))
        });
        batches.take(self.iterations as usize)
    }
}
