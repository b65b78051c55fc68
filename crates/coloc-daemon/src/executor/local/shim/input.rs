//! The standard input of a task, as a client sends it.
//!
//! A client that dies has the input end, as in a shell. A daemon that is started again does not: its client comes back and goes on
//! where the shim says.

use super::terminal::write_while;
use super::visit::Line;
use coloc_api::frame::Frame;
use std::io::PipeWriter;
use std::os::fd::AsFd as _;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The input of a task whose client does not come, or come back, within this time is empty.
const PATIENCE: Duration = Duration::from_secs(60);

/// The standard input of a task.
#[derive(Debug)]
pub(super) struct Input {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    /// Until it has ended.
    pipe: Option<Arc<PipeWriter>>,
    /// Bytes that the program was given.
    taken: u64,
    is_fed: bool,
}

impl Input {
    /// The input of a program that reads from this pipe. It ends if no client comes.
    pub(super) fn new(pipe: PipeWriter) -> std::io::Result<Arc<Self>> {
        rustix::io::ioctl_fionbio(&pipe, true)?;
        let state = State { pipe: Some(Arc::new(pipe)), taken: 0, is_fed: false };
        let input = Arc::new(Input { state: Mutex::new(state), changed: Condvar::new() });
        let waits = input.clone();
        super::visit::thread("input", move || waits.end_if_unfed())?;
        Ok(input)
    }

    fn end_if_unfed(&self) {
        let mut state = self.state();
        while state.pipe.is_some() {
            let is_unfed = |state: &mut State| !state.is_fed && state.pipe.is_some();
            let waited = self.changed.wait_timeout_while(state, PATIENCE, is_unfed);
            let (mut now, late) = waited.unwrap_or_else(PoisonError::into_inner);
            if late.timed_out() {
                now.pipe = None;
            }
            let is_fed = |state: &mut State| state.is_fed && state.pipe.is_some();
            let waited = self.changed.wait_while(now, is_fed);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Gives the program what a client sends.
    pub(super) fn serve(&self, mut line: Line) {
        let (pipe, taken) = {
            let mut state = self.state();
            let pipe = match (&state.pipe, state.is_fed) {
                (None, _) => return line.refuse("ended", "its standard input has ended"),
                (_, true) => {
                    return line.refuse("fed", "another client sends its standard input");
                }
                (Some(pipe), false) => pipe.clone(),
            };
            state.is_fed = true;
            (pipe, state.taken)
        };
        self.changed.notify_all();
        let begun = line.send(&Frame::Accepted) && line.send(&Frame::At(taken));
        let goes_on = begun && self.copy(&pipe, &mut line);
        let mut state = self.state();
        state.is_fed = false;
        if !goes_on {
            state.pipe = None;
        }
        drop(state);
        drop(pipe);
        self.changed.notify_all();
        if !goes_on {
            line.send(&Frame::Eof);
        }
        line.hang_up();
    }

    /// False once there is no more; true if the daemon is gone, with a client that may come back.
    fn copy(&self, pipe: &PipeWriter, line: &mut Line) -> bool {
        while let Some(frame) = line.receive() {
            match frame {
                Frame::Input(bytes) => {
                    let Ok(written) = write_while(&line.stream, pipe.as_fd(), &bytes) else {
                        return false;
                    };
                    let mut state = self.state();
                    state.taken += written as u64;
                    let taken = state.taken;
                    drop(state);
                    if written < bytes.len() {
                        return !line.is_left_by_its_client();
                    }
                    // A daemon that is gone may have said that its client is.
                    line.send(&Frame::At(taken));
                }
                Frame::Eof | Frame::Gone => return false,
                _ => {}
            }
        }
        true
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Valid between any two statements, so a panicked writer does no harm.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
