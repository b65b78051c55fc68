//! What others chose, such as a name or a command, as it may be shown to people: nothing in it moves the cursor, changes
//! colours, begins a line or turns the order of what is read.

use std::borrow::Cow;

/// A text without line ends.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    escaped(text, is_hidden)
}

/// A text of several lines.
pub(crate) fn visible_lines(text: &str) -> Cow<'_, str> {
    escaped(text, |character| character != '\n' && is_hidden(character))
}

fn escaped(text: &str, hidden: impl Fn(char) -> bool) -> Cow<'_, str> {
    // Nearly every text is plain, and a queue has a hundred thousand.
    let plain = text.bytes().fold(true, |plain, byte| plain & matches!(byte, b' '..=b'~'));
    if plain || !text.contains(&hidden) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match hidden(character) {
            true => shown.extend(character.escape_default()),
            false => shown.push(character),
        }
    }
    Cow::Owned(shown)
}

/// Control characters, line separators, and marks that turn the direction of text.
fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_a_terminal_would_obey_is_spelled_out() {
        assert_eq!(visible("na\nme\u{1b}[31mred"), "na\\nme\\u{1b}[31mred");
        assert_eq!(visible("\u{9b}2J\t\u{7f}"), "\\u{9b}2J\\t\\u{7f}");
        assert_eq!(visible("\u{202e}gpj.exe"), "\\u{202e}gpj.exe");
        assert_eq!(visible_lines("a\nb\r"), "a\nb\\r");
        assert!(matches!(visible("größe 日本 {lr}"), Cow::Borrowed("größe 日本 {lr}")));
    }

    proptest! {
        #[test]
        fn nothing_hidden_is_left(text in any::<String>()) {
            prop_assert!(!visible(&text).contains(is_hidden));
        }
    }
}
