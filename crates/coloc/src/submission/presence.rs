//! Whether what a submission names is there: a task that waits for hours to find out that it is not helps no user.

use crate::error::{CliError, UsageError};
use coloc_api::notify::{Channel, SENDMAIL};
use coloc_api::script::is_shell;
use coloc_api::spec::TaskSpec;
use coloc_api::text::RawText;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// What to do about it, where the user knows better.
const ANYWAY: &str = "submit it with --force if it will be there by then";

/// Refuses a task whose program, script or folder for output is not there. For a daemon on this machine only: elsewhere
/// files are others.
pub(crate) fn check(spec: &TaskSpec) -> Result<(), CliError> {
    if let Some(told) = without_mail(spec, Path::new(SENDMAIL)) {
        eprintln!("coloc: {told}");
    }
    if spec.force {
        return Ok(());
    }
    let directory = spec.directory.as_path();
    // A working directory that is not there is told by the daemon, with its reason.
    if !directory.is_dir() {
        return Ok(());
    }
    for (flag, path) in [("--output", &spec.output), ("--error", &spec.errors)] {
        if let Some(path) = path {
            folder(flag, &directory.join(path.as_path()))?;
        }
    }
    let Some(program) = spec.command.first().filter(|_| spec.script.is_none()) else {
        return Ok(());
    };
    // A sweep puts values there.
    if program.as_bytes().contains(&b'{') {
        return Ok(());
    }
    let path = spec.environment.iter().find(|(name, _)| name.as_bytes() == b"PATH");
    let found = find(program.as_path(), directory, path.map(|(_, value)| value.as_path()));
    if !found {
        return Err(UsageError::NotThere { what: lacking(program), instead: ANYWAY }.into());
    }
    script(spec, program.as_path(), directory)
}

/// What to know of mail that is asked for on a machine that sends none. The daemon may have another program for it.
fn without_mail(spec: &TaskSpec, sendmail: &Path) -> Option<String> {
    let asked = spec.notify.iter().any(|hook| matches!(hook.channel, Channel::Mail(_)));
    (asked && !sendmail.exists()).then(|| {
        format!(
            "there is no {} here: unless the daemon was given another (--sendmail), no mail is sent",
            sendmail.display()
        )
    })
}

/// Whether a program can be found, by its path or in PATH. Without a PATH only the daemon knows.
fn find(program: &Path, directory: &Path, path: Option<&Path>) -> bool {
    let is_program = |file: &Path| {
        file.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    if program.as_os_str().as_bytes().contains(&b'/') {
        // What is there and cannot be run is told when it is started, by the system's words.
        return directory.join(program).exists();
    }
    let Some(path) = path else { return true };
    std::env::split_paths(path).any(|place| is_program(&directory.join(place).join(program)))
}

/// Says what is not there, as its user would call it.
fn lacking(program: &RawText) -> String {
    let name = program.as_path().display();
    if program.as_bytes().is_empty() {
        return "the command is empty".to_owned();
    }
    match program.as_bytes().contains(&b'/') {
        true => format!("there is no program {name}"),
        false => format!("there is no script {name} here, and no program of that name in PATH"),
    }
}

/// The script of an interpreter: `python train.py`.
fn script(spec: &TaskSpec, program: &Path, directory: &Path) -> Result<(), CliError> {
    let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let interprets = name.starts_with("python") || is_shell(format!("#!{name}").as_bytes());
    let Some(script) = spec.command.get(1).filter(|_| interprets) else { return Ok(()) };
    let known = [Some("py"), Some("sh"), Some("bash")];
    let is_file = known.contains(&script.as_path().extension().and_then(OsStr::to_str));
    let is_plain = !script.as_bytes().contains(&b'{') && !script.as_bytes().starts_with(b"-");
    if !is_file || !is_plain || directory.join(script.as_path()).exists() {
        return Ok(());
    }
    let what = format!("there is no script {}", script.as_path().display());
    Err(UsageError::NotThere { what, instead: ANYWAY }.into())
}

/// The folder of an output. One with a pattern in its name is another for each task.
fn folder(flag: &'static str, file: &Path) -> Result<(), CliError> {
    // What is no file at all is told when it is opened.
    let Some(folder) = file.parent() else { return Ok(()) };
    if folder.as_os_str().as_bytes().contains(&b'%') || folder.is_dir() {
        return Ok(());
    }
    let (what, why) = match folder.exists() {
        true => ("is no folder", "name a file in one"),
        false => ("is not there", "make it with mkdir -p, or submit it with --force"),
    };
    Err(UsageError::flag(flag, format!("the folder {} {what}: {why}", folder.display())).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use coloc_api::notify::{Notify, NotifyEvent};

    #[test]
    fn mail_that_will_not_be_sent_is_told() {
        let none = Path::new("/nonexistent/sendmail");
        let plain = TaskSpec::new("x".to_owned(), vec!["true".into()], "/".into());
        assert_eq!(without_mail(&plain, none), None);
        let hook = Notify {
            events: vec![NotifyEvent::End],
            channel: Channel::Mail(None),
            long_wait: None,
        };
        let mails = TaskSpec { notify: vec![hook], ..plain };
        assert!(without_mail(&mails, none).is_some_and(|told| told.contains("no mail is sent")));
        assert_eq!(without_mail(&mails, Path::new("/")), None);
    }

    fn spec(command: &[&str], output: Option<&str>) -> TaskSpec {
        let command = command.iter().map(|&word| word.into()).collect();
        TaskSpec {
            environment: vec![("PATH".into(), "/usr/bin:/bin".into())].into(),
            output: output.map(RawText::from),
            ..TaskSpec::new("test".to_owned(), command, "/".into())
        }
    }

    fn told(command: &[&str], output: Option<&str>) -> String {
        check(&spec(command, output)).map_or_else(|error| error.to_string(), |()| String::new())
    }

    #[test]
    fn what_is_not_there_is_named() {
        assert_eq!(told(&["sh", "-c", "true"], Some("tmp/%j.out")), "");
        assert_eq!(told(&["/bin/sh"], None), "");
        assert_eq!(told(&["train-{size}"], None), "", "a sweep's");
        assert!(told(&["nosuch.sh"], None).starts_with("there is no script nosuch.sh here"));
        assert!(told(&["no/such/program"], None).starts_with("there is no program no/such"));
        assert!(told(&["bash", "nosuch.sh"], None).contains("no script nosuch.sh"));
        let told = told(&["true"], Some("no/such/out.txt"));
        assert_eq!(
            told,
            "--output: the folder /no/such is not there: make it with mkdir -p, or submit it with --force"
        );
    }

    #[test]
    fn a_user_who_knows_better_is_believed() {
        let spec = TaskSpec { force: true, ..spec(&["nosuch"], Some("/no/such/out")) };
        assert!(check(&spec).is_ok());
        let per_task =
            check(&TaskSpec { force: false, ..self::spec(&["true"], Some("/x/%j/out")) });
        assert!(per_task.is_ok(), "its folder is another for each task");
    }
}
