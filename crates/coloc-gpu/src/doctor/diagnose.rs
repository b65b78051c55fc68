//! What follows from what is there.

use super::facts::{Dcgmi, Facts, GpuFacts};
use crate::driver::DriverError;
use crate::enforce::Rung;
use crate::sample::Source;
use serde::Serialize;

/// How well something is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Health {
    /// As good as it gets.
    Ok,
    /// It works, and could be better.
    Partial,
    /// It is not there.
    Missing,
    /// Something is broken.
    Broken,
}

/// One thing that was looked at.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Finding {
    /// What it is about.
    pub about: &'static str,
    /// How well it is.
    pub health: Health,
    /// What is there, and by what.
    pub what: String,
    /// What to type to get further.
    pub next: Option<String>,
}

fn finding(about: &'static str, health: Health, what: impl Into<String>) -> Finding {
    Finding { about, health, what: what.into(), next: None }
}

impl Finding {
    fn next(mut self, next: impl Into<String>) -> Self {
        self.next = Some(next.into());
        self
    }
}

/// Everything that can be said of a machine.
pub fn diagnose(facts: &Facts) -> Vec<Finding> {
    let mut findings = vec![driver(facts)];
    if facts.driver.is_err() {
        return findings;
    }
    findings.extend(silent(facts));
    findings.extend(facts.gpus.iter().flat_map(faults));
    if !facts.gpus.is_empty() {
        findings.extend([
            activity(facts),
            attribution(facts),
            memory(facts),
            mps(facts),
            mig(facts),
        ]);
    }
    findings
}

fn driver(facts: &Facts) -> Finding {
    const ABOUT: &str = "driver";
    match &facts.driver {
        Ok(versions) => {
            let (major, minor) = versions.cuda;
            let emulated = facts.gpus.iter().any(|gpu| gpu.identity.emulated);
            let emulated = if emulated { ", emulated: no figure is measured" } else { "" };
            let count = facts.gpus.len();
            let plural = if count == 1 { "" } else { "s" };
            let driver = &versions.driver;
            let what = format!("{driver}, CUDA {major}.{minor}, {count} GPU{plural}{emulated}");
            finding(ABOUT, if count > 0 { Health::Ok } else { Health::Missing }, what)
        }
        Err(error) => {
            let missing = matches!(error, DriverError::NoLibrary { .. });
            let health = if missing { Health::Missing } else { Health::Broken };
            finding(ABOUT, health, error.to_string())
        }
    }
}

fn silent(facts: &Facts) -> impl Iterator<Item = Finding> {
    facts
        .silent
        .iter()
        .map(|(index, error)| finding("gpu", Health::Broken, format!("GPU {index}: {error}")))
}

fn faults(gpu: &GpuFacts) -> impl Iterator<Item = Finding> {
    let index = gpu.identity.index;
    let told = move |fault| finding("gpu", Health::Broken, format!("GPU {index}: {fault}"));
    gpu.condition.faults().map(told)
}

fn activity(facts: &Facts) -> Finding {
    const ABOUT: &str = "SM activity";
    let old: Vec<&GpuFacts> = facts.gpus.iter().filter(|gpu| !gpu.gpm).collect();
    let may_profile = facts.root || !facts.profiling_restricted;
    if old.is_empty() {
        return finding(ABOUT, Health::Ok, format!("by {}", Source::Gpm.name()));
    }
    let works = facts.dcgmi.as_ref().is_some_and(|dcgmi| dcgmi.trouble.is_none());
    if works && may_profile {
        return finding(ABOUT, Health::Ok, format!("by {}", Source::DcgmDmon.name()));
    }
    if facts.exporter_sees_sms == Some(true) {
        return finding(ABOUT, Health::Ok, format!("by {}", Source::DcgmExporter.name()));
    }
    let what =
        "not seen: utilization only says that some kernel ran, so GPUs look busier than they are";
    let missing = finding(ABOUT, Health::Missing, what);
    if facts.exporter_sees_sms == Some(false) {
        return missing.next(
            "enable DCGM_FI_PROF_SM_ACTIVE and DCGM_FI_PROF_SM_OCCUPANCY in dcgm-exporter's counters file",
        );
    }
    if let Some(Dcgmi { program, trouble: Some(trouble) }) = &facts.dcgmi
        && may_profile
    {
        let what = format!("{} does not work: {trouble}", program.display());
        return finding(ABOUT, Health::Broken, what)
            .next("`systemctl enable --now nvidia-dcgm`, then `dcgmi discovery -l`");
    }
    if facts.dcgmi.is_some() {
        return missing.next(
            "run as root, or `echo options nvidia NVreg_RestrictProfilingToAdminUsers=0 > \
             /etc/modprobe.d/nvidia-profiling.conf` and reboot",
        );
    }
    missing.next("install datacenter-gpu-manager, then `systemctl enable --now nvidia-dcgm`")
}

fn attribution(facts: &Facts) -> Finding {
    const ABOUT: &str = "processes";
    if !facts.sees_all_processes {
        return finding(ABOUT, Health::Partial, "processes of other users are hidden")
            .next("run as root, or mount /proc without hidepid");
    }
    if facts.cgroup_v2 {
        return finding(ABOUT, Health::Ok, "attributed by cgroup, session and ancestry");
    }
    let what =
        "attributed by session and ancestry: a process that leaves both is taken for foreign";
    finding(ABOUT, Health::Partial, what).next("boot with systemd.unified_cgroup_hierarchy=1")
}

fn memory(facts: &Facts) -> Finding {
    const ABOUT: &str = "memory limits";
    let facilities = facts.facilities();
    if facilities.dmem {
        return finding(
            ABOUT,
            Health::Ok,
            format!("{}: the kernel refuses what exceeds a limit", Rung::Dmem),
        );
    }
    let (health, what) = if facilities.mps {
        (
            Health::Partial,
            format!("{}, for tasks that share by MPS; else {}", Rung::MpsPinnedLimit, Rung::None),
        )
    } else {
        (Health::Missing, format!("{}: a task can take more than it was promised", Rung::None))
    };
    let next = match facts.kernel {
        Some(kernel) if kernel < (6, 14) => {
            let (major, minor) = kernel;
            format!(
                "for {}: Linux 6.14 or newer (this is {major}.{minor}) and a driver that accounts by cgroup",
                Rung::Dmem
            )
        }
        _ if !facts.cgroup_v2 => {
            format!("for {}: boot with systemd.unified_cgroup_hierarchy=1", Rung::Dmem)
        }
        _ => format!(
            "for {}: a driver that registers its memory with the kernel's dmem controller",
            Rung::Dmem
        ),
    };
    finding(ABOUT, health, what).next(next)
}

fn mps(facts: &Facts) -> Finding {
    const ABOUT: &str = "MPS";
    match &facts.mps_control {
        Some(program) => finding(
            ABOUT,
            Health::Ok,
            format!("{}; coloc runs a daemon for each GPU and user", program.display()),
        ),
        None => finding(ABOUT, Health::Missing, "nvidia-cuda-mps-control is not installed")
            .next("install nvidia-compute-utils of the driver's version"),
    }
}

fn mig(facts: &Facts) -> Finding {
    const ABOUT: &str = "MIG";
    use crate::device::MigMode;
    let count =
        |wanted: fn(MigMode) -> bool| facts.gpus.iter().filter(|gpu| wanted(gpu.mig)).count();
    let able = count(|mode| mode != MigMode::Unsupported);
    let on = count(MigMode::is_on);
    let waiting = count(|mode| mode == MigMode::EnabledAfterReset);
    if able == 0 {
        return finding(ABOUT, Health::Missing, "none of the GPUs can be partitioned");
    }
    let what = format!("enabled on {on} of {able} GPUs that can be partitioned");
    if waiting > 0 {
        return finding(ABOUT, Health::Partial, format!("{what}; {waiting} need a reset"))
            .next("stop what uses them, then `nvidia-smi --gpu-reset`");
    }
    if !facts.root {
        return finding(ABOUT, Health::Partial, what)
            .next("coloc must be root to enable it and to create instances");
    }
    let next = "`nvidia-smi -i GPU -mig 1` on an idle GPU; coloc creates the instances";
    let found = finding(ABOUT, if on > 0 { Health::Ok } else { Health::Partial }, what);
    if on < able { found.next(next) } else { found }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{MigMode, Versions};
    use crate::driver::scripted::identity;
    use crate::health::Condition;

    fn gpu(mig: MigMode, gpm: bool) -> GpuFacts {
        GpuFacts { identity: identity(0), mig, gpm, condition: Condition::default() }
    }

    fn facts() -> Facts {
        Facts {
            driver: Ok(Versions { driver: "570.86.15".to_owned(), cuda: (12, 8) }),
            gpus: vec![gpu(MigMode::Disabled, false)],
            silent: Vec::new(),
            root: false,
            mps_control: None,
            dcgmi: None,
            exporter_sees_sms: None,
            profiling_restricted: true,
            kernel: Some((6, 8)),
            cgroup_v2: true,
            dmem_regions: 0,
            sees_all_processes: true,
        }
    }

    fn says(facts: &Facts) -> String {
        let line = |finding: &Finding| {
            let next =
                finding.next.as_ref().map_or(String::new(), |next| format!("\n  next: {next}"));
            format!("{}: {:?}: {}{next}", finding.about, finding.health, finding.what)
        };
        diagnose(facts).iter().map(line).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_plain_workstation_is_told_how_to_get_further() {
        insta::assert_snapshot!(says(&facts()));
    }

    #[test]
    fn a_well_kept_server_has_nothing_to_do() {
        let server = Facts {
            gpus: vec![gpu(MigMode::Enabled, true)],
            root: true,
            mps_control: Some("/usr/bin/nvidia-cuda-mps-control".into()),
            kernel: Some((6, 14)),
            dmem_regions: 1,
            ..facts()
        };
        insta::assert_snapshot!(says(&server));
        assert!(diagnose(&server).iter().all(|f| f.health == Health::Ok && f.next.is_none()));
    }

    #[test]
    fn faulty_memory_is_broken() {
        let condition =
            Condition { remap_pending: true, ecc_uncorrected: Some(3), remap_failed: false };
        let faulty = GpuFacts { condition, ..gpu(MigMode::Disabled, false) };
        let told = diagnose(&Facts { gpus: vec![faulty], ..facts() });
        let broken: Vec<&str> = told
            .iter()
            .filter(|finding| finding.health == Health::Broken)
            .map(|finding| finding.what.as_str())
            .collect();
        assert_eq!(broken[0], "GPU 0: 3 uncorrected ECC errors");
        assert!(broken[1].contains("a row remap is pending") && broken.len() == 2, "{broken:?}");
    }

    #[test]
    fn without_a_driver_nothing_else_is_said() {
        let error = DriverError::NoLibrary { detail: "libnvidia-ml.so.1: cannot open".to_owned() };
        let none = Facts { driver: Err(error), gpus: Vec::new(), ..facts() };
        insta::assert_snapshot!(says(&none));
    }

    #[test]
    fn the_next_rung_of_activity_depends_on_what_is_there() {
        let next = |facts: Facts| activity(&facts).next.unwrap_or_default();
        assert!(next(facts()).contains("datacenter-gpu-manager"));
        let of = |trouble| Some(Dcgmi { program: "/usr/bin/dcgmi".into(), trouble });
        let dcgmi = of(None);
        assert!(
            next(Facts { dcgmi: dcgmi.clone(), ..facts() }).contains("NVreg_RestrictProfiling")
        );
        assert!(next(Facts { exporter_sees_sms: Some(false), ..facts() }).contains("SM_ACTIVE"));
        assert_eq!(activity(&Facts { dcgmi, root: true, ..facts() }).health, Health::Ok);
        let dcgmi = of(Some("Unable to connect to host engine".to_owned()));
        let broken = activity(&Facts { dcgmi, root: true, ..facts() });
        assert_eq!(broken.health, Health::Broken);
        assert!(broken.what.ends_with("does not work: Unable to connect to host engine"));
    }
}
