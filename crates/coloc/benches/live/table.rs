//! Figures of several rounds, side by side.

use std::fmt;
use std::time::Duration;

/// One measured figure.
pub(crate) struct Figure {
    what: &'static str,
    value: f64,
    unit: &'static str,
}

impl Figure {
    pub(crate) fn rate(what: &'static str, per_second: f64) -> Self {
        Figure { what, value: per_second, unit: "/s" }
    }

    pub(crate) fn time(what: &'static str, time: Duration) -> Self {
        Figure { what, value: time.as_secs_f64() * 1000.0, unit: "ms" }
    }

    pub(crate) fn memory(what: &'static str, bytes: u64) -> Self {
        Figure { what, value: bytes as f64 / 1e6, unit: "MB" }
    }
}

struct Row {
    who: &'static str,
    what: &'static str,
    unit: &'static str,
    values: Vec<f64>,
}

/// Rows in the order in which they were first measured.
#[derive(Default)]
pub(crate) struct Table {
    rows: Vec<Row>,
    remarks: Vec<String>,
}

impl Table {
    pub(crate) fn add(&mut self, who: &'static str, figure: Figure) {
        let Figure { what, value, unit } = figure;
        eprintln!("  {who:<6} {what:<40} {value:.1} {unit}");
        match self.rows.iter_mut().find(|row| (row.who, row.what) == (who, what)) {
            Some(row) => row.values.push(value),
            None => self.rows.push(Row { who, what, unit, values: vec![value] }),
        }
    }

    /// Something to know about the figures, said once.
    pub(crate) fn remark(&mut self, remark: String) {
        if !self.remarks.contains(&remark) {
            self.remarks.push(remark);
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<7} {:<42} {:>10} {:>21}", "", "", "median", "range")?;
        for row in &self.rows {
            let mut values = row.values.clone();
            values.sort_by(f64::total_cmp);
            let (low, high) = (values[0], values[values.len() - 1]);
            let (median, unit) = (values[values.len() / 2], row.unit);
            let range = format!("{low:.1} to {high:.1}");
            writeln!(f, "{:<7} {:<42} {median:>7.1} {unit:<2} {range:>21}", row.who, row.what)?;
        }
        self.remarks.iter().try_for_each(|remark| writeln!(f, "{remark}"))
    }
}
