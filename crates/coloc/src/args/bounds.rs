//! Flags that bound what one user may have of a daemon.

use crate::error::{CliError, UsageError};
use clap::Args;
use coloc_daemon::bounds::Bounds;
use coloc_model::Bytes;

/// What one user may have
#[derive(Args, Clone, Copy, Debug)]
#[command(next_help_heading = "What one user may have")]
pub(crate) struct BoundArgs {
    /// Connections at once; administrators may have more
    #[arg(long, value_name = "N", default_value_t = 64)]
    max_user_connections: u32,
    /// Bytes of requests that are being sent or dealt with
    #[arg(long, value_name = "SIZE", default_value = "64M")]
    max_user_in_flight: Bytes,
    /// Tasks that have not ended
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    max_user_tasks: u32,
    /// Tasks among them that wait
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    max_user_pending: u32,
    /// Bytes of submissions that the journal keeps for running and telling of tasks
    #[arg(long, value_name = "SIZE", default_value = "1G")]
    max_user_journal: Bytes,
    /// Bytes of one submission, its environment and script included
    #[arg(long, value_name = "SIZE", default_value = "4M")]
    max_spec: Bytes,
    /// Tasks that one request names; the command line sends several
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    max_ids: u32,
}

/// The largest submission that fits a request.
const LARGEST_SPEC: Bytes = Bytes::from_mib(16);
/// Requests of the command line name so many tasks.
const LEAST_IDS: u32 = coloc_api::client::IDS_A_REQUEST as u32;

impl BoundArgs {
    pub(crate) fn bounds(self) -> Result<Bounds, CliError> {
        let wrong = |flag: &str, why: String| Err(UsageError::flag(flag, why).into());
        if self.max_user_connections < 4 {
            return wrong(
                "--max-user-connections",
                "at least 4, for who watches and asks".to_owned(),
            );
        }
        if self.max_user_in_flight < LARGEST_SPEC {
            return wrong(
                "--max-user-in-flight",
                format!("at least {LARGEST_SPEC}, for one request"),
            );
        }
        for (flag, most) in [
            ("--max-user-tasks", self.max_user_tasks),
            ("--max-user-pending", self.max_user_pending),
        ] {
            if most == 0 {
                return wrong(flag, "at least 1".to_owned());
            }
        }
        if !(Bytes::from_mib(1)..=LARGEST_SPEC).contains(&self.max_spec) {
            return wrong("--max-spec", format!("from 1 MiB to {LARGEST_SPEC}"));
        }
        if self.max_user_journal < self.max_spec {
            return wrong("--max-user-journal", "at least --max-spec".to_owned());
        }
        if self.max_ids < LEAST_IDS {
            return wrong(
                "--max-ids",
                format!("at least {LEAST_IDS}, which the command line sends"),
            );
        }
        Ok(Bounds {
            connections: self.max_user_connections as usize,
            in_flight: self.max_user_in_flight,
            tasks: self.max_user_tasks as usize,
            pending: self.max_user_pending as usize,
            spec: self.max_spec,
            ids: self.max_ids as usize,
            journal: self.max_user_journal,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        bounds: BoundArgs,
    }

    fn bounds(words: &[&str]) -> Option<Bounds> {
        let program = Program::try_parse_from([&["program"], words].concat()).ok()?;
        program.bounds.bounds().ok()
    }

    #[test]
    fn what_help_says_is_what_the_daemon_does() {
        assert_eq!(bounds(&[]), Some(Bounds::default()));
    }

    #[test]
    fn a_daemon_that_serves_nobody_is_refused() {
        for wrong in [
            "--max-user-connections=3",
            "--max-user-in-flight=15M",
            "--max-user-tasks=0",
            "--max-user-pending=0",
            "--max-spec=17M",
            "--max-spec=1K",
            "--max-user-journal=3M",
            "--max-ids=999",
            "--max-ids=x",
        ] {
            assert_eq!(bounds(&[wrong]), None, "{wrong}");
        }
        let some = bounds(&["--max-user-tasks", "7", "--max-user-journal", "2G"]);
        assert_eq!(some.map(|bounds| bounds.tasks), Some(7));
    }
}
