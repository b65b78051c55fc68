//! Where the output of copies goes: where srun's own goes, with the number of the copy before each line, or to files.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read, Write};
use std::process::Stdio;
use std::thread::JoinHandle;

/// A line that is longer is written in parts.
const LONGEST_LINE: u64 = 64 << 10;

/// Where one stream goes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Destination {
    /// Where srun's own goes.
    Inherited,
    /// Nowhere.
    None,
    /// That of one copy alone goes where srun's own goes.
    Only(u32),
    /// To files, by a pattern.
    File(String),
}

impl Destination {
    pub(super) fn read(text: Option<&str>) -> Self {
        match text {
            None | Some("all") => Destination::Inherited,
            Some("none") => Destination::None,
            Some(text) => match text.parse() {
                Ok(rank) => Destination::Only(rank),
                Err(_) => Destination::File(text.to_owned()),
            },
        }
    }
}

/// How output is shown.
#[derive(Clone, Debug)]
pub(super) struct Mode {
    pub(super) label: bool,
    pub(super) output: Destination,
    pub(super) errors: Destination,
    /// Files are written on.
    pub(super) append: bool,
    pub(super) step: u32,
    pub(super) copies: u32,
}

/// What the streams of one copy are connected to.
pub(super) struct Streams {
    pub(super) output: Stdio,
    pub(super) errors: Stdio,
}

impl Mode {
    /// Opens what a copy writes to.
    pub(super) fn streams(&self, rank: u32) -> io::Result<Streams> {
        let output = self.stream(&self.output, rank)?;
        // Errors go with the output, unless they are told to go elsewhere.
        let errors = match (&self.output, &self.errors) {
            (Destination::File(_), Destination::Inherited) => match &output {
                Opened::File(file) => Opened::File(file.try_clone()?),
                Opened::Stdio(_) => Opened::Stdio(Stdio::inherit()),
            },
            (_, errors) => self.stream(errors, rank)?,
        };
        Ok(Streams { output: output.into(), errors: errors.into() })
    }

    fn stream(&self, to: &Destination, rank: u32) -> io::Result<Opened> {
        Ok(match to {
            Destination::None => Opened::Stdio(Stdio::null()),
            Destination::Only(only) if *only != rank => Opened::Stdio(Stdio::null()),
            Destination::File(pattern) => {
                let name = expand(pattern, self.step, rank);
                let is_shared = expand(pattern, self.step, rank + 1) == name;
                let mut options = OpenOptions::new();
                // Copies that share a file must not write over each other.
                options.create(true).append(true);
                let file = options
                    .open(&name)
                    .map_err(|error| io::Error::new(error.kind(), format!("{name}: {error}")))?;
                if !self.append && (rank == 0 || !is_shared) {
                    file.set_len(0)?;
                }
                Opened::File(file)
            }
            Destination::Inherited | Destination::Only(_) if self.label => {
                Opened::Stdio(Stdio::piped())
            }
            Destination::Inherited | Destination::Only(_) => Opened::Stdio(Stdio::inherit()),
        })
    }

    /// Copies lines with the number of the copy before them.
    pub(super) fn label(
        &self,
        rank: u32,
        from: impl Read + Send + 'static,
        is_error: bool,
    ) -> JoinHandle<()> {
        let width = self.copies.saturating_sub(1).to_string().len();
        let label = format!("{rank:>width$}: ");
        std::thread::spawn(move || {
            let written = match is_error {
                true => labelled(&label, from, &mut || io::stderr()),
                false => labelled(&label, from, &mut || io::stdout()),
            };
            // A reader of srun's output that is gone is noticed by the copies, as without srun.
            let _ = written;
        })
    }
}

enum Opened {
    File(File),
    Stdio(Stdio),
}

impl From<Opened> for Stdio {
    fn from(opened: Opened) -> Stdio {
        match opened {
            Opened::File(file) => file.into(),
            Opened::Stdio(stdio) => stdio,
        }
    }
}

fn labelled<W: Write>(label: &str, from: impl Read, to: &mut dyn FnMut() -> W) -> io::Result<()> {
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    loop {
        line.clear();
        line.extend(label.as_bytes());
        if from.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        if !line.ends_with(b"\n") {
            line.push(b'\n');
        }
        // One write a line: lines of several copies do not mix.
        let mut out = to();
        out.write_all(&line)?;
        out.flush()?;
    }
}

/// `%t` is the copy's number, `%j` the task, `%s` the step, `%J` both, `%x` the name, `%u` the user, `%N` the machine, `%n` its
/// number; a number between fills with zeros.
fn expand(pattern: &str, step: u32, rank: u32) -> String {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let mut text = String::new();
    let mut letters = pattern.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter != '%' {
            text.push(letter);
            continue;
        }
        let mut digits = String::new();
        while let Some(digit) = letters.next_if(char::is_ascii_digit) {
            digits.push(digit);
        }
        let width = digits.parse::<usize>().unwrap_or(0).min(10);
        let job = variable("SLURM_JOB_ID");
        let value = match letters.next() {
            Some('t') => rank.to_string(),
            Some('j') => job,
            Some('s') => step.to_string(),
            Some('J') => format!("{job}.{step}"),
            Some('A') => {
                Some(variable("SLURM_ARRAY_JOB_ID")).filter(|id| !id.is_empty()).unwrap_or(job)
            }
            Some('a') => variable("SLURM_ARRAY_TASK_ID"),
            Some('x') => variable("SLURM_JOB_NAME"),
            Some('u') => variable("SLURM_JOB_USER"),
            Some('N') => variable("SLURMD_NODENAME"),
            Some('n') => "0".to_owned(),
            Some('%') => "%".to_owned(),
            Some(other) => format!("%{digits}{other}"),
            None => "%".to_owned(),
        };
        text.push_str(&format!("{value:0>width$}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Seek as _;

    #[test]
    fn lines_carry_the_number_of_their_copy() {
        let long = "x".repeat(LONGEST_LINE as usize + 1);
        let text = format!("a\nb\n{long}");
        let file = tempfile::NamedTempFile::new().expect("a file");
        let mut to = || {
            file.reopen()
                .and_then(|mut to| to.seek(io::SeekFrom::End(0)).map(|_| to))
                .expect("opened")
        };
        labelled("1: ", text.as_bytes(), &mut to).expect("written");
        let all = std::fs::read(file.path()).expect("read");
        let told = String::from_utf8(all).expect("text");
        assert!(
            told.starts_with("1: a\n1: b\n1: xxx") && told.ends_with("x\n1: x\n"),
            "{}",
            told.len()
        );
    }

    #[test]
    fn files_are_named_by_copy_and_step() {
        assert_eq!(expand("out-%t.txt", 2, 7), "out-7.txt");
        assert_eq!(expand("out-%3t-%s%%", 2, 7), "out-007-2%");
        assert_eq!(expand("%q%", 0, 0), "%q%");
        assert_eq!(Destination::read(Some("none")), Destination::None);
        assert_eq!(Destination::read(Some("3")), Destination::Only(3));
        assert_eq!(Destination::read(Some("a.txt")), Destination::File("a.txt".to_owned()));
        assert_eq!(Destination::read(None), Destination::Inherited);
    }
}
