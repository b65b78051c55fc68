//! How a daemon writes its log.

use clap::{Args, ValueEnum};
use coloc_daemon::log::{self, LogFormat, LogGuard, LogLevel};

flag_values!(
    /// How a line is written.
    LogFormatFlag => LogFormat {
        /// Lines for people, or for journald where that reads them
        Text => LogFormat::Text,
        /// A JSON object a line
        Json => LogFormat::Json,
    }
);

flag_values!(
    /// How much is written.
    LogLevelFlag => LogLevel {
        /// What keeps the daemon from its work
        Error => LogLevel::Error,
        /// What those who run it should look at
        Warn => LogLevel::Warn,
        /// What happens to tasks and GPUs
        Info => LogLevel::Info,
    }
);

/// The log on standard error.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct LogArgs {
    /// How the log on standard error is written
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub(crate) log_format: LogFormatFlag,
    /// How much of it is written
    #[arg(long, value_enum, value_name = "LEVEL", default_value = "info")]
    pub(crate) log_level: LogLevelFlag,
}

impl LogArgs {
    /// Starts the log. What is left is written when the guard is dropped.
    pub(crate) fn start(self) -> LogGuard {
        log::start(self.log_format.into(), self.log_level.into())
    }
}
