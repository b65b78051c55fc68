//! What a task finds in its environment.

use super::LocalExecutor;
use super::kill::{ATTEMPT, attempt_name};
use crate::record::Record;
use coloc_api::spec::TaskSpec;
use coloc_api::text::RawText;
use coloc_gpu::device::Uuid;
use coloc_gpu::streams::visible_devices;
use coloc_model::Placement;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

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
        for (name, ahead) in &self.prefixes {
            let (name, mut value) = (RawText::from(*name), ahead.clone());
            let theirs = all.iter().find(|(known, _)| *known == name).map(|(_, value)| value);
            let rest = theirs.map_or(&b""[..], RawText::as_bytes);
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
        for (name, value) in names.into_iter().chain(meeting_place) {
            set(&mut all, name.into(), value.into());
        }
        for (name, value) in limits {
            set(&mut all, name.into(), value.into());
        }
        all
    }

    /// What a task may want to know of itself, with Slurm's names beside ours so that launchers of
    /// distributed training find what they look for.
    fn names(&self, record: &Record, spec: &TaskSpec, gpus: usize) -> Vec<(&'static str, String)> {
        let id = record.id.to_string();
        let restarts = record.attempt.saturating_sub(1).to_string();
        let directory = spec.directory.to_string_lossy().into_owned();
        let indices = record.placement.iter().flat_map(Placement::gpus);
        let indices = indices.map(|gpu| gpu.to_string()).collect::<Vec<_>>().join(",");
        let mut names = vec![
            ("COLOC_TASK_ID", id.clone()),
            (ATTEMPT, attempt_name(record.id, record.attempt)),
            ("COLOC_TASK_NAME", spec.name.clone()),
            ("COLOC_RESTART_COUNT", restarts.clone()),
            ("COLOC_SOCKET", self.socket.display().to_string()),
            ("COLOC_GPUS", indices.clone()),
            ("SLURM_JOB_ID", id.clone()),
            ("SLURM_JOBID", id),
            ("SLURM_JOB_NAME", spec.name.clone()),
            ("SLURM_SUBMIT_DIR", directory),
            ("SLURM_RESTART_COUNT", restarts),
            ("SLURM_GPUS_ON_NODE", gpus.to_string()),
            ("SLURM_JOB_GPUS", indices),
            ("SLURM_NTASKS", "1".to_owned()),
            ("SLURM_PROCID", "0".to_owned()),
            ("SLURM_LOCALID", "0".to_owned()),
            ("SLURM_NODEID", "0".to_owned()),
        ];
        if let (Some(_), Some(file)) = (&spec.script, spec.command.first()) {
            names.push(("COLOC_SCRIPT", file.to_string_lossy().into_owned()));
        }
        if let Some(place) = record.array {
            names.push(("COLOC_ARRAY_ID", place.array.to_string()));
            names.push(("COLOC_ARRAY_INDEX", place.index.to_string()));
            names.push(("SLURM_ARRAY_JOB_ID", place.array.to_string()));
            names.push(("SLURM_ARRAY_TASK_ID", place.index.to_string()));
        }
        names
    }
}

/// The environment of a submission. One that was made inside a task must not take that task's name and limits over.
fn without_an_outer_task(environment: &[(RawText, RawText)]) -> Vec<(RawText, RawText)> {
    const THEIRS: [&[u8]; 4] = [b"COLOC_", b"SLURM_", b"CUDA_MPS_", b"MASTER_"];
    let nested = environment.iter().any(|(name, _)| name.as_bytes() == b"COLOC_TASK_ID");
    let is_kept = |(name, _): &&(RawText, RawText)| {
        !nested || !THEIRS.iter().any(|prefix| name.as_bytes().starts_with(prefix))
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
