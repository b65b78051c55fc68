//! What administrators say of hooks.

use crate::error::UsageError;
use clap::Args;
use coloc_api::notify::{Channel, MOST_HOOKS, Notify, check_webhook_rule};
use coloc_daemon::administration::hooks::check_program;
use coloc_daemon::notices::{NotifySettings, SENDMAIL};
use coloc_model::Millis;
use std::path::{Path, PathBuf};

/// The flags, which have a section of the configuration to themselves.
pub(crate) const NOTIFY_FLAGS: [&str; 4] = ["hook", "webhook-allow", "long-wait", "sendmail"];

/// Hooks for all users' tasks, and what users may have.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Hooks")]
pub(crate) struct NotifyArgs {
    /// Tell of events of all users' tasks: EVENTS[:CHANNEL] with start, end, fail, oom, wait or all, and mail=ADDRESS, http://HOST:PORT/PATH or a program's path; can be given several times
    #[arg(long, value_name = "EVENTS:CHANNEL")]
    hook: Vec<Notify>,
    /// Let users' tasks post to this HOST, HOST:PORT or HOST:*, or * for any; can be given several times [default: none]
    #[arg(long, value_name = "HOST:PORT", value_parser = check_webhook_rule)]
    webhook_allow: Vec<String>,
    /// A task that waits this long has waited for long
    #[arg(long, value_name = "TIME", default_value = "1h")]
    long_wait: Millis,
    /// The program that takes mail
    #[arg(long, value_name = "PATH", default_value = SENDMAIL)]
    sendmail: PathBuf,
}

impl NotifyArgs {
    pub(crate) fn settings(&self) -> Result<NotifySettings, UsageError> {
        if self.hook.len() > MOST_HOOKS {
            let why = format!("at most {MOST_HOOKS} hooks");
            return Err(UsageError::flag("--hook", why));
        }
        if !self.sendmail.is_absolute() {
            let given = self.sendmail.display();
            return Err(UsageError::value("--sendmail", "an absolute path", given));
        }
        if self.long_wait == Millis::ZERO {
            return Err(UsageError::value("--long-wait", "a time above zero", "0"));
        }
        self.check_programs()?;
        Ok(NotifySettings {
            hooks: self.hook.clone(),
            webhook_allow: self.webhook_allow.clone(),
            long_wait: self.long_wait,
            sendmail: self.sendmail.clone(),
        })
    }

    /// Programs that the daemon runs with its own rights are there, and no other user can change them.
    fn check_programs(&self) -> Result<(), UsageError> {
        let mut mails = false;
        for hook in &self.hook {
            match &hook.channel {
                Channel::Command(path) => {
                    check_program(Path::new(path))
                        .map_err(|error| UsageError::flag("--hook", error.to_string()))?;
                }
                Channel::Mail(_) => mails = true,
                Channel::Webhook(_) => {}
            }
        }
        // A machine that sends no mail is all right, unless it is asked for.
        if mails || self.sendmail != Path::new(SENDMAIL) {
            check_program(&self.sendmail)
                .map_err(|error| UsageError::flag("--sendmail", error.to_string()))?;
        }
        Ok(())
    }
}
