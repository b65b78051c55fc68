//! Tables: aligned on a terminal, never truncated in a pipe.

use super::terminal::{columns, cut, fit, width};
use super::visible::visible;
use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, ContentArrangement, Table};

/// A table with the first column to the left and figures to the right.
pub(crate) fn table(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    render(header, rows, CellAlignment::Right, width(), &[])
}

/// The same, of which some columns are left out on a narrow terminal, in this order.
pub(crate) fn listing(
    header: &[&str],
    rows: impl IntoIterator<Item = Vec<String>>,
    spare: &[usize],
) -> String {
    render(header, rows, CellAlignment::Right, width(), spare)
}

/// A table whose cells are whole: on a narrow terminal columns are left out, in this order, and none is cut.
pub(crate) fn whole(
    header: &[&str],
    rows: impl IntoIterator<Item = Vec<String>>,
    spare: &[usize],
) -> String {
    whole_in(header, rows.into_iter().collect(), spare, width())
}

fn whole_in(
    header: &[&str],
    rows: Vec<Vec<String>>,
    spare: &[usize],
    terminal: Option<usize>,
) -> String {
    let mut shown: Vec<usize> = (0..header.len()).collect();
    let natural = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| columns(cell));
        cells.chain([columns(header[column])]).max().unwrap_or(0) + 2
    };
    for dropped in spare {
        // Nothing follows the last column.
        let taken = shown.iter().map(|&column| natural(column)).sum::<usize>().saturating_sub(2);
        if terminal.is_none_or(|room| taken <= room) {
            break;
        }
        shown.retain(|column| column != dropped);
    }
    let header: Vec<&str> = shown.iter().map(|&column| header[column]).collect();
    let row = |row: &Vec<String>| shown.iter().filter_map(|&at| row.get(at).cloned()).collect();
    render(&header, rows.iter().map(row), CellAlignment::Right, None, &[])
}

/// A table with every column to the left, of which some can be left out.
pub(crate) fn words(
    header: &[&str],
    rows: impl IntoIterator<Item = Vec<String>>,
    spare: &[usize],
) -> String {
    render(header, rows, CellAlignment::Left, width(), spare)
}

fn render(
    header: &[&str],
    rows: impl IntoIterator<Item = Vec<String>>,
    figures: CellAlignment,
    terminal: Option<usize>,
    spare: &[usize],
) -> String {
    let shown = |row: Vec<String>| row.iter().map(|cell| visible(cell).into_owned()).collect();
    let rows: Vec<Vec<String>> = rows.into_iter().map(shown).collect();
    let mut natural: Vec<usize> = header.iter().map(|title| columns(title)).collect();
    for row in &rows {
        let widest = natural.iter_mut().zip(row);
        widest.for_each(|(width, cell)| *width = columns(cell).max(*width));
    }
    let widths = fit(&natural, terminal, spare);
    let fitting = |row: &[String]| -> Vec<String> {
        let cells = row.iter().zip(&widths);
        cells.filter_map(|(cell, width)| Some(cut(cell, (*width)?).into_owned())).collect()
    };
    let mut table = Table::new();
    table.load_style(NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(fitting(&header.iter().map(ToString::to_string).collect::<Vec<_>>()));
    for row in &rows {
        table.add_row(fitting(row));
    }
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if index > 0 {
            column.set_cell_alignment(figures);
        }
    }
    table.to_string().lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

/// A horizontal bar of `width` characters at most, in eighths of a character.
pub(crate) fn bar(share: f64, width: usize) -> String {
    const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (share.clamp(0.0, 1.0) * width as f64 * 8.0).round() as usize;
    "█".repeat(eighths / 8) + PARTS[eighths % 8]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_grow_in_eighths() {
        assert_eq!(bar(0.0, 4), "");
        assert_eq!(bar(1.0, 4), "████");
        assert_eq!(bar(0.5, 3), "█▌");
        assert_eq!(bar(f64::NAN, 3), "");
        assert_eq!(bar(7.0, 2), "██");
    }

    #[test]
    fn figures_line_up_to_the_right() {
        let rows = [vec!["a".into(), "1.0".into()], vec!["long".into(), "100.0".into()]];
        insta::assert_snapshot!(table(&["name", "value"], rows), @r"
        name  value
        a       1.0
        long  100.0
        ");
    }

    #[test]
    fn columns_are_left_out_rather_than_cut() {
        let rows = || vec![vec!["carma-v2:gpumemnet".into(), "90/90".into(), "7.6 h -38%".into()]];
        let table = |terminal| whole_in(&["policy", "done", "makespan"], rows(), &[1], terminal);
        insta::assert_snapshot!(table(Some(37)), @r"
        policy               done    makespan
        carma-v2:gpumemnet  90/90  7.6 h -38%
        ");
        insta::assert_snapshot!(table(Some(36)), @r"
        policy                makespan
        carma-v2:gpumemnet  7.6 h -38%
        ");
        assert_eq!(table(None), table(Some(37)));
    }

    #[test]
    fn wide_characters_take_two_columns() {
        let rows = || [vec!["7".into(), "訓練訓練訓練".into(), "x".into()]];
        let table = |room| render(&["ID", "NAME", "E"], rows(), CellAlignment::Left, room, &[]);
        let widest = |table: String| table.lines().map(columns).max();
        assert_eq!(widest(table(None)), Some(19));
        assert_eq!(widest(table(Some(18))), Some(18), "{}", table(Some(18)));
    }

    #[test]
    fn tables_fit_terminals_and_obey_nobody() {
        let rows = || [vec!["7".into(), "x\u{1b}[2J\n".repeat(9), "1.0".into(), "ada".into()]];
        let table = |terminal| {
            let header = ["ID", "NAME", "PEAK", "USER"];
            render(&header, rows(), CellAlignment::Left, terminal, &[3])
        };
        insta::assert_snapshot!(table(Some(30)), @r"
        ID  NAME            PEAK  USER
        7   x\u{1b}[2J\nx…  1.0   ada
        ");
        insta::assert_snapshot!(table(Some(20)), @r"
        ID  NAME        PEAK
        7   x\u{1b}[2…  1.0
        ");
        assert!(table(None).lines().all(|line| !line.contains('…')), "{}", table(None));
    }
}
