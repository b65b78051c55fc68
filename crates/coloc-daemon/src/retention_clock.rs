//! The time by which things are removed for good: logs, and tokens that ended long ago. The world's clock may be set, or be
//! wrong after a start, and what was removed because of that does not come back.
//!
//! So there is a time of its own, kept on the disk. It passes as the monotonic clock does, and follows the world's clock as
//! long as the two differ by a day at most. A world's clock that is further off is believed when it has gone on from there
//! for a day without another jump.

use crate::tokens::write_private;
use coloc_api::moment::Moment;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A clock that is further off is not believed at once.
const FAR_OFF_MS: u64 = 86_400_000;
/// It is believed after this long.
const TRIAL: Duration = Duration::from_secs(86_400);
/// A clock on trial that jumps by more than this is on trial anew.
const JUMP_MS: u64 = 600_000;
/// The time is written down when this much has passed.
const WRITTEN_EVERY_MS: u64 = 60_000;

/// What the two clocks say.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    /// The world's.
    pub(crate) world: Moment,
    /// The monotonic one's.
    pub(crate) retention_clock: Instant,
}

impl Reading {
    /// What they say now.
    pub(crate) fn now() -> Self {
        Reading { world: Moment::now(), retention_clock: Instant::now() }
    }

    /// The world's clock of another reading, had it gone on without a jump.
    fn expects(self, later: Reading) -> Moment {
        let passed = later.retention_clock.saturating_duration_since(self.retention_clock);
        Moment(self.world.0.saturating_add(passed.as_millis() as u64))
    }
}

/// What became of a look at the clocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Look {
    /// They agree.
    Agree,
    /// The world's clock is far off, and was not at the last look.
    FarOff,
    /// It still is.
    OnTrial,
    /// It was far off for so long that it is believed.
    Believed,
}

/// The time, as it passes.
#[derive(Debug)]
pub(crate) struct RetentionClock {
    time: Moment,
    last: Instant,
    /// Since when the world's clock has been far off, without another jump.
    trial: Option<Reading>,
}

impl RetentionClock {
    /// Goes on from a time that was written down, or from the world's.
    pub(crate) fn from(kept: Option<Moment>, now: Reading) -> Self {
        RetentionClock { time: kept.unwrap_or(now.world), last: now.retention_clock, trial: None }
    }

    /// The time at the last look.
    pub(crate) fn time(&self) -> Moment {
        self.time
    }

    /// Looks at the clocks.
    pub(crate) fn look(&mut self, now: Reading) -> Look {
        let passed = now.retention_clock.saturating_duration_since(self.last);
        self.last = now.retention_clock;
        self.time = Moment(self.time.0.saturating_add(passed.as_millis() as u64));
        if self.time.0.abs_diff(now.world.0) <= FAR_OFF_MS {
            self.time = now.world;
            self.trial = None;
            return Look::Agree;
        }
        let went_on = |trial: &Reading| trial.expects(now).0.abs_diff(now.world.0) <= JUMP_MS;
        match self.trial.filter(went_on) {
            None => {
                self.trial = Some(now);
                Look::FarOff
            }
            Some(trial)
                if now.retention_clock.saturating_duration_since(trial.retention_clock)
                    >= TRIAL =>
            {
                self.time = now.world;
                self.trial = None;
                Look::Believed
            }
            Some(_) => Look::OnTrial,
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Kept {
    time_ms: u64,
}

/// The time in a file of its own.
#[derive(Debug)]
pub(crate) struct RetentionClockFile {
    file: PathBuf,
    written: Option<Moment>,
    retention_clock: RetentionClock,
}

impl RetentionClockFile {
    /// Goes on from what the file says. One that makes no sense is as good as none.
    pub(crate) fn open(file: &Path) -> Self {
        let text = std::fs::read(file).unwrap_or_default();
        let kept = serde_json::from_slice::<Kept>(&text).ok().map(|kept| Moment(kept.time_ms));
        let retention_clock = RetentionClock::from(kept, Reading::now());
        RetentionClockFile { file: file.to_owned(), written: kept, retention_clock }
    }

    /// The time now. What is odd about the world's clock is told once.
    pub(crate) fn now(&mut self) -> Moment {
        let now = Reading::now();
        let look = self.retention_clock.look(now);
        let time = self.retention_clock.time();
        match look {
            Look::FarOff => {
                let days = time.0.abs_diff(now.world.0) / 86_400_000;
                let way = if now.world > time { "ahead of" } else { "behind" };
                tracing::warn!(
                    "the clock is {days} days {way} the time that has passed: logs and old tokens are not \
                     removed because of that, unless it goes on from there for a day"
                );
            }
            Look::Believed => tracing::info!("the clock is believed again"),
            Look::Agree | Look::OnTrial => {}
        }
        if self.written.is_none_or(|written| written.0.abs_diff(time.0) >= WRITTEN_EVERY_MS) {
            let text = serde_json::json!({ "time_ms": time.0 }).to_string();
            match write_private(&self.file, text.as_bytes()) {
                Ok(()) => self.written = Some(time),
                // It is written at the next look. Until then a restart distrusts the clock a little sooner.
                Err(error) => tracing::warn!("{}: {error}", self.file.display()),
            }
        }
        time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3_600_000;
    const DAY: u64 = 24 * HOUR;

    /// Clocks that pass together, with a world's clock that can be set.
    struct World {
        start: Instant,
        passed: u64,
        world: u64,
    }

    impl World {
        fn new() -> Self {
            World { start: Instant::now(), passed: 0, world: 1000 * DAY }
        }

        fn pass(&mut self, ms: u64) -> Reading {
            self.passed += ms;
            self.world += ms;
            self.read()
        }

        fn read(&self) -> Reading {
            let retention_clock = self.start + Duration::from_millis(self.passed);
            Reading { world: Moment(self.world), retention_clock }
        }
    }

    #[test]
    fn a_clock_40_days_ahead_is_believed_after_a_day_only() {
        let mut world = World::new();
        let mut retention_clock = RetentionClock::from(None, world.read());
        assert_eq!(retention_clock.look(world.pass(HOUR)), Look::Agree);
        let before = retention_clock.time();
        world.world += 40 * DAY;
        assert_eq!(retention_clock.look(world.pass(HOUR)), Look::FarOff);
        assert_eq!(retention_clock.time().0, before.0 + HOUR, "time passes as it does");
        for _ in 0..23 {
            assert_eq!(retention_clock.look(world.pass(HOUR)), Look::OnTrial);
        }
        // Another jump, and the trial begins anew.
        world.world += 3 * DAY;
        assert_eq!(retention_clock.look(world.pass(HOUR)), Look::FarOff);
        // Set right again: nothing has happened.
        world.world -= 43 * DAY;
        assert_eq!(retention_clock.look(world.pass(HOUR)), Look::Agree);
        assert_eq!(retention_clock.time().0, world.world);
        world.world += 40 * DAY;
        assert_eq!(retention_clock.look(world.pass(HOUR)), Look::FarOff);
        let looks: Vec<Look> = (0..24).map(|_| retention_clock.look(world.pass(HOUR))).collect();
        assert_eq!(looks.last(), Some(&Look::Believed), "{looks:?}");
        assert_eq!(retention_clock.time().0, world.world);
    }

    #[test]
    fn small_corrections_are_followed_and_a_long_sleep_is_on_trial() {
        let mut world = World::new();
        let mut retention_clock = RetentionClock::from(None, world.read());
        for change in [-23, 23, -1, 1] {
            world.world = world.world.saturating_add_signed(change * HOUR as i64);
            assert_eq!(retention_clock.look(world.pass(1000)), Look::Agree);
            assert_eq!(retention_clock.time().0, world.world);
        }
        let kept = retention_clock.time();
        world.pass(100 * DAY);
        let mut retention_clock = RetentionClock::from(Some(kept), world.read());
        assert_eq!(
            retention_clock.look(world.pass(1000)),
            Look::FarOff,
            "the machine was off for long"
        );
        world.pass(DAY);
        assert_eq!(retention_clock.look(world.read()), Look::Believed);
        // A clock that was wrong, believed, and set right.
        world.world -= 50 * DAY;
        assert_eq!(retention_clock.look(world.read()), Look::FarOff);
        assert_eq!(retention_clock.look(world.pass(DAY)), Look::Believed);
        assert_eq!(retention_clock.time().0, world.world);
    }

    #[test]
    fn the_time_survives_in_its_file() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("clock.json");
        let now = RetentionClockFile::open(&file).now();
        assert!(Moment::now().0 - now.0 < DAY);
        let old = now.0 - 40 * DAY;
        std::fs::write(&file, format!("{{\"time_ms\":{old}}}")).unwrap();
        let again = RetentionClockFile::open(&file).now();
        assert!(again.0 - old < DAY, "the clock is 40 days ahead of what was written");
        for nonsense in ["", "{}", "\u{0}", "{\"time_ms\":-1}"] {
            std::fs::write(&file, nonsense).unwrap();
            let time = RetentionClockFile::open(&file).now();
            assert!(time.0.abs_diff(Moment::now().0) < DAY, "{nonsense:?}");
        }
    }
}
