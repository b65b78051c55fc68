//! A client at the task's terminal.

use super::terminal::{Next, Terminal, write_while};
use super::visit::Line;
use crate::executor::local::run::Attaching;
use coloc_api::frame::Frame;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The most bytes of a frame.
const MOST: usize = 32 << 10;

/// Serves a client until it leaves or the terminal ends.
pub(super) fn serve(terminal: &Arc<Terminal>, mut line: Line, wish: &Attaching) {
    let (from, replayed) = terminal.place_of(wish.from);
    if !line.send(&Frame::Accepted) || !line.send(&Frame::At(from)) {
        return;
    }
    let left = Arc::new(AtomicBool::new(false));
    let print = {
        let (terminal, line, left) = (terminal.clone(), line.sender(), left.clone());
        move || {
            let mut position = from;
            loop {
                let most = match replayed.checked_sub(position) {
                    Some(before @ 1..) => MOST.min(before as usize),
                    _ => MOST,
                };
                let frame = match terminal.next(position, most, &left) {
                    Next::Bytes(at, bytes) => {
                        let is_replay = at < replayed;
                        // What was lost, because the client was too slow, is counted.
                        if at > position && !line.send(&Frame::At(at)) {
                            break;
                        }
                        position = at + bytes.len() as u64;
                        if is_replay { Frame::Replay(bytes) } else { Frame::Output(bytes) }
                    }
                    Next::Over => {
                        line.send(&Frame::Exit(0));
                        break;
                    }
                    Next::Left => break,
                };
                if !line.send(&frame) {
                    break;
                }
            }
            line.hang_up();
        }
    };
    let Ok(printing) = super::visit::thread("print", print) else { return };
    if let Some(size) = wish.size.filter(|_| !wish.read_only) {
        terminal.resize(size);
    }
    if wish.from.is_none() && replayed > 0 && !wish.read_only {
        terminal.redraw();
    }
    listen(terminal, &mut line, wish.read_only);
    left.store(true, Ordering::Release);
    terminal.wake();
    line.hang_up();
    let _ = printing.join();
}

/// Does what the client says until it leaves.
fn listen(terminal: &Terminal, line: &mut Line, read_only: bool) {
    while let Some(frame) = line.receive() {
        match frame {
            Frame::Input(bytes) if !read_only => {
                // A program that has closed its terminal hears nothing of it.
                let _ = write_while(&line.stream, terminal.input(), &bytes);
            }
            Frame::Resize(size) if !read_only => terminal.resize(size),
            Frame::Gone | Frame::Eof => return,
            _ => {}
        }
    }
}
