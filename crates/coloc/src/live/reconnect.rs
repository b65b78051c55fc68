//! Staying with a daemon that is started again: questions that change nothing are asked until a daemon answers.

use crate::error::CliError;
use crate::output::visible::visible;
use crate::parse::slurm;
use clap::Args;
use coloc_api::answer::Submitted;
use coloc_api::client::{Client, ClientError};
use coloc_api::request::Submission;
use coloc_api::view::TaskDetail;
use coloc_model::Millis;
use std::time::{Duration, Instant};

/// Pauses between two tries grow from this to this.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));
/// Looked for this long, unless the user says otherwise.
const USUAL: Millis = Millis::from_secs(600);
/// A daemon that is gone for less is not talked about.
const UNNOTICED: Duration = Duration::from_millis(500);

/// How long a daemon may be gone.
#[derive(Args, Clone, Copy, Debug)]
#[command(next_help_heading = "Connection")]
pub(crate) struct Reconnect {
    /// How long to look for a daemon that has gone, such as 30s; 0 is not at all
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = span)]
    reconnect: Millis,
}

impl Default for Reconnect {
    fn default() -> Self {
        Reconnect { reconnect: USUAL }
    }
}

fn span(text: &str) -> Result<Millis, String> {
    if text == "0" { Ok(Millis::ZERO) } else { slurm::time(text) }
}

impl Reconnect {
    /// Asks until there is an answer, or until no daemon has been there for too long. For questions that may be asked
    /// twice.
    pub(crate) fn ask<T>(
        self,
        client: &mut Client,
        mut question: impl FnMut(&mut Client) -> Result<T, ClientError>,
    ) -> Result<T, CliError> {
        self.again(|| Ok(question(client)?))
    }

    /// The same for a caller that connects anew each time.
    pub(crate) fn again<T>(
        self,
        mut question: impl FnMut() -> Result<T, CliError>,
    ) -> Result<T, CliError> {
        let limit = Duration::from_millis(self.reconnect.0);
        let (mut pause, longest) = PAUSES;
        let mut gone: Option<Instant> = None;
        let mut told = false;
        loop {
            let error = match question() {
                Ok(answer) => {
                    if let Some(gone) = gone.filter(|_| told) {
                        let seconds = gone.elapsed().as_secs_f64();
                        eprintln!("coloc: the daemon is back after {seconds:.1} s");
                    }
                    return Ok(answer);
                }
                Err(CliError::Client(error)) if error.may_pass() && !limit.is_zero() => error,
                Err(error) => return Err(error),
            };
            let since = *gone.get_or_insert_with(Instant::now);
            if since.elapsed() >= limit {
                return Err(CliError::Gone { limit: self.reconnect, error });
            }
            if since.elapsed() > UNNOTICED && !std::mem::replace(&mut told, true) {
                let limit = self.reconnect;
                eprintln!(
                    "coloc: {}; trying again for {limit}, tasks go on without it",
                    visible(&error.to_string())
                );
            }
            std::thread::sleep(pause.min(limit.saturating_sub(since.elapsed())));
            pause = (pause * 2).min(longest);
        }
    }
}

impl Reconnect {
    /// Waits until a task has ended, through any number of restarts.
    pub(crate) fn wait(self, client: &mut Client, id: u32) -> Result<TaskDetail, CliError> {
        loop {
            let task = self.ask(client, |client| client.wait_a_while(id))?;
            if task.task.state.is_over() {
                return Ok(task);
            }
        }
    }

    /// Submits, once: what has no key is not sent again when the answer to it was lost.
    pub(crate) fn submit(
        self,
        client: &mut Client,
        submission: &Submission,
    ) -> Result<Submitted, CliError> {
        match submission.key {
            Some(_) => self.ask(client, |client| client.submit(submission)),
            None => Ok(client.submit(submission)?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_times_or_nothing() {
        assert_eq!((span("0"), span("10m")), (Ok(Millis::ZERO), Ok(USUAL)));
        assert_eq!(span("30s"), Ok(Millis::from_secs(30)));
        assert_eq!(span("2"), Ok(Millis::from_secs(120)));
        for wrong in ["", "-1", "x", "0s0"] {
            assert!(span(wrong).is_err(), "{wrong}");
        }
    }
}
