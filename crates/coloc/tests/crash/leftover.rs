//! What a daemon, its shims and its tasks may leave behind.

use super::processes::processes;
use super::program::Ledger;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// A process that is killed needs a moment to go.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Everything that is left after the daemon ended, in words.
pub(super) fn find(home: &Path, ledger: &Ledger) -> Vec<String> {
    let began = Instant::now();
    loop {
        let mut left: Vec<String> = processes(home)
            .into_iter()
            .map(|(pid, command)| format!("process {pid}: {command}"))
            .collect();
        left.extend(groups(ledger).into_iter().map(|group| format!("group {}", group.display())));
        left.extend(instances(home));
        if left.is_empty() || began.elapsed() > TIMEOUT {
            return left;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Control groups that programs were in and that are still there.
pub(super) fn groups(ledger: &Ledger) -> Vec<PathBuf> {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let mount = mounts.lines().find(|line| line.contains(" - cgroup2 "));
    let Some(root) = mount.and_then(|line| line.split_whitespace().nth(4)) else {
        return Vec::new();
    };
    let attempts = ledger.tasks.values().flat_map(|attempts| attempts.values());
    let named =
        attempts.map(|attempt| attempt.group.as_str()).filter(|name| name.contains("coloc-"));
    let named: BTreeSet<&str> = named.collect();
    named
        .into_iter()
        .map(|name| PathBuf::from(format!("{root}{name}")))
        .filter(|p| p.exists())
        .collect()
}

/// MIG instances on the emulated GPUs, and GPUs that are still partitioned.
fn instances(home: &Path) -> Vec<String> {
    let shown = Command::new(env!("CARGO_BIN_EXE_coloc"))
        .args(["emu", "show", "--json"])
        .env("COLOC_EMU_DIR", home.join("state/emulated"))
        .output()
        .expect("it runs");
    let shown: serde_json::Value = serde_json::from_slice(&shown.stdout).expect("JSON");
    let gpus = shown["gpus"].as_array().expect("GPUs").iter();
    let of_gpu = |gpu: &serde_json::Value| {
        let instances = gpu["mig_devices"].as_array().map_or(0, Vec::len);
        let processes = gpu["processes"].as_array().map_or(0, Vec::len);
        let left = instances > 0 || gpu["mig"] == true || processes > 0;
        left.then(|| {
            format!(
                "GPU {}: {instances} MIG instances, {processes} processes, MIG {}",
                gpu["index"], gpu["mig"]
            )
        })
    };
    gpus.filter_map(of_gpu).collect()
}
