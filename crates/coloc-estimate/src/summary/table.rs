//! The table of torchsummary: one row per module call, containers after their children.

use super::wiring::Wiring;
use super::{SummaryError, check_parameters, number, shape_list, vision, within_limit};
use crate::graph::{Graph, Shape};

/// Why a graph with such rows is doubtful.
pub(super) const FOLDED: &str =
    "results of more than three sides: the extra ones are counted as rows";

/// One row.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Row<'a> {
    pub(super) kind: &'a str,
    pub(super) shape: Shape,
    pub(super) parameters: u64,
    /// Has more sides than a shape; the extra ones are counted as rows.
    pub(super) folded: bool,
    /// Gives several results, of which the first is the shape.
    pub(super) several: bool,
}

impl<'a> Row<'a> {
    /// A row with one result, given its sides behind the batch.
    pub(super) fn new(kind: &'a str, sides: &[u32], parameters: u64) -> Self {
        let side = |index: usize| sides.get(index).copied().unwrap_or(1).max(1);
        let folded = sides.len() > 3;
        let shape = match sides.len() {
            0 | 1 => Shape::features(side(0)),
            2 => Shape::sequence(side(1), side(0)),
            count => {
                let rows = sides[1..count - 1].iter().map(|side| (*side).max(1));
                Shape::image(side(0), rows.fold(1, u32::saturating_mul), side(count - 1))
            }
        };
        Row { kind, shape, parameters, folded, several: false }
    }
}

pub(super) fn parse(text: &str) -> Result<(Graph, Option<u32>), SummaryError> {
    let mut rows = Vec::new();
    let mut batch = None;
    let mut input_mib = None;
    let mut total = None;
    for (index, line) in text.lines().enumerate() {
        if let Some(rest) = line.strip_prefix("Input size (MB):") {
            input_mib = rest.trim().parse::<f64>().ok().filter(|mib| *mib > 0.0);
        } else if let Some(rest) = line.strip_prefix("Total params:") {
            total = number(rest.trim());
        } else if total.is_none() && line.contains('[') {
            let (row, samples) = read_row(line)
                .map_err(|(column, problem)| SummaryError::new(index + 1, column, problem))?;
            batch = batch.or(samples);
            within_limit(rows.len(), index + 1)?;
            rows.push(row);
        }
    }
    if rows.is_empty() {
        return Err(SummaryError::new(1, 1, "the table has no rows with an output shape"));
    }
    let Some(total) = total else {
        let line = text.lines().count().max(1);
        let problem = "the table ends before its line with Total params; is the file cut off?";
        return Err(SummaryError::new(line, 1, problem));
    };
    let samples = batch.unwrap_or(1);
    let batch = batch.filter(|batch| *batch > 0);
    if let Some(graph) = vision::find(&rows, samples, input_mib, total) {
        return Ok((graph, batch));
    }
    let mut graph = Wiring::of(&rows, samples, input_mib).finish();
    check_parameters(&mut graph, total);
    Ok((graph, batch))
}

/// `Conv2d-1  [32, 64, 112, 112]  9,408`
fn read_row(line: &str) -> Result<(Row<'_>, Option<u32>), (usize, String)> {
    let first = line.find('[').unwrap_or(0);
    let column = |at: usize| line[..at].chars().count() + 1;
    // Several results: [[-1, 128, 256], [-1, 2, 256]]
    let several = line[first + 1..].trim_start().starts_with('[');
    let open = if several {
        line[first + 1..].find('[').map_or(first, |at| first + 1 + at)
    } else {
        first
    };
    let unclosed =
        || (column(first), "this shape is never closed; expected [batch, channels, …]".to_owned());
    let close = line[open..].find(']').map(|close| open + close).ok_or_else(unclosed)?;
    let end = if several { line.rfind(']').ok_or_else(unclosed)? } else { close } + 1;
    let name = line[..first].trim();
    let (kind, _) = name.rsplit_once('-').ok_or_else(|| {
        (1, format!("expected a layer such as Conv2d-1 before its shape, found {name:?}"))
    })?;
    let sides = shape_list(&line[open..=close])
        .filter(|sides| !sides.is_empty())
        .ok_or_else(|| (column(open), "expected a shape such as [-1, 64, 112, 112]".to_owned()))?;
    let parameters = number(line[end..].trim()).ok_or_else(|| {
        (column(end), "expected the number of parameters after the shape".to_owned())
    })?;
    let row = Row { several, ..Row::new(kind, &sides[1..], parameters) };
    Ok((row, Some(sides[0])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{FlagKind, MOST_NODES};

    #[test]
    fn a_row_has_kind_shape_and_parameters() {
        let (row, batch) = read_row("   Conv2d-1   [-1, 64, 112, 112]   9,408").unwrap();
        assert_eq!(
            (row.kind, row.shape, row.parameters),
            ("Conv2d", Shape::image(64, 112, 112), 9408)
        );
        assert_eq!((batch, row.folded, row.several), (Some(0), false, false));
    }

    #[test]
    fn sides_and_results_beyond_the_usual_are_marked() {
        let (row, _) = read_row("Conv3d-1   [-1, 64, 16, 112, 112]   5,248").unwrap();
        assert_eq!((row.shape, row.folded), (Shape::image(64, 16 * 112, 112), true));
        let (row, batch) = read_row("LSTM-2 [[-1, 128, 256], [-1, 2, 256]]   571,392").unwrap();
        assert_eq!((row.shape, row.parameters), (Shape::sequence(256, 128), 571_392));
        assert_eq!((row.kind, batch, row.several), ("LSTM", Some(0), true));
    }

    /// Three sides of the largest size have more numbers than can be counted.
    #[test]
    fn sizes_beyond_counting_are_read() {
        let most = 1u64 << 24;
        let row = |kind| format!("{kind}-1 [1, {most}, {most}, {most}] {}\n", 1u64 << 48);
        let rows = ["Conv2d", "Linear", "Dropout"].map(row).concat();
        parse(&format!("{rows}Total params: 1\n")).unwrap();
        let parameters = row("Linear").repeat(1 << 16);
        parse(&format!("{parameters}Total params: 1\n")).unwrap();
        // Five times sixty branches of the largest width.
        let branches = format!("Conv2d-1 [1, {most}, 8, 8] {}\n", 3 * most).repeat(60);
        let blocks = format!("Dropout-1 [1, 3, 8, 8] 0\n{branches}").repeat(5);
        parse(&format!("{blocks}InceptionA-1 [1, 8, 8, 8] 0\nTotal params: 1\n")).unwrap();
    }

    /// Rows that look back at all rows before them would take minutes.
    #[test]
    fn a_long_table_takes_no_longer_for_each_row() {
        let start = std::time::Instant::now();
        for (row, last) in [
            ("ReLU-1 [1, 2] 0\n", "BasicBlock-1 [1, 2] 0\n"),
            ("Conv2d-1 [1, 5, 8, 8] 7\n", "InceptionA-1 [1, 5, 8, 8] 0\n"),
        ] {
            let rows = row.repeat(60_000);
            let text = format!("Conv2d-1 [1, 3, 8, 8] 9\n{rows}{last}Total params: 1\n");
            assert!(parse(&text).unwrap().0.nodes().len() > 60_000);
        }
        assert!(start.elapsed() < std::time::Duration::from_secs(60));
    }

    #[test]
    fn a_broken_row_names_its_column() {
        let cases = [
            ("Conv2d-1 [32, 64", 10),
            ("Conv2d [32, 64] 3", 1),
            ("Conv2d-1 [a] 3", 10),
            ("Conv2d-1 [1, 2] many", 16),
            ("LSTM-1 [[1, 2], [3]", 20),
            ("LSTM-1 [[1, 2], [3]] many", 21),
        ];
        for (line, column) in cases {
            assert_eq!(read_row(line).unwrap_err().0, column, "{line}");
        }
    }

    fn table(rows: &str, total: u64) -> Graph {
        let text = format!("Layer (type)  Output Shape  Param #\n{rows}\nTotal params: {total}\n");
        parse(&text).unwrap().0
    }

    fn flagged(graph: &Graph, kind: FlagKind) -> bool {
        graph.flags.iter().any(|flag| flag.kind == kind)
    }

    #[test]
    fn volumes_keep_their_size() {
        let rows = "Conv3d-1 [-1, 64, 16, 112, 112] 5,248\nReLU-2 [-1, 64, 16, 112, 112] 0";
        let graph = table(rows, 5248);
        assert_eq!(graph.output().shape.elements(), 64 * 16 * 112 * 112);
        assert_eq!(graph.nodes()[0].shape, Shape::image(3, 16 * 112, 112));
        assert!(
            flagged(&graph, FlagKind::UnknownOperation) && flagged(&graph, FlagKind::Assumption)
        );
    }

    #[test]
    fn a_row_with_several_results_is_one_that_is_not_known() {
        let rows =
            "Linear-1 [-1, 64] 4,160\nLSTM-2 [[-1, 64], [-1, 2, 64]] 33,280\nLinear-3 [-1, 2] 130";
        let graph = table(rows, 37_570);
        assert_eq!(graph.parameters(), 37_570);
        assert!(
            graph.flags.iter().any(|flag| flag.detail == "LSTM is not known"),
            "{:?}",
            graph.flags
        );
    }

    /// The rows add up to the total, but what was made of them does not.
    #[test]
    fn the_graph_is_compared_with_the_total() {
        let graph = table("Conv2d-1 [-1, 64, 8, 8] 1,728\nPReLU-2 [-1, 64, 8, 8] 64", 1792);
        assert!(flagged(&graph, FlagKind::SummaryMismatch));
        let graph = table("Conv2d-1 [-1, 64, 8, 8] 1,728\nReLU-2 [-1, 64, 8, 8] 0", 1728);
        assert!(graph.flags.is_empty(), "{:?}", graph.flags);
    }

    #[test]
    fn more_rows_than_any_net_has_are_refused() {
        let text = "ReLU-1 [-1, 8] 0\n".repeat(MOST_NODES + 1) + "Total params: 0\n";
        assert_eq!(parse(&text).unwrap_err().line, MOST_NODES + 1);
    }
}
