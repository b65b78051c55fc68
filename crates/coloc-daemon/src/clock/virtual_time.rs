//! Time for tests.

use super::{Clock, Source};
use coloc_api::moment::Moment;
use coloc_model::Time;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Time that passes when a test says so.
#[derive(Debug)]
pub(crate) struct VirtualTime {
    pub(super) began: Instant,
    millis: AtomicU64,
}

impl VirtualTime {
    /// When it begins, by the world's clock: later than any test runs, so that nothing of it is old to code that asks the world.
    pub(crate) const BEGAN: Moment = Moment(4_000_000_000_000);

    /// Time that has not begun to pass. It is never given back: clocks are copied freely.
    pub(crate) fn new() -> &'static Self {
        Box::leak(Box::new(VirtualTime { began: Instant::now(), millis: 0.into() }))
    }

    pub(crate) fn pass(&self, span: Duration) {
        let millis = span.as_millis() as u64;
        self.millis.fetch_add(millis, Ordering::Relaxed);
    }

    pub(crate) fn passed(&self) -> Duration {
        Duration::from_millis(self.millis.load(Ordering::Relaxed))
    }

    /// A clock that follows it and began with it.
    pub(crate) fn clock(&'static self, scale: f64) -> Clock {
        Clock::by(VirtualTime::BEGAN, scale, Source::Virtual(self))
    }
}

#[test]
fn virtual_time_passes_when_a_test_says_so() {
    let time = VirtualTime::new();
    let clock = time.clock(2.0);
    let (began, world) = (clock.instant(), clock.world_now());
    assert_eq!(clock.now(), Time::START);
    time.pass(Duration::from_secs(3));
    assert_eq!(clock.instant() - began, Duration::from_secs(3));
    assert_eq!(clock.world_now(), Moment(world.0 + 3_000));
    assert_eq!(clock.now(), Time(6_000));
    assert_eq!(time.clock(2.0).now(), Time(6_000), "a clock that starts later");
}
