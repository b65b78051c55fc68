//! What coloc made of partitioned GPUs, written down before it is made: after a crash nothing of ours is taken for
//! another program's, and nothing of another's for ours.

use coloc_gpu::device::Uuid;
use coloc_gpu::mig::Place;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// What was made on one GPU.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub(super) struct Note {
    /// MIG mode was off before.
    pub(super) turned_on: bool,
    /// Where instances of ours lie, or were about to.
    pub(super) places: BTreeSet<Place>,
}

/// The notes of all GPUs, and their file.
#[derive(Debug)]
pub(super) struct Notes {
    file: PathBuf,
    gpus: BTreeMap<String, Note>,
}

impl Notes {
    /// The notes of an earlier daemon, if there was one. What cannot be read says nothing.
    pub(super) fn load(state: &Path) -> Self {
        let file = state.join("mig.json");
        let text = fs::read(&file).unwrap_or_default();
        Notes { gpus: serde_json::from_slice(&text).unwrap_or_default(), file }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.gpus.is_empty()
    }

    pub(super) fn of(&self, gpu: &Uuid) -> Option<&Note> {
        self.gpus.get(gpu.as_str())
    }

    /// Every GPU with what was made there.
    pub(super) fn all(&self) -> Vec<(Uuid, Note)> {
        self.gpus.iter().map(|(gpu, note)| (Uuid::new(gpu), note.clone())).collect()
    }

    /// Changes the note of a GPU and has it on the disk.
    pub(super) fn change(&mut self, gpu: &Uuid, change: impl FnOnce(&mut Note)) -> io::Result<()> {
        let before = self.gpus.clone();
        let note = self.gpus.entry(gpu.as_str().to_owned()).or_default();
        change(note);
        if *note == Note::default() {
            self.gpus.remove(gpu.as_str());
        }
        if self.gpus == before {
            return Ok(());
        }
        let saved = self.save();
        if saved.is_err() {
            self.gpus = before;
        }
        saved
    }

    pub(super) fn file(&self) -> &Path {
        &self.file
    }

    fn save(&self) -> io::Result<()> {
        let beside = self.file.with_extension("json.new");
        let mut file = File::create(&beside)?;
        file.write_all(&serde_json::to_vec(&self.gpus)?)?;
        file.sync_all()?;
        fs::rename(&beside, &self.file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_survive_and_garbage_says_nothing() {
        let state = tempfile::tempdir().expect("a folder");
        let (gpu, place) = (Uuid::new("GPU-1"), Place { start: 4, span: 4 });
        let mut notes = Notes::load(state.path());
        notes.change(&gpu, |note| note.turned_on = true).expect("room");
        notes.change(&gpu, |note| note.places.extend([place])).expect("room");
        let again = Notes::load(state.path());
        let expected = Note { turned_on: true, places: BTreeSet::from([place]) };
        assert_eq!(again.of(&gpu), Some(&expected));
        notes.change(&gpu, |note| *note = Note::default()).expect("room");
        assert!(notes.is_empty() && Notes::load(state.path()).is_empty());
        fs::write(state.path().join("mig.json"), "[{]").expect("room");
        assert!(Notes::load(state.path()).is_empty());
    }
}
