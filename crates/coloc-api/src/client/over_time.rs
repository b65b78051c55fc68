//! What was and will be: series, the timeline, the end of a log.

use super::{Client, ClientError, LogPart};
use crate::view::{SeriesAnswer, TimelineAnswer};

impl Client {
    /// What was measured of GPUs (`gpu:0`) and tasks (`task:450`) in a span, in at most so many points.
    pub fn series(
        &mut self,
        of: &[String],
        from_s: f64,
        to_s: f64,
        points: u32,
    ) -> Result<SeriesAnswer, ClientError> {
        let of = of.join(",");
        let path = format!("/v1/series?of={of}&from_s={from_s}&to_s={to_s}&points={points}");
        self.get(&path)
    }

    /// What ran where in a span, and what is expected to.
    pub fn timeline(&mut self, from_s: f64, to_s: f64) -> Result<TimelineAnswer, ClientError> {
        self.get(&format!("/v1/timeline?from_s={from_s}&to_s={to_s}"))
    }

    /// The last bytes of a task's output.
    pub fn log_tail(&mut self, id: u32, bytes: u64) -> Result<LogPart, ClientError> {
        self.log_at(id, &format!("offset=-{bytes}"))
    }
}
