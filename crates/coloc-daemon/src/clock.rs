//! Two clocks: the world's, and the scheduler's, which runs faster where time is scaled.

use crate::record::Moment;
use coloc_model::{Millis, Time};
use std::time::Duration;

/// The scheduler's clock: it began when the journal did and never runs backwards across restarts.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Clock {
    epoch: Moment,
    /// The scheduler's seconds in one of the world's.
    scale: f64,
}

impl Clock {
    /// A clock that began then.
    pub fn new(epoch: Moment, scale: f64) -> Self {
        Clock { epoch, scale }
    }

    /// The scheduler's time at a moment of the world.
    pub fn time(&self, moment: Moment) -> Time {
        let since = moment.0.saturating_sub(self.epoch.0);
        Time((since as f64 * self.scale) as u64)
    }

    /// The moment of the world at a time of the scheduler's.
    pub fn moment(&self, time: Time) -> Moment {
        let after = (time.0 as f64 / self.scale) as u64;
        Moment(self.epoch.0.saturating_add(after))
    }

    /// The scheduler's time now.
    pub fn now(&self) -> Time {
        self.time(Moment::now())
    }

    /// How long the world has to wait until then.
    pub fn until(&self, time: Time) -> Duration {
        self.world(time.since(self.now()))
    }

    /// How long a span of the scheduler's takes in the world.
    pub fn world(&self, span: Millis) -> Duration {
        let secs = span.secs() / self.scale;
        // Rounded up: who wakes too early has to sleep again.
        Duration::from_secs_f64(secs.clamp(0.0, 1e9)) + Duration::from_micros(500)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scaled_time_passes_faster() {
        let clock = Clock::new(Moment(1_000), 100.0);
        assert_eq!(clock.time(Moment(1_500)), Time(50_000));
        assert_eq!(clock.moment(Time(50_000)), Moment(1_500));
        assert_eq!(clock.time(Moment(10)), Time(0), "a clock that was set back");
        assert!(clock.world(Millis(1_000)) >= Duration::from_millis(10));
    }
}
