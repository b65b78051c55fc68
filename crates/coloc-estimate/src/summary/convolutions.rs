//! What a convolution's row of numbers says about it.

use super::table::Row;
use crate::graph::{Conv, Shape};

/// The settings with which a convolution of `row` reads `input`, if any.
pub(super) fn explain(row: &Row<'_>, input: Shape, taps: &[u32]) -> Option<Conv> {
    let (read, written) = (u64::from(input.channels), u64::from(row.shape.channels));
    let stride = stride(input, row.shape)?;
    let weights = [(row.parameters, false), (row.parameters.checked_sub(written)?, true)];
    for &count in taps {
        for (weights, bias) in weights {
            let dense = read * written * u64::from(count) == weights;
            let depthwise = read == written && read > 1 && read * u64::from(count) == weights;
            if !dense && !depthwise {
                continue;
            }
            let kernel = match count {
                3 => (1, 3),
                7 => (1, 7),
                square => (square.isqrt(), square.isqrt()),
            };
            let groups = if dense { 1 } else { input.channels };
            return Some(Conv {
                input: input.channels,
                kernel,
                stride,
                groups,
                bias,
                transposed: false,
            });
        }
    }
    None
}

/// The step that turns one side into the other; a mean over everything counts as one.
fn stride(input: Shape, output: Shape) -> Option<u32> {
    if output.positions() == 1 {
        return Some(1);
    }
    [1, 2, 4].into_iter().find(|stride| {
        let expected = input.height.div_ceil(*stride);
        // Unpadded kernels lose a few positions.
        expected >= output.height && expected - output.height <= 6 && input.height >= output.height
    })
}

/// From the table's input size, or from the first layer.
pub(super) fn input_shape(rows: &[Row<'_>], batch: u32, input_mib: Option<f64>) -> Shape {
    let first = &rows[0];
    if first.kind == "Linear" || first.shape.positions() == 1 && !first.kind.starts_with("Conv") {
        let features = (first.parameters / u64::from(first.shape.channels)).saturating_sub(1);
        return Shape::features(features.clamp(1, 1 << 20) as u32);
    }
    let written = u64::from(first.shape.channels);
    let channels = [3u64, 1, 4].into_iter().find(|channels| {
        [1u64, 9, 25, 49, 121].iter().any(|taps| {
            let weights = written * channels * taps;
            first.parameters == weights || first.parameters == weights + written
        })
    });
    let channels = channels.unwrap_or(3) as u32;
    if first.folded {
        return first.shape.with_channels(channels);
    }
    let samples = f64::from(batch.max(1));
    let pixels = input_mib.map(|mib| mib * 262_144.0 / samples / f64::from(channels));
    let side = pixels.map_or(0.0, libm::sqrt);
    // The size is printed with two digits; the first layer tells which number was meant.
    let side = [1, 2, 4]
        .into_iter()
        .flat_map(|stride| (0..7).map(move |lost| first.shape.height * stride + lost))
        .min_by(|a, b| (f64::from(*a) - side).abs().total_cmp(&(f64::from(*b) - side).abs()))
        .filter(|_| side > 0.0)
        .unwrap_or(first.shape.height);
    Shape::image(channels, side, side)
}
