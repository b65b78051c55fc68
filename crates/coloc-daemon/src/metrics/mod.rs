//! `/metrics`: what is counted and measured, as Prometheus reads it.
//!
//! Devices have the names and labels of dcgm-exporter, so that boards made for it work; everything of ours is `coloc_…` in
//! base units. The number of series is bounded: at most 100 users and
//! 256 tasks on GPUs have series of their own, an ended task has none.

pub(crate) mod api_counters;
pub(crate) mod counters;
mod device;
pub(crate) mod exporter;
mod form;
pub(crate) mod histogram;
mod process;
mod series;
mod writer;

pub use exporter::{Board, Exporter};

#[cfg(test)]
mod tests;
