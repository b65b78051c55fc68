//! What is there.

use crate::device::{Identity, MigMode, Versions, Vitals};
use crate::driver::{DriverError, Guarded};
use crate::enforce::{Dmem, Facilities};
use crate::health::Condition;
use crate::program;
use crate::sample::dcgm::{DmonParser, Endpoint, parse_exposition};
use crate::snapshot;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

/// Where to look; other places in tests.
#[derive(Clone, Debug)]
pub struct Places {
    /// Where programs are looked for: the text of `PATH`.
    pub path: std::ffi::OsString,
    /// The cgroup file system.
    pub cgroup: PathBuf,
    /// The process table.
    pub proc: PathBuf,
    /// A dcgm-exporter.
    pub exporter: Option<Endpoint>,
}

impl Default for Places {
    fn default() -> Self {
        Places {
            path: std::env::var_os("PATH").unwrap_or_default(),
            cgroup: PathBuf::from("/sys/fs/cgroup"),
            proc: PathBuf::from("/proc"),
            exporter: "127.0.0.1:9400".parse().ok(),
        }
    }
}

/// A GPU, as far as it matters here.
#[derive(Clone, PartialEq, Debug)]
pub struct GpuFacts {
    /// What it is.
    pub identity: Identity,
    /// Whether it is partitioned.
    pub mig: MigMode,
    /// NVML sees its SM activity.
    pub gpm: bool,
    /// How its memory is.
    pub condition: Condition,
}

/// A `dcgmi` that is installed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dcgmi {
    /// Where.
    pub program: PathBuf,
    /// Why it does not tell SM activity, if it does not.
    pub trouble: Option<String>,
}

impl Dcgmi {
    /// Tries it: being there is not working. Without a host engine, or beside a second one, it has nothing to tell.
    fn at(program: PathBuf) -> Self {
        let mut command = program::command(&program);
        command.args(["dmon", "-e", SM_ACTIVITY, "-d", "100", "-c", "2"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let trouble = match program::run(&mut command, None, TIMEOUT) {
            Err(error) => Some(error.to_string()),
            Ok(said) => {
                let mut table = DmonParser::default();
                let mut measured = said.stdout.lines().filter_map(|line| table.line(line));
                let sees = measured.any(|measured| measured.reading.sm.is_some());
                (!said.status.success() || !sees).then(|| first_words(&said.complaint()))
            }
        };
        Dcgmi { program, trouble }
    }
}

/// `DCGM_FI_PROF_SM_ACTIVE`.
const SM_ACTIVITY: &str = "1002";
/// A `dcgmi` that takes longer does not work.
const TIMEOUT: Duration = Duration::from_secs(5);

/// As much of a complaint as fits a line.
fn first_words(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    match lines.is_empty() {
        true => "it says nothing".to_owned(),
        false => lines.join(" ").chars().take(200).collect(),
    }
}

/// What was found on a machine.
#[derive(Clone, PartialEq, Debug)]
pub struct Facts {
    /// The driver's versions, or why there are none.
    pub driver: Result<Versions, DriverError>,
    /// The GPUs that answer.
    pub gpus: Vec<GpuFacts>,
    /// Why others do not.
    pub silent: Vec<(u32, DriverError)>,
    /// We are root.
    pub root: bool,
    /// `nvidia-cuda-mps-control`, if it is installed.
    pub mps_control: Option<PathBuf>,
    /// `dcgmi`, if it is installed.
    pub dcgmi: Option<Dcgmi>,
    /// What a dcgm-exporter tells: whether SM activity is among it. `None` if none answers.
    pub exporter_sees_sms: Option<bool>,
    /// Profiling counters are for administrators only.
    pub profiling_restricted: bool,
    /// The kernel, as major and minor.
    pub kernel: Option<(u32, u32)>,
    /// cgroup v2 with controllers is mounted.
    pub cgroup_v2: bool,
    /// GPUs whose memory the kernel accounts by cgroup.
    pub dmem_regions: usize,
    /// Other users' processes can be looked at.
    pub sees_all_processes: bool,
}

impl Facts {
    /// Looks around.
    pub fn gather(driver: &Guarded, places: &Places) -> Self {
        let told = driver.ask(|driver| {
            let (versions, told) = snapshot::ask(driver)?;
            let mut gpus = Vec::new();
            let mut silent = Vec::new();
            for (index, told) in told {
                match told {
                    Ok((identity, vitals, ..)) => {
                        let gpm = driver.gpm(index).is_ok();
                        let Vitals { mig, condition, .. } = vitals;
                        gpus.push(GpuFacts { identity, mig, gpm, condition });
                    }
                    Err(error) => silent.push((index, error)),
                }
            }
            Ok((versions, gpus, silent))
        });
        let (driver, gpus, silent) = match told {
            Ok((versions, gpus, silent)) => (Ok(versions), gpus, silent),
            Err(error) => (Err(error), Vec::new(), Vec::new()),
        };
        let page = places.exporter.as_ref().and_then(|endpoint| endpoint.fetch().ok());
        Facts {
            driver,
            gpus,
            silent,
            root: rustix::process::geteuid().is_root(),
            mps_control: find(&places.path, "nvidia-cuda-mps-control"),
            dcgmi: find(&places.path, "dcgmi").map(Dcgmi::at),
            exporter_sees_sms: page
                .map(|page| parse_exposition(&page).iter().any(|m| m.reading.sm.is_some())),
            profiling_restricted: restricted(&places.proc),
            kernel: kernel(&places.proc),
            cgroup_v2: has_controllers(&places.cgroup),
            dmem_regions: Dmem::at(&places.cgroup).regions().len(),
            sees_all_processes: places.proc.join("1/stat").exists(),
        }
    }

    /// What can be enforced here. Nothing here watches tasks and ends them.
    pub fn facilities(&self) -> Facilities {
        Facilities {
            dmem: self.dmem_regions > 0,
            mps: self.mps_control.is_some() && !self.gpus.is_empty(),
            mps_server: None,
            watchdog: !self.gpus.is_empty(),
        }
    }
}

/// A program on the path.
fn find(path: &OsStr, name: &str) -> Option<PathBuf> {
    std::env::split_paths(path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// The driver's parameter that reserves profiling for administrators.
fn restricted(proc: &Path) -> bool {
    let text = std::fs::read_to_string(proc.join("driver/nvidia/params")).unwrap_or_default();
    text.lines().any(|line| {
        line.split_once(':')
            .is_some_and(|(key, value)| key.trim() == "RmProfilingAdminOnly" && value.trim() == "1")
    })
}

fn kernel(proc: &Path) -> Option<(u32, u32)> {
    let text = std::fs::read_to_string(proc.join("sys/kernel/osrelease")).ok()?;
    let mut numbers = text.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// A v2 hierarchy without controllers is there on many machines that use v1.
fn has_controllers(cgroup: &Path) -> bool {
    std::fs::read_to_string(cgroup.join("cgroup.controllers"))
        .is_ok_and(|text| !text.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::scripted::Scripted;
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_machine_is_looked_at() {
        let root = tempfile::tempdir().expect("a folder");
        let at = |name: &str| root.path().join(name);
        fs::create_dir_all(at("bin")).expect("a folder");
        fs::create_dir_all(at("proc/driver/nvidia")).expect("a folder");
        fs::create_dir_all(at("proc/sys/kernel")).expect("a folder");
        fs::write(at("bin/dcgmi"), "").expect("a program");
        fs::write(
            at("proc/driver/nvidia/params"),
            "ModifyDeviceFiles: 1\nRmProfilingAdminOnly: 1\n",
        )
        .expect("parameters");
        fs::write(at("proc/sys/kernel/osrelease"), "6.14.0-rc1-custom\n").expect("a release");
        let places = Places {
            path: at("bin").into(),
            cgroup: at("cgroup"),
            proc: at("proc"),
            exporter: None,
        };
        let scripted = Scripted::with_gpus(2);
        scripted.script().gpus[1].failure = Some(DriverError::Lost);
        let facts =
            Facts::gather(&Guarded::new(scripted.connect(), Duration::from_secs(5)), &places);
        assert_eq!((facts.gpus.len(), facts.silent.len()), (1, 1));
        assert_eq!(facts.kernel, Some((6, 14)));
        assert!(facts.profiling_restricted);
        let trouble =
            facts.dcgmi.as_ref().and_then(|dcgmi| dcgmi.trouble.clone()).expect("it cannot be run");
        assert!(trouble.contains("denied"), "{trouble}");
        assert!(!facts.cgroup_v2 && facts.mps_control.is_none() && !facts.gpus[0].gpm);
        assert!(!facts.facilities().dmem && !facts.facilities().mps);
    }

    /// What is said of a `dcgmi` that is this script.
    fn trouble(script: &str) -> Option<String> {
        let root = tempfile::tempdir().expect("a folder");
        let program = root.path().join("dcgmi");
        fs::write(&program, format!("#!/bin/sh\n{script}\n")).expect("a program");
        let runs = fs::Permissions::from_mode(0o755);
        fs::set_permissions(&program, runs).expect("a program");
        Dcgmi::at(program).trouble
    }

    #[test]
    fn a_dcgmi_that_is_there_may_not_work() {
        let table = "echo '#Entity   SMACT'; echo 'ID'; echo 'GPU 0     0.250'";
        assert_eq!(trouble(table), None);
        let engine = "echo 'Error: Unable to connect to host engine.' >&2; exit 1";
        assert_eq!(trouble(engine).as_deref(), Some("Error: Unable to connect to host engine."));
        let blank = trouble("echo '#Entity   SMACT'; echo 'ID'; echo 'GPU 0     N/A'");
        assert!(blank.is_some_and(|says| says.contains("N/A")));
        assert_eq!(trouble("exit 0").as_deref(), Some("it says nothing"));
        assert!(trouble("exec sleep 60").is_some_and(|says| says.contains("did not end")));
    }
}
