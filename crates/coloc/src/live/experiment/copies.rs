//! Copies of commands, run side by side and listened to.

use super::progress::{Pattern, Progress};
use crate::signals;
use coloc_api::text::RawText;
use std::io::Read;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

/// How often processes are looked at.
const LOOK: Duration = Duration::from_millis(20);
/// From a polite request to end to a kill.
const GRACE: Duration = Duration::from_secs(5);
/// From fewer words of progress no speed can be told,
const ENOUGH: usize = 6;
/// but no copy is waited for longer than this many times what was asked for.
const MOST_TIMES: u32 = 10;
/// A line that goes on is cut here.
const LONGEST_LINE: usize = 8192;

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub(super) enum CopiesError {
    /// It could not be started.
    #[error("{command} cannot be started: {source}")]
    Start {
        /// The command.
        command: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// It failed.
    #[error("copy {copy} ended with {status}: {words}")]
    Failed {
        /// Which, from 1.
        copy: usize,
        /// How.
        status: ExitStatus,
        /// Its last words.
        words: String,
    },
    /// A signal asked it to end.
    #[error("stopped before it was done")]
    Stopped,
    /// It said too little.
    #[error(
        "copy {copy} told of progress at most once within {seconds:.0} s: measure longer with --seconds"
    )]
    Silent {
        /// Which, from 1.
        copy: usize,
        /// Within how long.
        seconds: f64,
    },
}

/// Variables of processes: set to something, or taken away.
pub(super) type Variables = Vec<(String, Option<String>)>;

/// How and for how long to listen.
#[derive(Clone, Debug)]
pub(super) struct Listening {
    pub(super) pattern: Pattern,
    pub(super) warmup: Duration,
    pub(super) seconds: Duration,
    /// A signal asked the experiment to end.
    pub(super) stop: Arc<AtomicBool>,
}

/// What was measured, and when.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Measured {
    /// Iterations a second of each copy; runs a second where no progress was told.
    pub(super) rates: Vec<f64>,
    pub(super) by_progress: bool,
    pub(super) from: Instant,
    pub(super) until: Instant,
}

/// A process and what it said.
struct Copy {
    child: Child,
    progress: Progress,
    last_words: String,
    began: Instant,
    ended: Option<Instant>,
}

/// All copies that run. A copy that is left is ended with it.
struct Copies {
    all: Vec<Copy>,
    heard: mpsc::Receiver<(usize, Instant, Vec<u8>)>,
}

/// A command and the variables that it gets.
pub(super) type Start<'a> = (&'a [RawText], Variables);

/// Runs commands side by side and measures how fast they are.
pub(super) fn measure(
    commands: &[Start<'_>],
    listening: &Listening,
) -> Result<Measured, CopiesError> {
    let mut copies = Copies::start(commands)?;
    let (mut from, began) = (None, Instant::now());
    let until = loop {
        copies.listen(&listening.pattern)?;
        if listening.stop.load(Ordering::Relaxed) {
            return Err(CopiesError::Stopped);
        }
        let now = Instant::now();
        let told = copies.all.iter().all(|copy| !copy.progress.said.is_empty());
        if from.is_none() && told && now.duration_since(began) >= listening.warmup {
            from = Some(now);
        }
        if from.is_some_and(|from| copies.are_heard(from, now, listening.seconds)) {
            break now;
        }
        // What counts is the time in which all run; without progress, it is how long they take.
        let mut ends = copies.all.iter().map(|copy| copy.ended);
        match from {
            Some(_) => {
                if let Some(end) = ends.flatten().min() {
                    break end;
                }
            }
            None => {
                if ends.all(|end| end.is_some()) {
                    break now;
                }
            }
        }
    };
    copies.sum_up(from, began, until)
}

impl Copies {
    fn start(commands: &[Start<'_>]) -> Result<Self, CopiesError> {
        let (to, heard) = mpsc::channel();
        let mut copies = Copies { all: Vec::new(), heard };
        for (index, (words, variables)) in commands.iter().enumerate() {
            let child = spawn(words, variables);
            let mut child = child.map_err(|source| CopiesError::Start {
                command: words.first().map_or(String::new(), |w| w.to_string_lossy().into_owned()),
                source,
            })?;
            let outputs: [Option<Box<dyn Read + Send>>; 2] = [
                child.stdout.take().map(|pipe| Box::new(pipe) as _),
                child.stderr.take().map(|pipe| Box::new(pipe) as _),
            ];
            for output in outputs.into_iter().flatten() {
                let to = to.clone();
                std::thread::spawn(move || read_lines(output, index, &to));
            }
            copies.all.push(Copy {
                child,
                progress: Progress::default(),
                last_words: String::new(),
                began: Instant::now(),
                ended: None,
            });
        }
        Ok(copies)
    }

    /// The time that counts is over: it was long enough, and a copy that speaks rarely has been waited for.
    fn are_heard(&self, from: Instant, now: Instant, seconds: Duration) -> bool {
        let span = now.duration_since(from);
        let heard = |copy: &Copy| copy.progress.words_since(from) >= ENOUGH;
        span >= seconds && (self.all.iter().all(heard) || span >= seconds * MOST_TIMES)
    }

    /// Hears what is said for a moment, and looks who has ended.
    fn listen(&mut self, pattern: &Pattern) -> Result<(), CopiesError> {
        let first = self.heard.recv_timeout(LOOK).ok();
        if first.is_none() {
            // All may have hung up; then there is nothing to wait for but their ends.
            std::thread::sleep(LOOK / 4);
        }
        for (index, at, line) in first.into_iter().chain(self.heard.try_iter().take(4096)) {
            let copy = &mut self.all[index];
            copy.progress.hear(pattern, &line, at);
            if !line.iter().all(u8::is_ascii_whitespace) {
                copy.last_words = String::from_utf8_lossy(&line).trim().chars().take(300).collect();
            }
        }
        for index in 0..self.all.len() {
            let copy = &mut self.all[index];
            let Some(status) = copy.child.try_wait().ok().flatten() else { continue };
            if copy.ended.is_none() {
                copy.ended = Some(Instant::now());
            }
            if !status.success() {
                let words = copy.last_words.clone();
                return Err(CopiesError::Failed { copy: index + 1, status, words });
            }
        }
        Ok(())
    }

    fn sum_up(
        &self,
        from: Option<Instant>,
        began: Instant,
        until: Instant,
    ) -> Result<Measured, CopiesError> {
        if let Some(from) = from {
            let rates: Vec<Option<f64>> =
                self.all.iter().map(|copy| copy.progress.rate(from, until)).collect();
            match rates.iter().position(Option::is_none) {
                None => {
                    let rates = rates.into_iter().flatten().collect();
                    return Ok(Measured { rates, by_progress: true, from, until });
                }
                // It ended before it said more: its run time is all there is.
                Some(silent) if self.all.iter().any(|copy| copy.ended.is_none()) => {
                    let seconds = until.duration_since(from).as_secs_f64();
                    return Err(CopiesError::Silent { copy: silent + 1, seconds });
                }
                Some(_) => {}
            }
        }
        let rate = |copy: &Copy| {
            let ran = copy.ended.unwrap_or(until).duration_since(copy.began).as_secs_f64();
            1.0 / ran.max(1e-3)
        };
        let rates = self.all.iter().map(rate).collect();
        Ok(Measured { rates, by_progress: false, from: began, until })
    }
}

impl Drop for Copies {
    fn drop(&mut self) {
        for copy in &self.all {
            signals::end_group(copy.child.id(), false);
        }
        let began = Instant::now();
        for copy in &mut self.all {
            while copy.child.try_wait().is_ok_and(|ended| ended.is_none()) {
                if began.elapsed() > GRACE {
                    signals::end_group(copy.child.id(), true);
                    let _ = copy.child.wait();
                    break;
                }
                std::thread::sleep(LOOK);
            }
        }
    }
}

fn spawn(words: &[RawText], variables: &Variables) -> std::io::Result<Child> {
    let Some((program, arguments)) = words.split_first() else {
        return Err(std::io::Error::from(std::io::ErrorKind::InvalidInput));
    };
    let mut command = Command::new(program.as_os_str());
    command.args(arguments.iter().map(RawText::as_os_str));
    for (name, value) in variables {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    // A group of its own, so that what it starts is ended with it.
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.process_group(0).spawn()
}

/// Hands over lines as they come; bars that draw themselves anew end in carriage returns.
fn read_lines(mut output: impl Read, index: usize, to: &mpsc::Sender<(usize, Instant, Vec<u8>)>) {
    let (mut line, mut piece) = (Vec::new(), [0u8; 4096]);
    loop {
        let count = match output.read(&mut piece) {
            Ok(0) | Err(_) => return,
            Ok(count) => count,
        };
        let now = Instant::now();
        for &byte in &piece[..count] {
            if byte == b'\n' || byte == b'\r' {
                if to.send((index, now, std::mem::take(&mut line))).is_err() {
                    return;
                }
            } else if line.len() < LONGEST_LINE {
                line.push(byte);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Vec<RawText> {
        ["sh", "-c", script].map(RawText::from).to_vec()
    }

    fn plain(words: &[RawText]) -> Start<'_> {
        (words, Vec::new())
    }

    fn listening(seconds: f64) -> Listening {
        let pattern = Pattern::new(None).expect("patterns");
        let seconds = Duration::from_secs_f64(seconds);
        Listening { pattern, warmup: Duration::ZERO, seconds, stop: Arc::default() }
    }

    #[test]
    fn progress_is_measured_and_nobody_is_left_behind() {
        let fast = shell("i=0; while true; do i=$((i+4)); echo step $i; sleep 0.05; done");
        let slow = shell("i=0; while true; do i=$((i+1)); echo step $i; sleep 0.05; done");
        let found = measure(&[plain(&fast), plain(&slow)], &listening(1.5)).expect("measured");
        assert!(found.by_progress && found.rates[0] > 2.0 * found.rates[1], "{found:?}");
    }

    #[test]
    fn without_progress_run_times_count_and_failures_are_told() {
        let short = shell("sleep 0.2");
        let found = measure(&[plain(&short)], &listening(1.0)).expect("measured");
        assert!(!found.by_progress && found.rates[0] < 5.0, "{found:?}");
        let failing = shell("echo CUDA out of memory >&2; exit 3");
        let error = measure(&[plain(&short), plain(&failing)], &listening(1.0)).expect_err("fails");
        assert!(matches!(error, CopiesError::Failed { copy: 2, .. }), "{error}");
        let missing = [RawText::from("/nowhere/at/all")];
        let error = measure(&[plain(&missing)], &listening(1.0)).expect_err("is not there");
        assert!(error.to_string().contains("/nowhere/at/all"), "{error}");
    }

    #[test]
    fn variables_are_set_and_taken_away() {
        let script = shell("test \"$COLOC_TEST_SET\" = yes -a -z \"$PATH_GONE\"");
        let variables = vec![
            ("COLOC_TEST_SET".to_owned(), Some("yes".to_owned())),
            ("PATH_GONE".to_owned(), None),
        ];
        measure(&[(&script, variables)], &listening(1.0)).expect("as told");
    }
}
