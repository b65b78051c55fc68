//! An emulated NVIDIA driver. No GPU is needed: a fleet's state lives in one shared mapping, every process
//! that loads the emulated libraries works on it under one lock, and `coloc-physics` says what the devices do.
//!
//! Kernels compute nothing. Memory is booked for real, speed, activity and power are emulated, and
//! whatever shows them says so.

pub mod abi;
pub mod board;
pub mod client;
mod clock;
mod error;
pub mod fleet;
mod guard;
pub mod install;
mod lock;
mod mapping;
pub mod mig;
mod process;
mod sys;
mod visible;

pub use clock::Clock;
pub use error::{AttachError, DriverError, ErrorKind};
pub use fleet::{Place, ProcessSlot};
pub use mapping::{Emulator, Options, STATE_FILE, Session};
pub use process::{Identity, USER_VARIABLE};
pub use sys::{host_now_ns, wait_for_change};
pub use visible::{VisibleDevice, visible_devices};

/// The variable that names the directory of a fleet's state.
pub const DIR_VARIABLE: &str = "COLOC_EMU_DIR";
