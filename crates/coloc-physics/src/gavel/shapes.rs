//! What Gavel's jobs do to a GPU, as far as its measurements tell. Neither memory nor activity was
//! published; both are inferred.

/// A job's part of a device.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Shape {
    pub(super) model: &'static str,
    pub(super) batch: u32,
    /// Speed of each of two copies on one V100 against one alone; 0 if two do not fit.
    pub(super) twin: f64,
    /// Memory in MiB: chosen by hand after which pairs were measured and which were reported as not
    /// running. Of 351 pairs each, 2 disagree on a P100 with 16 GB, 9 on a K80 with 12 GB and 14 on a V100
    /// with 16 GB, where more pairs failed than on a P100 with as much memory.
    pub(super) memory_mib: u64,
}

const fn shape(model: &'static str, batch: u32, twin: f64, memory_mib: u64) -> Shape {
    Shape { model, batch, twin, memory_mib }
}

pub(super) const SHAPES: [Shape; 26] = [
    shape("A3C", 0, 0.510, 1200),
    shape("CycleGAN", 0, 0.625, 5100),
    shape("LM", 5, 0.622, 1400),
    shape("LM", 10, 0.709, 1500),
    shape("LM", 20, 0.653, 1700),
    shape("LM", 40, 0.626, 2300),
    shape("LM", 80, 0.619, 4700),
    shape("Recommendation", 512, 0.173, 1400),
    shape("Recommendation", 1024, 0.219, 1700),
    shape("Recommendation", 2048, 0.309, 2300),
    shape("Recommendation", 4096, 0.767, 4800),
    shape("Recommendation", 8192, 0.588, 7100),
    shape("ResNet-18", 16, 1.0, 1300),
    shape("ResNet-18", 32, 1.0, 1400),
    shape("ResNet-18", 64, 1.0, 1500),
    shape("ResNet-18", 128, 0.781, 1800),
    shape("ResNet-18", 256, 0.636, 2300),
    shape("ResNet-50", 16, 0.316, 2300),
    shape("ResNet-50", 32, 0.366, 4100),
    shape("ResNet-50", 64, 0.498, 6900),
    shape("ResNet-50", 128, 0.0, 11_600),
    shape("Transformer", 16, 0.880, 1500),
    shape("Transformer", 32, 0.853, 2000),
    shape("Transformer", 64, 0.744, 3000),
    shape("Transformer", 128, 0.672, 4900),
    shape("Transformer", 256, 0.0, 9400),
];

impl Shape {
    /// GPU activity alone: two copies that each ask for `d > 1/2` of a device run at `1 / 2d`.
    pub(super) fn activity(&self) -> f64 {
        if self.twin == 0.0 { 1.0 } else { (0.5 / self.twin).min(1.0) }
    }
}
