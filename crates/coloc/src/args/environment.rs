//! The environment that a task is given.

use crate::error::CliError;
use coloc_daemon::text::RawText;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::process::{Command, Stdio};

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

/// This program's variables, or those that are wanted: `ALL`, `NONE`, `NAME` and `NAME=VALUE`.
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

/// The variables that a login shell of this user has, whatever is set here.
fn of_login() -> Result<Variables, CliError> {
    let shell = std::env::var_os("SHELL").filter(|shell| !shell.is_empty());
    let shell = shell.unwrap_or_else(|| "/bin/sh".into());
    let failed =
        |problem: String| CliError::Usage(format!("--user-env: {}: {problem}", shell.display()));
    let kept = ["HOME", "USER", "LOGNAME", "SHELL", "LANG"];
    let kept = kept.iter().filter_map(|name| Some((*name, std::env::var_os(name)?)));
    let output = Command::new(&shell)
        .args(["-l", "-c", "env -0"])
        .env_clear()
        .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
        .envs(kept)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(format!("a login shell ended with {}", output.status)));
    }
    Ok(read(&output.stdout))
}

/// What `env -0` printed. What a profile printed before has no name that a variable could have.
fn read(text: &[u8]) -> Variables {
    let pair = |entry: &[u8]| {
        let at = entry.iter().position(|&byte| byte == b'=')?;
        let name = entry[..at].rsplit(|&byte| byte == b'\n').next()?;
        let sane = !name.is_empty() && name.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'_');
        let text = |bytes: &[u8]| RawText::from(OsString::from_vec(bytes.to_vec()));
        // The shell's own notes on itself.
        let own =
            matches!(OsStr::from_bytes(name).to_str(), Some("_" | "SHLVL" | "PWD" | "OLDPWD"));
        (sane && !own).then(|| (text(name), text(&entry[at + 1..])))
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
        let text = b"Welcome!\nHOME=/h\0EMPTY=\0SHLVL=1\0no variable\0=x\0M=a\nb=c\0";
        assert_eq!(shown(read(text)), ["HOME=/h", "EMPTY=", r"M=a\nb=c"]);
    }
}
