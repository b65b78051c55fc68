//! The daemon's log, on its standard error: lines for people or for journald, or JSON for programs.
//!
//! A thread of its own writes it. Where no process reads, lines are dropped, and the scheduler goes on.

use std::fmt;
use tracing::{Event, Level, Subscriber};
pub use tracing_appender::non_blocking::WorkerGuard as LogGuard;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// So much is said at once: the kernel's PIPE_BUF.
const MOST_SAID: usize = 4096;

/// How a line is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LogFormat {
    /// For people; for journald, if that reads it.
    Text,
    /// A JSON object a line.
    Json,
}

/// How much is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LogLevel {
    /// What keeps the daemon from its work.
    Error,
    /// What administrators should look at.
    Warn,
    /// What happens to tasks and GPUs, a line each.
    Info,
}

impl From<LogLevel> for Level {
    fn from(level: LogLevel) -> Level {
        match level {
            LogLevel::Error => Level::ERROR,
            LogLevel::Warn => Level::WARN,
            LogLevel::Info => Level::INFO,
        }
    }
}

/// Starts the log of this process. What is left is written when the guard is dropped.
pub fn start(format: LogFormat, level: LogLevel) -> LogGuard {
    let (writer, guard) = tracing_appender::non_blocking(std::io::stderr());
    let builder = tracing_subscriber::fmt()
        .with_max_level(Level::from(level))
        .with_target(false)
        .with_ansi(false)
        .with_writer(writer);
    let journald = std::env::var_os("JOURNAL_STREAM").is_some();
    // A log that was started already, by a test or by another daemon of this process, stays.
    let _ = match format {
        LogFormat::Json => builder.json().flatten_event(true).with_span_list(false).try_init(),
        LogFormat::Text if journald => builder.event_format(Journald).try_init(),
        LogFormat::Text => builder.try_init(),
    };
    guard
}

/// Says something on the standard error of a process that the daemon started, if it is read. Where it is not, or no longer, the
/// process neither waits nor ends: it has more to do than to talk.
pub(crate) fn say(text: &str) {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use std::io::Write as _;
    let errors = std::io::stderr();
    let mut ready = [PollFd::new(&errors, PollFlags::OUT)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    if poll(&mut ready, Some(&at_once)).is_ok_and(|count| count > 0) {
        // A pipe that is ready has room for so much at least.
        let bytes = text.as_bytes();
        let _ = errors.lock().write_all(&bytes[..bytes.len().min(MOST_SAID)]);
    }
}

/// journald has a time for every line, and reads the level from its beginning: `<6>`.
struct Journald;

impl<S, N> FormatEvent<S, N> for Journald
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        write!(writer, "<{}>", priority(*event.metadata().level()))?;
        context.field_format().format_fields(writer.by_ref(), event)?;
        writeln!(writer)
    }
}

/// The level as syslog counts.
fn priority(level: Level) -> u8 {
    match level {
        Level::ERROR => 3,
        Level::WARN => 4,
        Level::INFO => 6,
        Level::DEBUG | Level::TRACE => 7,
    }
}
