//! Two clocks: the world's, and the scheduler's, which runs faster where time is scaled.

#[cfg(test)]
mod virtual_time;

#[cfg(test)]
pub(crate) use virtual_time::VirtualTime;

use coloc_api::moment::Moment;
use coloc_model::{Millis, Time};
use std::time::{Duration, Instant};

/// The scheduler's clock: it began when the journal did. While the daemon runs it follows the monotonic clock, so that
/// no time limit, quantum or wait is cut short or drawn out when the world's clock is set.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    epoch: Moment,
    /// The scheduler's seconds in one of the world's.
    scale: f64,
    /// The scheduler's time when the daemon started.
    start: Time,
    started: Instant,
    source: Source,
}

/// Where the time comes from.
#[derive(Clone, Copy, Debug)]
enum Source {
    /// From the world.
    World,
    /// From a test, which says how it passes.
    #[cfg(test)]
    Virtual(&'static VirtualTime),
}

impl Source {
    fn instant(self) -> Instant {
        match self {
            Source::World => Instant::now(),
            #[cfg(test)]
            Source::Virtual(time) => time.began + time.passed(),
        }
    }

    fn moment(self) -> Moment {
        match self {
            Source::World => Moment::now(),
            #[cfg(test)]
            Source::Virtual(time) => {
                Moment(VirtualTime::BEGAN.0 + time.passed().as_millis() as u64)
            }
        }
    }
}

impl Clock {
    /// A clock that began then.
    pub fn new(epoch: Moment, scale: f64) -> Self {
        Clock::by(epoch, scale, Source::World)
    }

    fn by(epoch: Moment, scale: f64, source: Source) -> Self {
        let started = source.instant();
        let mut clock = Clock { epoch, scale, start: Time::START, started, source };
        clock.start = clock.time(source.moment());
        clock
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
        self.at(self.instant())
    }

    /// Now, by the monotonic clock.
    pub fn instant(&self) -> Instant {
        self.source.instant()
    }

    /// Now, by the world's clock.
    pub fn world_now(&self) -> Moment {
        self.source.moment()
    }

    /// The scheduler's seconds in one of the world's.
    pub fn scale(&self) -> f64 {
        self.scale
    }

    fn at(&self, instant: Instant) -> Time {
        let since = instant.saturating_duration_since(self.started);
        self.start + Millis((since.as_secs_f64() * 1000.0 * self.scale) as u64)
    }

    /// How long the world has to wait until then.
    pub fn until(&self, time: Time) -> Duration {
        self.world(time.since(self.now()))
    }

    /// How long a span of the scheduler's takes in the world.
    pub fn world(&self, span: Millis) -> Duration {
        let secs = span.secs() / self.scale;
        // Rounded up: a thread that wakes too early has to sleep again.
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

    #[test]
    fn a_clock_that_is_set_does_not_matter_while_the_daemon_runs() {
        // An epoch in the future is a world's clock that was set back by an hour.
        for epoch in [Moment(0), Moment::now(), Moment(Moment::now().0 + 3_600_000)] {
            let clock = Clock::new(epoch, 10.0);
            let later = clock.started + Duration::from_secs(2);
            assert_eq!(clock.at(later).since(clock.start), Millis(20_000));
            assert!(clock.now() >= clock.start);
        }
    }
}
