//! Batch scripts: what their heads say, and the body that is kept with the task.

use crate::error::{CliError, UsageError};
use coloc_api::script::{LARGEST, interpreter, is_shell};
use coloc_api::text::RawText;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Stands for a script on standard input.
pub(crate) const STDIN: &str = "-";
/// What a task is called whose script came so.
const STDIN_NAME: &str = "stdin";

/// A script that is to be run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Script {
    /// Where it was found.
    file: PathBuf,
    body: Vec<u8>,
}

/// The words of one `#COLOC` or `#SBATCH` line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Directive {
    /// Where it stands in its script.
    pub(crate) line: usize,
    /// What it says.
    pub(crate) words: Vec<OsString>,
}

/// What is wrong with a line of a script.
pub(crate) fn wrong_line(file: &Path, line: usize, problem: &str) -> CliError {
    let (file, problem) = (file.to_owned(), problem.to_owned());
    UsageError::Line { file, line, problem }.into()
}

/// What sbatch says of what is no batch script.
pub(crate) fn no_batch_script(command: &[OsString]) -> CliError {
    let file = command.first().map(PathBuf::from).unwrap_or_default();
    let problem = match std::fs::metadata(&file) {
        Err(error) => format!("cannot be read: {error}"),
        Ok(meta) if !meta.is_file() => "is no file".to_owned(),
        Ok(_) => "does not look like a batch script: its first line must be #! and a program, such as #!/bin/bash; \
                  a command goes into --wrap"
            .to_owned(),
    };
    UsageError::file(file, problem).into()
}

impl Script {
    /// The script that a command begins with, on standard input or in a file; `None` if it begins with a program.
    pub(crate) fn of(command: &[OsString]) -> Result<Option<Self>, CliError> {
        let Some(first) = command.first() else { return Ok(None) };
        let script = if first == STDIN {
            let body = standard_input().clone();
            let wrong =
                |problem: String| CliError::from(UsageError::file("standard input", problem));
            let script = Script { file: STDIN_NAME.into(), body: body.map_err(wrong)? };
            if interpreter(&script.body).is_none() {
                let problem = "this is no script: its first line must be #! and a program, such as #!/bin/bash";
                return Err(wrong(problem.to_owned()));
            }
            script
        } else {
            let Ok(file) = File::open(first) else { return Ok(None) };
            let is_file = file.metadata().is_ok_and(|meta| meta.is_file());
            match if is_file { read_script(file) } else { Ok(None) } {
                Ok(Some(body)) => Script { file: first.into(), body },
                Ok(None) => return Ok(None),
                Err(problem) => {
                    return Err(UsageError::file(first, problem).into());
                }
            }
        };
        let first_line = script.body.split(|&byte| byte == b'\n').next().unwrap_or_default();
        if first_line.ends_with(b"\r") {
            let problem = "its lines end as on DOS, and no program has a name with that at its end: \
                           convert it, such as with `sed -i 's/\\r$//'`";
            return Err(wrong_line(&script.file, 1, problem));
        }
        Ok(Some(script))
    }

    /// Where it was found.
    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    /// Its `#COLOC` and `#SBATCH` lines, until the first command.
    pub(crate) fn directives(&self) -> Result<Vec<Directive>, CliError> {
        let text = String::from_utf8_lossy(&self.body);
        let lines = text.lines().map(str::trim).enumerate();
        let lines = lines.take_while(|(_, line)| line.is_empty() || line.starts_with('#'));
        let directive = |(index, line): (usize, &str)| {
            let (line, said) = (index + 1, directive(line)?);
            let Some(words) = split(said) else {
                return Some(Err(wrong_line(&self.file, line, "a quote is not closed")));
            };
            if let [word] = words.as_slice()
                && (word == "hetjob" || word == "packjob")
            {
                let why =
                    "a task has one part: there is one server. Submit the parts by themselves";
                return Some(Err(wrong_line(&self.file, line, why)));
            }
            Some(Ok(Directive { line, words: crate::slurm::with_values(&words) }))
        };
        lines.filter_map(directive).collect()
    }

    /// Whether the task gets a copy of it. What other interpreters run may look for files beside it, and stays where it
    /// is.
    fn is_kept(&self) -> Result<bool, CliError> {
        let alone = self.file == Path::new(STDIN_NAME) || is_shell(&self.body);
        Ok(alone || !self.directives()?.is_empty())
    }
}

/// What was on standard input: it can be read once.
fn standard_input() -> &'static Result<Vec<u8>, String> {
    static READ: OnceLock<Result<Vec<u8>, String>> = OnceLock::new();
    READ.get_or_init(|| {
        let body = read_all(io::stdin().lock()).map_err(|error| error.to_string())?;
        if body.len() > LARGEST { Err(too_large()) } else { Ok(body) }
    })
}

fn read_all(from: impl Read) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    from.take(LARGEST as u64 + 1).read_to_end(&mut body)?;
    Ok(body)
}

/// The whole of a file, if it is a script; of one that is too large to be kept, enough to see that.
fn read_script(mut file: File) -> Result<Option<Vec<u8>>, String> {
    let mut mark = [0; 2];
    if file.read_exact(&mut mark).is_err() || mark != *b"#!" {
        return Ok(None);
    }
    let rest = read_all(file).map_err(|error| error.to_string())?;
    Ok(Some([&mark[..], &rest].concat()))
}

fn too_large() -> String {
    format!("a script has at most {} MiB: put what it carries into files", LARGEST >> 20)
}

/// What follows the mark of a directive and white space.
fn directive(line: &str) -> Option<&str> {
    let said = ["#COLOC", "#SBATCH"].iter().find_map(|mark| line.strip_prefix(mark))?;
    said.starts_with(char::is_whitespace).then_some(said)
}

/// What is to be run.
pub(crate) struct Prepared {
    /// For people.
    pub(crate) name: String,
    /// The program, or the script, and its arguments.
    pub(crate) command: Vec<OsString>,
    /// The script's body, where the task gets a copy of it.
    pub(crate) script: Option<RawText>,
}

impl Prepared {
    /// A command for a shell, as `--wrap` has it.
    pub(crate) fn shell_command(command: OsString) -> Self {
        let command = vec!["/bin/sh".into(), "-c".into(), command];
        Prepared { name: "wrap".to_owned(), command, script: None }
    }

    /// What is started where no copy of a script is made: what its first line names, with the file.
    pub(crate) fn in_place(&self) -> Vec<RawText> {
        let named = self.script.as_ref().and_then(|body| interpreter(body.as_bytes()));
        let command = self.command.iter().cloned().map(RawText::from);
        named.unwrap_or_default().into_iter().chain(command).collect()
    }
}

/// Makes ready what was typed. Scripts are copied now, so that what is run is what was submitted, unless they are to stay
/// where they are.
pub(crate) fn prepared(
    command: Vec<OsString>,
    here: &Path,
    in_place: bool,
) -> Result<Prepared, CliError> {
    let script = Script::of(&command)?;
    let from_stdin = command.first().is_some_and(|first| first == STDIN);
    let name =
        script.as_ref().map_or_else(|| name_of(&command), |script| base(script.file.as_os_str()));
    match script {
        Some(script) if script.is_kept()? && (from_stdin || !in_place) => {
            if script.body.len() > LARGEST {
                let problem = format!("{}, or give --in-place", too_large());
                return Err(UsageError::file(&script.file, problem).into());
            }
            let place = if from_stdin { script.file } else { here.join(script.file) };
            let arguments = command.into_iter().skip(1);
            let command = [place.into_os_string()].into_iter().chain(arguments).collect();
            Ok(Prepared { name, command, script: Some(script.body.into()) })
        }
        _ => Ok(Prepared { name, command: runnable(command, here), script: None }),
    }
}

fn base(text: &OsStr) -> String {
    Path::new(text).file_name().unwrap_or(text).to_string_lossy().into_owned()
}

/// The last part of the program's name, or of the script that it interprets.
fn name_of(command: &[OsString]) -> String {
    let program = command.first().map(|first| base(first)).unwrap_or_default();
    let interprets = program.starts_with("python") || is_shell(format!("#!{program}").as_bytes());
    let script =
        command.get(1).filter(|script| interprets && Path::new(script).extension().is_some());
    script.map_or(program, |script| base(script))
}

/// A command as it can be started: a script of this directory is named without `./` by some, and need not be executable.
pub(crate) fn runnable(mut command: Vec<OsString>, here: &Path) -> Vec<OsString> {
    use std::os::unix::fs::PermissionsExt as _;
    let Some(file) = command.first().map(|first| here.join(first)) else { return command };
    let mut head = Vec::new();
    let Ok(script) = File::open(&file) else { return command };
    let mode = script.metadata().map_or(0, |meta| meta.permissions().mode());
    if script.take(256).read_to_end(&mut head).is_err() || !head.starts_with(b"#!") {
        return command;
    }
    command[0] = file.into_os_string();
    if mode & 0o111 != 0 {
        return command;
    }
    let words = interpreter(&head).unwrap_or_default();
    words.iter().map(|word| word.as_os_str().to_owned()).chain(command).collect()
}

/// Words as a shell would split them, with quotes; a comment ends them.
fn split(line: &str) -> Option<Vec<OsString>> {
    let (mut words, mut word, mut quote): (Vec<OsString>, Option<String>, _) =
        (Vec::new(), None, None);
    for character in line.chars() {
        match (quote, character) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => words.extend(word.take().map(OsString::from)),
            (None, '#') if word.is_none() => break,
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word.map(OsString::from));
    quote.is_none().then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    #[test]
    fn a_script_needs_neither_a_path_nor_a_mode() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("job.sh");
        std::fs::write(&file, "#!/bin/sh -e\ntrue\n").unwrap();
        let run = |typed: &[&str]| runnable(words(typed), place.path());
        let file = file.to_str().unwrap();
        assert_eq!(run(&["job.sh", "x"]), ["/bin/sh", "-e", file, "x"]);
        assert_eq!(run(&["sleep", "1"]), ["sleep", "1"]);
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(run(&["job.sh", "x"]), [file, "x"]);
    }

    #[test]
    fn directives_end_at_the_first_command() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("train.sh");
        let found = |text: &str| {
            std::fs::write(&file, text).unwrap();
            Script::of(&[file.clone().into()]).unwrap().unwrap().directives()
        };
        let script = "#!/bin/bash\n# a comment\n#SBATCH --gres=gpu:2\n#COLOC -J 'a name' # why\n#SBATCH\t-H\n#SBATCHED x\n\nrun\n#SBATCH -t 5\n";
        let all = found(script).unwrap();
        assert_eq!(all.iter().map(|one| one.line).collect::<Vec<_>>(), [3, 4, 5]);
        let words: Vec<_> = all.into_iter().flat_map(|one| one.words).collect();
        assert_eq!(words, ["--gres=gpu:2", "-J", "a name", "-H"]);
        let error = found("#!/bin/sh\n#COLOC -J 'open\n").unwrap_err().to_string();
        assert!(error.contains("line 2"), "{error}");
    }

    #[test]
    fn shells_and_those_with_directives_are_copied() {
        let place = tempfile::tempdir().unwrap();
        let kept = |text: &[u8], in_place| {
            let file = place.path().join("job");
            std::fs::write(&file, text).unwrap();
            let file = words(&[file.to_str().unwrap(), "x"]);
            prepared(file, Path::new("/elsewhere"), in_place).map(|p| (p.name, p.script.is_some()))
        };
        let job = || "job".to_owned();
        assert_eq!(kept(b"#!/bin/sh\ntrue\n", false).unwrap(), (job(), true));
        assert_eq!(kept(b"#!/bin/sh\ntrue\n", true).unwrap(), (job(), false));
        assert_eq!(kept(b"#!/usr/bin/env -S bash -e\n\xff\n", false).unwrap(), (job(), true));
        assert_eq!(kept(b"#!/usr/bin/env python3\n", false).unwrap(), (job(), false));
        assert_eq!(kept(b"#!/usr/bin/python3\n#SBATCH -G 1\n", false).unwrap(), (job(), true));
        assert_eq!(kept(b"\x7fELF", false).unwrap(), (job(), false));
        assert_eq!(kept(b"", false).unwrap(), (job(), false));
        assert!(kept(b"#!/bin/sh\r\ntrue\r\n", false).err().unwrap().to_string().contains("DOS"));
        let huge = [b"#!/bin/sh\n".to_vec(), vec![b'x'; LARGEST]].concat();
        assert!(kept(&huge, false).err().unwrap().to_string().contains("at most"));
        assert_eq!(kept(&huge, true).unwrap(), (job(), false), "it runs where it is");
        let archive = [b"#!/usr/bin/env python3\nPK".to_vec(), vec![0; LARGEST]].concat();
        assert_eq!(kept(&archive, false).unwrap(), (job(), false), "what it carries is its own");
    }

    #[test]
    fn tasks_are_named_by_what_is_run() {
        let name = |typed: &[&str]| name_of(&words(typed));
        assert_eq!(name(&["python3.11", "a/train.py", "x"]), "train.py");
        assert_eq!(name(&["bash", "a/train.sh"]), "train.sh");
        assert_eq!(name(&["bash", "-c", "true"]), "bash");
        assert_eq!(name(&["/usr/bin/sleep", "1.5"]), "sleep");
    }
}
