//! A guard against files that are not text: a line that never ends must not eat all memory.

use std::io::{self, Read};

/// Longer than any row of a trace.
const LONGEST_LINE: usize = 1 << 20;

/// Passes bytes on until a line is too long.
pub(super) struct BoundedLines<R> {
    inner: R,
    since_line_end: usize,
}

impl<R> BoundedLines<R> {
    pub(super) fn new(inner: R) -> Self {
        BoundedLines { inner, since_line_end: 0 }
    }
}

impl<R: Read> Read for BoundedLines<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        match buffer[..count].iter().rposition(|&byte| byte == b'\n') {
            Some(position) => self.since_line_end = count - position - 1,
            None => self.since_line_end += count,
        }
        if self.since_line_end > LONGEST_LINE {
            return Err(io::Error::other("a line is longer than 1 MiB: this is not a trace"));
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endless_lines_end_in_an_error() {
        let mut endless = BoundedLines::new(io::repeat(0));
        assert!(io::copy(&mut endless, &mut io::sink()).is_err());
        let mut lines = BoundedLines::new(io::repeat(b'\n').take(5 << 20));
        assert_eq!(io::copy(&mut lines, &mut io::sink()).ok(), Some(5 << 20));
    }
}
