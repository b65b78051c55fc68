//! How far a training got, as a file.

use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};

/// Where a training stands.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Checkpoint {
    /// Which task it is of.
    pub task: String,
    /// Seconds of work done, as if alone.
    pub work_s: f64,
}

/// A checkpoint could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// The file cannot be used.
    #[error("checkpoint {}: {source}", file.display())]
    File {
        /// Which file.
        file: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is no checkpoint.
    #[error("checkpoint {}: {problem}", file.display())]
    Content {
        /// Which file.
        file: PathBuf,
        /// What is wrong.
        problem: String,
    },
}

impl Checkpoint {
    /// Reads a checkpoint of the task called `task`.
    pub fn read(file: &Path, task: &str) -> Result<Self, CheckpointError> {
        let text = std::fs::read_to_string(file)
            .map_err(|source| CheckpointError::File { file: file.to_owned(), source })?;
        Self::parse(&text, task)
            .map_err(|problem| CheckpointError::Content { file: file.to_owned(), problem })
    }

    fn parse(text: &str, task: &str) -> Result<Self, String> {
        let found: Checkpoint = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if found.task != task {
            return Err(format!("it is of task {:?}, not {task:?}", found.task));
        }
        if !(found.work_s >= 0.0 && found.work_s.is_finite()) {
            return Err(format!("work_s cannot be {}", found.work_s));
        }
        Ok(found)
    }

    /// Writes the file whole or not at all.
    pub fn write(&self, file: &Path) -> Result<(), CheckpointError> {
        let fail = |source| CheckpointError::File { file: file.to_owned(), source };
        let mut part = file.as_os_str().to_owned();
        part.push(format!(".{}.part", std::process::id()));
        let text = serde_json::to_vec(self).map_err(|error| fail(error.into()))?;
        std::fs::write(&part, text).and_then(|()| std::fs::rename(&part, file)).map_err(|source| {
            // Best effort: the error that matters is the one that is reported.
            let _ = std::fs::remove_file(&part);
            fail(source)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checkpoints_return_and_bad_ones_say_why() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let file = folder.path().join("c.json");
        let written = Checkpoint { task: "resnet".into(), work_s: 12.5 };
        written.write(&file).expect("writable");
        assert_eq!(Checkpoint::read(&file, "resnet").expect("just written"), written);
        let wrong = Checkpoint::read(&file, "vgg").expect_err("another task");
        assert!(wrong.to_string().contains("not \"vgg\""), "{wrong}");
        for bad in ["", "{}", "[]", r#"{"task":"a","work_s":-1}"#, r#"{"task":"a","work_s":1e999}"#]
        {
            assert!(Checkpoint::parse(bad, "a").is_err(), "{bad}");
        }
    }
}
