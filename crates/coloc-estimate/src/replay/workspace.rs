//! Scratch memory that convolutions ask for while they run.

use crate::graph::{Conv, Shape};

const MIB: u64 = 1 << 20;

/// Which of a convolution's three kernels runs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Pass {
    /// The result.
    Forward,
    /// The gradient of what was read.
    BackwardData,
    /// The gradient of the weights.
    BackwardFilter,
}

/// One convolution kernel about to run.
#[derive(Clone, Copy, Debug)]
pub struct ConvCall {
    /// Settings.
    pub conv: Conv,
    /// What it reads, for one sample.
    pub input: Shape,
    /// What it gives, for one sample.
    pub output: Shape,
    /// Samples.
    pub batch: u64,
    /// Bytes of a number.
    pub width: u64,
    /// Reads the data loader's batch: no gradient flows further.
    pub first: bool,
    /// Which kernel.
    pub pass: Pass,
}

impl ConvCall {
    /// A channels-last copy with channels padded to a multiple of `pad`.
    pub fn copy_bytes(&self, shape: Shape, pad: u32) -> u64 {
        let channels = u64::from(shape.channels).next_multiple_of(u64::from(pad));
        self.batch * shape.positions() * channels * self.width
    }

    /// The weights.
    pub fn weight_bytes(&self) -> u64 {
        let taps = u64::from(self.conv.kernel.0) * u64::from(self.conv.kernel.1);
        let full = u64::from(self.output.channels) * u64::from(self.conv.input) * taps;
        full / u64::from(self.conv.groups.max(1)) * self.width
    }
}

/// Workspace sizes of the plans that the library would try, best first.
/// A plan that does not fit the device is skipped for the next.
pub trait WorkspaceProvider {
    /// Sizes in bytes of the first and the second plan.
    fn plans(&self, call: &ConvCall) -> [u64; 2];
}

/// The rule that cuDNN's own heuristics and measured nets taught for fp32 with TF32 allowed on Ampere.
///
/// Forward copies the input to channels-last beside the weights, and the output too where a channel
/// count is no multiple of four; backward copies input and output; backward-filter adds a few MiB of
/// partial sums, just enough to miss the block that backward-data left. Pointwise kernels of stride 1
/// and depthwise kernels need none.
#[derive(Clone, Copy, Default, Debug)]
pub struct CopyRule {
    /// Forward copies the output always: what some versions do.
    pub eager_output: bool,
}

impl CopyRule {
    /// Channels are padded to this in the copies.
    const PAD: u32 = 4;
    /// Partial sums of backward-filter.
    const PARTIAL_SUMS: u64 = 3 * MIB;
}

impl WorkspaceProvider for CopyRule {
    fn plans(&self, call: &ConvCall) -> [u64; 2] {
        if call.conv.pointwise() || call.conv.depthwise() {
            return [0, 0];
        }
        let input = call.copy_bytes(call.input, Self::PAD) + call.weight_bytes();
        let both = input + call.copy_bytes(call.output, Self::PAD);
        let aligned = call.input.channels.is_multiple_of(Self::PAD)
            && call.output.channels.is_multiple_of(Self::PAD);
        match call.pass {
            Pass::Forward if call.first => [0, 0],
            Pass::Forward if aligned && !self.eager_output => [input, 0],
            Pass::Forward | Pass::BackwardData => [both, 0],
            Pass::BackwardFilter => [both + Self::PARTIAL_SUMS, 0],
        }
    }
}

/// No workspace at all: TF32 off, or a lower limit for features.
#[derive(Clone, Copy, Default, Debug)]
pub struct NoWorkspace;

impl WorkspaceProvider for NoWorkspace {
    fn plans(&self, _: &ConvCall) -> [u64; 2] {
        [0, 0]
    }
}
