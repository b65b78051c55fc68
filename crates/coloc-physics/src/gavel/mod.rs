//! How fast the jobs of Gavel's traces run: on three kinds of GPU, with one to eight of them, on one node
//! and spread over several.

mod rows;
mod shapes;

use crate::Profile;
use coloc_model::{Bytes, GpuModel};
use rows::ROWS;
use shapes::SHAPES;

/// One row of the measurements.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Job {
    model: &'static str,
    batch: u32,
    gpus: u32,
    together: [f64; 3],
    spread: [f64; 3],
}

/// A job with a number of GPUs: the row that is nearest, and how far it is stretched.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Known {
    job: &'static Job,
    /// GPUs over those of the row. Beyond what was measured, speed is taken to grow with them.
    stretch: f64,
}

/// Finds a job by the name that Gavel gives it, such as `ResNet-50 (batch size 64)`.
pub fn find(name: &str, gpus: u32) -> Option<Known> {
    let (model, batch) = match name.split_once(" (batch size ") {
        Some((model, rest)) => (model, rest.strip_suffix(')')?.parse().ok()?),
        None => (name, 0),
    };
    let rows = ROWS.iter().filter(|job| job.model == model && job.batch == batch);
    let job = rows.filter(|job| job.gpus <= gpus).max_by_key(|job| job.gpus)?;
    Some(Known { job, stretch: f64::from(gpus) / f64::from(job.gpus) })
}

impl Known {
    /// Steps a second on V100s of one node.
    pub fn reference_steps(&self) -> f64 {
        self.job.together[0] * self.stretch
    }

    /// Speed on a kind of GPU against that on V100s, 0 where it was found not to run; `None` where it was not
    /// measured.
    pub fn speed(&self, model: GpuModel) -> Option<f64> {
        Some(self.job.together[column(model)?] / self.job.together[0])
    }

    /// What it does to each of its GPUs, inferred from pairs.
    pub fn profile(&self) -> Profile {
        let matches = |model: &str, batch: u32| (model, batch) == (self.job.model, self.job.batch);
        let shape = SHAPES.iter().find(|shape| matches(shape.model, shape.batch));
        let (activity, mib) = shape.map_or((1.0, 0), |s| (s.activity(), s.memory_mib));
        let memory = Bytes::from_mib(mib);
        Profile::new(activity, activity, activity / 2.0, activity / 2.0, memory)
    }

    /// Speed when spread over nodes against that on one, never above 1: some jobs were measured to be
    /// faster when spread, which no scheduler should count on.
    pub fn spread(&self, model: GpuModel) -> Option<f64> {
        let column = column(model)?;
        let (together, spread) = (self.job.together[column], self.job.spread[column]);
        (together > 0.0 && spread > 0.0).then(|| (spread / together).min(1.0))
    }
}

/// Both V100 are alike in all but memory.
fn column(model: GpuModel) -> Option<usize> {
    match model.name() {
        "V100-16GB" | "V100-32GB" => Some(0),
        "P100-16GB" => Some(1),
        "K80-12GB" => Some(2),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(name: &str) -> GpuModel {
        name.parse().expect("a known model")
    }

    #[test]
    fn jobs_are_found_by_their_published_names() {
        let job = find("ResNet-50 (batch size 64)", 1).expect("known");
        assert_eq!(job.reference_steps(), 4.395);
        assert_eq!(job.speed(model("K80-12GB")), Some(0.619 / 4.395));
        assert_eq!((job.speed(model("V100-32GB")), job.speed(model("T4-16GB"))), (Some(1.0), None));
        let wide = find("A3C", 4).expect("known");
        assert_eq!(wide.reference_steps(), 4.0 * 7.176, "not measured with four");
        let too_large = find("ResNet-50 (batch size 128)", 2).expect("known");
        assert_eq!(too_large.speed(model("K80-12GB")), Some(0.0));
        for name in
            ["", "ResNet-50", "ResNet-50 (batch size 63)", "A3C (batch size x)", "LM (batch size 5"]
        {
            assert_eq!(find(name, 1), None, "{name:?}");
        }
        assert_eq!(find("A3C", 0), None);
    }

    #[test]
    fn spreading_never_helps() {
        let spread = |name, gpus| find(name, gpus)?.spread(model("V100-16GB"));
        let lm = spread("LM (batch size 5)", 8).expect("measured");
        assert!((lm - 73.12 / 698.8).abs() < 1e-3, "{lm}");
        assert_eq!(spread("ResNet-50 (batch size 128)", 8), Some(1.0));
        assert_eq!(spread("LM (batch size 5)", 1), None);
    }

    #[test]
    fn every_job_has_a_shape() {
        assert_eq!(ROWS.len(), 83);
        for job in &ROWS {
            let known = Known { job, stretch: 1.0 };
            assert!(known.profile().memory > Bytes::ZERO, "{job:?}");
            assert!(job.together[0] > 0.0, "{job:?}");
        }
    }
}
