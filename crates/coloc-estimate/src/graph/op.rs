//! Operations: what they compute, with which parameters, and what autograd keeps of them.

use serde::Serialize;
use std::fmt;

/// Channels (features) and positions of a tensor for one sample.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Shape {
    /// Channels of an image, features of a vector, width of a token.
    pub channels: u32,
    /// Rows of an image, tokens of a sequence, else 1.
    pub height: u32,
    /// Columns of an image, else 1.
    pub width: u32,
}

impl Shape {
    /// A vector.
    pub const fn features(channels: u32) -> Self {
        Shape { channels, height: 1, width: 1 }
    }

    /// A feature map.
    pub const fn image(channels: u32, height: u32, width: u32) -> Self {
        Shape { channels, height, width }
    }

    /// `tokens` vectors.
    pub const fn sequence(tokens: u32, channels: u32) -> Self {
        Shape { channels, height: tokens, width: 1 }
    }

    /// The same positions with other channels.
    #[must_use]
    pub const fn with_channels(self, channels: u32) -> Self {
        Shape { channels, ..self }
    }

    /// Positions: pixels or tokens.
    pub const fn positions(self) -> u64 {
        self.height as u64 * self.width as u64
    }

    /// Numbers in the tensor; a shape that makes no sense may have more than can be counted.
    pub const fn elements(self) -> u64 {
        (self.channels as u64).saturating_mul(self.positions())
    }
}

impl fmt::Display for Shape {
    /// As the text format writes it: `64x56x56`, or the features alone.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.channels, self.height, self.width) {
            (channels, 1, 1) => write!(f, "{channels}"),
            (channels, height, width) => write!(f, "{channels}x{height}x{width}"),
        }
    }
}

/// Element-wise functions (and softmax), named as PyTorch's modules.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[allow(missing_docs)]
pub enum Activation {
    ELU,
    GELU,
    Hardsigmoid,
    Hardswish,
    LeakyReLU,
    Mish,
    /// GELU's tanh formula written out in Python: eight kernels, four tensors kept.
    NewGELU,
    PReLU,
    ReLU,
    ReLU6,
    SELU,
    Sigmoid,
    SiLU,
    Softmax,
    Softplus,
    Tanh,
}

impl Activation {
    /// The function of a module name, written as PyTorch, Hugging Face or a generator's file name does.
    pub fn from_name(name: &str) -> Option<Self> {
        let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
        let plain = plain.to_ascii_lowercase();
        Some(match plain.strip_suffix("activation").unwrap_or(&plain) {
            "elu" => Self::ELU,
            "gelu" | "geluactivation" => Self::GELU,
            "hardsigmoid" => Self::Hardsigmoid,
            "hardswish" => Self::Hardswish,
            "leakyrelu" => Self::LeakyReLU,
            "mish" => Self::Mish,
            "newgelu" | "gelunew" | "fastgelu" | "gelufast" | "gelupytorchtanh" => Self::NewGELU,
            "prelu" => Self::PReLU,
            "relu" => Self::ReLU,
            "relu6" => Self::ReLU6,
            "selu" => Self::SELU,
            "sigmoid" => Self::Sigmoid,
            "silu" | "swish" => Self::SiLU,
            "softmax" | "softmax2d" | "logsoftmax" => Self::Softmax,
            "softplus" => Self::Softplus,
            "tanh" => Self::Tanh,
            _ => return None,
        })
    }

    /// Autograd keeps the result rather than the argument.
    pub const fn keeps_output(self) -> bool {
        matches!(self, Self::ReLU | Self::Sigmoid | Self::Softmax | Self::Tanh)
    }
}

/// A convolution's settings; its output channels are the node's.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Conv {
    /// Channels read.
    pub input: u32,
    /// Rows and columns of the kernel.
    pub kernel: (u32, u32),
    /// Step between positions.
    pub stride: u32,
    /// Groups; equal to `input` when depthwise.
    pub groups: u32,
    /// Adds a vector.
    pub bias: bool,
    /// Runs backwards, as in decoders.
    pub transposed: bool,
}

impl Conv {
    /// Each channel on its own.
    pub const fn depthwise(&self) -> bool {
        self.groups > 1 && self.groups == self.input
    }

    /// A matrix product in disguise.
    pub const fn pointwise(&self) -> bool {
        self.kernel.0 == 1 && self.kernel.1 == 1 && self.stride == 1 && self.groups == 1
    }
}

/// How attention is computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Attention {
    /// Query heads.
    pub heads: u32,
    /// Positions of the keys.
    pub keys: u32,
    /// The scores are materialised (eager) instead of streamed (scaled-dot-product kernel).
    pub eager: bool,
    /// Dropout on the scores.
    pub dropout: bool,
}

/// One operation.
#[derive(Clone, PartialEq, Debug)]
pub enum Op {
    /// A batch from the data loader, as floats.
    Input,
    /// Token numbers from the data loader, eight bytes each.
    Tokens,
    /// A matrix product with a parameter.
    Linear {
        /// Features read.
        input: u32,
        /// Adds a vector.
        bias: bool,
        /// The weight belongs to another node: no parameter of its own, but a gradient to add.
        tied: bool,
    },
    /// A convolution.
    Conv(Conv),
    /// Batch normalisation, with running statistics.
    BatchNorm,
    /// Batch normalisation with constant statistics: a product and a sum.
    FrozenBatchNorm,
    /// Layer normalisation; without `bias` it is an RMS norm.
    LayerNorm {
        /// Has a shift beside the scale.
        bias: bool,
    },
    /// An element-wise function.
    Activate {
        /// Which.
        function: Activation,
        /// Overwrites its argument.
        in_place: bool,
    },
    /// Zeroes at random.
    Dropout {
        /// Overwrites its argument.
        in_place: bool,
    },
    /// The largest of a window, with its place.
    MaxPool,
    /// The mean of a window.
    AvgPool,
    /// The mean over all positions.
    GlobalPool,
    /// Repeats or blends positions.
    Upsample,
    /// A sum of two.
    Add {
        /// Into the first.
        in_place: bool,
    },
    /// A product of two.
    Multiply,
    /// Side by side.
    Concat,
    /// The same memory under another shape.
    View,
    /// A contiguous copy; the gradient passes as it is.
    Copy,
    /// A contiguous copy whose gradient is copied back.
    Transpose,
    /// Some positions or channels of the argument, copied.
    Select,
    /// Rows of a table, chosen by tokens.
    Embedding {
        /// Rows of the table.
        rows: u32,
    },
    /// Adds a learned table, such as positions.
    AddTable {
        /// Numbers in the table.
        elements: u64,
    },
    /// Softmax(query times key) times value.
    Attention(Attention),
    /// Not known: treated as a function that keeps argument and result.
    Unknown {
        /// Numbers in its parameters.
        parameters: u64,
    },
}

impl Op {
    /// Sizes of the parameter tensors, in order of creation.
    pub fn parameters(&self, shape: Shape) -> ParameterSizes {
        let channels = u64::from(shape.channels);
        match *self {
            Op::Linear { input, bias, tied } => {
                let weight = if tied { 0 } else { channels.saturating_mul(input.into()) };
                ParameterSizes::new(weight, if bias { channels } else { 0 })
            }
            Op::Conv(conv) => {
                let taps = u64::from(conv.kernel.0) * u64::from(conv.kernel.1);
                let weight = channels.saturating_mul(conv.input.into()).saturating_mul(taps)
                    / u64::from(conv.groups.max(1));
                ParameterSizes::new(weight, if conv.bias { channels } else { 0 })
            }
            Op::BatchNorm => ParameterSizes::new(channels, channels),
            Op::LayerNorm { bias } => {
                ParameterSizes::new(channels, if bias { channels } else { 0 })
            }
            Op::Activate { function: Activation::PReLU, .. } => ParameterSizes::new(1, 0),
            Op::Embedding { rows } => ParameterSizes::new(channels.saturating_mul(rows.into()), 0),
            Op::AddTable { elements } => ParameterSizes::new(elements, 0),
            Op::Unknown { parameters } => ParameterSizes::new(parameters, 0),
            _ => ParameterSizes::new(0, 0),
        }
    }

    /// Multiplications for one sample's forward pass.
    pub fn multiplications(&self, shape: Shape) -> f64 {
        let elements = shape.elements() as f64;
        match *self {
            Op::Linear { input, .. } => elements * f64::from(input),
            Op::Conv(conv) => {
                let taps = f64::from(conv.kernel.0) * f64::from(conv.kernel.1);
                elements * taps * f64::from(conv.input) / f64::from(conv.groups.max(1))
            }
            Op::Attention(attention) => 2.0 * elements * f64::from(attention.keys),
            _ => 0.0,
        }
    }
}

/// At most two parameter tensors; zero means that there is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ParameterSizes([u64; 2]);

impl ParameterSizes {
    fn new(weight: u64, bias: u64) -> Self {
        ParameterSizes([weight, bias])
    }

    /// The sizes that exist.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.0.iter().copied().filter(|size| *size > 0)
    }
}
