//! Run-to-run variation.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// Standard deviation of the log of a run's speed: what twin runs of one pair differ by.
const SIGMA: f64 = 0.03;

/// A reproducible source of variation. Each run draws from its own stream, so that the order in which
/// tasks start does not change what a task gets.
#[derive(Clone, Copy, Debug)]
pub struct Noise {
    seed: u64,
}

impl Noise {
    /// Variation from this seed.
    pub fn new(seed: u64) -> Self {
        Noise { seed }
    }

    /// The factor by which run `attempt` of task `task` is faster or slower than its profile says.
    pub fn speed(&self, task: u32, attempt: u32) -> f64 {
        let stream = (u64::from(task) << 32) | u64::from(attempt);
        let mut rng =
            Pcg64Mcg::seed_from_u64(self.seed ^ stream.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        // Box-Muller with libm: std's ln and cos differ between platforms in the last bit.
        let radius = libm::sqrt(-2.0 * libm::log(1.0 - rng.random::<f64>()));
        let angle = std::f64::consts::TAU * rng.random::<f64>();
        libm::exp(SIGMA * radius * libm::cos(angle))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variation_is_reproducible_and_of_the_stated_size() {
        let noise = Noise::new(7);
        assert_eq!(noise.speed(3, 1).to_bits(), Noise::new(7).speed(3, 1).to_bits());
        let logs: Vec<f64> = (0..4000).map(|task| noise.speed(task, 0).ln()).collect();
        let mean = logs.iter().sum::<f64>() / logs.len() as f64;
        let sd = (logs.iter().map(|l| (l - mean).powi(2)).sum::<f64>() / logs.len() as f64).sqrt();
        assert!(mean.abs() < 0.002, "mean {mean}");
        assert!((sd - SIGMA).abs() < 0.002, "sd {sd}");
    }
}
