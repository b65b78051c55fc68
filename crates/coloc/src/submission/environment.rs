//! The environment that a task is given.

use crate::error::{CliError, UsageError};
use coloc_api::text::RawText;
use std::ffi::{OsStr, OsString};
use std::io::{self, Read as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::process::CommandExt as _;
use std::process::{ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

type Variables = Vec<(RawText, RawText)>;

/// The variables for a task: of a login shell and what is exported besides, or of this program.
pub(crate) fn chosen(user_env: bool, export: Option<&[OsString]>) -> Result<Variables, CliError> {
    if !user_env {
        return Ok(exported(export));
    }
    let more = export.map(|export| exported(Some(export))).unwrap_or_default();
    let mut login = of_login()?;
    login.retain(|(name, _)| more.iter().all(|(known, _)| known != name));
    Ok(login.into_iter().chain(more).collect())
}

/// This program's variables, or the wanted ones: `ALL`, `NONE`, `NAME` and `NAME=VALUE`.
pub(crate) fn exported(export: Option<&[OsString]>) -> Variables {
    wanted(export, &std::env::vars_os().collect::<Vec<_>>())
}

fn wanted(export: Option<&[OsString]>, all: &[(OsString, OsString)]) -> Variables {
    let pair = |(name, value): &(OsString, OsString)| (name.clone().into(), value.clone().into());
    let Some(words) = export else { return all.iter().map(pair).collect() };
    let mut kept: Variables = Vec::new();
    let mut set = |name: RawText, value: RawText| {
        kept.retain(|(known, _)| *known != name);
        kept.push((name, value));
    };
    for variable in words {
        let bytes = variable.as_bytes();
        match bytes.iter().position(|&byte| byte == b'=') {
            Some(at) => {
                let text = |bytes: &[u8]| RawText::from(bytes.to_vec());
                set(text(&bytes[..at]), text(&bytes[at + 1..]));
            }
            None if variable == "ALL" => all.iter().map(pair).for_each(|(n, v)| set(n, v)),
            None if variable == "NONE" || variable.is_empty() => {}
            None => {
                let known = all.iter().find(|(name, _)| name == variable);
                known.into_iter().map(pair).for_each(|(n, v)| set(n, v));
            }
        }
    }
    kept
}

/// Stand before and after what a login shell is asked for: what its profile prints is something else.
const MARKS: [&[u8]; 2] = [b"<coloc-environment>", b"</coloc-environment>"];
/// A profile that takes longer waits for something that will not come.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The variables that a login shell of this user has, whatever is set here.
fn of_login() -> Result<Variables, CliError> {
    let shell = std::env::var_os("SHELL").filter(|shell| !shell.is_empty());
    let shell = shell.unwrap_or_else(|| "/bin/sh".into());
    let failed = |problem: String| {
        CliError::from(UsageError::flag("--user-env", format!("{}: {problem}", shell.display())))
    };
    let said = ask_a_login_shell(&shell, TIMEOUT).map_err(|error| failed(error.to_string()))?;
    let told = between(&said);
    told.map(read).ok_or_else(|| failed("a login shell ended without a word".to_owned()))
}

/// What a login shell prints, as far as it matters.
fn ask_a_login_shell(shell: &OsStr, timeout: Duration) -> io::Result<Vec<u8>> {
    let kept = ["HOME", "USER", "LOGNAME", "SHELL", "LANG"];
    let kept = kept.iter().filter_map(|name| Some((*name, std::env::var_os(name)?)));
    let [before, after] = MARKS.map(String::from_utf8_lossy);
    // Words that every shell understands.
    let question = format!("printf '%s' '{before}'; env -0; printf '%s' '{after}'");
    let mut child = Command::new(shell)
        .args(["-l", "-c", &question])
        .env_clear()
        .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
        .envs(kept)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .process_group(0)
        .spawn()?;
    let heard = child.stdout.take().map(listen);
    let (began, mut said) = (Instant::now(), Vec::new());
    // What a profile has left running may hold the pipe for ever: its end is not waited for.
    while let Some(part) = heard
        .as_ref()
        .and_then(|heard| heard.recv_timeout(timeout.saturating_sub(began.elapsed())).ok())
    {
        said.extend(part);
        if between(&said).is_some() {
            break;
        }
    }
    if began.elapsed() >= timeout {
        crate::signals::end_group(child.id(), true);
        let _ = child.wait();
        let what = format!("its profile has not ended within {} s", timeout.as_secs());
        return Err(io::Error::new(io::ErrorKind::TimedOut, what));
    }
    child.wait()?;
    Ok(said)
}

/// Has a thread read, which may have to wait for ever.
fn listen(mut from: ChildStdout) -> Receiver<Vec<u8>> {
    let (tell, heard) = channel();
    std::thread::spawn(move || {
        let mut part = [0; 4096];
        while let Ok(length @ 1..) = from.read(&mut part) {
            if tell.send(part[..length].to_vec()).is_err() {
                return;
            }
        }
    });
    heard
}

/// What stands between the marks, once both are there.
fn between(said: &[u8]) -> Option<&[u8]> {
    let find = |text: &[u8], mark: &[u8]| text.windows(mark.len()).position(|part| part == mark);
    let [before, after] = MARKS;
    let rest = &said[find(said, before)? + before.len()..];
    Some(&rest[..find(rest, after)?])
}

/// What `env -0` printed.
fn read(text: &[u8]) -> Variables {
    let pair = |entry: &[u8]| {
        let at = entry.iter().position(|&byte| byte == b'=')?;
        let (name, value) = (&entry[..at], &entry[at + 1..]);
        let text = |bytes: &[u8]| RawText::from(OsString::from_vec(bytes.to_vec()));
        // The shell's own notes on itself.
        let own = matches!(name, b"" | b"_" | b"SHLVL" | b"PWD" | b"OLDPWD");
        (!own).then(|| (text(name), text(value)))
    };
    text.split(|&byte| byte == 0).filter_map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(variables: Variables) -> Vec<String> {
        let text = |(n, v): (RawText, RawText)| [n.as_bytes(), b"=", v.as_bytes()].concat();
        variables.into_iter().map(|pair| text(pair).escape_ascii().to_string()).collect()
    }

    #[test]
    fn variables_are_chosen_by_name_or_given() {
        let all = [("A", "1"), ("B", "2")].map(|(n, v)| (n.into(), v.into()));
        let export = |words: &[&[u8]]| {
            let words: Vec<_> = words.iter().map(|w| OsString::from_vec(w.to_vec())).collect();
            shown(wanted(Some(&words), &all))
        };
        assert_eq!(export(&[b"NONE"]), [""; 0]);
        assert_eq!(export(&[b"B", b"nosuch", b"C=x=y"]), ["B=2", "C=x=y"]);
        assert_eq!(export(&[b"ALL", b"A=\xff"]), ["B=2", r"A=\xff"]);
        assert_eq!(shown(wanted(None, &all)), ["A=1", "B=2"]);
    }

    #[test]
    fn what_a_profile_prints_is_no_variable() {
        let text = b"A=1\nWelcome!<coloc-environment>HOME=/h\0EMPTY=\0SHLVL=1\0no variable\0=x\0\
            BASH_FUNC_f%%=() {  echo a=b\n}\0M=a\nb=c\0</coloc-environment>bye";
        let told = shown(read(between(text).unwrap()));
        assert_eq!(told, ["HOME=/h", "EMPTY=", r"BASH_FUNC_f%%=() {  echo a=b\n}", r"M=a\nb=c"]);
        for cut in [&b""[..], b"x", &text[..40], &text[..text.len() - 5]] {
            assert_eq!(between(cut), None);
        }
    }

    #[test]
    fn a_profile_may_leave_something_running_but_not_wait_for_ever() {
        use std::os::unix::fs::PermissionsExt as _;
        let place = tempfile::tempdir().unwrap();
        let shell = place.path().join("shell");
        let ask = |profile: &str, timeout| {
            let script = format!("#!/bin/sh\n{profile}\nexec /bin/sh -c \"$3\"\n");
            std::fs::write(&shell, script).unwrap();
            std::fs::set_permissions(&shell, std::fs::Permissions::from_mode(0o755)).unwrap();
            ask_a_login_shell(shell.as_os_str(), timeout)
        };
        // It holds the pipe for longer than any test.
        let left = "sleep 600 & echo $! >&2; export LEFT=$!";
        let told = shown(read(between(&ask(left, TIMEOUT).unwrap()).unwrap()));
        let left = told.iter().find_map(|pair| pair.strip_prefix("LEFT=")).unwrap();
        crate::signals::ask_to_end(left.parse().unwrap());
        let error = ask("sleep 600", Duration::from_millis(300)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(ask("exit 3", TIMEOUT).is_ok_and(|said| between(&said).is_none()));
    }
}
