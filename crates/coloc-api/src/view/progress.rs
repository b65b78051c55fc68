//! How far a training is, by what it prints.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// How far a running attempt is, as its log tells.
#[derive(Clone, PartialEq, Default, Debug, JsonSchema, Serialize, Deserialize)]
pub struct Progress {
    /// Units that are done, of all epochs as far as the log tells.
    pub done: u64,
    /// Units in all, if the log says.
    #[serde(default)]
    pub total: Option<u64>,
    /// What is counted, as the log calls it: `iter`, `step`, `batch`, `epoch`.
    pub unit: String,
    /// Units a second, lately.
    #[serde(default)]
    pub rate: Option<f64>,
    /// Seconds until all are done at that rate.
    #[serde(default)]
    pub eta_s: Option<f64>,
}

impl Progress {
    /// The part that is done, from 0 to 1.
    pub fn part(&self) -> Option<f64> {
        let total = self.total.filter(|total| *total > 0)?;
        Some((self.done as f64 / total as f64).min(1.0))
    }

    /// Reads what [`Progress`] displays.
    pub(crate) fn read(cell: &str) -> Option<Self> {
        fn maybe<N: std::str::FromStr>(cell: Option<&str>) -> Option<Option<N>> {
            match cell? {
                "" => Some(None),
                cell => cell.parse().ok().map(Some),
            }
        }
        // The unit is a word of the log, and stands last.
        let mut cells = cell.splitn(5, '/');
        let done = cells.next()?.parse().ok()?;
        let total = maybe(cells.next())?;
        let rate = maybe(cells.next())?;
        let eta_s = maybe(cells.next())?;
        Some(Progress { done, total, unit: cells.next()?.to_owned(), rate, eta_s })
    }
}

/// `450/1000/12.5/44/iter`, with nothing for what is not known.
impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/", self.done)?;
        if let Some(total) = self.total {
            write!(f, "{total}")?;
        }
        f.write_str("/")?;
        if let Some(rate) = self.rate {
            write!(f, "{rate}")?;
        }
        f.write_str("/")?;
        if let Some(eta) = self.eta_s {
            write!(f, "{eta}")?;
        }
        write!(f, "/{}", self.unit)
    }
}
