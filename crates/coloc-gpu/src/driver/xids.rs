//! Critical errors as the driver reports them. Waiting for one blocks, so it is done on a thread of its own.

use super::DriverError;
use super::nvml::{Heard, wait_for_xids};
use crate::device::Uuid;
use crate::health::Xid;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// More are not kept for a caller that does not ask: the oldest go first.
const MOST_EVENTS: usize = 1024;
/// A driver that failed is tried again after this; one that knows no such events, after the longer.
const PAUSE: Duration = Duration::from_secs(2);
const LONG_PAUSE: Duration = Duration::from_secs(60);

/// A critical error.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct XidEvent {
    /// The GPU.
    pub gpu: Uuid,
    /// The error.
    pub xid: Xid,
    /// When it was heard.
    pub at: Instant,
}

#[derive(Default, Debug)]
struct State {
    events: VecDeque<XidEvent>,
    trouble: Option<DriverError>,
}

/// Critical errors of all GPUs since the last question. The thread ends when this is dropped.
#[derive(Debug)]
pub struct Xids {
    state: Arc<Mutex<State>>,
}

fn locked(state: &Mutex<State>) -> MutexGuard<'_, State> {
    // Valid between any two statements, so a panicked writer does no harm.
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Xids {
    /// Begins to listen; `ring` is called after each event, from the thread.
    pub fn listen(ring: impl Fn() + Send + 'static) -> Self {
        let state = Arc::new(Mutex::new(State::default()));
        let ours = Arc::downgrade(&state);
        let listen = move || {
            while ours.strong_count() > 0 {
                let ended = wait_for_xids(|heard| note(&ours, heard, &ring));
                let Err(error) = ended else { return };
                let unknown = matches!(error, DriverError::NotSupported { .. });
                if let Some(state) = ours.upgrade() {
                    locked(&state).trouble = Some(error);
                }
                pause(&ours, if unknown { LONG_PAUSE } else { PAUSE });
            }
        };
        // Without a thread no error is heard; states of devices and losses are seen all the same.
        let _ = std::thread::Builder::new().name("gpu-xids".to_owned()).spawn(listen);
        Xids { state }
    }

    /// The events since this was last asked.
    pub fn take(&self) -> Vec<XidEvent> {
        locked(&self.state).events.drain(..).collect()
    }

    /// Why nothing is heard, if so.
    pub fn trouble(&self) -> Option<DriverError> {
        locked(&self.state).trouble.clone()
    }
}

/// Keeps what was heard; says whether there is still a listener.
fn note(state: &Weak<Mutex<State>>, heard: Heard, ring: &impl Fn()) -> bool {
    let Some(state) = state.upgrade() else { return false };
    match heard {
        Heard::Listening => locked(&state).trouble = None,
        Heard::Nothing => {}
        Heard::Xid { gpu, xid } => {
            let mut state = locked(&state);
            if state.events.len() >= MOST_EVENTS {
                state.events.pop_front();
            }
            state.events.push_back(XidEvent { gpu, xid, at: Instant::now() });
            drop(state);
            ring();
        }
    }
    true
}

/// Waits, but not for long once there is no listener any more.
fn pause(state: &Weak<Mutex<State>>, span: Duration) {
    let end = Instant::now() + span;
    while state.strong_count() > 0 && Instant::now() < end {
        std::thread::sleep(PAUSE.min(end.saturating_duration_since(Instant::now())));
    }
}
