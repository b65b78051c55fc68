//! Lines as an editor counts them.

/// Counts the lines of a text up to places in it. Cheap when the places come in order.
#[derive(Clone, Debug)]
pub struct LineCounter<'a> {
    text: &'a [u8],
    at: usize,
    line: u64,
}

impl<'a> LineCounter<'a> {
    /// Starts at the first line.
    pub const fn new(text: &'a [u8]) -> Self {
        LineCounter { text, at: 0, line: 1 }
    }

    /// The line of the first thing at `byte` or behind it that is not the end of a line. Readers of tables
    /// count otherwise: they are behind after empty lines and where lines end in CRLF.
    pub fn line_of(&mut self, byte: usize) -> u64 {
        let byte = byte.min(self.text.len());
        let ends = self.text[byte..].iter().take_while(|end| matches!(end, b'\r' | b'\n')).count();
        let to = byte + ends;
        if to < self.at {
            *self = LineCounter::new(self.text);
        }
        self.line += self.text[self.at..to].iter().filter(|&&end| end == b'\n').count() as u64;
        self.at = to;
        self.line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_those_of_an_editor() {
        let text = b"a\r\nb\r\n\r\nc\n";
        let mut lines = LineCounter::new(text);
        // A reader stands between \r and \n when it has read a record.
        assert_eq!([0, 2, 5, 8].map(|byte| lines.line_of(byte)), [1, 2, 4, 4]);
        assert_eq!(lines.line_of(0), 1, "back again");
        assert_eq!(lines.line_of(99), 5, "behind the end");
    }
}
