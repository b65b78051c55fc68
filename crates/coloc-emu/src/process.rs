//! Processes are known by id and start time, so that a recycled id is not mistaken for its predecessor.

use crate::error::{DriverError, ErrorKind};
use crate::sys;
use std::fs;

/// A process for as long as it lives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Identity {
    /// Process id.
    pub pid: i32,
    /// When it started, in clock ticks since boot.
    pub start_ticks: u64,
}

impl Identity {
    /// The calling process.
    pub fn of_self() -> Self {
        let pid = std::process::id() as i32;
        Identity { pid, start_ticks: stat(pid).map_or(0, |stat| stat.start_ticks) }
    }

    /// The process of this id, if there is one.
    pub fn of(pid: i32) -> Option<Self> {
        stat(pid)
            .filter(|stat| !stat.dead)
            .map(|stat| Identity { pid, start_ticks: stat.start_ticks })
    }

    /// Whether a process of this id exists. Cheap, and fooled by one that was not waited for.
    pub fn may_live(self) -> bool {
        sys::process_exists(self.pid)
    }

    /// Whether this very process still runs.
    pub fn lives(self) -> bool {
        if !self.may_live() {
            return false;
        }
        // Where /proc hides other users' processes, the id alone has to do.
        stat(self.pid).is_none_or(|stat| !stat.dead && stat.start_ticks == self.start_ticks)
    }

    /// What the process was started as: the first word of its command line, else the kernel's name.
    pub fn name(self) -> String {
        let folder = format!("/proc/{}", self.pid);
        let line = fs::read(format!("{folder}/cmdline")).unwrap_or_default();
        let first = line.split(|&byte| byte == 0).next().unwrap_or_default();
        if !first.is_empty() {
            return String::from_utf8_lossy(first).into_owned();
        }
        fs::read_to_string(format!("{folder}/comm"))
            .map_or_else(|_| "[Not Found]".to_owned(), |name| name.trim_end().to_owned())
    }
}

struct Stat {
    dead: bool,
    start_ticks: u64,
}

fn stat(pid: i32) -> Option<Stat> {
    parse_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The name of a process may hold spaces and brackets: fields are counted from the last bracket.
fn parse_stat(text: &str) -> Option<Stat> {
    let mut fields = text.rsplit_once(')')?.1.split_ascii_whitespace();
    let dead = matches!(fields.next()?, "Z" | "X");
    // The start time is field 22, and the state was field 3.
    let start_ticks = fields.nth(18)?.parse().ok()?;
    Some(Stat { dead, start_ticks })
}

/// Names the user that the emulated driver takes this process for, by user id.
pub const USER_VARIABLE: &str = "COLOC_EMU_UID";

/// Refuses what a real driver lets root alone do. Every process counts as root here, so that none needs to be, unless
/// the environment names another user.
pub(crate) fn need_root(what: &'static str) -> Result<(), DriverError> {
    let user = std::env::var(USER_VARIABLE).ok().filter(|user| !user.trim().is_empty());
    match user.is_none_or(|user| user.trim() == "0") {
        true => Ok(()),
        false => Err(ErrorKind::NoPermission { what }.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_running_test_lives_and_a_waited_child_does_not() {
        let own = Identity::of_self();
        assert!(own.lives() && own.start_ticks > 0);
        assert!(!Identity { start_ticks: own.start_ticks + 1, ..own }.lives());
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("sleep");
        let identity = Identity::of(child.id() as i32).expect("just started");
        assert!(identity.lives());
        child.kill().expect("ours");
        // Killed and not waited for: still in the table, but dead.
        while identity.lives() {
            std::thread::yield_now();
        }
        assert!(identity.may_live());
        child.wait().expect("ours");
        assert!(!identity.may_live());
    }

    #[test]
    fn names_with_brackets_do_not_confuse() {
        let line = "7 (a) b) Z 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 20";
        let stat = parse_stat(line).expect("well formed");
        assert!(stat.dead);
        assert_eq!(stat.start_ticks, 4242);
        for bad in ["", "7", "7 (a", "7 (a) R", "7 (a) R 1 2 x"] {
            assert!(parse_stat(bad).is_none(), "{bad}");
        }
    }
}
