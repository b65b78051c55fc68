//! What the daemon tells: one thread listens to its events, another asks.

use super::app::{LOG_LINES, LOOK_BACK_S, Log};
use super::update::{Effect, Msg};
use crate::args::live::SocketArg;
use crate::error::CliError;
use crate::output::sanitize::Sanitizer;
use coloc_api::client::{Client, ClientError, Event, LogPart};
use coloc_api::request::Change;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

/// A daemon that is gone is looked for this often.
const AGAIN: Duration = Duration::from_secs(1);
/// How often what is marked is asked for anew, and the expected times.
const LOOK: Duration = Duration::from_secs(2);
const EXPECT: Duration = Duration::from_secs(10);
/// Bytes of the end of a log that are shown.
const LOG_TAIL: u64 = 64 << 10;
/// How far back the timeline and ended tasks go, and how far ahead the timeline, in seconds.
const DAY_S: f64 = 86_400.0;
const TIMELINE_S: (f64, f64) = (7200.0, 7200.0);

/// Everything as it is now: what is drawn first, and drawn once by `--once`.
pub(super) fn snapshot(client: &mut Client) -> Result<Msg, ClientError> {
    let status = Box::new(client.status()?);
    let gpus = client.gpus()?.gpus;
    let tasks = client.list(false, 0.0)?.tasks;
    Ok(Msg::Snapshot { status, gpus, tasks })
}

/// Listens, and connects anew for ever. Ends when there is no reader any more.
pub(super) fn listen(socket: &SocketArg, to: &Sender<Msg>) {
    loop {
        let lost = follow(socket, to);
        let why = lost.map_or_else(|error| error.to_string(), |()| "the daemon is gone".to_owned());
        if to.send(Msg::Lost(why)).is_err() {
            return;
        }
        std::thread::sleep(AGAIN);
    }
}

/// Follows the events until the daemon is gone.
fn follow(socket: &SocketArg, to: &Sender<Msg>) -> Result<(), CliError> {
    let (mut asks, mut listens) = (socket.connect()?, socket.connect()?);
    // Listening comes first: what happens meanwhile is in both, and nothing is in neither.
    let events = listens.events_of(&["task", "sample", "status"])?;
    let send = |msg| to.send(msg).map_err(|_| ());
    if send(snapshot(&mut asks)?).is_err() {
        return Ok(());
    }
    for event in events {
        let msg = match event? {
            Event::Task(task) => Msg::Task(task),
            Event::Sample(frame) => Msg::Sample(frame),
            Event::Status(news) => Msg::Status(news),
            Event::Missed => snapshot(&mut asks)?,
        };
        if send(msg).is_err() {
            return Ok(());
        }
    }
    Ok(())
}

/// Answers questions, and asks again for what is looked at. Ends with the questions.
pub(super) fn answer(socket: &SocketArg, questions: &Receiver<Effect>, to: &Sender<Msg>) {
    let mut asker =
        Asker { socket, client: None, looks_at: None, log: None, expect: Instant::now() };
    loop {
        let asked = match questions.recv_timeout(LOOK) {
            Ok(question) => vec![question],
            Err(RecvTimeoutError::Timeout) => asker.usual(),
            Err(RecvTimeoutError::Disconnected) => return,
        };
        for question in asked {
            for msg in asker.ask(&question) {
                if to.send(msg).is_err() {
                    return;
                }
            }
        }
        if asker.expect <= Instant::now() {
            asker.expect = Instant::now() + EXPECT;
            if let Some(Ok(foreseen)) = asker.with(Client::all_expected)
                && to.send(Msg::Expected(foreseen.tasks)).is_err()
            {
                return;
            }
        }
    }
}

struct Asker<'a> {
    socket: &'a SocketArg,
    client: Option<Client>,
    /// The task that the marker is on.
    looks_at: Option<u32>,
    log: Option<LogReader>,
    /// When expected times are asked for again.
    expect: Instant,
}

impl Asker<'_> {
    /// What is asked for again while nothing else is.
    fn usual(&self) -> Vec<Effect> {
        let looks_at = self.looks_at.into_iter();
        looks_at.flat_map(|id| [Effect::AskWhy(id), Effect::AskLog(id)]).collect()
    }

    /// Asks on a connection that is there; `None` if there is no daemon.
    fn with<T>(
        &mut self,
        question: impl FnOnce(&mut Client) -> Result<T, ClientError>,
    ) -> Option<Result<T, ClientError>> {
        if self.client.is_none() {
            self.client = self.socket.connect().ok();
        }
        let answer = question(self.client.as_mut()?);
        if answer.as_ref().is_err_and(ClientError::may_pass) {
            self.client = None;
            return None;
        }
        Some(answer)
    }

    fn ask(&mut self, question: &Effect) -> Vec<Msg> {
        let now_s = super::edge::now_s();
        let answer = match question {
            Effect::Quit => return Vec::new(),
            Effect::AskWhy(id) => {
                self.looks_at = Some(*id);
                // Of an ended task there is nothing to explain.
                let why = self.with(|client| client.why(*id)).and_then(Result::ok);
                return why.map(|why| Msg::Why(Box::new(why))).into_iter().collect();
            }
            Effect::AskLog(id) => return self.read_log(*id).into_iter().collect(),
            Effect::AskDetail(id) => self
                .with(|client| client.show(*id))
                .map(|it| it.map(|it| Msg::Detail(Box::new(it)))),
            Effect::AskGpus => {
                self.with(Client::gpus).map(|answer| answer.map(|gpus| Msg::Gpus(gpus.gpus, now_s)))
            }
            Effect::AskEnded => {
                self.with(|client| client.list(true, now_s - DAY_S)).map(|answer| {
                    answer.map(|listed| {
                        let ended = listed.tasks.into_iter().filter(|task| task.state.is_over());
                        Msg::Ended(ended.collect())
                    })
                })
            }
            Effect::AskTimeline => {
                let (back, ahead) = TIMELINE_S;
                self.with(|client| client.timeline(now_s - back, now_s + ahead))
                    .map(|answer| answer.map(|timeline| Msg::Timeline(Box::new(timeline))))
            }
            Effect::Change(ids, change) => self
                .with(|client| client.change(ids, Change::clone(change)))
                .map(|answer| answer.map(|changed| Msg::Changed(Change::clone(change), changed))),
        };
        let gone = || Ok(Msg::Failed("the daemon does not answer; nothing was changed".to_owned()));
        let failed = |error: ClientError| Msg::Failed(error.to_string());
        vec![answer.unwrap_or_else(gone).unwrap_or_else(failed)]
    }

    /// What was written since the last look.
    fn read_log(&mut self, id: u32) -> Option<Msg> {
        let mut reader = self.log.take().filter(|reader| reader.shown.id == id);
        if reader.is_none() {
            let part = self.with(|client| tail(client, id))?.ok()?;
            reader = Some(LogReader::new(id, part.attempt));
            reader.as_mut()?.take(&part);
        } else if let Some(reader) = &mut reader {
            let (attempt, at) = (reader.shown.attempt, reader.at);
            let part =
                self.with(|client| client.log(id, Some(attempt).filter(|&n| n > 0), at))?.ok()?;
            reader.take(&part);
            // Another attempt has a log of its own.
            if part.attempts > attempt {
                return None;
            }
        }
        self.log = reader;
        self.log.as_ref().map(|reader| Msg::Log(reader.shown.clone()))
    }
}

/// A log as it grows.
struct LogReader {
    shown: Log,
    at: u64,
    sanitizer: Sanitizer,
    /// The line that has no end yet.
    begun: Vec<u8>,
}

impl LogReader {
    fn new(id: u32, attempt: u32) -> Self {
        let shown = Log { id, attempt, lines: Vec::new() };
        LogReader { shown, at: 0, sanitizer: Sanitizer::default(), begun: Vec::new() }
    }

    fn take(&mut self, part: &LogPart) {
        self.at = part.offset + part.bytes.len() as u64;
        if !self.begun.is_empty() {
            self.shown.lines.pop();
        }
        self.begun.extend(self.sanitizer.filter(&part.bytes));
        let mut lines: Vec<Vec<u8>> =
            self.begun.split(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect();
        self.begun = lines.pop().unwrap_or_default();
        self.shown.lines.extend(lines.iter().map(|line| plain(line)));
        if !self.begun.is_empty() {
            self.shown.lines.push(plain(&self.begun));
        }
        let too_many = self.shown.lines.len().saturating_sub(LOG_LINES);
        self.shown.lines.drain(..too_many);
    }
}

/// A line without colours; of a line that was written over, what came last.
fn plain(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    let mut shown = String::new();
    let mut characters = text.trim_end_matches('\r').chars();
    while let Some(character) = characters.next() {
        match character {
            '\r' => shown.clear(),
            '\t' => shown.push_str("    "),
            '\u{8}' => drop(shown.pop()),
            // Nothing but colours is left of sequences.
            '\u{1b}' => drop(characters.by_ref().find(|c| c.is_ascii_alphabetic())),
            other => shown.push(other),
        }
    }
    shown
}

/// The end of a task's output.
pub(super) fn last_of_log(client: &mut Client, id: u32) -> Result<Log, ClientError> {
    let part = tail(client, id)?;
    let mut reader = LogReader::new(id, part.attempt);
    reader.take(&part);
    Ok(reader.shown)
}

/// A daemon of before has no tails.
fn tail(client: &mut Client, id: u32) -> Result<LogPart, ClientError> {
    match client.log_tail(id, LOG_TAIL) {
        Err(ClientError::Refused { .. }) => client.log(id, None, 0),
        tail => tail,
    }
}

/// SM activity of the last half hour, if the daemon keeps it.
pub(super) fn activity(client: &mut Client, gpus: &[u32], now_s: f64) -> Vec<Msg> {
    let of: Vec<String> = gpus.iter().map(|gpu| format!("gpu:{gpu}")).collect();
    let Ok(answer) = client.series(&of, now_s - LOOK_BACK_S, now_s, 120) else { return Vec::new() };
    let mut all = Vec::new();
    for series in answer.series {
        let gpu = series.of.strip_prefix("gpu:").and_then(|gpu| gpu.parse().ok());
        let (Some(gpu), Some(column)) = (gpu, series.columns.get("smact")) else { continue };
        let at = |number: usize| series.start_s + number as f64 * series.step_s;
        let seen = column.iter().enumerate().filter_map(|(n, value)| Some((at(n), (*value)?)));
        all.push(Msg::Activity(gpu, seen.collect()));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(offset: u64, bytes: &[u8]) -> LogPart {
        LogPart { bytes: bytes.to_vec(), state: None, offset, attempt: 1, attempts: 1 }
    }

    #[test]
    fn a_log_is_shown_line_by_line_without_what_a_terminal_would_obey() {
        let mut reader = LogReader::new(7, 1);
        reader.take(&part(0, b"one\n\x1b[31mtwo\x1b[0m\x1b]0;evil\x07\nthr"));
        assert_eq!(reader.shown.lines, ["one", "two", "thr"]);
        reader.take(&part(40, b"ee\n10%\r20%\r\n\ta\x1b[2Jb\x08c\n"));
        assert_eq!(reader.shown.lines, ["one", "two", "three", "20%", "    ac"]);
        assert_eq!(reader.at, 40 + 22);
        reader.take(&part(62, &b"x\n".repeat(2 * LOG_LINES)));
        assert_eq!(reader.shown.lines.len(), LOG_LINES);
    }
}
