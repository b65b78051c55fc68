//! Scripts that are kept with their task: what runs is what was submitted, whatever becomes of the file.

use crate::text::RawText;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;

/// The largest script, in bytes.
pub const LARGEST: usize = 2 << 20;
/// The longest first line that is looked at.
const LONGEST_LINE: usize = 256;

/// The program that a script's first line names, with its argument: as the kernel has it, at most one.
pub fn interpreter(body: &[u8]) -> Option<Vec<RawText>> {
    let line = body.strip_prefix(b"#!")?.split(|&byte| byte == b'\n').next()?;
    let line = line.get(..LONGEST_LINE).unwrap_or(line).trim_ascii();
    let end = line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len());
    let (program, argument) = (&line[..end], line[end..].trim_ascii());
    let text = |bytes: &[u8]| RawText::from(OsString::from_vec(bytes.to_vec()));
    let words = [program, argument].into_iter().filter(|word| !word.is_empty());
    (!program.is_empty()).then(|| words.map(text).collect())
}

/// Whether a shell interprets it.
pub fn is_shell(body: &[u8]) -> bool {
    const SHELLS: [&str; 8] = ["sh", "bash", "dash", "ash", "zsh", "ksh", "fish", "tcsh"];
    let words = interpreter(body).unwrap_or_default();
    let words: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let parts = words.iter().flat_map(|word| word.split_whitespace());
    let names = parts.map(|word| word.rsplit('/').next().unwrap_or_default());
    // `env`, its flags and variables come before the program that it starts.
    let mut programs =
        names.skip_while(|name| *name == "env" || name.starts_with('-') || name.contains('='));
    programs.next().is_some_and(|name| SHELLS.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_lines_are_read_as_the_kernel_reads_them() {
        let words = |line: &[u8]| interpreter(line).map(|words| format!("{words:?}"));
        assert_eq!(words(b"#! /bin/sh -e -u \ntrue"), Some(r#"["/bin/sh", "-e -u"]"#.to_owned()));
        assert_eq!(words(b"#!/bin/sh"), Some(r#"["/bin/sh"]"#.to_owned()));
        for wrong in [&b""[..], b"#!", b"#!\n/bin/sh", b"#", b"#! \t\n", b"x#!/bin/sh"] {
            assert_eq!(words(wrong), None);
        }
        assert!(interpreter(&[b"#!".to_vec(), vec![b'x'; 1 << 20]].concat()).is_some());
    }

    #[test]
    fn shells_are_known_through_env() {
        for shell in [&b"#!/bin/bash"[..], b"#!/usr/bin/env bash", b"#!/usr/bin/env -S A=1 sh -e"] {
            assert!(is_shell(shell));
        }
        for other in
            [&b"#!/usr/bin/env python3"[..], b"#!/usr/bin/perl", b"#!/usr/bin/env", b"\xff"]
        {
            assert!(!is_shell(other));
        }
    }
}
