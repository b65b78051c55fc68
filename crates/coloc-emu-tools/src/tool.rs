//! Programs by the names of their originals.

use crate::{dcgm, mps, nvidia_smi};
use coloc_emu::{AttachError, DriverError, Emulator, ErrorKind};
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

/// What nvidia-smi exits with when there is no driver to talk to.
const DRIVER_NOT_LOADED: u8 = 9;

/// The fleet that the environment names, whose driver must be loaded.
pub(crate) fn fleet() -> Result<Emulator, ToolError> {
    let emulator = Emulator::from_environment()?;
    if !emulator.lock()?.is_loaded() {
        let text = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. \
                    Make sure that the latest NVIDIA driver is installed and running.\n";
        return Err(ToolError::new(DRIVER_NOT_LOADED, text));
    }
    Ok(emulator)
}

impl From<AttachError> for ToolError {
    fn from(error: AttachError) -> Self {
        ToolError::new(DRIVER_NOT_LOADED, error.to_string())
    }
}

/// NVML's words for what went wrong, and its code, which nvidia-smi exits with.
pub(crate) fn words_and_code(error: &DriverError) -> (&'static str, u8) {
    match error.kind {
        ErrorKind::NotFound { .. } => ("Not Found", 6),
        ErrorKind::GpuLost => ("GPU is lost", 15),
        ErrorKind::InUse { .. } => ("In use by another client", 19),
        ErrorKind::InsufficientResources { .. } => ("Insufficient Resources", 23),
        ErrorKind::NotSupported { .. } => ("Not Supported", 3),
        ErrorKind::NoPermission { .. } => ("Insufficient Permissions", 4),
        ErrorKind::Invalid { .. } => ("Invalid Argument", 2),
        _ => ("Unknown Error", 1),
    }
}

impl ToolError {
    /// In the words of nvidia-smi: what could not be done, and NVML's reason.
    pub(crate) fn unable(error: &DriverError, what: &str) -> Self {
        let (words, code) = words_and_code(error);
        ToolError::new(code, format!("Unable to {what}: {words}"))
    }
}

impl From<DriverError> for ToolError {
    fn from(error: DriverError) -> Self {
        let (_, code) = words_and_code(&error);
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
