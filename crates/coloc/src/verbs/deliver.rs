//! `coloc deliver`: tells one hook for the daemon.

use clap::Args;
use coloc_daemon::executor::local::notices;
use std::process::ExitCode;

/// Tell a hook, as the order on standard input says
#[derive(Args, Debug)]
pub(crate) struct Deliver {}

impl Deliver {
    pub(crate) fn run(self) -> ExitCode {
        ExitCode::from(u8::try_from(notices::deliver()).unwrap_or(1))
    }
}
