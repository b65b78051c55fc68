//! Activity profiles of the catalogue: GPU-active, SM, occupancy and DRAM share when alone on an A100.
//!
//! None of these is published per task. They are **calibrated**: chosen plausible by family and batch,
//! then set so that the published aggregates of the 60-task heavy trace come out (mean SM activity 0.61
//! and 217 W per GPU when exclusive; 0.85 and 254 W under collocation). `docs/physics.md` has the result.

use super::Alone;

const fn alone(gpu: f64, sm: f64, occupancy: f64, dram: f64) -> Alone {
    Alone { gpu, sm, occupancy, dram }
}

pub(super) const RESNET50: [Alone; 3] =
    [alone(0.86, 0.56, 0.27, 0.33), alone(0.90, 0.62, 0.31, 0.38), alone(0.93, 0.67, 0.34, 0.41)];
pub(super) const VGG16: [Alone; 3] =
    [alone(0.93, 0.73, 0.33, 0.36), alone(0.95, 0.78, 0.36, 0.39), alone(0.97, 0.82, 0.38, 0.42)];
pub(super) const INCEPTION: [Alone; 3] =
    [alone(0.84, 0.52, 0.24, 0.28), alone(0.88, 0.59, 0.28, 0.32), alone(0.91, 0.65, 0.31, 0.36)];
pub(super) const XCEPTION: [Alone; 3] =
    [alone(0.90, 0.63, 0.31, 0.40), alone(0.92, 0.68, 0.34, 0.44), alone(0.94, 0.72, 0.36, 0.47)];
pub(super) const EFFICIENTNET: [Alone; 3] =
    [alone(0.82, 0.46, 0.24, 0.33), alone(0.87, 0.55, 0.29, 0.39), alone(0.90, 0.61, 0.32, 0.43)];
pub(super) const MOBILENET: [Alone; 3] =
    [alone(0.78, 0.43, 0.23, 0.32), alone(0.84, 0.51, 0.27, 0.38), alone(0.87, 0.57, 0.30, 0.42)];

pub(super) const BERT_BASE: Alone = alone(0.97, 0.81, 0.37, 0.42);
pub(super) const BERT_LARGE: Alone = alone(0.97, 0.79, 0.35, 0.39);
pub(super) const GPT2_LARGE: Alone = alone(0.96, 0.78, 0.34, 0.41);
pub(super) const XLNET_BASE: Alone = alone(0.92, 0.66, 0.30, 0.34);
pub(super) const XLNET_LARGE: Alone = alone(0.95, 0.75, 0.33, 0.38);

pub(super) const UNET: Alone = alone(0.88, 0.58, 0.28, 0.36);
pub(super) const MASK_RCNN: Alone = alone(0.85, 0.50, 0.22, 0.28);
pub(super) const DLRM: Alone = alone(0.30, 0.10, 0.05, 0.12);
pub(super) const MNIST: Alone = alone(0.25, 0.05, 0.02, 0.02);

pub(super) const RESNET18: [Alone; 3] =
    [alone(0.62, 0.25, 0.10, 0.10), alone(0.68, 0.32, 0.13, 0.14), alone(0.74, 0.40, 0.17, 0.18)];
pub(super) const RESNET34: [Alone; 3] =
    [alone(0.65, 0.27, 0.11, 0.11), alone(0.71, 0.34, 0.14, 0.15), alone(0.76, 0.42, 0.18, 0.19)];
pub(super) const MOBILENET_SMALL: [Alone; 3] =
    [alone(0.55, 0.17, 0.07, 0.08), alone(0.60, 0.22, 0.09, 0.10), alone(0.65, 0.28, 0.12, 0.13)];
pub(super) const EFFICIENTNET_SMALL: [Alone; 3] =
    [alone(0.58, 0.19, 0.08, 0.09), alone(0.62, 0.24, 0.10, 0.11), alone(0.68, 0.30, 0.13, 0.14)];
