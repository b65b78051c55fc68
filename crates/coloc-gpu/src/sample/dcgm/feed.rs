//! A source that runs by itself on a thread of its own and keeps the newest reading of every GPU.

use super::super::Reading;
use crate::device::{Identity, Uuid};
use crate::mig::GpuInstanceId;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The most entities that a feed remembers: more than a server has GPUs and instances.
const MOST_ENTITIES: usize = 1024;
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// What a reading is about, as its source names it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Entity {
    /// A GPU by the driver's number.
    Index(u32),
    /// A GPU by its name.
    Uuid(Uuid),
    /// A MIG instance, by the source's own text.
    Instance(String),
}

/// A reading and what it is about.
#[derive(Clone, PartialEq, Debug)]
pub struct Measured {
    /// The GPU or instance.
    pub entity: Entity,
    /// How busy it was.
    pub reading: Reading,
}

/// How a feed is doing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FeedStatus {
    /// Nothing has come yet.
    Starting,
    /// Readings come.
    Running,
    /// It failed and will be tried again.
    Failing {
        /// Why.
        why: String,
    },
}

#[derive(Debug)]
struct State {
    readings: Vec<(Entity, Reading, Instant)>,
    status: FeedStatus,
}

/// The newest readings of a source that runs by itself.
#[derive(Debug)]
pub struct Feed {
    shared: Shared,
    thread: Option<JoinHandle<()>>,
}

/// What the source's thread sees of its feed.
#[derive(Clone, Debug)]
pub(super) struct Shared {
    state: Arc<Mutex<State>>,
    stopped: Arc<AtomicBool>,
}

impl Shared {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        // The state is valid between any two statements, so a panicked writer does no harm.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a reading in place of the entity's last one.
    pub(super) fn publish(&self, measured: Measured, now: Instant) {
        let Measured { entity, reading } = measured;
        let mut state = self.state();
        state.status = FeedStatus::Running;
        match state.readings.iter().position(|(known, ..)| *known == entity) {
            Some(at) => state.readings[at] = (entity, reading, now),
            None if state.readings.len() < MOST_ENTITIES => {
                state.readings.push((entity, reading, now));
            }
            None => {}
        }
    }

    pub(super) fn stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Sleeps, but wakes up soon after the feed was stopped.
    pub(super) fn pause(&self, span: Duration) {
        let end = Instant::now() + span;
        while !self.stopped() && Instant::now() < end {
            std::thread::park_timeout(end.saturating_duration_since(Instant::now()));
        }
    }
}

impl Feed {
    /// Runs `source` on a thread. When it ends or fails it is run again, after pauses that grow.
    pub(super) fn run(
        name: &str,
        source: impl Fn(&Shared) -> Result<(), String> + Send + 'static,
    ) -> Feed {
        let state = State { readings: Vec::new(), status: FeedStatus::Starting };
        let shared = Shared {
            state: Arc::new(Mutex::new(state)),
            stopped: Arc::new(AtomicBool::new(false)),
        };
        let ours = shared.clone();
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            let mut pause = FIRST_PAUSE;
            while !ours.stopped() {
                let began = Instant::now();
                let why = source(&ours).err().unwrap_or_else(|| "it ended by itself".to_owned());
                ours.state().status = FeedStatus::Failing { why };
                // One that ran well for a while starts over with short pauses.
                pause = if began.elapsed() > LONGEST_PAUSE { FIRST_PAUSE } else { pause };
                ours.pause(pause);
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        });
        let thread = match thread {
            Ok(thread) => Some(thread),
            Err(error) => {
                shared.state().status = FeedStatus::Failing { why: error.to_string() };
                None
            }
        };
        Feed { shared, thread }
    }

    /// The newest reading of a GPU, if it is younger than `fresh`.
    pub fn latest(&self, gpu: &Identity, fresh: Duration) -> Option<Reading> {
        let state = self.shared.state();
        let about = |entity: &Entity| match entity {
            Entity::Index(index) => *index == gpu.index,
            Entity::Uuid(uuid) => *uuid == gpu.uuid,
            Entity::Instance(_) => false,
        };
        let (_, reading, at) = state.readings.iter().find(|(entity, ..)| about(entity))?;
        (at.elapsed() <= fresh).then_some(*reading)
    }

    /// The newest reading of a GPU's instance, if it is younger than `fresh`. Only sources that know the driver's
    /// numbers tell: the numbers of `dcgmi` are DCGM's own.
    pub fn latest_instance(
        &self,
        gpu: &Identity,
        instance: GpuInstanceId,
        fresh: Duration,
    ) -> Option<Reading> {
        let names =
            [format!("{}/{}", gpu.uuid, instance.0), format!("{}/{}", gpu.index, instance.0)];
        let state = self.shared.state();
        let about =
            |entity: &Entity| matches!(entity, Entity::Instance(name) if names.contains(name));
        let (_, reading, at) = state.readings.iter().find(|(entity, ..)| about(entity))?;
        (at.elapsed() <= fresh).then_some(*reading)
    }

    /// How it is doing.
    pub fn status(&self) -> FeedStatus {
        self.shared.state().status.clone()
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::Relaxed);
        // The thread is not waited for: it may be in a read that ends with its own deadline.
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use coloc_model::Fraction;

    #[test]
    fn a_source_that_ends_is_said_to_fail() {
        let feed = Feed::run("test", |_| Err("no such program".to_owned()));
        let deadline = Instant::now() + Duration::from_secs(5);
        while feed.status() == FeedStatus::Starting && Instant::now() < deadline {
            std::thread::yield_now();
        }
        assert_eq!(feed.status(), FeedStatus::Failing { why: "no such program".to_owned() });
    }

    #[test]
    fn entities_are_bounded() {
        let feed = Feed::run("test", |shared| {
            shared.pause(Duration::from_secs(60));
            Ok(())
        });
        let reading = Reading { sm: Some(Fraction::ONE), ..Reading::default() };
        for index in 0..5000 {
            let entity = Entity::Index(index);
            feed.shared.publish(Measured { entity, reading }, Instant::now());
        }
        assert_eq!(feed.shared.state().readings.len(), MOST_ENTITIES);
    }
}
