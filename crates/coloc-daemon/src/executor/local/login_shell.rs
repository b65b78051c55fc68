//! Scripts that a login shell runs, such as `#!/bin/bash -l`: the machine's profile sets the search path anew, and Slurm's
//! commands would be lost. What coloc adds is added again after the profile, by the same shell, before the script.

use coloc_api::text::RawText;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

/// Shells that read a script by `.` and know `-c`.
const SHELLS: [&str; 6] = ["bash", "sh", "dash", "ash", "zsh", "ksh"];

/// Folders for the search path of a script: ahead of what its profile says, and behind.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Folders<'a> {
    pub(super) ahead: Option<&'a OsStr>,
    pub(super) behind: Option<&'a OsStr>,
}

/// A command whose first words, as many as `first_line`, are what a script's first line says. If that is a login shell, it adds
/// folders to its search path and then reads the script: `$0`, `$@`, signals and the exit code are the script's.
pub(super) fn with_path(
    command: Vec<RawText>,
    first_line: usize,
    folders: Folders<'_>,
) -> Vec<RawText> {
    let (shell, script) = command.split_at(first_line.min(command.len()));
    let adds = folders.ahead.is_some() || folders.behind.is_some();
    if !adds || script.is_empty() || !is_login(shell) {
        return command;
    }
    let first = [RawText::from("-c"), prelude(folders)];
    [shell, &first, script].concat()
}

/// Whether the words of a first line name a login shell. `-c` and `-s` have another meaning for what follows.
fn is_login(words: &[RawText]) -> bool {
    let words: Vec<_> = words.iter().map(RawText::to_string_lossy).collect();
    let mut words = words.iter().flat_map(|word| word.split_whitespace());
    let is_shell = |word: &str| SHELLS.contains(&word.rsplit('/').next().unwrap_or_default());
    if !words.any(is_shell) {
        return false;
    }
    let flags: Vec<&str> = words.filter(|word| word.starts_with('-')).collect();
    let short =
        |letter: char| flags.iter().any(|flag| !flag.starts_with("--") && flag.contains(letter));
    (short('l') || flags.contains(&"--login")) && !short('c') && !short('s')
}

/// What the shell does before it reads the script.
fn prelude(folders: Folders<'_>) -> RawText {
    let mut text = Vec::new();
    let mut add = |folder: &OsStr, ahead: bool| {
        let quoted = coloc_api::text::shell_quoted(folder.as_bytes());
        let parts: [&[u8]; 3] =
            if ahead { [&quoted, b":", b"$PATH"] } else { [b"$PATH", b":", &quoted] };
        text.extend_from_slice(b"case :$PATH: in *:");
        text.extend_from_slice(&quoted);
        text.extend_from_slice(b":*) ;; *) PATH=");
        text.extend_from_slice(&parts.concat());
        text.extend_from_slice(b" ;; esac; ");
    };
    folders.ahead.into_iter().for_each(|folder| add(folder, true));
    folders.behind.into_iter().for_each(|folder| add(folder, false));
    text.extend_from_slice(b"export PATH; . \"$0\"");
    RawText::from(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(all: &[&str]) -> Vec<RawText> {
        all.iter().map(|&word| word.into()).collect()
    }

    #[test]
    fn login_shells_are_known() {
        for login in [
            &["/bin/bash", "-l"][..],
            &["/bin/bash", "--login"],
            &["/bin/sh", "-el"],
            &["/usr/bin/env", "-S bash -e -l"],
            &["/usr/bin/zsh", "-l"],
        ] {
            assert!(is_login(&words(login)), "{login:?}");
        }
        for other in [
            &["/bin/bash"][..],
            &["/bin/bash", "-e"],
            &["/usr/bin/env", "bash"],
            &["/usr/bin/python3", "-l"],
            &["/bin/bash", "-lc"],
            &["/usr/bin/perl", "-l", "bash"],
        ] {
            assert!(!is_login(&words(other)), "{other:?}");
        }
    }

    #[test]
    fn a_script_keeps_its_name_its_arguments_and_its_exit_code() {
        let place = tempfile::tempdir().expect("a directory");
        let script = place.path().join("it's a script");
        let body = "echo \"$1 ${0##*/} ${PATH##*:} $#\"; exit 7";
        std::fs::write(&script, body).expect("a script");
        let script = script.to_str().expect("text");
        let folders = Folders { ahead: None, behind: Some(OsStr::new("/it's here")) };
        for shell in ["/bin/bash", "/bin/sh"] {
            let command = with_path(words(&[shell, "-l", script, "a b", "c"]), 2, folders);
            let ran = std::process::Command::new(command[0].as_os_str())
                .args(command[1..].iter().map(RawText::as_os_str))
                .output()
                .expect("it runs");
            let said = String::from_utf8_lossy(&ran.stdout).into_owned();
            assert_eq!(said.lines().last(), Some("a b it's a script /it's here 2"), "{shell}");
            assert_eq!(ran.status.code(), Some(7));
        }
        let plain = words(&["/bin/bash", script]);
        assert_eq!(with_path(plain.clone(), 1, folders), plain);
    }
}
