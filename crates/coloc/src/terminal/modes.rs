//! What a program switched on in the terminal that shows it, so that it can be switched off for a user who leaves in the middle.

/// Modes that outlive a program that is left: the alternate screen, mice, the bracketed paste, the keypad, focus, a hidden cursor.
const SWITCHED_ON: [u16; 12] = [1, 47, 1000, 1002, 1003, 1004, 1005, 1006, 1015, 1047, 1049, 2004];
/// The cursor is there unless it was switched off.
const CURSOR: u16 = 25;
/// A sequence of more parameters sets no modes that we know.
const LONGEST: usize = 64;

/// The modes that are not as they are usually.
#[derive(Default, Debug)]
pub(crate) struct Modes {
    unusual: Vec<u16>,
    /// A sequence so far: `ESC [ ?` and numbers.
    begun: Vec<u8>,
}

impl Modes {
    pub(crate) const fn new() -> Self {
        Modes { unusual: Vec::new(), begun: Vec::new() }
    }

    /// Looks at what is shown.
    pub(crate) fn see(&mut self, shown: &[u8]) {
        for &byte in shown {
            let begins = match (self.begun.len(), byte) {
                (_, 0x1b) => {
                    self.begun.clear();
                    true
                }
                (1, b'[') | (2, b'?') => true,
                (3..LONGEST, b'0'..=b'9' | b';') => true,
                (3..LONGEST, b'h' | b'l') => {
                    self.switch(byte == b'h');
                    false
                }
                _ => false,
            };
            match begins {
                true => self.begun.push(byte),
                false => self.begun.clear(),
            }
        }
    }

    fn switch(&mut self, on: bool) {
        let numbers = std::str::from_utf8(&self.begun[3..]).unwrap_or_default();
        for mode in numbers.split(';').filter_map(|number| number.parse().ok()) {
            if mode != CURSOR && !SWITCHED_ON.contains(&mode) {
                continue;
            }
            self.unusual.retain(|&known| known != mode);
            if on == (mode != CURSOR) {
                self.unusual.push(mode);
            }
        }
    }

    /// What makes it so in a terminal where everything is usual.
    pub(crate) fn redo(&self) -> Vec<u8> {
        let letter = |mode| if mode == CURSOR { 'l' } else { 'h' };
        let all = self.unusual.iter().map(|&mode| format!("\x1b[?{mode}{}", letter(mode)));
        all.collect::<String>().into_bytes()
    }

    /// What makes everything usual again.
    pub(crate) fn undo(&mut self) -> Vec<u8> {
        let letter = |mode| if mode == CURSOR { 'h' } else { 'l' };
        let all = self.unusual.drain(..).rev();
        let all: String = all.map(|mode| format!("\x1b[?{mode}{}", letter(mode))).collect();
        self.begun.clear();
        format!("{all}\x1b[0m").into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_switched_on_is_switched_off() {
        for size in [1, 3, 100] {
            let mut modes = Modes::new();
            let said = b"a\x1b[?1049h\x1b[31m\x1b[?25l\x1b[?1;2004h\x1b[?2004l\x1b[?7h\x1b[4h";
            said.chunks(size).for_each(|piece| modes.see(piece));
            assert_eq!(modes.redo(), b"\x1b[?1049h\x1b[?25l\x1b[?1h", "{size}");
            let undo = String::from_utf8(modes.undo()).expect("text");
            assert_eq!(undo, "\x1b[?1l\x1b[?25h\x1b[?1049l\x1b[0m", "{size}");
            assert_eq!(modes.undo(), b"\x1b[0m", "once");
        }
    }
}
