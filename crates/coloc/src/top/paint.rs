//! Text in cells: cut and filled by what characters take on a terminal, in the colours of people.

use super::app::Data;
use crate::output::visible::visible;
use ratatui_core::style::{Color, Modifier, Style};
use std::collections::BTreeMap;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Cells that a text takes.
pub(super) fn width(text: &str) -> usize {
    text.width()
}

/// A text in exactly so many cells, with a mark where something is missing.
pub(super) fn left(text: &str, cells: usize) -> String {
    let cut = cut(text, cells);
    let missing = cells.saturating_sub(cut.width());
    cut + &" ".repeat(missing)
}

/// The same, at the right end of its cells.
pub(super) fn right(text: &str, cells: usize) -> String {
    let cut = cut(text, cells);
    " ".repeat(cells.saturating_sub(cut.width())) + &cut
}

/// A text in at most so many cells.
pub(super) fn cut(text: &str, cells: usize) -> String {
    let text = visible(text);
    if text.width() <= cells {
        return text.into_owned();
    }
    let mut shown = String::new();
    let mut taken = 0;
    for character in text.chars() {
        let wide = character.width().unwrap_or(0);
        if taken + wide + 1 > cells {
            break;
        }
        shown.push(character);
        taken += wide;
    }
    if cells > 0 {
        shown.push('…');
    }
    shown
}

/// A text in lines of at most so many cells, broken between words where that can be.
pub(super) fn wrapped(text: &str, cells: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in visible(text).split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.width() + 1 + word.width() <= cells => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// A piece of a line.
pub(super) type Piece = (String, Style);

/// Pieces of a line, from the left.
#[derive(Clone, Default, Debug)]
pub(super) struct Line(pub(super) Vec<Piece>);

impl Line {
    pub(super) fn of(text: impl Into<String>) -> Self {
        Line(vec![(text.into(), Style::default())])
    }

    pub(super) fn styled(text: impl Into<String>, style: Style) -> Self {
        Line(vec![(text.into(), style)])
    }

    pub(super) fn push(&mut self, text: impl Into<String>, style: Style) {
        self.0.push((text.into(), style));
    }

    pub(super) fn width(&self) -> usize {
        self.0.iter().map(|(text, _)| text.width()).sum()
    }

    /// A heading in a rule: `─ left ──────── right ─`.
    pub(super) fn rule(heading: &str, end: &str, cells: usize, style: Style) -> Self {
        let end = if end.is_empty() { String::new() } else { format!(" {end} ") };
        let room = cells.saturating_sub(end.width() + 5);
        let heading = format!("─ {} ", cut(heading, room));
        let fill = cells.saturating_sub(heading.width() + end.width() + 1);
        Line::styled(format!("{heading}{}{end}─", "─".repeat(fill)), style)
    }

    /// Something at the left and something at the right end.
    pub(super) fn ends(left: &str, right: &str, cells: usize) -> Self {
        let right = cut(right, cells);
        let left = self::left(left, cells.saturating_sub(right.width()));
        Line::of(left + &right)
    }
}

/// The colours: of people, of trouble that is handled, of trouble that is not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Palette {
    /// The user who looks, then the four others who hold most.
    people: [Color; 5],
    /// Everybody else.
    others: Color,
    amber: Color,
    red: Color,
    coloured: bool,
}

impl Palette {
    /// No colours.
    pub(super) const PLAIN: Palette = Palette {
        people: [Color::Reset; 5],
        others: Color::Reset,
        amber: Color::Reset,
        red: Color::Reset,
        coloured: false,
    };

    /// Colours that differ for every kind of sight, on a dark ground.
    pub(super) const FULL: Palette = Palette {
        people: [
            Color::Rgb(0x4c, 0x8a, 0xe0),
            Color::Rgb(0x4b, 0xbf, 0xa7),
            Color::Rgb(0xc9, 0xb0, 0xf0),
            Color::Rgb(0xb9, 0x96, 0x2c),
            Color::Rgb(0xc0, 0x62, 0x9a),
        ],
        others: Color::Rgb(0x8a, 0x94, 0xa6),
        amber: Color::Rgb(0xe0, 0xa0, 0x30),
        red: Color::Rgb(0xe0, 0x60, 0x50),
        coloured: true,
    };

    /// What comes nearest to them among 256.
    pub(super) const FEW: Palette = Palette {
        people: [
            Color::Indexed(68),
            Color::Indexed(73),
            Color::Indexed(183),
            Color::Indexed(136),
            Color::Indexed(169),
        ],
        others: Color::Indexed(246),
        amber: Color::Indexed(214),
        red: Color::Indexed(167),
        coloured: true,
    };

    /// What the environment of a terminal allows.
    pub(super) fn of_terminal(no_color: bool, colorterm: &str) -> Self {
        match colorterm {
            _ if no_color => Palette::PLAIN,
            "truecolor" | "24bit" => Palette::FULL,
            _ => Palette::FEW,
        }
    }

    fn style(self, color: Color) -> Style {
        if self.coloured { Style::default().fg(color) } else { Style::default() }
    }

    /// Trouble that is handled.
    pub(super) fn amber(self) -> Style {
        self.style(self.amber)
    }

    /// Trouble that is not.
    pub(super) fn red(self) -> Style {
        self.style(self.red)
    }

    /// What is beside the point.
    pub(super) fn muted(self) -> Style {
        if self.coloured { Style::default().add_modifier(Modifier::DIM) } else { Style::default() }
    }

    /// Headings.
    pub(super) fn heading(self) -> Style {
        if self.coloured { Style::default().add_modifier(Modifier::BOLD) } else { Style::default() }
    }

    /// The colour of each person who has something on a GPU.
    pub(super) fn people(self, data: &Data) -> People {
        let mut held: BTreeMap<&str, u64> = BTreeMap::new();
        for resident in data.gpus.iter().flat_map(|gpu| &gpu.residents) {
            *held.entry(resident.user.as_str()).or_default() += resident.promised_bytes;
        }
        let mut others: Vec<(&str, u64)> = held.into_iter().collect();
        others.retain(|(user, _)| *user != data.status.user);
        others.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
        let mut of: BTreeMap<String, Style> = BTreeMap::new();
        of.insert(data.status.user.clone(), self.style(self.people[0]));
        for ((user, _), color) in others.into_iter().zip(&self.people[1..]) {
            of.insert(user.to_owned(), self.style(*color));
        }
        People { of, others: self.style(self.others) }
    }
}

/// The colour of each person.
pub(super) struct People {
    of: BTreeMap<String, Style>,
    others: Style,
}

impl People {
    pub(super) fn style(&self, user: &str) -> Style {
        self.of.get(user).copied().unwrap_or(self.others)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use coloc_api::view::{GpuView, ResidentView};

    #[test]
    fn wide_characters_take_two_cells() {
        assert_eq!(left("日本", 5), "日本 ");
        assert_eq!((left("日本語", 5), width(&left("日本語", 4))), ("日本…".to_owned(), 4));
        assert_eq!(right("ab", 4), "  ab");
        assert_eq!(cut("a\x1b[2Jb\n", 20), "a\\u{1b}[2Jb\\n");
        assert_eq!(cut("abc", 0), "");
    }

    #[test]
    fn a_rule_is_exactly_as_wide() {
        for cells in [20, 40, 80, 139] {
            let rule = Line::rule("Why 451 日本語 waits", "w closes", cells, Style::default());
            assert_eq!(rule.width(), cells, "{rule:?}");
        }
    }

    #[test]
    fn the_user_who_looks_is_blue_and_four_others_have_a_colour() {
        let resident = |user: &str, gib: u64| ResidentView {
            user: user.to_owned(),
            promised_bytes: gib << 30,
            ..ResidentView::default()
        };
        let names = ["a", "b", "c", "d", "e", "me"];
        let residents = names.iter().zip(1..).map(|(user, gib)| resident(user, gib)).collect();
        let mut data = Data::default();
        data.gpus.push(GpuView { residents, ..GpuView::default() });
        data.status.user = "me".to_owned();
        let people = Palette::FULL.people(&data);
        let color = |user: &str| people.style(user).fg.expect("a colour");
        assert_eq!(color("me"), Palette::FULL.people[0]);
        assert_eq!(color("e"), Palette::FULL.people[1], "who holds most");
        assert_eq!(color("a"), Palette::FULL.others, "the fifth");
        assert_eq!(Palette::PLAIN.people(&data).style("me").fg, None);
    }
}
