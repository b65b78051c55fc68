//! A task's output as it may be shown on a terminal. Any user may have written it: what would have the terminal do
//! something, such as to fill the clipboard, to rename the window, to move the cursor or to answer as if the user
//! typed, is left out. Text and colours stay.

use std::io::IsTerminal as _;

/// A longer sequence is none that sets colours.
const LONGEST_COLOUR: usize = 64;
/// A longer command to the terminal has no end.
const LONGEST_COMMAND: usize = 64 << 10;

/// Passes output on, piece by piece, without what is not text or colour.
#[derive(Default)]
pub(crate) struct Sanitizer {
    at: At,
    /// Bytes of a character, or of a sequence that may set colours, so far.
    begun: Vec<u8>,
    /// Bytes of a command that is left out, so far.
    skipped: usize,
    coloured: bool,
}

/// What the next byte belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum At {
    #[default]
    Text,
    /// A character that takes so many bytes more.
    Character(u8),
    /// After an escape.
    Escape,
    /// After an escape and bytes that say which set of commands is meant.
    Intermediate,
    /// `ESC [`: parameters, then a letter.
    Control,
    /// `ESC ]` and the like: a text for the terminal, up to a terminator.
    Command,
    /// An escape in there, which may begin the terminator.
    CommandEscape,
}

impl Sanitizer {
    /// The filter for standard output: none where no terminal would obey, or where the user wants everything.
    pub(crate) fn for_stdout(raw: bool) -> Option<Self> {
        (!raw && std::io::stdout().is_terminal()).then(Sanitizer::default)
    }

    /// What of a piece may be shown.
    pub(crate) fn filter(&mut self, piece: &[u8]) -> Vec<u8> {
        let mut shown = Vec::with_capacity(piece.len());
        for &byte in piece {
            self.take(byte, &mut shown);
        }
        shown
    }

    /// What is to be shown after the last piece: the colours of before.
    pub(crate) fn end(&mut self) -> &'static [u8] {
        let coloured = std::mem::take(&mut self.coloured);
        *self = Sanitizer::default();
        if coloured { b"\x1b[0m" } else { b"" }
    }

    fn take(&mut self, byte: u8, shown: &mut Vec<u8>) {
        match self.at {
            At::Text => self.text(byte, shown),
            At::Character(more) => self.character(byte, more, shown),
            At::Escape => self.escape(byte, shown),
            At::Intermediate => match byte {
                0x20..=0x2f => {}
                0x30..=0x7e => self.at = At::Text,
                _ => self.again(byte, shown),
            },
            At::Control => self.control(byte, shown),
            At::Command => {
                self.skipped += 1;
                match byte {
                    0x1b => self.at = At::CommandEscape,
                    0x07 | 0x18 | 0x1a => self.at = At::Text,
                    // No command has several lines: without its end, all that follows would be lost.
                    b'\n' => self.again(byte, shown),
                    _ if self.skipped > LONGEST_COMMAND => self.at = At::Text,
                    _ => {}
                }
            }
            At::CommandEscape => match byte {
                b'\\' => self.at = At::Text,
                _ => self.escape(byte, shown),
            },
        }
    }

    /// What was begun is over without an end: the byte is for itself.
    fn again(&mut self, byte: u8, shown: &mut Vec<u8>) {
        self.at = At::Text;
        self.begun.clear();
        self.text(byte, shown);
    }

    fn text(&mut self, byte: u8, shown: &mut Vec<u8>) {
        match byte {
            b' '..=b'~' | b'\n' | b'\r' | b'\t' | 0x08 => shown.push(byte),
            0x1b => self.at = At::Escape,
            0xc2..=0xdf => self.begin(byte, At::Character(1)),
            0xe0..=0xef => self.begin(byte, At::Character(2)),
            0xf0..=0xf4 => self.begin(byte, At::Character(3)),
            // Bells and other control characters.
            0x00..=0x1f | 0x7f => {}
            // No UTF-8: some terminals take it for a control character, others for a letter.
            _ => shown.extend_from_slice("\u{fffd}".as_bytes()),
        }
    }

    fn begin(&mut self, byte: u8, at: At) {
        self.begun.clear();
        self.begun.push(byte);
        self.at = at;
    }

    fn character(&mut self, byte: u8, more: u8, shown: &mut Vec<u8>) {
        if !(0x80..=0xbf).contains(&byte) {
            shown.extend_from_slice("\u{fffd}".as_bytes());
            return self.again(byte, shown);
        }
        self.begun.push(byte);
        if more > 1 {
            self.at = At::Character(more - 1);
            return;
        }
        self.at = At::Text;
        match std::str::from_utf8(&self.begun).ok().and_then(|text| text.chars().next()) {
            // Control characters of two bytes.
            Some('\u{80}'..='\u{9f}') => {}
            Some(_) => shown.extend_from_slice(&self.begun),
            None => shown.extend_from_slice("\u{fffd}".as_bytes()),
        }
        self.begun.clear();
    }

    fn escape(&mut self, byte: u8, shown: &mut Vec<u8>) {
        match byte {
            b'[' => {
                self.begin(0x1b, At::Control);
                self.begun.push(b'[');
            }
            b']' | b'P' | b'X' | b'^' | b'_' | b'k' => {
                self.skipped = 0;
                self.at = At::Command;
            }
            0x20..=0x2f => self.at = At::Intermediate,
            0x30..=0x7e => self.at = At::Text,
            0x1b => self.at = At::Escape,
            _ => self.again(byte, shown),
        }
    }

    fn control(&mut self, byte: u8, shown: &mut Vec<u8>) {
        match byte {
            b'm' if self.begun[2..]
                .iter()
                .all(|byte| matches!(byte, b'0'..=b'9' | b';' | b':')) =>
            {
                if self.begun.len() < LONGEST_COLOUR {
                    shown.extend_from_slice(&self.begun);
                    shown.push(b'm');
                    self.coloured = true;
                }
                self.at = At::Text;
                self.begun.clear();
            }
            0x20..=0x3f => {
                // Of what is too long for a colour, the end is still looked for.
                if self.begun.len() < LONGEST_COLOUR {
                    self.begun.push(byte);
                }
            }
            0x40..=0x7e => {
                self.at = At::Text;
                self.begun.clear();
            }
            _ => self.again(byte, shown),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown(text: &[u8]) -> String {
        String::from_utf8(Sanitizer::default().filter(text)).expect("it is UTF-8")
    }

    #[test]
    fn text_and_colours_stay() {
        for text in [
            "plain\n",
            "50%\r100%\r\n",
            "\x1b[31mred\x1b[0m",
            "\x1b[1;38:5:196mx",
            "größe 日本 🦀\t",
            "a\u{8}b",
        ] {
            assert_eq!(shown(text.as_bytes()), text);
        }
    }

    #[test]
    fn whatever_a_terminal_would_obey_goes() {
        for (text, left) in [
            ("\x1b]52;c;ZWNobyBo\x07ls", "ls"),
            ("\x1b]52;c;ZWNobyBo\x1b\\ls", "ls"),
            ("\x1b]0;title\x07\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
            ("\x1bP$q\x22p\x1b\\a\x1b_x\x1b\\b\x1b^x\x1b\\c\x1bXx\x1b\\d", "abcd"),
            ("\x1b[2J\x1b[H\x1b[6n\x1b[?1049h\x1b[>4;2mtext", "text"),
            ("\x1bc\x1b(0\x1b#8\x1b=\x1b7text", "text"),
            ("\u{9b}2Jx\u{9d}52;c;y\u{7}", "2Jx52;c;y"),
            ("\x07\x0e\x0f\x00\x7fx", "x"),
            ("\x1b[31\x1b[32mgreen", "\x1b[32mgreen"),
            ("\x1b]52;c;never ends\nnext line", "\nnext line"),
            ("\x1b]a\x1b]52;c;b\x07c", "c"),
            ("\x1b\x1b[5nx", "x"),
        ] {
            assert_eq!(shown(text.as_bytes()), left, "{text:?}");
        }
        assert_eq!(shown(b"\x9b2J\xffx\xe2\x82"), "\u{fffd}2J\u{fffd}x");
        assert_eq!(shown(format!("\x1b[{}mx", "1;".repeat(100)).as_bytes()), "x");
        let endless = [b"\x1b]52;".to_vec(), vec![b'x'; LONGEST_COMMAND + 10]].concat();
        assert!(!shown(&endless).is_empty(), "it ends");
    }

    #[test]
    fn colours_end_with_the_output() {
        let mut filter = Sanitizer::default();
        assert_eq!(filter.end(), b"");
        filter.filter(b"\x1b[8mhidden\x1b[3");
        assert_eq!(filter.end(), b"\x1b[0m");
        assert_eq!(filter.end(), b"");
    }

    fn pieces() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            any::<u8>().prop_map(|byte| vec![byte]),
            "[ -~]{0,4}".prop_map(String::into_bytes),
            Just(b"\x1b[".to_vec()),
            Just(b"\x1b]52;".to_vec()),
            Just(b"\x1b\\".to_vec()),
            Just("\u{9b}é".as_bytes().to_vec()),
        ];
        prop::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn only_colours_are_left_however_it_is_cut(text in pieces(), cut in 0usize..60) {
            let whole = Sanitizer::default().filter(&text);
            let (one, two) = text.split_at(cut.min(text.len()));
            let mut filter = Sanitizer::default();
            let parts = [filter.filter(one), filter.filter(two)].concat();
            prop_assert_eq!(&whole, &parts);
            let shown = String::from_utf8(whole).expect("it is UTF-8");
            for (number, part) in shown.split('\x1b').enumerate() {
                let plain = |c: char| !c.is_control() || "\n\r\t\u{8}".contains(c);
                prop_assert!(part.chars().all(plain), "{part:?}");
                if number > 0 {
                    let end = part.find('m').expect("a colour");
                    let colour = &part[..end];
                    prop_assert!(colour.starts_with('['), "{part:?}");
                    prop_assert!(colour[1..].chars().all(|c| "0123456789;:".contains(c)), "{part:?}");
                }
            }
        }
    }
}
