//! How requests were answered.

use super::histogram::{Histogram, SHORT};
use axum::http::StatusCode;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

/// What is counted of the interface.
#[derive(Debug)]
pub(crate) struct ApiCounters(Mutex<Counted>);

#[derive(Clone, Debug)]
struct Counted {
    classes: [u64; CLASSES.len()],
    seconds: Histogram,
}

impl Default for ApiCounters {
    fn default() -> Self {
        let counted = Counted { classes: [0; CLASSES.len()], seconds: Histogram::new(SHORT) };
        ApiCounters(Mutex::new(counted))
    }
}

impl ApiCounters {
    /// A request was answered.
    pub(crate) fn answered(&self, status: StatusCode, took: Duration) {
        let mut counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let class = usize::from(status.as_u16() / 100).saturating_sub(1);
        if let Some(count) = counted.classes.get_mut(class) {
            *count += 1;
        }
        counted.seconds.observe(took.as_secs_f64());
    }

    /// Answers by class, and how long they took.
    pub(super) fn read(&self) -> (Vec<(&'static str, u64)>, Histogram) {
        let counted = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        (CLASSES.into_iter().zip(counted.classes).collect(), counted.seconds)
    }
}
