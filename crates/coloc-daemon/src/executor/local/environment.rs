//! What a task finds in its environment.

use super::LocalExecutor;
use super::kill::{ATTEMPT, attempt_name};
use super::login_shell::{Folders, with_path};
use super::slurm_names::Told;
use crate::record::Record;
use coloc_api::script::interpreter;
use coloc_api::slurm::is_for_slurm;
use coloc_api::spec::TaskSpec;
use coloc_api::text::RawText;
use coloc_gpu::device::Uuid;
use coloc_gpu::streams::visible_devices;
use coloc_model::Placement;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

impl LocalExecutor {
    /// The submitter's variables, then ours.
    pub(super) fn environment(
        &self,
        record: &Record,
        spec: &TaskSpec,
        devices: &[Uuid],
        limits: Vec<(&'static str, String)>,
    ) -> Vec<(RawText, RawText)> {
        let mut all = without_an_outer_task(&spec.environment);
        let meeting_place = meeting_place(record, &all);
        let threads = threads(spec, &all);
        for (name, ahead) in &self.prefixes {
            let (name, mut value) = (RawText::from(*name), ahead.clone());
            let theirs = all.iter().find(|(known, _)| *known == name).map(|(_, value)| value);
            // A shell that finds a search path does not add the usual one.
            let usual: &[u8] = if name.as_bytes() == b"PATH" { USUAL_PATH.as_bytes() } else { b"" };
            let rest = theirs.map_or(usual, RawText::as_bytes);
            if rest.starts_with(ahead.as_bytes()) {
                continue;
            }
            if !rest.is_empty() {
                value.push(":");
                value.push(OsStr::from_bytes(rest));
            }
            set(&mut all, name, value.into());
        }
        for (name, value) in &self.variables {
            set(&mut all, name.as_str().into(), value.clone().into());
        }
        for (name, value) in visible_devices(devices) {
            set(&mut all, name.into(), value.into());
        }
        // What containers are shown.
        let shown = devices.iter().map(Uuid::as_str).collect::<Vec<_>>().join(",");
        set(&mut all, "NVIDIA_VISIBLE_DEVICES".into(), shown.into());
        let names = self.names(record, spec, devices.len());
        for (name, value) in names.into_iter().chain(meeting_place).chain(threads) {
            set(&mut all, name.into(), value.into());
        }
        for (name, value) in limits {
            set(&mut all, name.into(), value.into());
        }
        self.add_commands(spec, &mut all);
        all
    }

    /// What a task may want to know of itself, with Slurm's names beside ours.
    fn names(&self, record: &Record, spec: &TaskSpec, gpus: usize) -> Vec<(&'static str, String)> {
        let indices = record.placement.iter().flat_map(Placement::gpus);
        let indices = indices.map(|gpu| gpu.to_string()).collect::<Vec<_>>().join(",");
        let mut names = vec![
            ("COLOC_TASK_ID", record.id.to_string()),
            (ATTEMPT, attempt_name(record.id, record.attempt)),
            ("COLOC_TASK_NAME", spec.name.clone()),
            ("COLOC_RESTART_COUNT", record.attempt.saturating_sub(1).to_string()),
            ("COLOC_SOCKET", self.socket.display().to_string()),
            ("COLOC_GPUS", indices.clone()),
        ];
        if let (Some(_), Some(file)) = (&spec.script, spec.command.first()) {
            names.push(("COLOC_SCRIPT", file.to_string_lossy().into_owned()));
        }
        let machine = || std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32);
        let cpus = spec.layout.cpus().unwrap_or_else(machine);
        let world = |span| self.world(span);
        let told = Told { record, spec, indices: &indices, gpus, cpus, world: &world };
        names.extend(told.names());
        names
    }

    /// What an attempt starts.
    pub(super) fn command(&self, record: &Record, spec: &TaskSpec) -> Vec<RawText> {
        let command = spec.runs(&self.run_dir(record).script());
        let Some(script) = &spec.script else { return command };
        let first_line = interpreter(script.as_bytes()).map_or(0, |words| words.len());
        let ahead = self.prefixes.iter().find(|(name, _)| *name == "PATH");
        let folders = Folders {
            ahead: ahead.map(|(_, folder)| folder.as_os_str()),
            behind: self.commands_for(spec).map(Path::as_os_str),
        };
        with_path(command, first_line, folders)
    }

    /// Where a task finds Slurm's commands, if it is of Slurm's kind.
    fn commands_for(&self, spec: &TaskSpec) -> Option<&Path> {
        self.commands.as_deref().filter(|_| is_for_slurm(spec))
    }

    /// Appends the directory of Slurm's commands to the search path of tasks of Slurm's kind: what the machine has by
    /// these names comes first.
    fn add_commands(&self, spec: &TaskSpec, all: &mut Vec<(RawText, RawText)>) {
        let Some(place) = self.commands_for(spec) else { return };
        let path = all.iter().find(|(name, _)| name.as_bytes() == b"PATH");
        let path = path.map_or(USUAL_PATH.as_bytes(), |(_, path)| path.as_bytes());
        let ours = place.as_os_str().as_bytes();
        if path.split(|&byte| byte == b':').any(|folder| folder == ours) {
            return;
        }
        let path = [path, b":", ours].concat();
        set(all, "PATH".into(), RawText::from(path));
    }
}

/// Where programs are looked for when a submission says nothing of it.
const USUAL_PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// Threads that numerical libraries start.
const THREADS: &str = "OMP_NUM_THREADS";

/// As many threads as a copy has CPUs, unless the submitter said otherwise.
fn threads(spec: &TaskSpec, theirs: &[(RawText, RawText)]) -> Option<(&'static str, String)> {
    let cpus = spec.layout.cpus_per_task?;
    let said = theirs.iter().any(|(name, _)| name.as_bytes() == THREADS.as_bytes());
    (!said).then(|| (THREADS, cpus.to_string()))
}

/// The environment of a submission. One that was made inside a task must not take that task's name and limits over.
fn without_an_outer_task(environment: &[(RawText, RawText)]) -> Vec<(RawText, RawText)> {
    const THEIRS: [&[u8]; 5] = [b"COLOC_", b"SLURM_", b"SLURMD_", b"CUDA_MPS_", b"MASTER_"];
    let nested = environment.iter().any(|(name, _)| name.as_bytes() == b"COLOC_TASK_ID");
    let value = |wanted: &str| {
        let found = environment.iter().find(|(name, _)| name.as_bytes() == wanted.as_bytes());
        found.map(|(_, value)| value)
    };
    // Threads by the outer task's CPUs are not what its user chose.
    let by_cpus = value("SLURM_CPUS_PER_TASK").is_some_and(|cpus| value(THREADS) == Some(cpus));
    let is_kept = |(name, _): &&(RawText, RawText)| {
        let theirs = THEIRS.iter().any(|prefix| name.as_bytes().starts_with(prefix));
        !nested || !(theirs || by_cpus && name.as_bytes() == THREADS.as_bytes())
    };
    environment.iter().filter(is_kept).cloned().collect()
}

/// Where the workers of a task that starts several meet, unless its submitter said so. Tasks beside each other have
/// different ports, below those that the kernel gives away.
fn meeting_place(record: &Record, theirs: &[(RawText, RawText)]) -> Vec<(&'static str, String)> {
    let port = 12_000 + record.id.0 % 20_000;
    let ours = [("MASTER_ADDR", "127.0.0.1".to_owned()), ("MASTER_PORT", port.to_string())];
    let said = |name: &str| theirs.iter().any(|(known, _)| known.as_bytes() == name.as_bytes());
    ours.into_iter().filter(|(name, _)| !said(name)).collect()
}

fn set(all: &mut Vec<(RawText, RawText)>, name: RawText, value: RawText) {
    match all.iter_mut().find(|(known, _)| *known == name) {
        Some((_, known)) => *known = value,
        None => all.push((name, value)),
    }
}
