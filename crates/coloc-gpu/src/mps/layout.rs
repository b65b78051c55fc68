//! Where a control daemon keeps its pipes and logs.

use crate::device::Uuid;
use std::path::{Path, PathBuf};

/// The longest path of a pipe directory. Clients meet the daemon at a socket in it, whose path may have 107
/// bytes, and NVIDIA's names in it take up to 20 of them.
const LONGEST_PIPE_DIRECTORY: usize = 86;

/// A control daemon's folders. One daemon serves one user's tasks on one set of GPUs: under MPS a server of one
/// user makes others wait, and a daemon for all GPUs would take all tasks down with one fault.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DaemonLayout {
    /// `CUDA_MPS_PIPE_DIRECTORY`.
    pub pipe: PathBuf,
    /// `CUDA_MPS_LOG_DIRECTORY`.
    pub log: PathBuf,
    /// The GPUs that it serves.
    pub gpus: Vec<Uuid>,
    /// The user whose tasks it serves.
    pub uid: u32,
}

/// A daemon cannot have its folders there.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LayoutError {
    /// It is for no GPU.
    #[error("an MPS daemon needs at least one GPU")]
    NoGpu,
    /// Sockets have short names.
    #[error(
        "{} is too long for an MPS pipe directory: {} bytes, and {LONGEST_PIPE_DIRECTORY} are possible; \
         choose a shorter state directory",
        pipe.display(), pipe.as_os_str().len()
    )]
    TooLong {
        /// The folder.
        pipe: PathBuf,
    },
}

impl DaemonLayout {
    /// The folders of a daemon below a state directory: `mps/UID/GPU/{pipe,log}`.
    pub fn new(state: &Path, uid: u32, gpus: &[Uuid]) -> Result<Self, LayoutError> {
        let mut gpus = gpus.to_vec();
        gpus.sort();
        gpus.dedup();
        if gpus.is_empty() {
            return Err(LayoutError::NoGpu);
        }
        let name = gpus.iter().map(short).collect::<Vec<_>>().join("+");
        let folder = state.join("mps").join(uid.to_string()).join(name);
        let layout = DaemonLayout { pipe: folder.join("pipe"), log: folder.join("log"), gpus, uid };
        if layout.pipe.as_os_str().len() > LONGEST_PIPE_DIRECTORY {
            return Err(LayoutError::TooLong { pipe: layout.pipe });
        }
        Ok(layout)
    }
}

/// The first group of a UUID: eight digits that tell the GPUs of a server apart.
fn short(uuid: &Uuid) -> &str {
    let text = uuid.as_str();
    let digits = text.strip_prefix("GPU-").or_else(|| text.strip_prefix("MIG-")).unwrap_or(text);
    let end = digits.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(digits.len());
    &digits[..end.min(12)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_gpu_and_user_has_folders_of_its_own() {
        let gpu = Uuid::new("GPU-1b2c3d4e-0000-0000-0000-000000000000");
        let layout = DaemonLayout::new(Path::new("/run/coloc"), 1000, &[gpu]).expect("short");
        assert_eq!(layout.pipe, Path::new("/run/coloc/mps/1000/1b2c3d4e/pipe"));
        assert_eq!(layout.log, Path::new("/run/coloc/mps/1000/1b2c3d4e/log"));
    }

    #[test]
    fn paths_that_no_socket_can_have_are_refused() {
        let gpu = Uuid::new("GPU-1b2c3d4e");
        let long =
            Path::new("/home/somebody/with/a/rather/long/name/and/many/folders/below/it/state");
        let error = DaemonLayout::new(long, 1000, &[gpu]).expect_err("too long");
        assert!(error.to_string().contains("choose a shorter state directory"), "{error}");
        assert_eq!(DaemonLayout::new(long, 1, &[]), Err(LayoutError::NoGpu));
        // A hostile name stays within its folder.
        let layout =
            DaemonLayout::new(Path::new("/s"), 1, &[Uuid::new("GPU-../../etc")]).expect("short");
        assert_eq!(layout.pipe, Path::new("/s/mps/1/pipe"));
    }
}
