//! Where the emulated libraries are, and how a program finds them in place of the driver's.

use crate::{DIR_VARIABLE, STATE_FILE};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// What cargo calls a library, and the names that programs look for.
const LIBRARIES: [(&str, &[&str]); 2] = [
    ("libcoloc_emu_nvml.so", &["libnvidia-ml.so.1", "libnvidia-ml.so"]),
    ("libcoloc_emu_cuda.so", &["libcuda.so.1", "libcuda.so"]),
];

/// Programs that are the coloc binary by another name.
pub const TOOLS: [&str; 4] =
    ["nvidia-smi", "nvidia-cuda-mps-control", "nvidia-cuda-mps-server", "dcgmi"];

/// Names a folder with the emulated libraries, ahead of the usual places.
pub const LIBRARIES_VARIABLE: &str = "COLOC_EMU_LIBRARIES";

/// The libraries themselves, in the order of the list above, where a program has them inside.
static EMBEDDED: OnceLock<[&'static [u8]; 2]> = OnceLock::new();

/// A program has the libraries inside: they are unpacked where none are found beside it.
pub fn embed(libraries: [&'static [u8]; 2]) {
    // Said once, at the start; a second time would say the same.
    let _ = EMBEDDED.set(libraries);
}

/// The emulated driver could not be laid out.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// The libraries are not where they should be.
    #[error(
        "the emulated driver ({}) is not beside {}; looked in {}. Build it with `cargo build -p coloc`, \
         or set {} to the folder that has it",
        file, binary.display(), looked.iter().map(|p| p.display().to_string()).collect::<Vec<_>>().join(", "),
        LIBRARIES_VARIABLE
    )]
    NoLibrary {
        /// The library that is missing.
        file: &'static str,
        /// The running program.
        binary: PathBuf,
        /// Where it was looked for.
        looked: Vec<PathBuf>,
    },
    /// A file could not be made.
    #[error("cannot lay out the emulated driver in {}: {source}", directory.display())]
    Directory {
        /// Where it should go.
        directory: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Folders that may hold the libraries, for a binary at `binary`: a build tree, then an installation.
fn candidates(binary: &Path) -> Vec<PathBuf> {
    let beside = binary.parent().unwrap_or(Path::new("."));
    let named = std::env::var_os(LIBRARIES_VARIABLE).map(PathBuf::from);
    // Tests run one folder deeper than the program.
    let places = [beside.join("deps"), beside.to_owned(), beside.join("../lib/coloc")];
    named.into_iter().chain(places).collect()
}

/// Lays out names of libraries and tools in the fleet's directory, linked to those of `binary`.
pub fn install(directory: &Path, binary: &Path) -> Result<(), InstallError> {
    let looked = candidates(binary);
    let fail = |source| InstallError::Directory { directory: directory.to_owned(), source };
    let (libraries, tools) = (directory.join("lib"), directory.join("bin"));
    fs::create_dir_all(&libraries).and_then(|()| fs::create_dir_all(&tools)).map_err(fail)?;
    for (at, (file, names)) in LIBRARIES.into_iter().enumerate() {
        let found = looked.iter().map(|folder| folder.join(file)).find(|path| path.is_file());
        let found = match (found, EMBEDDED.get()) {
            (Some(found), _) => found,
            (None, Some(embedded)) => unpack(&libraries.join(file), embedded[at]).map_err(fail)?,
            (None, None) => {
                let binary = binary.to_owned();
                return Err(InstallError::NoLibrary { file, binary, looked });
            }
        };
        let found = found.canonicalize().map_err(fail)?;
        for name in names {
            link(&found, &libraries.join(name)).map_err(fail)?;
        }
    }
    for name in TOOLS {
        link(binary, &tools.join(name)).map_err(fail)?;
    }
    Ok(())
}

/// Whole or not at all: another process may be loading the one that is there.
fn unpack(file: &Path, library: &[u8]) -> io::Result<PathBuf> {
    let beside = file.with_extension(format!("{}.new", std::process::id()));
    fs::write(&beside, library)?;
    fs::rename(&beside, file)?;
    Ok(file.to_owned())
}

fn link(target: &Path, name: &Path) -> io::Result<()> {
    match symlink(target, name) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            fs::remove_file(name)?;
            symlink(target, name)
        }
        other => other,
    }
}

/// What a child's environment needs to use the fleet in `directory`: variables and their values.
pub fn environment(directory: &Path) -> Vec<(&'static str, OsString)> {
    let ahead = |folder: &str, variable: &str| {
        let mut value = directory.join(folder).into_os_string();
        if let Some(rest) = std::env::var_os(variable).filter(|rest| !rest.is_empty()) {
            value.push(":");
            value.push(rest);
        }
        value
    };
    vec![
        (DIR_VARIABLE, directory.as_os_str().to_owned()),
        ("LD_LIBRARY_PATH", ahead("lib", "LD_LIBRARY_PATH")),
        ("PATH", ahead("bin", "PATH")),
        ("CUDA_DEVICE_ORDER", "PCI_BUS_ID".into()),
    ]
}

/// A fleet's state lies there.
pub fn is_there(directory: &Path) -> bool {
    directory.join(STATE_FILE).exists()
}

/// Whether this process may remove what a fleet left on disk.
pub fn may_remove(directory: &Path) -> io::Result<()> {
    let mark = directory.join("ending");
    fs::File::create(&mark)?;
    fs::remove_file(mark)
}

/// Removes what a fleet left on disk, and nothing else.
pub fn remove(directory: &Path) -> io::Result<()> {
    let _ = fs::remove_file(directory.join(STATE_FILE));
    for folder in ["lib", "bin"] {
        let _ = fs::remove_dir_all(directory.join(folder));
    }
    fs::remove_dir(directory)
}
