//! What DCGM tells: `dcgmi`, and the metrics endpoint of its exporter.

mod dcgmi;
mod exporter;
mod fields;

pub(crate) use dcgmi::run as dcgmi;
pub use exporter::{ExporterError, serve};
