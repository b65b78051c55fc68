//! The administrator's prolog and epilog, around the program.

use super::log::Log;
use super::{Asked, ShimError, tell_end};
use crate::executor::local::hooks::{HookEnd, Outcome, Which, run};
use crate::executor::local::run::{Ended, Order, RunDir, Stopped};
use crate::record::Exit;
use coloc_api::moment::Moment;
use std::io::Read as _;
use std::os::unix::net::UnixStream;

/// The exit code of an attempt whose prolog failed: its program never began.
const NOT_BEGUN: i32 = 127;

/// Runs the prolog; says how the attempt ended if its program is not to begin.
pub(super) fn before(
    order: &Order,
    log: Option<&mut Log>,
    asked: &mut Asked,
) -> Result<(), Box<Ended>> {
    let told = |from: &mut UnixStream| from.read(&mut [0; 16]).is_ok_and(|bytes| bytes > 0);
    let end = run(Which::Prolog, &order.hooks, None, || {
        told(&mut asked.at_once) || told(&mut asked.after_warning)
    });
    let HookEnd { outcome, output } = end;
    if let Some(log) = log
        && !output.is_empty()
    {
        let _ = log.say(&String::from_utf8_lossy(&output));
    }
    let ended = |exit, stopped, prolog| {
        let at = Moment::now();
        Box::new(Ended {
            exit,
            at,
            stopped,
            host_memory: None,
            unstarted: None,
            prolog,
            epilog: None,
        })
    };
    match outcome {
        Outcome::Done => Ok(()),
        Outcome::Failed(why) => Err(ended(Exit::Code(NOT_BEGUN), None, Some(why))),
        Outcome::Interrupted => Err(ended(Exit::Signal(15), Some(Stopped::Asked), None)),
    }
}

/// Runs the epilog, and says how the attempt ended.
pub(super) fn conclude(dir: &RunDir, order: &Order, mut ended: Ended) -> Result<(), ShimError> {
    if order.hooks.epilog.is_some() && dir.begins_epilog() {
        let code = ended.exit.shell_code();
        let HookEnd { outcome, output } = run(Which::Epilog, &order.hooks, Some(code), || false);
        if !output.is_empty() {
            // The task's files are closed: what an epilog says is for the administrator.
            let output = String::from_utf8_lossy(&output);
            crate::log::say(&format!("coloc shim: epilog: {}\n", output.trim_end()));
        }
        if let Outcome::Failed(why) = outcome {
            ended.epilog = Some(why);
        }
    }
    tell_end(dir, &ended)
}
