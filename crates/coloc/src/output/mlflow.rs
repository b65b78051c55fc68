//! Runs of MLflow, in the files that its `mlruns` folder is made of.

use crate::error::{CliError, UsageError};
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Some versions of MLflow refuse longer values of parameters and tags.
const LONGEST_VALUE: usize = 500;
/// Experiments of a folder that are looked through for one of the name that is wanted.
const MOST_EXPERIMENTS: usize = 10_000;

/// How MLflow numbers the states of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Status {
    Running = 1,
    Scheduled = 2,
    Finished = 3,
    Failed = 4,
    Killed = 5,
}

/// A value of a metric.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Point {
    /// Milliseconds since 1970.
    pub(crate) at_ms: u64,
    pub(crate) value: f64,
    pub(crate) step: u64,
}

/// A run and all that is logged of it.
#[derive(Debug)]
pub(crate) struct Run {
    /// What it is known by: the same makes the same run, which is written anew.
    pub(crate) identity: String,
    pub(crate) name: String,
    pub(crate) user: String,
    pub(crate) status: Status,
    pub(crate) start_ms: u64,
    pub(crate) end_ms: Option<u64>,
    pub(crate) params: Vec<(&'static str, String)>,
    pub(crate) tags: Vec<(&'static str, String)>,
    /// By name; a slash in it makes a folder, as MLflow has it.
    pub(crate) metrics: Vec<(String, Vec<Point>)>,
}

/// A folder that `mlflow ui --backend-store-uri` takes, and an experiment in it.
#[derive(Debug)]
pub(crate) struct Store {
    root: PathBuf,
    /// The experiment.
    id: String,
    name: String,
}

impl Store {
    /// Looks at a folder and changes nothing: it is new, empty, or has experiments of MLflow already.
    pub(crate) fn look(root: &Path, experiment: &str) -> Result<Self, CliError> {
        let store = |id| Store { root: root.to_owned(), id, name: experiment.to_owned() };
        let entries = match fs::read_dir(root) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(store(new_id(experiment)));
            }
            Err(error) => return Err(UsageError::file(root, error).into()),
        };
        let (mut is_empty, mut is_store) = (true, false);
        for entry in entries.take(MOST_EXPERIMENTS) {
            let entry = entry.map_err(|error| UsageError::file(root, error))?;
            is_empty = false;
            let Ok(meta) = fs::read_to_string(entry.path().join("meta.yaml")) else { continue };
            is_store = true;
            let names = [format!("name: {experiment}"), format!("name: {}", quoted(experiment))];
            if meta.lines().any(|line| names.iter().any(|name| name == line)) {
                return Ok(store(entry.file_name().to_string_lossy().into_owned()));
            }
        }
        if is_empty || is_store {
            return Ok(store(new_id(experiment)));
        }
        let problem =
            "it has files and no experiment of MLflow; name a new folder, or one that MLflow made";
        Err(UsageError::file(root, problem).into())
    }

    /// Writes a run, in the place of what was written of it before; says where it is.
    pub(crate) fn write(&self, run: &Run) -> Result<PathBuf, CliError> {
        self.try_write(run).map_err(|source| CliError::Write { file: self.root.clone(), source })
    }

    fn try_write(&self, run: &Run) -> io::Result<PathBuf> {
        fs::create_dir_all(&self.root)?;
        // MLflow is told where its files are by their whole path.
        let experiment = fs::canonicalize(&self.root)?.join(&self.id);
        fs::create_dir_all(&experiment)?;
        let meta = experiment.join("meta.yaml");
        if !meta.exists() {
            fs::write(&meta, self.meta(&experiment, run.start_ms))?;
        }
        let run_id = digest(&run.identity);
        let (place, part) = (experiment.join(&run_id), experiment.join(format!(".{run_id}.part")));
        remove(&part)?;
        // MLflow never finds half of a run.
        let written = fill(&part, &place, &self.id, &run_id, run)
            .and_then(|()| remove(&place))
            .and_then(|()| fs::rename(&part, &place));
        if written.is_err() {
            // The error that matters is the first one.
            let _ = remove(&part);
        }
        written.map(|()| place)
    }

    fn meta(&self, folder: &Path, at_ms: u64) -> String {
        format!(
            "artifact_location: {}\ncreation_time: {at_ms}\nexperiment_id: {}\nlast_update_time: {at_ms}\nlifecycle_stage: active\nname: {}\n",
            quoted(&format!("file://{}", folder.display())),
            quoted(&self.id),
            quoted(&self.name)
        )
    }
}

fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Writes a run into a folder that will be at another place.
fn fill(folder: &Path, place: &Path, experiment: &str, id: &str, run: &Run) -> io::Result<()> {
    for part in ["artifacts", "metrics", "params", "tags"] {
        fs::create_dir_all(folder.join(part))?;
    }
    fs::write(folder.join("meta.yaml"), run_meta(place, experiment, id, run))?;
    for (part, all) in [("params", &run.params), ("tags", &run.tags)] {
        for (name, value) in all {
            let value: String = value.chars().take(LONGEST_VALUE).collect();
            fs::write(folder.join(part).join(name), value)?;
        }
    }
    for (name, points) in &run.metrics {
        let file = folder.join("metrics").join(name);
        fs::create_dir_all(file.parent().unwrap_or(folder))?;
        let mut text = String::new();
        for Point { at_ms, value, step } in points {
            let _ = writeln!(text, "{at_ms} {value} {step}");
        }
        fs::write(file, text)?;
    }
    Ok(())
}

fn run_meta(place: &Path, experiment: &str, id: &str, run: &Run) -> String {
    let end = run.end_ms.map_or("null".to_owned(), |end| end.to_string());
    format!(
        "artifact_uri: {}\nend_time: {end}\nentry_point_name: ''\nexperiment_id: {}\nlifecycle_stage: active\nrun_id: {}\nrun_name: {}\nrun_uuid: {}\nsource_name: ''\nsource_type: 4\nsource_version: ''\nstart_time: {}\nstatus: {}\ntags: []\nuser_id: {}\n",
        quoted(&format!("file://{}/artifacts", place.display())),
        quoted(experiment),
        quoted(id),
        quoted(&run.name),
        quoted(id),
        run.start_ms,
        run.status as u8,
        quoted(&run.user)
    )
}

/// A text that YAML takes for nothing else.
fn quoted(text: &str) -> String {
    let shown = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    format!("'{}'", shown.collect::<String>().replace('\'', "''"))
}

/// The id of an experiment that is not there yet: 18 digits, as MLflow gives them.
fn new_id(experiment: &str) -> String {
    let number = fnv(experiment, 0xcbf2_9ce4_8422_2325) % 900_000_000_000_000_000;
    (number + 100_000_000_000_000_000).to_string()
}

/// 32 hexadecimal digits that are always the same for the same text.
fn digest(text: &str) -> String {
    let (first, second) = (fnv(text, 0xcbf2_9ce4_8422_2325), fnv(text, 0x9e37_79b9_7f4a_7c15));
    format!("{first:016x}{second:016x}")
}

fn fnv(text: &str, seed: u64) -> u64 {
    text.bytes().fold(seed, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> Run {
        let point = |at_ms, value, step| Point { at_ms, value, step };
        Run {
            identity: "7 1 ann".to_owned(),
            name: "night's run\n: x".to_owned(),
            user: "ann".to_owned(),
            status: Status::Failed,
            start_ms: 1_000,
            end_ms: Some(3_000),
            params: vec![("command", "x".repeat(9_000))],
            tags: vec![("mlflow.user", "ann".to_owned())],
            metrics: vec![(
                "system/DCGMI - SM Active".to_owned(),
                vec![point(1_000, 0.5, 0), point(2_000, 0.25, 1)],
            )],
        }
    }

    #[test]
    fn a_run_is_written_as_mlflow_reads_it_and_once() {
        let root = tempfile::tempdir().unwrap();
        let write = || Store::look(root.path(), "coloc").unwrap().write(&run()).unwrap();
        let place = write();
        fs::write(place.join("metrics/old"), "1 1 1\n").unwrap();
        assert_eq!(write(), place, "the same run");
        assert!(!place.join("metrics/old").exists(), "written anew");
        let read = |name: &str| fs::read_to_string(place.join(name)).unwrap();
        assert_eq!(read("metrics/system/DCGMI - SM Active"), "1000 0.5 0\n2000 0.25 1\n");
        assert_eq!(read("params/command").len(), LONGEST_VALUE);
        let meta = read("meta.yaml");
        assert!(
            meta.contains("run_name: 'night''s run : x'\n") && meta.contains("status: 4\n"),
            "{meta}"
        );
        let id = place.file_name().unwrap().to_str().unwrap();
        assert!(id.len() == 32 && meta.contains(&format!("run_id: '{id}'")));
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1, "one experiment");
        assert_eq!(
            fs::read_dir(place.parent().unwrap()).unwrap().count(),
            2,
            "meta.yaml and a run"
        );
    }

    #[test]
    fn an_experiment_that_is_there_is_found_by_name_and_other_folders_are_refused() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("12")).unwrap();
        fs::write(root.path().join("12/meta.yaml"), "experiment_id: '12'\nname: mine\n").unwrap();
        assert_eq!(Store::look(root.path(), "mine").unwrap().id, "12");
        assert_eq!(Store::look(root.path(), "other").unwrap().id.len(), 18);
        let papers = tempfile::tempdir().unwrap();
        fs::write(papers.path().join("thesis.tex"), "").unwrap();
        let refused = Store::look(papers.path(), "mine").unwrap_err().to_string();
        assert!(refused.contains("no experiment of MLflow"), "{refused}");
        assert!(Store::look(&papers.path().join("thesis.tex"), "mine").is_err(), "no folder");
    }
}
