//! The table of torchsummary: one row per module call, containers after their children.

use super::wiring::Wiring;
use super::{SummaryError, number, shape_list};
use crate::graph::{Graph, Shape};

/// One row.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Row<'a> {
    pub(super) kind: &'a str,
    pub(super) shape: Shape,
    pub(super) parameters: u64,
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
            rows.push(row);
        }
    }
    if rows.is_empty() {
        return Err(SummaryError::new(1, 1, "the table has no rows with an output shape"));
    }
    if total.is_none() {
        let line = text.lines().count().max(1);
        let problem = "the table ends before its line with Total params; is the file cut off?";
        return Err(SummaryError::new(line, 1, problem));
    }
    let mut wiring = Wiring::new(&rows, batch.unwrap_or(1), input_mib);
    for index in 0..rows.len() {
        wiring.add(&rows, index);
    }
    Ok((wiring.finish(total), batch.filter(|batch| *batch > 0)))
}

/// `Conv2d-1  [32, 64, 112, 112]  9,408`
fn read_row(line: &str) -> Result<(Row<'_>, Option<u32>), (usize, String)> {
    let open = line.find('[').unwrap_or(0);
    let column = |at: usize| line[..at].chars().count() + 1;
    let close = line[open..].find(']').map(|close| open + close).ok_or_else(|| {
        (column(open), "this shape is never closed; expected [batch, channels, …]".to_owned())
    })?;
    let name = line[..open].trim();
    let (kind, _) = name.rsplit_once('-').ok_or_else(|| {
        (1, format!("expected a layer such as Conv2d-1 before its shape, found {name:?}"))
    })?;
    let sides = shape_list(&line[open..=close])
        .filter(|sides| !sides.is_empty())
        .ok_or_else(|| (column(open), "expected a shape such as [-1, 64, 112, 112]".to_owned()))?;
    let parameters = number(line[close + 1..].trim()).ok_or_else(|| {
        (column(close + 1), "expected the number of parameters after the shape".to_owned())
    })?;
    let shape = match sides[1..] {
        [features] => Shape::features(features.max(1)),
        [channels, length] => Shape::sequence(length.max(1), channels.max(1)),
        [channels, height, width] => Shape::image(channels.max(1), height.max(1), width.max(1)),
        _ => Shape::features(1),
    };
    Ok((Row { kind, shape, parameters }, Some(sides[0])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_kind_shape_and_parameters() {
        let (row, batch) = read_row("   Conv2d-1   [-1, 64, 112, 112]   9,408").unwrap();
        let expected = Row { kind: "Conv2d", shape: Shape::image(64, 112, 112), parameters: 9408 };
        assert_eq!((row, batch), (expected, Some(0)));
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
        ];
        for (line, column) in cases {
            assert_eq!(read_row(line).unwrap_err().0, column, "{line}");
        }
    }
}
