//! How wide the terminal is, and tables that fit it.

use std::borrow::Cow;
use std::io::IsTerminal as _;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Taken for the width of a terminal that does not know it.
const USUAL: usize = 80;
/// Between two columns.
const GAP: usize = 2;
/// A column is not made narrower than this.
const LEAST: usize = 10;

/// Columns of the terminal; `None` in a pipe, where nothing is cut.
pub(crate) fn width() -> Option<usize> {
    let stdout = std::io::stdout();
    if !stdout.is_terminal() {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(&stdout).ok().map(|size| size.ws_col.into());
    Some(width_of(std::env::var("COLUMNS").ok().as_deref(), size))
}

/// A variable wins over the terminal.
fn width_of(variable: Option<&str>, terminal: Option<usize>) -> usize {
    let said = variable.and_then(|columns| columns.trim().parse().ok());
    [said, terminal].into_iter().flatten().find(|&columns| columns > 0).unwrap_or(USUAL)
}

/// The widths of columns, `None` for one that is not shown. The widest give way first; if that is not enough, columns
/// that can be spared are left out, in their order.
pub(crate) fn fit(natural: &[usize], room: Option<usize>, spare: &[usize]) -> Vec<Option<usize>> {
    let mut shown: Vec<Option<usize>> = natural.iter().copied().map(Some).collect();
    let Some(room) = room else { return shown };
    let taken = |shown: &[Option<usize>], limit: usize| -> usize {
        let widths = shown.iter().flatten().map(|&width| width.min(limit) + GAP);
        widths.sum::<usize>().saturating_sub(GAP)
    };
    for &column in spare {
        if taken(&shown, LEAST) <= room {
            break;
        }
        if let Some(width) = shown.get_mut(column) {
            *width = None;
        }
    }
    // The largest limit to all columns that leaves room enough.
    let (mut fits, mut too_much) = (LEAST, room + 1);
    while fits + 1 < too_much {
        let limit = usize::midpoint(fits, too_much);
        match taken(&shown, limit) <= room {
            true => fits = limit,
            false => too_much = limit,
        }
    }
    shown.iter_mut().flatten().for_each(|width| *width = fits.min(*width));
    shown
}

/// Columns that a text takes on a terminal: characters of some scripts take two.
pub(crate) fn columns(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.width() }
}

/// Where a text ends that has so many columns at most, and how many it takes up to there.
pub(crate) fn end_within(text: &str, room: usize) -> (usize, usize) {
    let mut taken = 0;
    for (at, char) in text.char_indices() {
        let wide = char.width().unwrap_or(0);
        if taken + wide > room {
            return (at, taken);
        }
        taken += wide;
    }
    (text.len(), taken)
}

/// A text in lines that a terminal need not break: where it has none, as it is.
pub(crate) fn fold(text: &str, room: Option<usize>) -> String {
    let Some(room) = room else { return text.to_owned() };
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if columns(line) + 1 + columns(word) <= room => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.join("\n")
}

/// The beginning of a text that takes so many columns, with a mark where something is missing.
pub(crate) fn cut(text: &str, width: usize) -> Cow<'_, str> {
    if columns(text) <= width {
        return Cow::Borrowed(text);
    }
    let (end, _) = end_within(text, width.saturating_sub(1));
    Cow::Owned(format!("{}…", &text[..end]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_wins_over_the_terminal() {
        assert_eq!(width_of(Some("60"), Some(100)), 60);
        assert_eq!(width_of(None, Some(100)), 100);
        for wrong in ["", "0", "wide", "-3"] {
            assert_eq!(width_of(Some(wrong), Some(100)), 100, "{wrong}");
        }
        assert_eq!(width_of(None, Some(0)), USUAL, "a terminal that does not know");
    }

    #[test]
    fn the_widest_give_way_first() {
        let widths = |natural: &[usize], room, spare: &[usize]| -> Vec<usize> {
            fit(natural, room, spare).into_iter().map(Option::unwrap_or_default).collect()
        };
        assert_eq!(widths(&[3, 300, 8, 40], None, &[0]), [3, 300, 8, 40]);
        assert_eq!(widths(&[3, 300, 8, 40], Some(60), &[0]), [3, 21, 8, 21]);
        assert_eq!(widths(&[3, 20, 8], Some(60), &[0]), [3, 20, 8], "there is room");
        assert_eq!(widths(&[3, 30, 8, 40], Some(28), &[2, 3, 7]), [3, 10, 0, 10]);
        assert_eq!(widths(&[3, 30, 8, 40], Some(20), &[2, 3, 7]), [3, 15, 0, 0]);
        assert_eq!(widths(&[3, 30, 8, 40], Some(20), &[]), [3, 10, 8, 10], "nothing can be spared");
        assert_eq!(widths(&[3], Some(5), &[]), [3]);
        assert!(widths(&[], Some(1), &[]).is_empty());
    }

    #[test]
    fn lines_are_broken_between_words() {
        assert_eq!(fold("a long line of words", Some(9)), "a long\nline of\nwords");
        assert_eq!(fold("a long line", None), "a long line");
        assert_eq!(fold("unbreakable", Some(3)), "unbreakable");
    }

    #[test]
    fn what_is_cut_says_so() {
        assert_eq!(cut("äöü", 3), "äöü");
        assert_eq!(cut("äöüß", 3), "äö…");
        assert_eq!((cut("訓練中", 6), cut("訓練中", 5)), ("訓練中".into(), "訓練…".into()));
        assert_eq!(cut("訓練中", 4), "訓…", "half a character is none");
        assert_eq!((cut("", 0), cut("ab", 1)), ("".into(), "…".into()));
    }
}
