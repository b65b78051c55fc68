//! Cells of a row, and the settings that the generators wrote into a run's file name.

use super::{DatasetError, Measured};
use crate::graph::{Graph, MOST_NUMBERS};
use csv::StringRecord;
use std::path::Path;
use std::str::FromStr;

/// The columns of a file.
pub(super) struct Columns<'a> {
    path: &'a Path,
    headers: &'a StringRecord,
}

impl<'a> Columns<'a> {
    pub(super) fn new(path: &'a Path, headers: &'a StringRecord) -> Self {
        Columns { path, headers }
    }
}

/// One record with its columns' names.
pub(super) struct Cells<'a> {
    pub(super) columns: &'a Columns<'a>,
    pub(super) record: &'a StringRecord,
    pub(super) line: u64,
    pub(super) group: u64,
}

/// More layers than any net has.
const MOST_LAYERS: u32 = 10_000;
/// Wider than any layer, longer than any text, more rows than any table has.
const WIDEST: u32 = 1 << 24;
/// Positions along a side, and samples of a batch.
const LONGEST: u32 = 1 << 20;

/// What a setting counts, and so how much of it there can be.
#[derive(Clone, Copy)]
pub(super) enum Size {
    Layers,
    Width,
    Length,
    Batch,
}

impl Size {
    fn check(self, number: u32) -> Result<u32, String> {
        let (most, what) = match self {
            Size::Layers => (MOST_LAYERS, "layers than any net has"),
            Size::Width => (WIDEST, "channels, features or classes than any layer has"),
            Size::Length => (LONGEST, "tokens or pixels than any sample has along a side"),
            Size::Batch => (LONGEST, "samples than any batch has"),
        };
        match number {
            0 => Err("0 makes no net; at least 1 is needed".to_owned()),
            number if number > most => Err(format!("{number} is more {what} (at most {most})")),
            number => Ok(number),
        }
    }
}

impl<'a> Cells<'a> {
    pub(super) fn find(&self, column: &str) -> Option<&'a str> {
        let place = self.columns.headers.iter().position(|header| header == column)?;
        self.record.get(place)
    }

    pub(super) fn text(&self, column: &'static str) -> Result<&'a str, DatasetError> {
        self.find(column)
            .ok_or_else(|| DatasetError::Column { path: self.columns.path.to_owned(), column })
    }

    pub(super) fn number<T: FromStr>(&self, column: &'static str) -> Result<T, DatasetError> {
        let text = self.text(column)?;
        text.trim()
            .parse()
            .map_err(|_| self.problem(column, format!("{text:?} is not a number of this column")))
    }

    /// A size that a net can have.
    pub(super) fn size(&self, column: &'static str, size: Size) -> Result<u32, DatasetError> {
        size.check(self.number(column)?).map_err(|problem| self.problem(column, problem))
    }

    /// The same from the run's file name.
    pub(super) fn setting_size(&self, name: &str, size: Size) -> Result<u32, DatasetError> {
        size.check(self.setting_number(name)?)
            .map_err(|problem| self.problem("Filename", format!("setting {name:?}: {problem}")))
    }

    /// The graph if a batch of it can be added up at all.
    pub(super) fn countable(
        &self,
        column: &'static str,
        graph: Graph,
        batch: u32,
    ) -> Result<Graph, DatasetError> {
        let numbers = graph.size(batch);
        if numbers <= MOST_NUMBERS {
            return Ok(graph);
        }
        let problem =
            format!("a batch of this net has {numbers:.1e} numbers; no device holds them");
        Err(self.problem(column, problem))
    }

    /// Measured memory in MiB; an empty cell, nothing above zero or no finite number mean that it was not
    /// measured.
    pub(super) fn measured_mib(&self, column: &'static str) -> Result<Option<f64>, DatasetError> {
        if self.text(column)?.trim().is_empty() {
            return Ok(None);
        }
        let mib: f64 = self.number(column)?;
        Ok((mib.is_finite() && mib > 0.0).then_some(mib))
    }

    /// A share of time; -1 and an empty cell mean that it was not measured.
    pub(super) fn share(&self, column: &'static str) -> Option<f64> {
        let value: f64 = self.find(column)?.trim().parse().ok()?;
        (0.0..=1.0).contains(&value).then_some(value)
    }

    pub(super) fn measured(&self) -> Measured {
        Measured {
            smact: self.share("Avg SMACT"),
            smocc: self.share("Avg SMOCC"),
            fp32: self.share("Avg FP32A"),
        }
    }

    pub(super) fn problem(&self, column: &'static str, problem: String) -> DatasetError {
        DatasetError::Cell { path: self.columns.path.to_owned(), line: self.line, column, problem }
    }

    /// A setting of the form `name:value` within the run's file name.
    pub(super) fn setting(&self, name: &str) -> Result<&'a str, DatasetError> {
        let text = self.text("Filename")?;
        let missing = || self.problem("Filename", format!("there is no setting {name:?}"));
        let start = setting_start(text, name).ok_or_else(missing)?;
        let value = &text[start..];
        // The next setting's name may hold underscores; cut at each known name instead of at the last.
        let end = NAMES
            .iter()
            .filter_map(|next| value.find(&format!("_{next}:")))
            .min()
            .unwrap_or(value.len())
            .min(value.find(".out").unwrap_or(value.len()));
        Ok(&value[..end])
    }

    pub(super) fn setting_number<T: FromStr>(&self, name: &str) -> Result<T, DatasetError> {
        let text = self.setting(name)?;
        text.parse().map_err(|_| {
            self.problem("Filename", format!("setting {name:?} is {text:?}, not a number"))
        })
    }

    /// Whether the file name holds `text`.
    pub(super) fn mentions(&self, text: &str) -> Result<bool, DatasetError> {
        Ok(self.text("Filename")?.contains(text))
    }
}

const NAMES: [&str; 12] = [
    "input",
    "output",
    "depth",
    "arch",
    "batch",
    "act",
    "dropout",
    "batchnorm",
    "num_classes",
    "base_filters",
    "input_size",
    "input_channels",
];

fn setting_start(text: &str, name: &str) -> Option<usize> {
    let pattern = format!("{name}:");
    if text.starts_with(&pattern) {
        return Some(pattern.len());
    }
    let within = format!("_{pattern}");
    text.find(&within).map(|start| start + within.len())
}
