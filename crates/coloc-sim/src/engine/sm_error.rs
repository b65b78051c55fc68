//! How wrong a monitor is that tells what each process does on a GPU.

use coloc_model::{TaskId, Time};

/// Error of the SM activity that a monitor tells of each task.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct SmError {
    /// Sigma of its logarithm.
    pub sigma: f64,
}

impl SmError {
    /// What the truth is multiplied by, at one sighting of one task: the same in every run.
    pub(super) fn factor(self, now: Time, task: TaskId) -> f64 {
        if self.sigma == 0.0 {
            return 1.0;
        }
        // A sum of twelve even variates is normal enough, and the same on every machine.
        let mut x = (u64::from(task.0) + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15)
            ^ now.0.wrapping_mul(0xD1B5_4A32_D192_ED03);
        let mut z = -6.0;
        for _ in 0..12 {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            z += (x >> 11) as f64 / (1u64 << 53) as f64;
        }
        (self.sigma * z).exp()
    }
}
