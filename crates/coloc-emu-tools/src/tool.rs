//! Programs by the names of their originals.

use crate::{dcgm, mps, nvidia_smi};
use coloc_emu::{AttachError, DriverError, ErrorKind};
use std::io::{self, Write};
use std::process::ExitCode;

/// A tool could not do what it was asked.
#[derive(Debug)]
pub(crate) struct ToolError {
    text: String,
    code: u8,
}

impl ToolError {
    pub(crate) fn new(code: u8, text: impl Into<String>) -> Self {
        ToolError { text: text.into(), code }
    }

    /// What to tell the user.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The same failure, already told.
    pub(crate) fn silent(self) -> Self {
        ToolError { text: String::new(), ..self }
    }
}

impl From<AttachError> for ToolError {
    fn from(error: AttachError) -> Self {
        const DRIVER_NOT_LOADED: u8 = 9;
        ToolError::new(DRIVER_NOT_LOADED, error.to_string())
    }
}

impl From<DriverError> for ToolError {
    fn from(error: DriverError) -> Self {
        // NVML's codes, which nvidia-smi exits with.
        let code = match error.kind {
            ErrorKind::NotFound { .. } => 6,
            ErrorKind::GpuLost => 15,
            ErrorKind::InUse { .. } => 19,
            ErrorKind::InsufficientResources { .. } => 23,
            ErrorKind::NotSupported { .. } => 3,
            ErrorKind::Invalid { .. } => 2,
            _ => 1,
        };
        ToolError::new(code, error.to_string())
    }
}

impl From<io::Error> for ToolError {
    fn from(error: io::Error) -> Self {
        let code = if error.kind() == io::ErrorKind::BrokenPipe { 0 } else { 1 };
        ToolError::new(code, error.to_string())
    }
}

/// What a tool printed, or why it could not.
pub(crate) type Answer = Result<(), ToolError>;

/// Prints text and a line end.
pub(crate) fn print(text: &str) -> Answer {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}")?;
    Ok(out.flush()?)
}

/// Runs the tool of that name, if there is one.
pub fn by_name(name: &str, arguments: &[String]) -> Option<ExitCode> {
    let answer = match name {
        "nvidia-smi" => nvidia_smi::run(arguments),
        "nvidia-cuda-mps-control" => mps::control(arguments),
        "nvidia-cuda-mps-server" => mps::serve(),
        "dcgmi" => dcgm::dcgmi(arguments),
        _ => return None,
    };
    Some(match answer {
        Ok(()) => ExitCode::SUCCESS,
        Err(ToolError { text, code }) => {
            if code != 0 && !text.is_empty() {
                eprintln!("{text}");
            }
            ExitCode::from(code)
        }
    })
}
