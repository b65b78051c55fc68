//! What a task is told by Slurm's names, so that launchers of distributed training, and scripts, find what they look for.
//!
//! `SLURM_PROCID` and its like mean "one of the copies that srun started": a framework that finds them starts no
//! processes of its own. So only srun sets them.

use crate::record::Record;
use coloc_api::moment::Moment;
use coloc_api::slurm::{NTASKS, speaks_of};
use coloc_api::spec::TaskSpec;
use coloc_model::Millis;
use rustix::system::uname;
use std::path::{Path, PathBuf};

/// What partition and cluster are called, of which there is one.
const PARTITION: &str = "coloc";

/// The machine's name.
pub(super) fn host_name() -> String {
    uname().nodename().to_string_lossy().into_owned()
}

/// Variables of one task.
pub(super) struct Told<'a> {
    pub(super) record: &'a Record,
    pub(super) spec: &'a TaskSpec,
    /// Its GPUs by their numbers, separated by commas.
    pub(super) indices: &'a str,
    pub(super) gpus: usize,
    /// CPUs that it may use.
    pub(super) cpus: u32,
    /// How long a span of the tasks' time takes in the world.
    pub(super) world: &'a dyn Fn(Millis) -> std::time::Duration,
}

impl Told<'_> {
    pub(super) fn names(&self) -> Vec<(&'static str, String)> {
        let Told { record, spec, .. } = self;
        let id = record.id.to_string();
        let directory = spec.layout.submit_directory.as_ref().unwrap_or(&spec.directory);
        let host = host_name();
        let mut names = vec![
            ("SLURM_JOB_ID", id.clone()),
            ("SLURM_JOBID", id),
            ("SLURM_JOB_NAME", spec.name.clone()),
            ("SLURM_SUBMIT_DIR", directory.to_string_lossy().into_owned()),
            ("SLURM_SUBMIT_HOST", host.clone()),
            ("SLURM_RESTART_COUNT", record.attempt.saturating_sub(1).to_string()),
            ("SLURM_GPUS_ON_NODE", self.gpus.to_string()),
            ("SLURM_JOB_GPUS", self.indices.to_owned()),
            ("SLURM_JOB_NODELIST", host.clone()),
            ("SLURM_NODELIST", host.clone()),
            ("SLURMD_NODENAME", host.clone()),
            ("SLURM_TOPOLOGY_ADDR", host),
            ("SLURM_TOPOLOGY_ADDR_PATTERN", "node".to_owned()),
            ("SLURM_NNODES", "1".to_owned()),
            ("SLURM_JOB_NUM_NODES", "1".to_owned()),
            ("SLURM_JOB_PARTITION", PARTITION.to_owned()),
            ("SLURM_CLUSTER_NAME", PARTITION.to_owned()),
            ("SLURM_CPUS_ON_NODE", self.cpus.to_string()),
            ("SLURM_JOB_CPUS_PER_NODE", self.cpus.to_string()),
            ("SLURM_JOB_UID", record.owner.0.to_string()),
            ("SLURM_JOB_USER", crate::users::name(record.owner)),
        ];
        names.extend(self.copies());
        names.extend(self.array());
        names.extend(self.times());
        names
    }

    /// What was said of copies, their CPUs and GPUs, and of host memory. What was not said is not told, as by Slurm.
    fn copies(&self) -> Vec<(&'static str, String)> {
        let layout = &self.spec.layout;
        let mut names = Vec::new();
        names.push(("SLURM_TASKS_PER_NODE", layout.ntasks.unwrap_or(1).to_string()));
        if let Some(copies) = layout.ntasks.map(|copies| copies.to_string()) {
            names.push((NTASKS, copies.clone()));
            names.push(("SLURM_NTASKS_PER_NODE", copies.clone()));
            names.push(("SLURM_NPROCS", copies.clone()));
            if speaks_of(self.spec, "SLURM_NTASKS") {
                names.push(("SLURM_NTASKS", copies));
            }
        }
        let each = layout.cpus_per_task.map(|cpus| ("SLURM_CPUS_PER_TASK", cpus.to_string()));
        let gpus = layout.gpus_per_task.map(|gpus| ("SLURM_GPUS_PER_TASK", gpus.to_string()));
        let memory = self.spec.host_memory;
        let memory = memory.map(|memory| ("SLURM_MEM_PER_NODE", (memory.0 >> 20).to_string()));
        names.extend(each.into_iter().chain(gpus).chain(memory));
        names
    }

    fn array(&self) -> Vec<(&'static str, String)> {
        let Some(place) = self.record.array else { return Vec::new() };
        let mut names = vec![
            ("COLOC_ARRAY_ID", place.array.to_string()),
            ("COLOC_ARRAY_INDEX", place.index.to_string()),
            ("SLURM_ARRAY_JOB_ID", place.array.to_string()),
            ("SLURM_ARRAY_TASK_ID", place.index.to_string()),
        ];
        if let Some(extent) = self.spec.layout.array {
            names.push(("SLURM_ARRAY_TASK_COUNT", extent.count.to_string()));
            names.push(("SLURM_ARRAY_TASK_MIN", extent.min.to_string()));
            names.push(("SLURM_ARRAY_TASK_MAX", extent.max.to_string()));
            names.push(("SLURM_ARRAY_TASK_STEP", extent.step.to_string()));
        }
        names
    }

    /// When it begins, which is now, and when its time limit ends it, in seconds since 1970.
    fn times(&self) -> Vec<(&'static str, String)> {
        let began = Moment::now().secs() as u64;
        let limit = self.spec.time_limit.map(|limit| (self.world)(limit).as_secs());
        let ends =
            limit.map(|limit| ("SLURM_JOB_END_TIME", began.saturating_add(limit).to_string()));
        [("SLURM_JOB_START_TIME", began.to_string())].into_iter().chain(ends).collect()
    }
}

/// A directory with links to the program by the names of Slurm's commands, beside the daemon's socket: where users come
/// to reach the daemon, and which is the daemon's own. Another user's directory of that name is not used.
pub fn make_commands(socket: &Path, program: &Path) -> Option<PathBuf> {
    let place = std::path::absolute(socket.with_extension("commands")).ok()?;
    // A search path cannot name it.
    if place.as_os_str().as_encoded_bytes().contains(&b':') {
        return None;
    }
    match make_links(&place, program) {
        Ok(()) => Some(place),
        Err(error) => {
            tracing::warn!("{}: {error}; tasks do not find srun by itself", place.display());
            None
        }
    }
}

fn make_links(place: &Path, program: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
    let own = rustix::process::geteuid().as_raw();
    match std::fs::DirBuilder::new().mode(0o755).create(place) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let meta = std::fs::symlink_metadata(place)?;
    if !meta.is_dir() || meta.uid() != own || meta.mode() & 0o022 != 0 {
        let what = "it is not a directory that the daemon's user alone can write to";
        return Err(std::io::Error::new(std::io::ErrorKind::PermissionDenied, what));
    }
    for name in coloc_api::slurm::COMMANDS {
        let link = place.join(name);
        if std::fs::read_link(&link).is_ok_and(|there| there == program) {
            continue;
        }
        // Made beside and moved, so that there is always one.
        let new = place.join(format!(".{name}"));
        let _ = std::fs::remove_file(&new);
        std::os::unix::fs::symlink(program, &new)?;
        std::fs::rename(&new, &link)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn links_are_made_again_and_not_where_others_write() {
        let dir = tempfile::tempdir().expect("a folder");
        let socket = dir.path().join("coloc.sock");
        let place = make_commands(&socket, Path::new("/bin/one")).expect("a directory");
        assert_eq!(std::fs::read_link(place.join("srun")).expect("a link"), Path::new("/bin/one"));
        make_commands(&socket, Path::new("/bin/two")).expect("the same directory");
        assert_eq!(std::fs::read_link(place.join("srun")).expect("a link"), Path::new("/bin/two"));
        let open = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(&place, open).expect("changed");
        assert_eq!(make_commands(&socket, Path::new("/bin/two")), None);
        std::fs::remove_dir_all(&place).expect("removed");
        std::os::unix::fs::symlink("/tmp", &place).expect("a link");
        assert_eq!(make_commands(&socket, Path::new("/bin/two")), None);
    }
}
