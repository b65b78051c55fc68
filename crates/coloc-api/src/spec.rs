//! What a user submitted: a command and what it asks for.

mod layout;
mod terminal;
mod update;

use crate::estimated::{EstimateFlag, EstimateShape, Replayed};
use crate::notify::Notify;
use crate::resource_limits::ResourceLimit;
use crate::script::interpreter;
use crate::text::RawText;
use crate::variables::Variables;
use coloc_model::{Bytes, Estimate, Framework, Millis, TaskId};
pub use layout::{ArrayExtent, TaskLayout};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::hash::{Hash as _, Hasher as _};
use std::path::Path;
use std::sync::Arc;
pub use terminal::TerminalSize;
pub use update::TaskUpdate;

/// The most pools that a submission names.
pub const MOST_POOL_NAMES: usize = 16;

/// A submission. Tasks of one array share it.
#[derive(Clone, PartialEq, Debug, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskSpec {
    /// For people.
    pub name: String,
    /// The program and its arguments.
    pub command: Vec<RawText>,
    /// A script that is kept with the task and run in place of the command's first word, by what its first line says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<RawText>,
    /// Where it runs.
    pub directory: RawText,
    /// Its environment, before what coloc adds.
    #[serde(default)]
    pub environment: Variables,
    /// GPUs at once.
    pub gpus: u32,
    /// Kinds of GPU that it may run on, such as a100; without any, all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpu_kinds: Vec<String>,
    /// Pools of GPUs that it may run in; without any, the daemon's default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MOST_POOL_NAMES))]
    pub pools: Vec<String>,
    /// Where there are no pools, those that it names do not matter: Slurm's scripts name partitions everywhere.
    #[serde(default, skip_serializing_if = "is_off")]
    pub pools_if_any: bool,
    /// What the user says it needs on each GPU.
    #[serde(default)]
    #[schemars(with = "Option<u64>")]
    pub gpu_memory: Option<Bytes>,
    /// What it declared and does not use may be lent to tasks that borrow, until it wants it.
    #[serde(default, skip_serializing_if = "is_off")]
    pub reclaim: bool,
    /// It may run in memory that another task lends, and be requeued when that task wants it back.
    #[serde(default, skip_serializing_if = "is_off")]
    pub borrow: bool,
    /// It saves its work this often, or whenever it is told to stop (zero), and goes on from there when it is run again: it
    /// may be preempted for shorter tasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u64>")]
    pub checkpoint: Option<Millis>,
    /// It is taken although no GPU has the memory that was declared or is expected.
    #[serde(default, skip_serializing_if = "is_off")]
    pub force: bool,
    /// Host memory that it may use, where control groups can hold it to that.
    #[serde(default)]
    #[schemars(with = "Option<u64>")]
    pub host_memory: Option<Bytes>,
    /// What an estimator says of it.
    #[serde(default)]
    #[schemars(with = "Option<EstimateShape>")]
    pub estimate: Option<Estimate>,
    /// Which estimator said so.
    #[serde(default)]
    pub estimator: Option<String>,
    /// Why that is less certain.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub estimate_flags: Vec<EstimateFlag>,
    /// What a replay of its layers says, whichever estimator answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replayed: Option<Replayed>,
    /// It wants its GPUs to itself.
    #[serde(default)]
    pub exclusive: bool,
    /// It is stopped after this long. 0 is never; without it, the default of the daemon counts.
    #[serde(default)]
    #[schemars(with = "Option<u64>")]
    pub time_limit: Option<Millis>,
    /// Tasks it waits for.
    #[serde(default)]
    pub after: Vec<Dependency>,
    /// One of them is enough.
    #[serde(default, skip_serializing_if = "is_off")]
    pub after_any: bool,
    /// It waits until whatever its user submitted before under its name has ended.
    #[serde(default, skip_serializing_if = "is_off")]
    pub singleton: bool,
    /// It is not started before this moment, in milliseconds since 1970.
    #[serde(default)]
    pub begin_ms: Option<u64>,
    /// Higher goes first.
    #[serde(default)]
    pub priority: i32,
    /// How often it is run again after a failure of its own.
    #[serde(default)]
    pub retries: u32,
    /// What to do after it ran out of GPU memory.
    #[serde(default)]
    pub on_oom: OnOom,
    /// A signal before the time limit or a preemption, to save a checkpoint.
    #[serde(default)]
    pub warning: Option<Warning>,
    /// Where its output goes, instead of coloc's own log.
    #[serde(default)]
    pub output: Option<RawText>,
    /// Where its errors go, instead of beside the output.
    #[serde(default)]
    pub errors: Option<RawText>,
    /// It is stopped when its GPUs were idle this long.
    #[serde(default)]
    #[schemars(with = "Option<u64>")]
    pub idle_timeout: Option<Millis>,
    /// The most of a GPU's SMs that it may use under MPS, in percent, from 1 to 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub sm_percent: Option<u8>,
    /// What it trains with, so that the framework's own allocator can be told its limit: pytorch, jax or tensorflow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub framework: Option<Framework>,
    /// The files for its output and errors are begun anew by its first attempt.
    #[serde(default)]
    pub truncate: bool,
    /// The mask of its new files, as its submitter's shell has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 511))]
    pub umask: Option<u32>,
    /// What is told of it, and how.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub notify: Vec<Notify>,
    /// It runs on a terminal of its own, which has this size until a client says otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminal: Option<TerminalSize>,
    /// A client sends what it reads from standard input. Without one, that is empty after a minute.
    #[serde(default, skip_serializing_if = "is_off")]
    pub input: bool,
    /// What its submitter's shell is held to. It is held to no less, and never to more than the daemon is.
    #[serde(default, skip_serializing_if = "is_empty")]
    #[schemars(with = "Vec<ResourceLimit>", length(max = 16))]
    pub limits: Arc<[ResourceLimit]>,
    /// Copies and CPUs.
    #[serde(default, skip_serializing_if = "TaskLayout::is_plain")]
    pub layout: TaskLayout,
}

fn is_empty(limits: &Arc<[ResourceLimit]>) -> bool {
    limits.is_empty()
}

fn is_off(flag: &bool) -> bool {
    !flag
}

/// A task that must end first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, JsonSchema, Serialize, Deserialize)]
pub struct Dependency {
    /// That task.
    #[schemars(with = "u32")]
    pub task: TaskId,
    /// How it must end.
    pub when: DependencyKind,
    /// How long to wait on, for `after` alone, in milliseconds.
    #[serde(default, skip_serializing_if = "is_nothing")]
    #[schemars(with = "u64")]
    pub delay: Millis,
}

impl Dependency {
    /// One without a delay.
    pub fn new(task: TaskId, when: DependencyKind) -> Self {
        Dependency { task, when, delay: Millis::ZERO }
    }
}

fn is_nothing(span: &Millis) -> bool {
    *span == Millis::ZERO
}

/// How a task that is waited for must end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DependencyKind {
    /// Well.
    AfterOk,
    /// Not well.
    AfterNotOk,
    /// Somehow.
    AfterAny,
    /// It need not end: that it was started is enough.
    After,
    /// Well, of an array the task with the same number alone.
    AfterCorr,
}

/// What happens to a task that ran out of GPU memory.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnOom {
    /// As the daemon's policy says.
    #[default]
    Policy,
    /// It comes back where there is more room.
    Grow,
    /// It comes back alone on its GPUs.
    Exclusive,
    /// It has failed.
    Fail,
}

/// A signal that comes before the end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, JsonSchema, Serialize, Deserialize)]
pub struct Warning {
    /// Its number.
    pub signal: i32,
    /// How long before.
    #[schemars(with = "u64")]
    pub before: Millis,
}

/// Arguments whose value changes from run to run and says nothing of what a task needs.
const INCIDENTAL: [&str; 14] = [
    "seed",
    "lr",
    "learning-rate",
    "output",
    "out",
    "output-dir",
    "log",
    "logdir",
    "save",
    "checkpoint",
    "resume",
    "run-name",
    "run-id",
    "name",
];

/// Stands before the mark of a script that is not kept any more.
const MARK: &str = "#!script ";

/// What a script is known by. What is said to schedulers and people makes no difference.
fn script_mark(script: &RawText) -> String {
    if let Some(mark) = script.as_bytes().strip_prefix(MARK.as_bytes()) {
        return String::from_utf8_lossy(mark).into_owned();
    }
    let lines = script.as_bytes().split(|&byte| byte == b'\n');
    let mut hasher = rustc_hash::FxHasher::default();
    lines.filter(|line| !line.starts_with(b"#")).for_each(|line| line.hash(&mut hasher));
    format!("{:x}", hasher.finish())
}

impl TaskSpec {
    /// A command on one GPU that asks for nothing else.
    pub fn new(name: String, command: Vec<RawText>, directory: RawText) -> Self {
        TaskSpec {
            name,
            command,
            script: None,
            directory,
            environment: Variables::default(),
            gpus: 1,
            gpu_kinds: Vec::new(),
            pools: Vec::new(),
            pools_if_any: false,
            gpu_memory: None,
            reclaim: false,
            borrow: false,
            checkpoint: None,
            force: false,
            host_memory: None,
            estimate: None,
            estimator: None,
            estimate_flags: Vec::new(),
            replayed: None,
            exclusive: false,
            time_limit: None,
            after: Vec::new(),
            after_any: false,
            singleton: false,
            begin_ms: None,
            priority: 0,
            retries: 0,
            on_oom: OnOom::Policy,
            warning: None,
            output: None,
            errors: None,
            idle_timeout: None,
            sm_percent: None,
            framework: None,
            truncate: false,
            umask: None,
            notify: Vec::new(),
            terminal: None,
            input: false,
            limits: Arc::default(),
            layout: TaskLayout::default(),
        }
    }

    /// What is started, with the script's copy at that place.
    pub fn runs(&self, copy: &Path) -> Vec<RawText> {
        let Some(script) = &self.script else { return self.command.clone() };
        let copy = RawText::from(copy.as_os_str().to_owned());
        let words = interpreter(script.as_bytes()).unwrap_or_default().into_iter();
        words.chain([copy]).chain(self.command.iter().skip(1).cloned()).collect()
    }

    /// What tasks with one command and directory have in common: they are expected to behave alike. Seeds, learning
    /// rates and names of files make no difference.
    pub fn signature(&self) -> String {
        let mut signature = self.directory.to_string_lossy().into_owned();
        let mut skip = false;
        for word in &self.command {
            let word = word.to_string_lossy();
            let is_value = std::mem::take(&mut skip) && !word.starts_with("--");
            let (flag, value) = word.split_once('=').map_or((&*word, None), |(f, v)| (f, Some(v)));
            let flag = flag.trim_start_matches('-').replace('_', "-");
            let incidental = word.starts_with("--") && INCIDENTAL.contains(&flag.as_str());
            skip = incidental && value.is_none();
            if !is_value && !incidental {
                signature.push('\u{1f}');
                signature.push_str(&word);
            }
        }
        if let Some(script) = &self.script {
            signature.push_str(&format!("\u{1f}{}", script_mark(script)));
        }
        signature
    }

    /// What is kept of a submission once its tasks have ended: not what they were started with. It has the same signature.
    pub fn trimmed(&self) -> TaskSpec {
        let mark = |script| format!("{MARK}{}", script_mark(script)).into();
        TaskSpec {
            environment: Variables::default(),
            script: self.script.as_ref().map(mark),
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(command: &[&str]) -> TaskSpec {
        let command = command.iter().map(|&word| word.into()).collect();
        TaskSpec::new("test".to_owned(), command, "/".into())
    }

    #[test]
    fn seeds_do_not_make_another_task_but_models_do() {
        let signature = |words: &[&str]| spec(words).signature();
        assert_eq!(signature(&["train", "--seed=1"]), signature(&["train", "--seed=22"]));
        assert_eq!(
            signature(&["train", "--run_name", "a", "resnet50"]),
            signature(&["train", "--run_name", "b", "resnet50"])
        );
        assert_ne!(signature(&["train", "--batch=1"]), signature(&["train", "--batch=2"]));
        assert_ne!(signature(&["train", "resnet50"]), signature(&["train", "resnet152"]));
    }

    #[test]
    fn a_script_is_run_from_its_copy_and_known_by_what_it_does() {
        let with =
            |script: &str| TaskSpec { script: Some(script.into()), ..spec(&["job.sh", "x"]) };
        let runs = with("#!/bin/sh -e\ntrue\n").runs(Path::new("/runs/script"));
        assert_eq!(runs, ["/bin/sh", "-e", "/runs/script", "x"].map(RawText::from));
        assert_eq!(spec(&["a", "b"]).runs(Path::new("/c")), ["a", "b"].map(RawText::from));
        let signature = |script: &str| with(script).signature();
        assert_eq!(signature("#!/bin/sh\n#SBATCH -t 5\ntrue"), signature("#!/bin/sh\ntrue"));
        assert_ne!(signature("#!/bin/sh\nfalse"), signature("#!/bin/sh\ntrue"));
        let kept = TaskSpec {
            environment: vec![("A".into(), "B".into())].into(),
            ..with("#!/bin/sh\ntrue")
        };
        let trimmed = kept.trimmed();
        assert!(trimmed.environment.is_empty());
        assert_eq!(trimmed.signature(), kept.signature());
        assert_eq!(trimmed.trimmed(), trimmed);
    }
}
