//! Tables: aligned on a terminal, never truncated in a pipe.

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, ContentArrangement, Table};

/// A table with the first column to the left and figures to the right.
pub(crate) fn table(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    render(header, rows, CellAlignment::Right)
}

/// A table with every column to the left.
pub(crate) fn words(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    render(header, rows, CellAlignment::Left)
}

fn render(
    header: &[&str],
    rows: impl IntoIterator<Item = Vec<String>>,
    figures: CellAlignment,
) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(header);
    for row in rows {
        table.add_row(row);
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
}
