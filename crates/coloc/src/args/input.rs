//! The trace and the fleet that a command works on.

use crate::error::CliError;
use clap::{Args, ValueEnum};
use coloc_model::{Fleet, FleetFile};
use coloc_sim::Trace;
use coloc_sim::trace::{self, Format, TraceError};
use std::fs::File;
use std::io::{BufReader, Read as _};
use std::path::{Path, PathBuf};

/// A trace file format.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub(crate) enum TraceFormat {
    /// Our own CSV: everything about each task.
    Coloc,
    /// `submit_time_s,task` with names from the built-in catalogue.
    Carma,
    /// The Tiresias simulator's job CSV; each job is alone on its GPUs.
    Tiresias,
    /// Alibaba's pods with parts of GPUs (v2023).
    Alibaba,
    /// Gavel's traces of 7 or 10 columns; run times and speeds from its published throughputs.
    Gavel,
    /// What sacct -P prints: Slurm's accounting.
    Sacct,
}

impl From<TraceFormat> for Format {
    fn from(format: TraceFormat) -> Format {
        match format {
            TraceFormat::Coloc => Format::Coloc,
            TraceFormat::Carma => Format::Carma,
            TraceFormat::Tiresias => Format::Tiresias,
            TraceFormat::Alibaba => Format::Alibaba,
            TraceFormat::Gavel => Format::Gavel,
            TraceFormat::Sacct => Format::Sacct,
        }
    }
}

/// Which trace to play on which machines.
#[derive(Args, Clone, Debug)]
pub(crate) struct InputArgs {
    /// The trace to play
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: PathBuf,
    /// Format of the trace
    #[arg(long, value_enum, default_value = "coloc")]
    pub(crate) format: TraceFormat,
    /// Machines: 4xA100-40GB, 15x4xV100-16GB, 2xV100-16GB,4xT4-16GB, or a TOML file
    #[arg(long, value_name = "SPEC")]
    pub(crate) fleet: String,
}

impl InputArgs {
    pub(crate) fn load(&self) -> Result<(Trace, Fleet), CliError> {
        let fleet = read_fleet(&self.fleet)?;
        Ok((trace::read(&self.trace, open(&self.trace)?, self.format.into())?, fleet))
    }

    /// Tells how many rows are no tasks. Remarks come when all went well: an error stands alone.
    pub(crate) fn tell_passed_over(&self, trace: &Trace) {
        tell_passed_over(&self.trace, trace);
    }
}

/// Opens and reads a trace, and tells how many of its rows are no tasks.
pub(crate) fn read_trace(file: &Path, format: TraceFormat) -> Result<Trace, CliError> {
    let trace = trace::read(file, open(file)?, format.into())?;
    tell_passed_over(file, &trace);
    Ok(trace)
}

fn tell_passed_over(file: &Path, trace: &Trace) {
    let passed_over = trace.passed_over();
    if passed_over.rows() > 0 {
        eprintln!("coloc: {}: {passed_over}", file.display());
    }
    if let Some(columns) = trace.unknown_columns() {
        eprintln!("coloc: {}: {columns}", file.display());
    }
}

/// Opens and reads the `duration` column of a CSV.
pub(crate) fn read_samples(file: &Path) -> Result<Vec<f64>, CliError> {
    Ok(trace::read_column(file, open(file)?)?)
}

fn open(file: &Path) -> Result<BufReader<File>, TraceError> {
    let fail = |error: std::io::Error| TraceError {
        file: file.to_owned(),
        place: None,
        kind: error.into(),
    };
    File::open(file).map(BufReader::new).map_err(fail)
}

/// The largest file that is read as a fleet, in bytes.
const LARGEST_FLEET: u64 = 1 << 20;

/// A fleet from a spec, or from a TOML file if the text ends like one or names one.
pub(crate) fn read_fleet(spec: &str) -> Result<Fleet, CliError> {
    let file = Path::new(spec);
    if !spec.ends_with(".toml") && !file.is_file() {
        return Ok(spec.parse()?);
    }
    let fail = |problem: String| CliError::FleetFile { file: file.to_owned(), problem };
    let mut text = String::new();
    let read =
        File::open(file).and_then(|file| file.take(LARGEST_FLEET + 1).read_to_string(&mut text));
    let read = read.map_err(|error| fail(error.to_string()))?;
    if read as u64 > LARGEST_FLEET {
        return Err(fail(format!("a fleet's file has at most {LARGEST_FLEET} bytes; use `count`")));
    }
    let parsed: FleetFile = toml::from_str(&text).map_err(|error| fail(error.to_string()))?;
    Fleet::try_from(parsed).map_err(|error| fail(error.to_string()))
}
