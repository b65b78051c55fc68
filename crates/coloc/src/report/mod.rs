//! Self-contained HTML pages: `coloc compare --html`, `coloc collocate --html` and `coloc report --html`.
//!
//! A page is one file with its styles, scripts and data inside. It asks the network for nothing, so it
//! opens from a disk, an e-mail or an archive alike, and its content policy forbids it to ask.

mod collocate;
mod compare;
mod frame;
mod series;
mod usage;

#[cfg(test)]
mod browser_test;
#[cfg(test)]
mod sample;

pub(crate) use collocate::{CollocatePage, Experiment, collocate_page};
pub(crate) use compare::{Attempt, ComparePage, Gpu, Outcome, Run, TaskRecord, compare_page};
pub(crate) use usage::{Stack, StackUser, UsagePage, usage_page};
